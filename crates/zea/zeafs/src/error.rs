//! What the file system answers when it does not do as it was told.

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
    /// A directory or file has that name.
    #[error("{name}: is there already")]
    Exists { name: String },
    /// A directory is no file.
    #[error("{name}: is a directory")]
    IsDirectory { name: String },
    /// Only an empty directory can be removed.
    #[error("{name}: the directory is not empty")]
    NotEmptyDirectory { name: String },
    /// A name is not empty, and not longer than 4,096 bytes.
    #[error("{name}: not a name of this file system")]
    BadName { name: String },
    /// A truncate makes no file longer.
    #[error("{name}: has {size} bytes and cannot be truncated to {asked}")]
    Longer { name: String, size: u64, asked: u64 },
    /// The lock is held.
    #[error("{name}: locked")]
    Locked { name: String },
    /// Inodes, or epochs of metadata: 2⁶⁴ of them.
    #[error(
        "the drive's metadata has no more {what}, which only a drive that was written so comes to"
    )]
    UsedUp { what: &'static str },
    /// No zone is free, and none would be after cleaning.
    #[error(
        "no space left on the drive: remove files, or take them to a larger one (zonestore zea backup)"
    )]
    NoSpace,
    /// Names and maps do not fit into half of the conventional zone, or into a zone.
    #[error("metadata has {bytes} bytes, and there is room for {room}")]
    MetadataFull { bytes: u64, room: u64 },
    /// Metadata could not be written, so nothing is taken any more until the next mount.
    #[error(
        "metadata cannot be written ({cause}); files can be read: mount it again if that can be mended, or copy them to another drive"
    )]
    Stopped { cause: String },
    /// Nothing of ours is on the drive.
    #[error("the drive holds no ZEAFS")]
    NotFormatted,
    /// The drive is to be formatted and is not empty.
    #[error("the drive is not empty; nothing has been changed")]
    NotEmpty,
    /// Metadata of another version.
    #[error("ZEAFS format version {found}; this program reads versions 1 to {supported}")]
    UnsupportedVersion { found: u32, supported: u32 },
    /// The drive has another shape than when it was formatted.
    #[error("the drive's {what} is {found}, but it was formatted with {expected}")]
    GeometryChanged {
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// The drive has too few zones.
    #[error("the drive has {found} sequential zones; this needs at least {needed}")]
    DriveTooSmall { found: u32, needed: u32 },
    /// Metadata, files and moved data are appended to at the same time.
    #[error("{found} zones of the drive can be partly written at a time; this needs {needed}")]
    TooFewActiveZones { found: u32, needed: u32 },
    /// Bytes on the drive are not what was written.
    #[error("{what} at {at}: {found:#x} (expected {expected:#x})")]
    Corrupt {
        at: ZoneAddress,
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// A file that whoever is to use it would take for whole.
    #[error("{name}: {damage}")]
    DamagedFile { name: String, damage: Box<Error> },
    /// ZEA.
    #[error(transparent)]
    Zea(#[from] zea::Error),
    /// The drive.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
}

impl Error {
    /// Bytes on the drive are not what was written.
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. } | Self::DamagedFile { .. } | Self::Zea(zea::Error::Corrupt { .. })
        )
    }

    /// What was to be read is damaged, or the drive cannot read it; other places may be as they were.
    pub(crate) fn is_of_place(&self) -> bool {
        let is_read = |error: &ZoneError| match error {
            ZoneError::Io { command, .. } | ZoneError::Offline { command, .. } => {
                *command == ZoneCommand::Read
            }
            _ => false,
        };
        self.is_damage() || self.of_drive().is_some_and(is_read)
    }

    /// What the drive said.
    pub const fn of_drive(&self) -> Option<&ZoneError> {
        match self {
            Self::Drive(error) | Self::Zea(zea::Error::Drive(error)) => Some(error),
            _ => None,
        }
    }
}
