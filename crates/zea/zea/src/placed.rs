//! Address and metadata of an extent.

use crate::format::metadata::Metadata;
use serde::Serialize;
use std::fmt;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId};

/// A consumer's address of an extent ("ZBA" in the paper). ZEA stores it and does not interpret it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct LogicalAddress(pub u64);

impl fmt::Display for LogicalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An extent that was put, with its place on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Placed {
    /// The consumer's address.
    pub address: LogicalAddress,
    /// Its first byte on the drive: the "LBA" that a get asks for, in bytes.
    pub lba: ByteOffset,
    /// The same address as a zone and an offset.
    pub at: ZoneAddress,
    /// Bytes of data without padding.
    pub length: u64,
    /// Bytes on the drive: data, padding to whole blocks, and metadata.
    pub stored: u64,
    /// Position in the order of all puts of the instances that share a [`crate::Sequence`]; grows with every
    /// put.
    pub order: u64,
    /// Number of the extent in its zone, from 0.
    pub number: u64,
    /// CRC-64/NVME of the data.
    pub checksum: u64,
}

impl Placed {
    /// The extent that `metadata` in `zone` describes.
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
