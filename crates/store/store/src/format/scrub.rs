//! Records of the scrub: its passes and position, and damaged places.

use codec::{Put, Reader};
use std::ops::Range;
use zone::ZoneAddress;

const VERSION: u8 = 1;
const MISMATCH: u8 = 1;
const UNREADABLE: u8 = 2;

/// `Sscrub`: when the last passes ended, and the position of a pass over the data. Times are Unix time in microseconds,
/// 0 for never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ScrubRecord {
    /// When a pass over all metadata last ended.
    pub metadata_micros: u64,
    /// When a pass over all data last ended.
    pub data_micros: u64,
    /// When the current pass over the data began; 0: there is none.
    pub began_micros: u64,
    /// The zone with which that pass continues.
    pub next_zone: u32,
    /// Bytes that that pass has read.
    pub bytes_read: u64,
}

impl ScrubRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.put_u32(self.next_zone);
        for field in [
            self.metadata_micros,
            self.data_micros,
            self.began_micros,
            self.bytes_read,
        ] {
            out.put_u64(field);
        }
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.take(4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let next_zone = r.u32()?;
        let record = Self {
            next_zone,
            metadata_micros: r.u64()?,
            data_micros: r.u64()?,
            began_micros: r.u64()?,
            bytes_read: r.u64()?,
        };
        r.end()?;
        Some(record)
    }
}

/// `D`: damage to bytes of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DamageRecord {
    /// Number of bytes.
    pub length: u32,
    /// Whether the bytes are others than were written: they do not match their checksum, or their zone has lost them.
    /// Otherwise they cannot be read.
    pub is_mismatch: bool,
    /// When that was found, Unix time in microseconds.
    pub found_micros: u64,
}

impl DamageRecord {
    /// The bytes of the zone, for the record of this place.
    pub fn bytes(&self, at: ZoneAddress) -> Range<u64> {
        at.offset..at.offset.saturating_add(self.length.into())
    }

    pub fn encode(&self) -> Vec<u8> {
        let kind = if self.is_mismatch {
            MISMATCH
        } else {
            UNREADABLE
        };
        let mut out = vec![VERSION, kind, 0, 0];
        out.put_u32(self.length);
        out.put_u64(self.found_micros);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        let is_mismatch = match r.take(4)? {
            [VERSION, MISMATCH, 0, 0] => true,
            [VERSION, UNREADABLE, 0, 0] => false,
            _ => return None,
        };
        let (length, found_micros) = (r.u32()?, r.u64()?);
        r.end()?;
        Some(Self {
            length,
            is_mismatch,
            found_micros,
        })
    }
}
