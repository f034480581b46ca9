//! What a host asks of a drive, and what it gets back.

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
    /// The block so many blocks on.
    pub const fn plus(self, blocks: u64) -> Self {
        Self(self.0 + blocks)
    }
}

/// A physical block address: a place on the medium, in the same unit, in the order in which the
/// medium is read fastest.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pba(pub u64);

impl Pba {
    /// The place so many blocks on.
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
    /// Writes blocks, and answers only when they are on the medium (FUA).
    WriteThrough,
    /// Answers when everything that was acknowledged is on the medium.
    Flush,
    /// Says that blocks hold nothing of use (deallocate).
    Trim,
    /// Writes blocks where the write pointer of the zone that begins at the block is.
    Append,
    /// Opens the zone that begins at the block.
    OpenZone,
    /// Closes it.
    CloseZone,
    /// Makes it full.
    FinishZone,
    /// Makes it empty.
    ResetZone,
}

impl RequestKind {
    /// Whether it brings data.
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
    /// How many blocks; 0 for a flush and for what concerns a zone as a whole.
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

    /// The block behind the last one.
    pub const fn end(&self) -> Lba {
        self.lba.plus(self.blocks as u64)
    }

    /// Bytes of data.
    pub const fn bytes(&self) -> u64 {
        self.blocks as u64 * BLOCK_BYTES
    }
}

/// Names a request until it is complete.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tag(pub u64);

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error, Serialize, Deserialize)]
pub enum Failure {
    /// The blocks asked for are not all on the drive.
    #[error("the request ends behind the drive's last block")]
    OutOfRange,
    /// A block cannot be read, for a write beside it was cut off or has damaged it.
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
    /// The zone does not allow it.
    #[error("refused: {0}")]
    Refused(Refusal),
}

/// What a zoned drive says no to: the kinds of [`zone::ZoneError`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error, Serialize, Deserialize)]
pub enum Refusal {
    /// It crosses the boundary of a zone.
    #[error("it crosses the zone's boundary")]
    ZoneBoundary,
    /// It does not begin at the write pointer.
    #[error("it does not begin at the write pointer")]
    NotAtWritePointer,
    /// The zone is full.
    #[error("the zone is full")]
    ZoneFull,
    /// No other zone may be open.
    #[error("too many open zones")]
    TooManyOpenZones,
    /// No other zone may be active.
    #[error("too many active zones")]
    TooManyActiveZones,
    /// Not in the zone's condition.
    #[error("not in the condition of the zone")]
    InvalidTransition,
    /// No zone begins there, or it is too much or nothing.
    #[error("it cannot be asked for")]
    InvalidField,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Completion {
    /// The request's name.
    pub tag: Tag,
    /// Its first block; of a zone append, where the drive put it.
    pub lba: Lba,
    /// When it came.
    pub submitted: Time,
    /// When it was answered.
    pub at: Time,
    /// How it ended.
    pub result: Result<(), Failure>,
}

impl Completion {
    /// The end of the request if the power is gone at `now`.
    pub(crate) const fn cut_off(self, now: Time) -> Self {
        Self {
            at: now,
            result: Err(Failure::PowerLost),
            ..self
        }
    }

    /// How long the host waited.
    pub const fn latency(&self) -> Span {
        self.at.since(self.submitted)
    }
}
