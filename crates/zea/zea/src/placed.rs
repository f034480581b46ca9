//! Where an extent lies, and what its metadata says of it.

use serde::Serialize;
use std::fmt;
use zone::{ByteOffset, ZoneAddress};

/// A consumer's address of an extent ("ZBA" in the paper). ZEA keeps it and does not look at it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct LogicalAddress(pub u64);

impl fmt::Display for LogicalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An extent that was put.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Placed {
    /// The consumer's address.
    pub address: LogicalAddress,
    /// Its first byte on the drive: the "LBA" that a get asks for, in bytes.
    pub lba: ByteOffset,
    /// The same place as a zone and an offset.
    pub at: ZoneAddress,
    /// Bytes of data, padding not counted.
    pub length: u64,
    /// Bytes on the drive: data, padding to whole blocks, and metadata.
    pub stored: u64,
    /// Which of the extents that share a [`crate::Sequence`] it is. Grows with every put.
    pub order: u64,
    /// Which extent of its zone it is, from 0.
    pub number: u64,
    /// CRC-64/NVME of the data.
    pub checksum: u64,
}
