//! Zone conditions (ZBC 4.4.3, ZNS 2.1.1.2), zone commands, and the entries of a zone report.

use crate::{ZoneAddress, ZoneId, ZoneKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The condition of a zone, with the standard's names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneCondition {
    /// A conventional zone: it has no write pointer.
    NotWritePointer,
    /// Nothing written since the last reset.
    Empty,
    /// Opened by a write.
    ImplicitOpen,
    /// Opened by an open command.
    ExplicitOpen,
    /// Partly written, holding no open resource but still an active one.
    Closed,
    /// Written to its capacity, or finished.
    Full,
    /// The drive still reads it and no longer writes it.
    ReadOnly,
    /// The drive neither reads nor writes it.
    Offline,
}

impl ZoneCondition {
    /// Whether the zone counts against `max_open_zones`.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitOpen | Self::ExplicitOpen)
    }

    /// Whether the zone counts against `max_active_zones`: open or closed.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::ImplicitOpen | Self::ExplicitOpen | Self::Closed)
    }

    /// The two letters that `blkzone report` prints.
    pub const fn short(self) -> &'static str {
        match self {
            Self::NotWritePointer => "nw",
            Self::Empty => "em",
            Self::ImplicitOpen => "oi",
            Self::ExplicitOpen => "oe",
            Self::Closed => "cl",
            Self::Full => "fu",
            Self::ReadOnly => "ro",
            Self::Offline => "ol",
        }
    }

    /// The name in machine-readable reports, equal to the serialized form.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotWritePointer => "not_write_pointer",
            Self::Empty => "empty",
            Self::ImplicitOpen => "implicit_open",
            Self::ExplicitOpen => "explicit_open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Offline => "offline",
        }
    }
}

/// A command that acts on a zone as a whole or writes into it; names the command that failed in errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneCommand {
    /// Read.
    Read,
    /// Write at an offset.
    Write,
    /// Zone append.
    Append,
    /// Explicit open.
    Open,
    /// Close.
    Close,
    /// Finish: move the write pointer to the end.
    Finish,
    /// Reset the write pointer.
    Reset,
    /// Flush the volatile write cache.
    Flush,
    /// Report zones.
    Report,
}

impl fmt::Display for ZoneCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Append => "zone append",
            Self::Open => "open zone",
            Self::Close => "close zone",
            Self::Finish => "finish zone",
            Self::Reset => "reset zone",
            Self::Flush => "flush",
            Self::Report => "report zones",
        })
    }
}

/// One entry of a zone report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZoneDescriptor {
    /// The zone.
    pub id: ZoneId,
    /// Conventional, sequential write required or preferred.
    pub kind: ZoneKind,
    /// Its condition.
    pub condition: ZoneCondition,
    /// Bytes from one zone start to the next.
    pub size: u64,
    /// Bytes that can be written, ≤ `size`.
    pub capacity: u64,
    /// Bytes from the zone's start to its write pointer: 0 when empty, `capacity` when full.
    /// Meaningless (and 0) for conventional, read-only and offline zones unless
    /// [`Self::write_pointer_valid`].
    pub write_pointer: u64,
}

impl ZoneDescriptor {
    /// Whether `write_pointer` is meaningful: it is not for conventional, read-only and offline zones.
    pub const fn write_pointer_valid(&self) -> bool {
        !matches!(
            self.condition,
            ZoneCondition::NotWritePointer | ZoneCondition::ReadOnly | ZoneCondition::Offline
        )
    }

    /// The address of the next write.
    pub const fn next_write(&self) -> ZoneAddress {
        ZoneAddress::new(self.id, self.write_pointer)
    }
}
