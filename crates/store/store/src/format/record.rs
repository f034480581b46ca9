//! The smaller records: the store itself, a collection, where a cleaned extent belongs, and what a
//! batch says of its data to whoever replays it.

use super::bytes::{Put, Reader};
use super::extent::{MAX_STORED, ZoneExtent};
use super::onode::{decode_attributes, encode_attributes};
use crate::Attributes;
use crate::checksum::CHUNK;
use zone::{ZoneAddress, ZoneId};

const VERSION: u8 = 1;

/// `Sformat`: which store this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SuperRecord {
    pub version: u32,
    pub uuid: [u8; 16],
}

impl SuperRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_le_bytes().to_vec();
        out.extend_from_slice(&self.uuid);
        out
    }

    /// The version is decoded even where the rest is of a shape that we do not know.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        let version = r.u32()?;
        Some(Self {
            version,
            uuid: r.take(16)?.try_into().ok()?,
        })
    }
}

/// `C`: a collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CollectionRecord {
    pub id: u32,
    pub created_micros: u64,
    pub attributes: Attributes,
}

impl CollectionRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.put_u32(self.id);
        out.put_u64(self.created_micros);
        encode_attributes(&self.attributes, &mut out);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.take(4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let (id, created_micros) = (r.u32()?, r.u64()?);
        let attributes = decode_attributes(&mut r)?;
        r.end()?;
        Some(Self {
            id,
            created_micros,
            attributes,
        })
    }
}

/// `G`: whose bytes begin here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub map: u64,
    pub offset: u64,
}

impl Place {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.map.to_le_bytes().to_vec();
        out.put_u64(self.offset);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        let place = Self {
            map: r.u64()?,
            offset: r.u64()?,
        };
        r.end()?;
        Some(place)
    }
}

/// `Z`: the two counters of a zone.
pub(crate) fn encode_counters(written: i64, dead: i64) -> Vec<u8> {
    let mut out = written.to_le_bytes().to_vec();
    out.extend_from_slice(&dead.to_le_bytes());
    out
}

/// Bytes written and bytes dead.
pub(crate) fn decode_counters(value: &[u8]) -> Option<(i64, i64)> {
    let mut r = Reader(value);
    let counters = (r.u64()?.cast_signed(), r.u64()?.cast_signed());
    r.end()?;
    Some(counters)
}

/// A 64-bit number that stands alone.
pub(crate) fn decode_number(value: &[u8]) -> Option<u64> {
    let mut r = Reader(value);
    let number = r.u64()?;
    r.end()?;
    Some(number)
}

/// What a batch says of itself in the write-ahead log (and nowhere else): its number, a batch
/// that was acknowledged before it was made, and the data that must have reached the drive for
/// the batch to count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BatchNote {
    pub number: u64,
    pub acknowledged: u64,
    pub extents: Vec<NotedExtent>,
}

/// Data that a batch points to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotedExtent {
    pub at: ZoneAddress,
    pub stored: u32,
    pub checksums: Vec<u32>,
}

impl From<&ZoneExtent> for NotedExtent {
    fn from(extent: &ZoneExtent) -> Self {
        Self {
            at: extent.at,
            stored: extent.stored,
            checksums: extent.checksums.clone(),
        }
    }
}

impl BatchNote {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.put_u64(self.number);
        out.put_u64(self.acknowledged);
        for extent in &self.extents {
            out.put_u32(extent.at.zone.0);
            out.put_u64(extent.at.offset);
            out.put_u32(extent.stored);
            extent.checksums.iter().for_each(|sum| out.put_u32(*sum));
        }
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.take(4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let (number, acknowledged) = (r.u64()?, r.u64()?);
        let mut extents = Vec::new();
        while !r.0.is_empty() {
            let at = ZoneAddress::new(ZoneId(r.u32()?), r.u64()?);
            let stored = r.u32()?;
            if stored == 0 || u64::from(stored) > MAX_STORED {
                return None;
            }
            let chunks = u64::from(stored).div_ceil(CHUNK);
            let checksums = (0..chunks).map(|_| r.u32()).collect::<Option<_>>()?;
            extents.push(NotedExtent {
                at,
                stored,
                checksums,
            });
        }
        Some(Self {
            number,
            acknowledged,
            extents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_survive_the_round_trip() {
        let s = SuperRecord {
            version: 1,
            uuid: [7; 16],
        };
        assert_eq!(SuperRecord::decode(&s.encode()), Some(s));
        let attributes = Attributes::from([("a".to_owned(), b"b".to_vec())]);
        let c = CollectionRecord {
            id: 3,
            created_micros: 9,
            attributes,
        };
        assert_eq!(CollectionRecord::decode(&c.encode()), Some(c));
        let p = Place { map: 1, offset: 2 };
        assert_eq!(Place::decode(&p.encode()), Some(p));
        assert_eq!(decode_counters(&encode_counters(5, -3)), Some((5, -3)));
        let at = ZoneAddress::new(ZoneId(1), 4096);
        let extents = vec![NotedExtent {
            at,
            stored: 70_000,
            checksums: vec![1, 2],
        }];
        let n = BatchNote {
            number: 4,
            acknowledged: 3,
            extents,
        };
        assert_eq!(BatchNote::decode(&n.encode()), Some(n));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(value in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = SuperRecord::decode(&value);
            let _ = CollectionRecord::decode(&value);
            let _ = Place::decode(&value);
            let _ = decode_counters(&value);
            let _ = decode_number(&value);
            let _ = BatchNote::decode(&value);
        }
    }
}
