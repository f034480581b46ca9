//! The errors of a zoned drive.
//!
//! The kinds follow the standards' status codes and tell the caller what to do:
//! [`ZoneError::is_caller_mistake`] means that the call was wrong, the limit kinds that a zone has to be given
//! back first, and `ReadOnly`, `Offline` and `Io` that the medium has a problem.

use crate::{ByteOffset, ZoneCommand, ZoneCondition, ZoneId};
use std::sync::Arc;
use thiserror::Error;

/// The result of a drive command.
pub type ZoneResult<T> = Result<T, ZoneError>;

/// Why a drive command failed.
#[derive(Clone, Debug, Error)]
pub enum ZoneError {
    /// The range is not aligned to logical blocks, or empty.
    #[error("{command} at {at}, {length} bytes: not aligned to blocks of {block_size}")]
    Unaligned {
        /// The command.
        command: ZoneCommand,
        /// The first byte of the range.
        at: ByteOffset,
        /// Length of the range in bytes.
        length: u64,
        /// The drive's block size.
        block_size: u32,
    },
    /// The range ends after the end of the drive ("LBA out of range").
    #[error("{command} at {at}, {length} bytes: behind the end of the drive")]
    OutOfRange {
        /// The command.
        command: ZoneCommand,
        /// The first byte of the range.
        at: ByteOffset,
        /// Length of the range in bytes.
        length: u64,
    },
    /// A write crosses from one zone into the next, or over the zone's capacity ("zone boundary
    /// error"); also a read from a sequential zone into the next.
    #[error("{command} in zone {zone} at {at}, {length} bytes: crosses the zone's boundary")]
    ZoneBoundary {
        /// The command.
        command: ZoneCommand,
        /// The zone it began in.
        zone: ZoneId,
        /// The first byte of the range.
        at: ByteOffset,
        /// Length of the range in bytes.
        length: u64,
    },
    /// A write that does not begin at the write pointer ("unaligned write command" in ZBC, "zone
    /// invalid write" in ZNS).
    #[error("write in zone {zone} at {at}: the write pointer is at {write_pointer}")]
    NotAtWritePointer {
        /// The zone.
        zone: ZoneId,
        /// Where the write began.
        at: ByteOffset,
        /// The write pointer, where it had to begin.
        write_pointer: ByteOffset,
    },
    /// The zone is full.
    #[error("{command}: zone {zone} is full")]
    ZoneFull {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
    },
    /// The zone is read-only.
    #[error("{command}: zone {zone} is read-only")]
    ReadOnly {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
    },
    /// The zone is offline.
    #[error("{command}: zone {zone} is offline")]
    Offline {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
    },
    /// `max_open_zones` zones are open and none of them can be closed implicitly.
    #[error("{command}: zone {zone} cannot be opened, {limit} zones are open already")]
    TooManyOpenZones {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
        /// max_open_zones.
        limit: u32,
    },
    /// `max_active_zones` zones are open or closed.
    #[error("{command}: zone {zone} cannot become active, {limit} zones are active already")]
    TooManyActiveZones {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
        /// max_active_zones.
        limit: u32,
    },
    /// The command is not allowed in the zone's condition ("invalid zone state transition"), or
    /// not on a zone of its kind.
    #[error("{command}: not allowed for zone {zone} in condition {condition:?}")]
    InvalidTransition {
        /// The command.
        command: ZoneCommand,
        /// The zone.
        zone: ZoneId,
        /// Its condition.
        condition: ZoneCondition,
    },
    /// The drive does not support the command, or not for this many bytes.
    #[error("{command} of {length} bytes: not supported by this drive")]
    Unsupported {
        /// The command.
        command: ZoneCommand,
        /// Length of the range in bytes.
        length: u64,
    },
    /// The medium or the path to it failed.
    #[error("{command} at {at}: {source}")]
    Io {
        /// The command.
        command: ZoneCommand,
        /// The first byte of the range.
        at: ByteOffset,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// The drive has no power (after a simulated power cut).
    #[error("{command}: the drive has no power")]
    PowerLost {
        /// The command.
        command: ZoneCommand,
    },
}

impl ZoneError {
    /// The kind of error in a word or two, without addresses and causes.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unaligned { .. } => "unaligned",
            Self::OutOfRange { .. } => "out of range",
            Self::ZoneBoundary { .. } => "boundary",
            Self::NotAtWritePointer { .. } => "not at write pointer",
            Self::ZoneFull { .. } => "full",
            Self::ReadOnly { .. } => "read-only",
            Self::Offline { .. } => "offline",
            Self::TooManyOpenZones { .. } => "too many open",
            Self::TooManyActiveZones { .. } => "too many active",
            Self::InvalidTransition { .. } => "invalid",
            Self::Unsupported { .. } => "unsupported",
            Self::Io { .. } => "I/O",
            Self::PowerLost { .. } => "power lost",
        }
    }

    /// Whether the call itself was wrong and no state of the drive would have made it right.
    pub const fn is_caller_mistake(&self) -> bool {
        matches!(
            self,
            Self::Unaligned { .. }
                | Self::OutOfRange { .. }
                | Self::ZoneBoundary { .. }
                | Self::NotAtWritePointer { .. }
                | Self::ZoneFull { .. }
                | Self::InvalidTransition { .. }
                | Self::Unsupported { .. }
        )
    }

    /// Whether the file of an emulated drive cannot grow ([`is_full`]). The zone is as good as others.
    pub fn is_host_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source.kind()))
    }

    /// Whether the file system under the file of an emulated drive is read-only. Nothing was written, and the zone is as
    /// good as others.
    pub fn is_host_read_only(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
    }
}

/// Whether an error of this kind says that a file cannot grow: its file system is full, or a quota or a limit on the size
/// of files is reached.
pub const fn is_full(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as E;
    matches!(kind, E::StorageFull | E::QuotaExceeded | E::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_file_that_takes_no_write_is_no_fault_of_a_zone() {
        let of = |kind: ErrorKind| ZoneError::Io {
            command: ZoneCommand::Write,
            at: ByteOffset(0),
            source: Arc::new(kind.into()),
        };
        let full = [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::FileTooLarge,
        ];
        assert!(full.into_iter().all(|kind| of(kind).is_host_full()));
        assert!(!of(ErrorKind::Other).is_host_full());
        assert!(of(ErrorKind::ReadOnlyFilesystem).is_host_read_only());
        assert!(!of(ErrorKind::Other).is_host_read_only());
    }
}
