//! Errors of packing, checking and restoring.

use std::io;
use thiserror::Error;

/// Result of packing, checking or restoring.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an archive was not packed, or not stored completely.
#[derive(Debug, Error)]
pub enum Error {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The archive cannot be written or read.
    #[error(transparent)]
    Io(io::Error),
    /// An object to be packed cannot be read.
    #[error("{object}: {source}")]
    Unreadable {
        /// COLLECTION/OBJECT.
        object: String,
        /// The store's error.
        source: store::Error,
    },
    /// Rows of the database cannot be read that name objects, and a restore removes what the list of an incremental
    /// backup does not name.
    #[error(
        "{collection}: the names of some objects cannot be read, and a restore of an incremental backup would remove these: {source}"
    )]
    NamesLost {
        /// The collection.
        collection: String,
        /// The store's error.
        source: store::Error,
    },
    /// The selection contains no object.
    #[error("no object in collection {collection:?} begins with {prefix:?}")]
    NothingSelected {
        /// The collection.
        collection: String,
        /// The prefix of names that was selected.
        prefix: store::Name,
    },
    /// A [`Keeper`](crate::Keeper) protects an existing object, which was to be replaced.
    #[error("{object}: {why}")]
    Guarded {
        /// COLLECTION/OBJECT.
        object: String,
        /// The reason.
        why: String,
    },
    /// An earlier restore into the store has not ended.
    #[error("a restore into this store has not come to its end")]
    Unfinished,
    /// The archive is compressed.
    #[error("the archive is compressed by {with}")]
    Compressed {
        /// The program that decompresses it, with `-dc`.
        with: &'static str,
    },
    /// The input is no archive.
    #[error("this is no archive of a store")]
    NoArchive,
    /// The archive has another version.
    #[error("the archive has version {found}, and this program reads version {supported}")]
    Version {
        /// The archive's version.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The archive ends before its last part.
    #[error("the archive is cut off at byte {at}")]
    CutOff {
        /// Number of bytes in the archive.
        at: u64,
    },
    /// A part of the archive is invalid, or does not match its checksum.
    #[error("the archive is damaged at or before byte {at}: {what}")]
    Corrupt {
        /// Number of bytes read before the error.
        at: u64,
        /// Description of the error.
        what: &'static str,
    },
    /// Objects do not match their checksums.
    #[error("the archive is damaged: {}", objects.join(", "))]
    Content {
        /// The objects, as COLLECTION/OBJECT.
        objects: Vec<String>,
    },
    /// The archive holds only changes, so that it cannot be imported.
    #[error("the archive is an incremental backup, and holds only what has changed")]
    Incremental,
    /// The first archive of a restore is no full backup.
    #[error("a restore begins with a full backup, and this is {found}")]
    NotFull {
        /// The archive's kind.
        found: &'static str,
    },
    /// An archive does not build on the one before it.
    #[error("archive {number} was not made since archive {}", number - 1)]
    NotNext {
        /// Its number, from 1 on.
        number: usize,
    },
    /// The store to restore into is not empty.
    #[error("the store holds collections already")]
    NotEmpty,
    /// An earlier restore of other archives into the store has not ended.
    #[error("a restore of other archives into this store has not come to its end")]
    OtherArchives,
    /// An object that should be in an earlier archive was in none.
    #[error("{object}: is in none of the archives")]
    Missing {
        /// COLLECTION/OBJECT.
        object: String,
    },
    /// Objects of several collections cannot go to one.
    #[error("the archive has {collections} collections, and they cannot become one")]
    SeveralCollections {
        /// Number of collections.
        collections: usize,
    },
    /// The earlier archive is not a backup of this store.
    #[error("the earlier archive is {found}")]
    WrongParent {
        /// The earlier archive's kind or origin.
        found: &'static str,
    },
}

impl From<io::Error> for Error {
    /// An error of the store that went through a reader becomes [`Error::Store`] again.
    fn from(error: io::Error) -> Self {
        match error.downcast::<store::Error>() {
            Ok(own) => Self::Store(own),
            Err(error) => Self::Io(error),
        }
    }
}
