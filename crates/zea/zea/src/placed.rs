//! Where an extent lies, and what its metadata says of it.

use crate::format::metadata::Metadata;
use serde::Serialize;
use std::fmt;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId};

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

impl Placed {
    /// What metadata in a zone says.
    pub(crate) fn of(metadata: &Metadata, zone: ZoneId, g: &Geometry) -> Self {
        let block = u64::from(g.block_size);
        let blocks = u64::from(metadata.block - metadata.start) + 1;
        let at = ZoneAddress::new(zone, u64::from(metadata.start) * block);
        Self {
            address: LogicalAddress(metadata.address),
            lba: g.absolute(at),
            at,
            length: metadata.length,
            stored: blocks * block,
            order: metadata.order,
            number: metadata.number,
            checksum: metadata.checksum,
        }
    }
}
