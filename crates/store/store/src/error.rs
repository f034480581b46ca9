//! What the store answers when it does not do as it was told. The kinds say what to do: fix the
//! call, free space, restore the object, or look after the drive.

use crate::Name;
use thiserror::Error;
use zone::{Bytes, ZoneAddress, ZoneError, ZoneId};

/// The result of a store call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store call failed.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no such collection.
    #[error("no collection {collection:?}")]
    NoCollection {
        /// Its name.
        collection: String,
    },
    /// The collection exists already.
    #[error("collection {collection:?} exists already")]
    CollectionExists {
        /// Its name.
        collection: String,
    },
    /// A collection that still holds objects cannot be removed.
    #[error("collection {collection:?} is not empty")]
    CollectionNotEmpty {
        /// Its name.
        collection: String,
    },
    /// There is no such object.
    #[error("no object {object:?} in collection {collection:?}")]
    NoObject {
        /// The collection.
        collection: String,
        /// The object.
        object: Name,
    },
    /// A condition of the transaction does not hold; nothing of it was done.
    #[error("a condition on object {object:?} in collection {collection:?} does not hold")]
    ConditionFailed {
        /// The collection.
        collection: String,
        /// The object.
        object: Name,
    },
    /// The object's name has a hash that the collection does not cover.
    #[error(
        "object {object:?} has the hash {hash:#010x}, which collection {collection:?} does not cover: name the \
         collection of its family that does"
    )]
    HashNotCovered {
        /// The collection.
        collection: String,
        /// The object.
        object: Name,
        /// Its hash.
        hash: u32,
    },
    /// An object in a collection by hash needs a name.
    #[error(
        "an object in collection {collection:?}, which is by hash, needs a name of at least one byte"
    )]
    NoName {
        /// The collection.
        collection: String,
    },
    /// A collection by hash cannot be made beside another one of its family.
    #[error(
        "collection {collection:?} would have hashes that collection {other:?} of the same family has, or find \
         hashes elsewhere than that: choose another prefix, source or family"
    )]
    HashesTaken {
        /// The one that was to be made.
        collection: String,
        /// The one that is there.
        other: String,
    },
    /// The collection has no halves.
    #[error("collection {collection:?} is by name or has a single hash, and cannot be split")]
    CannotSplit {
        /// Its name.
        collection: String,
    },
    /// Two collections are not the halves of one.
    #[error(
        "collections {collection:?} and {into:?} cannot be merged: only two that one split could have made can"
    )]
    CannotMerge {
        /// The one that would be gone.
        collection: String,
        /// The one that would have all objects.
        into: String,
    },
    /// The call cannot be carried out as it is.
    #[error("{what} is {found}, allowed is {allowed}")]
    Invalid {
        /// What is out of bounds.
        what: &'static str,
        /// What it is.
        found: u64,
        /// What it may be at the most.
        allowed: u64,
    },
    /// The drive is full of live data: delete something.
    #[error(
        "no space: {} are wanted, and {}{} of {} are free",
        Bytes(*wanted),
        if *wanted <= capacity.saturating_sub(*live) { "no zone can be freed for them now, though " } else { "" },
        Bytes(capacity.saturating_sub(*live)), Bytes(*capacity)
    )]
    NoSpace {
        /// Live bytes, and those reserved to uploads that are under way.
        live: u64,
        /// Bytes that can be live at most.
        capacity: u64,
        /// Bytes asked for.
        wanted: u64,
    },
    /// Metadata (names, attributes, objects of up to half a block) has no room to grow: remove objects.
    #[error(
        "no space for metadata and small objects: they fill {}, and {} of free zones are kept for \
         deleting and compacting",
        Bytes(*metadata), Bytes(*free)
    )]
    NoMetadataSpace {
        /// Bytes of the zones that metadata has.
        metadata: u64,
        /// Bytes of the zones that are still free.
        free: u64,
    },
    /// A transaction brings or removes more metadata than free zones take at once, though smaller ones go on. Nothing of it
    /// happened. An object that is removed, or an omap that is cleared, is one row, whatever it has.
    #[error(
        "no space for {} of metadata in one transaction: {} of zones are free, and some are kept for deleting and \
         compacting; divide it into several transactions, each of fewer rows",
        Bytes(*bytes), Bytes(*free)
    )]
    TransactionTooLarge {
        /// Bytes of the transaction's metadata.
        bytes: u64,
        /// Bytes of the zones that are still free.
        free: u64,
    },
    /// Data that a transaction names was written for another store, or before this one was mounted: its zones are not kept here.
    #[error(
        "the data of {object:?} was written to another store, or before this one was mounted; write it again"
    )]
    DataOfOther {
        /// COLLECTION/OBJECT.
        object: String,
    },
    /// What was read as it was at a moment may be overwritten from now on: whoever writes needs its zones.
    #[error(
        "zones ran short for what is written meanwhile, and the state of the store that was being read was given up"
    )]
    MomentGivenUp,
    /// The disk that the drive's file lies on is nearly full; what it has left is for deletes.
    #[error(
        "no space on the host's disk under the drive: it has {} left, and new objects leave {} of that for \
         deletes",
        Bytes(*free),
        Bytes(*kept)
    )]
    HostFull {
        /// Bytes that the host's file system has left.
        free: u64,
        /// Of these, what new data leaves alone.
        kept: u64,
    },
    /// Stored data does not match its checksum. The data is not returned.
    #[error(
        "object {object:?} at byte {offset} ({at}): checksum {found:#010x}, expected {expected:#010x}"
    )]
    ChecksumMismatch {
        /// Collection and object, or what the data is of where no name is at hand.
        object: String,
        /// Logical byte offset of the damaged chunk in the object.
        offset: u64,
        /// Where on the drive it lies.
        at: ZoneAddress,
        /// The checksum in the metadata.
        expected: u32,
        /// The checksum of what was read.
        found: u32,
    },
    /// A metadata record does not make sense.
    #[error(
        "{}metadata record {key}: {what} (found {found})",
        object.as_ref().map(|name| format!("object {name:?}: ")).unwrap_or_default()
    )]
    CorruptMetadata {
        /// Collection and object that it was met in, where that is known.
        object: Option<String>,
        /// The key, printable.
        key: String,
        /// What is wrong.
        what: &'static str,
        /// What was found, as a number.
        found: u64,
    },
    /// A live extent points above the zone's write pointer.
    #[error(
        "zone {zone}: live data up to byte {needed}, but the write pointer is at {write_pointer}"
    )]
    BelowMetadata {
        /// The zone.
        zone: ZoneId,
        /// Where the live data ends.
        needed: u64,
        /// The drive's write pointer.
        write_pointer: u64,
    },
    /// The zone that data was written to cannot be read any more, before it was committed.
    #[error(
        "zone {zone} cannot be read any more, and what was written to it is lost: send the data again"
    )]
    WrittenLost {
        /// The zone.
        zone: ZoneId,
    },
    /// The drive is empty.
    #[error("the drive holds no object store; all its zones are empty")]
    NotFormatted,
    /// The drive holds something else.
    #[error("the drive holds {contents}, and no object store")]
    NoStore {
        /// What it holds.
        contents: Box<bluefs::Contents>,
    },
    /// The superblock says that there is a store, and its metadata are not there.
    #[error(
        "the drive was formatted for an object store, but the store's metadata are missing: it was never finished, or is damaged"
    )]
    Incomplete,
    /// No summary was found, so nothing tells what the data is.
    #[error(
        "no zone that can be read has a summary of a store: the drive had none, or only objects of up to half a block, or none of {} of data yet",
        Bytes(crate::summaries::MAX_DESCRIBED)
    )]
    NothingToSalvage,
    /// A salvage in place of a store whose metadata can be read.
    #[error("the store's metadata can be opened and read: there is nothing to salvage in place")]
    StillOpens,
    /// A salvage in place was stopped on its way.
    #[error("a salvage of the store in place was begun and has not ended")]
    SalvageUnfinished,
    /// What is kept leaves too few zones for new metadata.
    #[error(
        "new metadata need {needed} sequential zones, and {free} hold nothing that may be of objects"
    )]
    NoRoomForMetadata {
        /// Zones that may be written to.
        free: u32,
        /// How many it takes.
        needed: u32,
    },
    /// A store of another format version.
    #[error(
        "the store has format version {found}, and this program reads version {supported}: {}",
        if found < supported {
            "copy its objects out with the program that wrote it, and make a new store"
        } else {
            "a newer program wrote it"
        }
    )]
    UnsupportedVersion {
        /// The version on the drive.
        found: u32,
        /// The version we read.
        supported: u32,
    },
    /// The drive is too small or has too few zones.
    #[error("the drive has {found} sequential zones; a store needs at least {needed}")]
    DriveTooSmall {
        /// What it has.
        found: u32,
        /// What is needed.
        needed: u32,
    },
    /// The store was mounted read-only or has been unmounted.
    #[error("the store is mounted read-only or not at all")]
    ReadOnly,
    /// A commit has failed half-way, so that nothing can be written before the next mount. Reads go
    /// on.
    #[error(
        "nothing can be written any more, only read, until the drive is mounted again: {reason}"
    )]
    Failed {
        /// What failed.
        reason: String,
    },
    /// The drive does not give bytes of an object.
    #[error("object {object:?} at byte {offset} cannot be read ({at}): {source}")]
    Unreadable {
        /// COLLECTION/OBJECT.
        object: String,
        /// In front of these bytes, in the object.
        offset: u64,
        /// Where they lie.
        at: ZoneAddress,
        /// What the drive answers.
        source: ZoneError,
    },
    /// The drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
    /// The key-value store.
    #[error("metadata: {0}")]
    Kv(#[from] kv::Error),
    /// The file system under it.
    #[error("file system: {0}")]
    BlueFs(#[from] bluefs::Error),
}

impl Error {
    /// Whether something did not fit: on the drive, in the metadata, or on the disk that an emulated
    /// drive lies on.
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::NoSpace { .. }
            | Self::NoMetadataSpace { .. }
            | Self::TransactionTooLarge { .. }
            | Self::HostFull { .. } => true,
            Self::Kv(error) => matches!(error, kv::Error::NoSpace { .. }),
            Self::BlueFs(bluefs::Error::NoSpace { .. }) => true,
            Self::BlueFs(bluefs::Error::Drive(error)) | Self::Drive(error) => error.is_host_full(),
            _ => false,
        }
    }

    /// Whether what is stored is not what was written.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::ChecksumMismatch { .. }
            | Self::CorruptMetadata { .. }
            | Self::BelowMetadata { .. } => true,
            Self::Kv(error) => matches!(
                error,
                kv::Error::Corruption { .. } | kv::Error::NotFound { .. }
            ),
            Self::BlueFs(error) => matches!(
                error,
                bluefs::Error::Corrupt { .. } | bluefs::Error::ZoneLost { .. }
            ),
            _ => false,
        }
    }

    pub(crate) fn no_collection(name: &str) -> Self {
        Self::NoCollection {
            collection: name.to_owned(),
        }
    }

    pub(crate) fn no_object(collection: &str, object: &[u8]) -> Self {
        Self::NoObject {
            collection: collection.to_owned(),
            object: object.into(),
        }
    }

    /// With the name of the object that it was met in.
    pub(crate) fn of_object(mut self, name: &str) -> Self {
        match &mut self {
            Self::ChecksumMismatch { object, .. } | Self::Unreadable { object, .. } => {
                name.clone_into(object);
            }
            Self::CorruptMetadata { object, .. } => *object = Some(name.to_owned()),
            _ => {}
        }
        self
    }
}
