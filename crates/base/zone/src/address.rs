//! Addresses on a zoned drive. All are in bytes: a drive's block size is a property of its
//! geometry, not of the numbers that travel through the layers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The index of a zone on its drive, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ZoneId(pub u32);

/// A byte offset from the start of the drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteOffset(pub u64);

/// A place inside a zone: the zone and the byte offset from the zone's start.
///
/// Formats on disk store this pair rather than a [`ByteOffset`], so that they do not depend on the
/// zone size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ZoneAddress {
    /// The zone.
    pub zone: ZoneId,
    /// Bytes from the start of the zone.
    pub offset: u64,
}

impl ZoneAddress {
    /// The place `offset` bytes into `zone`.
    pub const fn new(zone: ZoneId, offset: u64) -> Self {
        Self { zone, offset }
    }
}

impl ZoneId {
    /// The zone's number as an index into a table of zones.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ByteOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.0)
    }
}

impl fmt::Display for ZoneAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone {} + {}", self.zone, self.offset)
    }
}
