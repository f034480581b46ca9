//! The errors of the file system.

use thiserror::Error;
use zone::{ZoneAddress, ZoneCommand, ZoneError};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[allow(missing_docs)]
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// No such file.
    #[error("{name}: no such file")]
    NotFound { name: String },
    /// A directory or file of that name exists.
    #[error("{name}: is there already")]
    Exists { name: String },
    /// The name is that of a directory.
    #[error("{name}: is a directory")]
    IsDirectory { name: String },
    /// The directory to be removed is not empty.
    #[error("{name}: the directory is not empty")]
    NotEmptyDirectory { name: String },
    /// The name is empty or longer than 4,096 bytes.
    #[error("{name}: not a name of this file system")]
    BadName { name: String },
    /// A truncate cannot make a file longer.
    #[error("{name}: has {size} bytes and cannot be truncated to {asked}")]
    Longer { name: String, size: u64, asked: u64 },
    /// Another caller holds the lock.
    #[error("{name}: locked")]
    Locked { name: String },
    /// All 2⁶⁴ inodes or metadata epochs have been used.
    #[error(
        "the drive's metadata has no more {what}, which only a drive that was written so comes to"
    )]
    UsedUp { what: &'static str },
    /// No zone is free, and cleaning would free none.
    #[error(
        "no space left on the drive: remove files, or take them to a larger one (zonestore zea backup)"
    )]
    NoSpace,
    /// Names and maps do not fit into a metadata area: half of the conventional zone, or a zone.
    #[error("names and maps would have {bytes} bytes, and there is room for {room}; remove files")]
    MetadataFull { bytes: u64, room: u64 },
    /// Metadata could not be written, so all changes are refused until the next mount.
    #[error(
        "metadata cannot be written ({cause}); files can be read: mount it again if that can be mended, or copy them to another drive"
    )]
    Stopped { cause: String },
    /// The drive has no file system of ours.
    #[error("the drive holds no ZEAFS")]
    NotFormatted,
    /// The drive is to be formatted and is not empty.
    #[error("the drive is not empty; nothing has been changed")]
    NotEmpty,
    /// The metadata has an unsupported format version.
    #[error("ZEAFS format version {found}; this program reads versions 1 to {supported}")]
    UnsupportedVersion { found: u32, supported: u32 },
    /// The drive's geometry is not the one that it was formatted with.
    #[error("the drive's {what} is {found}, but it was formatted with {expected}")]
    GeometryChanged {
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// The drive has too few zones.
    #[error("the drive has {found} sequential zones; this needs at least {needed}")]
    DriveTooSmall { found: u32, needed: u32 },
    /// The drive allows fewer active zones than metadata, files and moved data need at the same time.
    #[error("{found} zones of the drive can be partly written at a time; this needs {needed}")]
    TooFewActiveZones { found: u32, needed: u32 },
    /// A checksum or field on the drive is not what it should be.
    #[error("{what} at {at}: {found:#x} (expected {expected:#x})")]
    Corrupt {
        at: ZoneAddress,
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// A damaged file that its reader would take for complete.
    #[error("{name}: {damage}")]
    DamagedFile { name: String, damage: Box<Error> },
    /// An error of ZEA.
    #[error(transparent)]
    Zea(#[from] zea::Error),
    /// An error of the drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
}

impl Error {
    /// Whether bytes on the drive are damaged.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. } | Self::DamagedFile { .. } | Self::Zea(zea::Error::Corrupt { .. })
        )
    }

    /// Whether the drive cannot read the data, while data elsewhere may be readable.
    pub(crate) fn is_unreadable(&self) -> bool {
        let is_read = |error: &ZoneError| match error {
            ZoneError::Io { command, .. } | ZoneError::Offline { command, .. } => {
                *command == ZoneCommand::Read
            }
            _ => false,
        };
        self.of_drive().is_some_and(is_read)
    }

    /// Whether the data to be read is damaged or unreadable, while data elsewhere may be intact.
    pub(crate) fn is_of_place(&self) -> bool {
        self.is_damage() || self.is_unreadable()
    }

    /// Whether the drive, or the host's disk under it, has no room.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self, Self::NoSpace) || self.of_drive().is_some_and(ZoneError::is_host_full)
    }

    /// The drive's error, if it caused this one.
    pub const fn of_drive(&self) -> Option<&ZoneError> {
        match self {
            Self::Drive(error) | Self::Zea(zea::Error::Drive(error)) => Some(error),
            _ => None,
        }
    }
}
