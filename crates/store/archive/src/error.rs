//! Why nothing was packed, or not all was stored.

use std::io;
use thiserror::Error;

/// Of packing or storing.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing was packed, or not all was stored.
#[derive(Debug, Error)]
pub enum Error {
    /// Of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The archive cannot be written or read.
    #[error(transparent)]
    Io(io::Error),
    /// An object to be packed cannot be read as it was stored.
    #[error("{object}: {source}")]
    Unreadable {
        /// Collection and object.
        object: String,
        /// What is wrong with it.
        source: store::Error,
    },
    /// There is nothing of this name to pack.
    #[error("no object in collection {collection:?} begins with {prefix:?}")]
    NothingSelected {
        /// The collection.
        collection: String,
        /// How names were to begin.
        prefix: store::Name,
    },
    /// An object that was to be replaced has to stay.
    #[error("{object}: {why}")]
    Guarded {
        /// Collection and object.
        object: String,
        /// The reason.
        why: String,
    },
    /// A restore into the store was begun and not ended.
    #[error("a restore into this store has not come to its end")]
    Unfinished,
    /// The archive is compressed.
    #[error("the archive is compressed by {with}")]
    Compressed {
        /// The program that undoes it, with `-dc`.
        with: &'static str,
    },
    /// Something else.
    #[error("this is no archive of a store")]
    NoArchive,
    /// An archive of another version.
    #[error("the archive has version {found}, and this program reads version {supported}")]
    Version {
        /// Its version.
        found: u32,
        /// Ours.
        supported: u32,
    },
    /// It ends before its last part.
    #[error("the archive is cut off at byte {at}")]
    CutOff {
        /// Bytes that there are.
        at: u64,
    },
    /// What cannot be, or does not match its checksum.
    #[error("the archive is damaged at or before byte {at}: {what}")]
    Corrupt {
        /// How far it was read.
        at: u64,
        /// What was found.
        what: &'static str,
    },
    /// Objects do not match their checksums.
    #[error("the archive is damaged: {}", objects.join(", "))]
    Content {
        /// Which.
        objects: Vec<String>,
    },
    /// Only what has changed is in the archive.
    #[error("the archive is an incremental backup, and holds only what has changed")]
    Incremental,
    /// The first archive of a restore is no full backup.
    #[error("a restore begins with a full backup, and this is {found}")]
    NotFull {
        /// What it is.
        found: &'static str,
    },
    /// An archive does not build on the one before it.
    #[error("archive {number} was not made since archive {}", number - 1)]
    NotNext {
        /// Which, from 1 on.
        number: usize,
    },
    /// The store to restore into has something.
    #[error("the store holds collections already")]
    NotEmpty,
    /// An earlier restore into the store was of other archives.
    #[error("a restore of other archives into this store has not come to its end")]
    OtherArchives,
    /// An object that is said to be in an earlier archive was in none.
    #[error("{object}: is in none of the archives")]
    Missing {
        /// Collection and object.
        object: String,
    },
    /// Objects of several collections cannot go to one.
    #[error("the archive has {collections} collections, and they cannot become one")]
    SeveralCollections {
        /// How many.
        collections: usize,
    },
    /// Only a backup of this store can be built on.
    #[error("the earlier archive is {found}")]
    WrongParent {
        /// What it is.
        found: &'static str,
    },
}

impl From<io::Error> for Error {
    /// One of the store's, which went through a reader, is itself again.
    fn from(error: io::Error) -> Self {
        match error.downcast::<store::Error>() {
            Ok(own) => Self::Store(own),
            Err(error) => Self::Io(error),
        }
    }
}
