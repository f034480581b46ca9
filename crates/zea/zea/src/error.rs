//! The errors of an instance.

use thiserror::Error;
use zone::{ByteOffset, ZoneAddress, ZoneCommand, ZoneError, ZoneId};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[allow(missing_docs)]
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The zone has no write pointer.
    #[error("zone {zone} is conventional; an extent allocator needs a zone with a write pointer")]
    Conventional { zone: ZoneId },
    /// The drive has no such zone.
    #[error("the drive has {zones} zones and no zone {zone}")]
    NoSuchZone { zone: ZoneId, zones: u32 },
    /// The zone is not empty.
    #[error("zone {zone} is not empty; nothing has been changed")]
    NotEmpty { zone: ZoneId },
    /// The zone has no label of ZEA.
    #[error("zone {zone} holds no extent allocator")]
    NotFormatted { zone: ZoneId },
    /// The label has an unsupported format version.
    #[error("zone {zone} has ZEA format version {found}; this program reads version {supported}")]
    UnsupportedVersion {
        zone: ZoneId,
        found: u32,
        supported: u32,
    },
    /// The drive's geometry is not the one that the zone was formatted with.
    #[error("zone {zone}: the drive's {what} is {found}, but it was formatted with {expected}")]
    GeometryChanged {
        zone: ZoneId,
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// More back pointers than a block of metadata has room for.
    #[error("{found} back pointers; from 1 to {most} fit into a block of this drive")]
    BackPointers { found: u32, most: u32 },
    /// The drive's zones or blocks are not suitable.
    #[error("the drive's {what} is {found}; this needs {needed}")]
    Unsuitable {
        what: &'static str,
        found: u64,
        needed: &'static str,
    },
    /// The extent has no bytes.
    #[error("an extent has at least one byte")]
    EmptyExtent,
    /// The rest of the zone is too small for the extent and its metadata.
    #[error("zone {zone} has room for an extent of {room} bytes, and this one has {length}")]
    NoRoom {
        zone: ZoneId,
        length: u64,
        /// Bytes of the largest extent that fits.
        room: u64,
    },
    /// No extent of this length was put at this address, or its metadata is destroyed.
    #[error("no extent of {length} bytes was put at {lba}")]
    NotAnExtent { lba: ByteOffset, length: u64 },
    /// A checksum or field on the drive is not what it should be.
    #[error("{what} at {at}: {found:#x} (expected {expected:#x})")]
    Corrupt {
        at: ZoneAddress,
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// An error of the drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
}

impl Error {
    /// Whether the drive cannot read a place, while others may be readable.
    pub(crate) const fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Self::Drive(ZoneError::Io {
                command: ZoneCommand::Read,
                ..
            })
        )
    }

    /// Whether bytes on the drive are damaged.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}
