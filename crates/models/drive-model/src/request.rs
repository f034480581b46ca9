//! Requests of a host to a drive, and their completions.

use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a logical block in every model, the unit of [`Lba`].
pub const BLOCK_BYTES: u64 = 4096;

/// A logical block address, in blocks of [`BLOCK_BYTES`].
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Lba(pub u64);

impl Lba {
    /// The address `blocks` blocks after this one.
    pub const fn plus(self, blocks: u64) -> Self {
        Self(self.0 + blocks)
    }
}

/// A physical block address: a position on the medium, in the same unit, numbered in the order in which the medium is
/// read fastest.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pba(pub u64);

impl Pba {
    /// The address `blocks` blocks after this one.
    pub const fn plus(self, blocks: u64) -> Self {
        Self(self.0 + blocks)
    }
}

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RequestKind {
    /// Reads blocks.
    Read,
    /// Writes blocks.
    Write,
    /// Writes blocks, and completes only when they are on the medium (FUA).
    WriteThrough,
    /// Completes when every acknowledged write is on the medium.
    Flush,
    /// Tells the drive that blocks hold no data of use (deallocate).
    Trim,
    /// Writes blocks at the write pointer of the zone that begins at the block.
    Append,
    /// Opens the zone that begins at the block.
    OpenZone,
    /// Closes the zone that begins at the block.
    CloseZone,
    /// Finishes the zone that begins at the block.
    FinishZone,
    /// Resets the zone that begins at the block.
    ResetZone,
}

impl RequestKind {
    /// Whether the request carries data to the drive.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteThrough | Self::Append)
    }
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Request {
    /// What to do.
    pub operation: RequestKind,
    /// The first block.
    pub lba: Lba,
    /// Number of blocks; 0 for a flush and for commands on a whole zone.
    pub blocks: u32,
}

impl Request {
    /// A read.
    pub const fn read(lba: Lba, blocks: u32) -> Self {
        Self {
            operation: RequestKind::Read,
            lba,
            blocks,
        }
    }

    /// A write.
    pub const fn write(lba: Lba, blocks: u32) -> Self {
        Self {
            operation: RequestKind::Write,
            lba,
            blocks,
        }
    }

    /// A flush of the volatile cache.
    pub const fn flush() -> Self {
        Self {
            operation: RequestKind::Flush,
            lba: Lba(0),
            blocks: 0,
        }
    }

    /// A trim.
    pub const fn trim(lba: Lba, blocks: u32) -> Self {
        Self {
            operation: RequestKind::Trim,
            lba,
            blocks,
        }
    }

    /// A zone append to the zone that begins at `zone`.
    pub const fn append(zone: Lba, blocks: u32) -> Self {
        Self {
            operation: RequestKind::Append,
            lba: zone,
            blocks,
        }
    }

    /// A command on the zone that begins at `zone`, as a whole.
    pub const fn on_zone(operation: RequestKind, zone: Lba) -> Self {
        Self {
            operation,
            lba: zone,
            blocks: 0,
        }
    }

    /// The block after the last one.
    pub const fn end(&self) -> Lba {
        self.lba.plus(self.blocks as u64)
    }

    /// Bytes of data that the request reads or writes.
    pub const fn bytes(&self) -> u64 {
        self.blocks as u64 * BLOCK_BYTES
    }
}

/// Identifies a request until its completion.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tag(pub u64);

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error, Serialize, Deserialize)]
pub enum Failure {
    /// The request reaches beyond the last block of the drive.
    #[error("the request ends behind the drive's last block")]
    OutOfRange,
    /// A block cannot be read, because a write next to it was cut off or has damaged it.
    #[error("block {} cannot be read", .lba.0)]
    Unreadable {
        /// The first such block.
        lba: Lba,
    },
    /// The drive lost power before the request was answered.
    #[error("the drive lost power")]
    PowerLost,
    /// The drive has no such command.
    #[error("the drive has no such command")]
    Unsupported,
    /// The zone does not allow the request.
    #[error("refused: {0}")]
    Refused(Refusal),
}

/// Why a zoned drive refuses a request: the kinds of [`zone::ZoneError`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The request crosses the boundary of a zone.
    #[error("it crosses the zone's boundary")]
    ZoneBoundary,
    /// The request does not begin at the write pointer.
    #[error("it does not begin at the write pointer")]
    NotAtWritePointer,
    /// The zone is full.
    #[error("the zone is full")]
    ZoneFull,
    /// The limit on open zones is reached.
    #[error("too many open zones")]
    TooManyOpenZones,
    /// The limit on active zones is reached.
    #[error("too many active zones")]
    TooManyActiveZones,
    /// The condition of the zone does not allow the command.
    #[error("not in the condition of the zone")]
    InvalidTransition,
    /// No zone begins at the block, or the length is 0 or too large.
    #[error("it cannot be asked for")]
    InvalidField,
}

/// The completion of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Completion {
    /// The request's tag.
    pub tag: Tag,
    /// The first block; of a zone append, where the drive wrote it.
    pub lba: Lba,
    /// Time of arrival.
    pub submitted: Time,
    /// Time of completion.
    pub at: Time,
    /// Success, or why the request failed.
    pub result: Result<(), Failure>,
}

impl Completion {
    /// The completion of the request if the power is cut at `now`.
    pub(crate) const fn cut_off(self, now: Time) -> Self {
        Self {
            at: now,
            result: Err(Failure::PowerLost),
            ..self
        }
    }

    /// Time from arrival to completion.
    pub const fn latency(&self) -> Span {
        self.at.since(self.submitted)
    }
}
