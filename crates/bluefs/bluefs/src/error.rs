//! `Error`: why a call of the file system failed.

use crate::Contents;
use crate::format::ONE_COPY_VERSION;
use device::FileDriveError;
use std::sync::Arc;
use thiserror::Error;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// The result of a file system call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file system call failed.
#[allow(missing_docs)]
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// No such file or directory.
    #[error("{path}: no such file or directory")]
    NotFound { path: String },
    /// The name is taken.
    #[error("{path}: exists already")]
    Exists { path: String },
    /// A directory where a file was wanted.
    #[error("{path}: is a directory")]
    IsDirectory { path: String },
    /// A file where a directory was wanted.
    #[error("{path}: is not a directory")]
    NotDirectory { path: String },
    /// A directory that still has entries.
    #[error("{path}: directory is not empty")]
    DirectoryNotEmpty { path: String },
    /// The path is longer than 4,096 bytes, or contains a NUL; through the C ABI also: it is not UTF-8.
    #[error("{path}: not a path of this file system")]
    BadPath { path: String },
    /// A number in the call does not fit the file.
    #[error("{path}: {what} is {found}, allowed is {allowed}")]
    Invalid {
        path: String,
        what: &'static str,
        found: u64,
        /// The largest value allowed.
        allowed: u64,
    },
    /// All zones are in use, and nothing can be cleaned.
    #[error("no space left on the drive ({free_zones} zones free)")]
    NoSpace {
        /// Free zones that are kept for other uses.
        free_zones: u32,
    },
    /// Another user of this mount holds the lock.
    #[error("{path}: locked")]
    Locked { path: String },
    /// Mounted read-only.
    #[error("mounted read-only")]
    ReadOnly,
    /// Unmounted.
    #[error("the file system is not mounted any more")]
    Unmounted,
    /// A failure made going on unsafe.
    #[error("the file system has stopped, and goes on at the next mount: {cause}")]
    Stopped {
        /// The first failure.
        cause: Box<Self>,
    },
    /// The drive is empty.
    #[error("the drive is not formatted; all its zones are empty")]
    NotFormatted,
    /// The drive is not empty, and no superblock is found.
    #[error("the drive holds {contents}, but its superblock is missing or unreadable")]
    SuperblockLost { contents: Box<Contents> },
    /// The file system on the drive is for another use, alone or beside a store.
    #[error("the drive holds {contents}, which is for another use")]
    OtherRole { contents: Box<Contents> },
    /// The drive is to be formatted and is not empty.
    #[error("the drive holds {contents}; nothing has been changed")]
    NotEmpty { contents: Box<Contents> },
    /// A superblock of another format version.
    #[error(
        "BlueFS format version {found}; this program reads versions {} and {supported}",
        ONE_COPY_VERSION
    )]
    UnsupportedVersion { found: u32, supported: u32 },
    /// The drive's geometry differs from that recorded when it was formatted.
    #[error("the drive's {what} is {found}, but it was formatted with {expected}")]
    GeometryChanged {
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// The drive has too few zones.
    #[error("the drive has {found} zones; this needs at least {needed}")]
    DriveTooSmall { found: u32, needed: u32 },
    /// The drive's geometry does not suffice for BlueFS.
    #[error("the drive's {what} is {found}; this needs at least {needed}")]
    Unsuitable {
        what: &'static str,
        found: u64,
        needed: u64,
    },
    /// Metadata or data on the drive is invalid.
    #[error("{what} at {at}: {found} (expected {expected})")]
    Corrupt {
        at: ZoneAddress,
        what: &'static str,
        /// The expected value, in the unit that `what` implies.
        expected: u64,
        found: u64,
    },
    /// A frame of the journal is whole, but holds an unknown operation.
    #[error("frame {frame} of the journal, at {at}, holds an unknown operation")]
    UnknownOperation {
        /// Where the frame begins.
        at: ZoneAddress,
        frame: u64,
    },
    /// Superblocks that were durable are damaged, in both rings.
    #[error(
        "the newest superblocks are damaged, in both rings: one that names epoch {lost} of the journal was \
         durable, and the newest that can be read is generation {generation}, which names epoch {epoch}"
    )]
    SuperblocksDamaged {
        /// The generation of the newest readable superblock.
        generation: u64,
        epoch: u64,
        /// The epoch that a damaged superblock named.
        lost: u64,
    },
    /// Frames of the journal that were durable are damaged or missing.
    #[error(
        "the journal is damaged at {at}{}: {}{}",
        if *offline { ", a zone that is offline" } else { "" },
        match missing {
            0 => "its frames are not in their places".to_owned(),
            some => format!("{some} of its frames that were durable cannot be read"),
        },
        concerned(paths)
    )]
    JournalDamaged {
        /// Where the first missing frame should begin.
        at: ZoneAddress,
        offline: bool,
        missing: u64,
        /// Files known to be affected.
        paths: Vec<String>,
    },
    /// Records of a log that were durable are damaged or missing.
    #[error(
        "{path}: damaged behind byte {length}, at {at}: records there were durable up to byte \
         {expected} of the zone"
    )]
    LogDamaged {
        /// One of the log's names.
        path: String,
        /// Bytes of the log before the damage.
        length: u64,
        /// Where the next record should begin.
        at: ZoneAddress,
        /// Zone offset up to which records were durable.
        expected: u64,
    },
    /// A mount for writing would give up something else than its caller has agreed to.
    #[error("the damage is not what was agreed to be given up; nothing was changed")]
    OtherDamage,
    /// The stage of a zone does not allow a step; nothing was changed.
    #[error("zone {zone} is {stage} and cannot be {step}")]
    ZoneStage {
        zone: ZoneId,
        stage: &'static str,
        step: &'static str,
    },
    /// Bytes of a file lie in a zone that is offline.
    #[error("{path}: its bytes in zone {zone} are lost: {source}")]
    ZoneLost {
        /// The path by which it was opened last.
        path: String,
        zone: ZoneId,
        source: ZoneError,
    },
    /// What a process has left beside the drive cannot be read or changed.
    #[error(transparent)]
    Unsynced(#[from] Arc<FileDriveError>),
    /// A command to the drive failed.
    #[error("drive: {0}")]
    Drive(#[from] ZoneError),
}

impl Error {
    /// Whether data on the drive is wrong, missing or cannot be decoded.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::UnknownOperation { .. }
                | Self::SuperblocksDamaged { .. }
                | Self::JournalDamaged { .. }
                | Self::LogDamaged { .. }
                | Self::ZoneLost { .. }
        )
    }

    /// Whether the file system had been unmounted or had stopped before the call.
    pub(crate) fn is_of_the_end(&self) -> bool {
        matches!(self, Self::Unmounted | Self::Stopped { .. })
    }

    /// The drive's error, if this is one.
    pub(crate) fn of_drive(&self) -> Option<&ZoneError> {
        match self {
            Self::Drive(error) => Some(error),
            _ => None,
        }
    }
}

/// The first few of the affected files, for a message.
fn concerned(paths: &[String]) -> String {
    const SHOWN: usize = 3;
    if paths.is_empty() {
        return "; which files that concerns, nothing behind them tells".to_owned();
    }
    let shown = paths[..paths.len().min(SHOWN)].join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => format!("; concerned are {shown}"),
        more => format!("; concerned are {shown} and {more} more"),
    }
}
