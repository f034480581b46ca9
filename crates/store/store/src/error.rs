//! Errors of the store. Their kinds say what the caller can do: fix the call, free space, restore the object, or look
//! after the drive.

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
        /// The collection that was to be created.
        collection: String,
        /// The collection that has some of these hashes.
        other: String,
    },
    /// The collection cannot be split: it is by name, or covers a single hash.
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
        /// The collection that would be removed.
        collection: String,
        /// The collection that would get all objects.
        into: String,
    },
    /// An argument of the call is out of bounds.
    #[error("{what} is {found}, allowed is {allowed}")]
    Invalid {
        /// Name of the argument.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The highest value allowed.
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
        /// Live bytes, and bytes reserved for uploads under way.
        live: u64,
        /// Most bytes that can be live.
        capacity: u64,
        /// Bytes that were asked for.
        wanted: u64,
    },
    /// Metadata (names, attributes, objects of up to half a block) has no room to grow: remove objects.
    #[error(
        "no space for metadata and small objects: they fill {}, and {} of free zones are kept for \
         deleting and compacting",
        Bytes(*metadata), Bytes(*free)
    )]
    NoMetadataSpace {
        /// Bytes of the zones that the metadata takes.
        metadata: u64,
        /// Bytes of the zones that are still free.
        free: u64,
    },
    /// A transaction adds or removes more metadata than the free zones take at once, though smaller ones succeed.
    /// Nothing of it was done. Removing an object or clearing an omap is one row, whatever they hold.
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
    /// Data in a transaction was written to another store, or before this mount: this store does not keep its zones.
    #[error(
        "the data of {object:?} was written to another store, or before this one was mounted; write it again"
    )]
    DataOfOther {
        /// COLLECTION/OBJECT.
        object: String,
    },
    /// The state at a moment may be overwritten from now on, because writers need its zones.
    #[error(
        "zones ran short for what is written meanwhile, and the state of the store that was being read was given up"
    )]
    MomentGivenUp,
    /// New data would take the bytes of the host's disk under the drive file that are kept for deletes.
    #[error(
        "no space on the host's disk under the drive file: {} of it are free, and new objects have to leave {} free, \
         which removals and cleaning need",
        Bytes(*free),
        Bytes(*kept)
    )]
    HostFull {
        /// Bytes that the host's file system has left.
        free: u64,
        /// Bytes that new data has to leave free, for deletes and cleaning; it may be more than there are.
        kept: u64,
    },
    /// Stored data does not match its checksum. The data is not returned.
    #[error(
        "object {object:?} at byte {offset} ({at}): checksum {found:#010x}, expected {expected:#010x}"
    )]
    ChecksumMismatch {
        /// COLLECTION/OBJECT, or what the data belongs to where the name is not known.
        object: String,
        /// Byte offset of the damaged checksum block in the object.
        offset: u64,
        /// Its place on the drive.
        at: ZoneAddress,
        /// The checksum in the metadata.
        expected: u32,
        /// The checksum of the bytes that were read.
        found: u32,
    },
    /// A record says that bytes without a checksum are lost.
    #[error("object {object:?} ({at}): bytes without a checksum are lost")]
    BytesLost {
        /// What the bytes belong to.
        object: String,
        /// Their place on the drive.
        at: ZoneAddress,
    },
    /// A metadata record cannot be decoded or contradicts another one.
    #[error(
        "{}metadata record {key}: {what} (found {found})",
        object.as_ref().map(|name| format!("object {name:?}: ")).unwrap_or_default()
    )]
    CorruptMetadata {
        /// COLLECTION/OBJECT that was being read, if known.
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
        /// End of the live data, in bytes from the zone's start.
        needed: u64,
        /// The drive's write pointer, in bytes from the zone's start.
        write_pointer: u64,
    },
    /// The zone with data of this transaction became unreadable before the commit.
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
    /// The drive holds other data, and no store.
    #[error("the drive holds {contents}, and no object store")]
    NoStore {
        /// The contents that were found.
        contents: Box<bluefs::Contents>,
    },
    /// The superblock names a store, but the store's metadata is missing.
    #[error(
        "the drive was formatted for an object store, but the store's metadata are missing: it was never finished, or is damaged"
    )]
    Incomplete,
    /// A salvage found no summary, so nothing describes the data.
    #[error(
        "no zone that can be read has a summary of a store: the drive had none, or only objects of up to half a block, or none of {} of data yet",
        Bytes(crate::summaries::MAX_DESCRIBED)
    )]
    NothingToSalvage,
    /// A salvage in place was asked for, but the store's metadata can be read.
    #[error("the store's metadata can be opened and read: there is nothing to salvage in place")]
    StillOpens,
    /// A salvage in place was started and has not ended.
    #[error("a salvage of the store in place was begun and has not ended")]
    SalvageUnfinished,
    /// The zones that a salvage keeps leave too few for new metadata.
    #[error(
        "new metadata need {needed} sequential zones, and {free} hold nothing that may be of objects"
    )]
    NoRoomForMetadata {
        /// Sequential zones that may be written.
        free: u32,
        /// Sequential zones that new metadata needs.
        needed: u32,
    },
    /// The store has another format version.
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
        /// The version that this program reads.
        supported: u32,
    },
    /// The drive is too small or has too few zones.
    #[error("the drive has {found} sequential zones; a store needs at least {needed}")]
    DriveTooSmall {
        /// Sequential zones of the drive.
        found: u32,
        /// Sequential zones that a store needs.
        needed: u32,
    },
    /// The store was mounted read-only or has been unmounted.
    #[error("the store is mounted read-only or not at all")]
    ReadOnly,
    /// A commit has failed half-way: nothing can be written before the next mount, while reads go on.
    #[error(
        "nothing can be written any more, only read, until the drive is mounted again: {reason}"
    )]
    Failed {
        /// The error of that commit.
        reason: String,
    },
    /// An earlier unmount could not close the store: the next mount finds it as after a crash.
    #[error("the store was not closed: {reason}")]
    NotClosed {
        /// The error of that unmount.
        reason: String,
    },
    /// The drive cannot read some bytes of an object.
    #[error("object {object:?} at byte {offset} cannot be read ({at}): {source}")]
    Unreadable {
        /// COLLECTION/OBJECT.
        object: String,
        /// Offset of these bytes in the object.
        offset: u64,
        /// Their place on the drive.
        at: ZoneAddress,
        /// The drive's error.
        source: ZoneError,
    },
    /// Any other error of the drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
    /// The key-value store.
    #[error("metadata: {0}")]
    Kv(#[from] kv::Error),
    /// The file system under the key-value store.
    #[error("file system: {0}")]
    BlueFs(#[from] bluefs::Error),
}

/// With fewer bytes on the host's disk a delete may not find the space that it takes itself.
pub(crate) const LEAST_FOR_DELETES: u64 = 1 << 20;

impl Error {
    /// Whether space is missing: on the drive, in the metadata, or on the host's disk under a drive file.
    pub fn is_no_space(&self) -> bool {
        match self {
            _ if self.leaves_deletes() => true,
            Self::HostFull { .. } => true,
            Self::Kv(error) => matches!(error, kv::Error::NoSpace { .. }),
            Self::BlueFs(bluefs::Error::Drive(error)) | Self::Drive(error) => error.is_host_full(),
            _ => false,
        }
    }

    /// Whether space is missing, and there is certainly enough for deletes. The database does not tell which disk was
    /// full: on a full one of the host, deletes find no space either.
    pub const fn leaves_deletes(&self) -> bool {
        match self {
            Self::HostFull { free, .. } => *free >= LEAST_FOR_DELETES,
            Self::NoSpace { .. }
            | Self::NoMetadataSpace { .. }
            | Self::TransactionTooLarge { .. }
            | Self::BlueFs(bluefs::Error::NoSpace { .. }) => true,
            _ => false,
        }
    }

    /// Whether the mount is read-only, or the host's file system under a drive file.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::ReadOnly => true,
            Self::BlueFs(bluefs::Error::Drive(ZoneError::Io { source, .. }))
            | Self::Drive(ZoneError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::ReadOnlyFilesystem
            }
            _ => false,
        }
    }

    /// Whether stored data or metadata differs from what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::ChecksumMismatch { .. }
            | Self::BytesLost { .. }
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

    /// Adds the name of the object that was being read.
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
