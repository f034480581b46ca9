//! What an instance answers when it does not do as it was told.

use thiserror::Error;
use zone::{ByteOffset, ZoneAddress, ZoneError, ZoneId};

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
    /// The zone holds something.
    #[error("zone {zone} is not empty; nothing has been changed")]
    NotEmpty { zone: ZoneId },
    /// Nothing of ours is in the zone.
    #[error("zone {zone} holds no extent allocator")]
    NotFormatted { zone: ZoneId },
    /// A label of another version.
    #[error("zone {zone} has ZEA format version {found}; this program reads version {supported}")]
    UnsupportedVersion {
        zone: ZoneId,
        found: u32,
        supported: u32,
    },
    /// The zone had another shape when it was formatted.
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
    /// The drive's zones or blocks do not do.
    #[error("the drive's {what} is {found}; this needs {needed}")]
    Unsuitable {
        what: &'static str,
        found: u64,
        needed: &'static str,
    },
    /// An extent without bytes.
    #[error("an extent has at least one byte")]
    EmptyExtent,
    /// What is left of the zone is too small for the extent and its metadata.
    #[error("zone {zone} has room for an extent of {room} bytes, and this one has {length}")]
    NoRoom {
        zone: ZoneId,
        length: u64,
        /// Bytes of the largest extent that fits.
        room: u64,
    },
    /// No extent was put with this place and length, or its metadata is destroyed.
    #[error("no extent of {length} bytes was put at {lba}")]
    NotAnExtent { lba: ByteOffset, length: u64 },
    /// Bytes on the drive are not what was written.
    #[error("{what} at {at}: {found:#x} (expected {expected:#x})")]
    Corrupt {
        at: ZoneAddress,
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// The drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
}

impl Error {
    /// Whether bytes on the drive are not what they were, or cannot be understood.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}
