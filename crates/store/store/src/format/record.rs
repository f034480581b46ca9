//! Small records: the store's own, collections, names of blobs in the cleaning index, counters.

use super::kind::Kind;
use super::onode::{decode_attributes, encode_attributes};
use crate::Attributes;
use codec::{Put, Reader};
use object::{BlobId, BlobName};

const VERSION: u8 = 1;
const OWN: u8 = 1;
const SHARED: u8 = 2;

/// `Sformat`: the format version and identity of the store.
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

    /// Decodes the version even if bytes of an unknown shape follow.
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
    pub kind: Kind,
    pub created_micros: u64,
    pub attributes: Attributes,
}

impl CollectionRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.kind.encode(&mut out);
        out.put_u64(self.created_micros);
        encode_attributes(&self.attributes, &mut out);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.u8()? != VERSION {
            return None;
        }
        let (kind, created_micros) = (Kind::decode(&mut r)?, r.u64()?);
        let attributes = decode_attributes(&mut r)?;
        r.end()?;
        Some(Self {
            kind,
            created_micros,
            attributes,
        })
    }
}

/// `G`: name of the blob whose fragment begins here.
pub(crate) fn encode_name(name: BlobName) -> Vec<u8> {
    match name {
        BlobName::Own { map, end } => {
            let mut out = vec![OWN, 0, 0, 0];
            out.put_u64(map);
            out.put_u64(end);
            out
        }
        BlobName::Shared(id) => {
            let mut out = vec![SHARED, 0, 0, 0];
            out.put_u64(id.0);
            out
        }
    }
}

pub(crate) fn decode_name(value: &[u8]) -> Option<BlobName> {
    let mut r = Reader(value);
    let name = match r.take(4)? {
        [OWN, 0, 0, 0] => BlobName::Own {
            map: r.u64()?,
            end: r.u64()?,
        },
        [SHARED, 0, 0, 0] => BlobName::Shared(BlobId(r.u64()?)),
        _ => return None,
    };
    r.end()?;
    Some(name)
}

/// `Z`: the two counters of a zone, in bytes.
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

/// A value that is one 64-bit number.
pub(crate) fn decode_number(value: &[u8]) -> Option<u64> {
    let mut r = Reader(value);
    let number = r.u64()?;
    r.end()?;
    Some(number)
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
        let hashed = crate::Hashed {
            family: u32::MAX,
            source: crate::HashSource::Name,
            prefix: crate::HashPrefix::new(32, 5).unwrap(),
        };
        for kind in [Kind::ByName(3), Kind::ByHash(hashed)] {
            let c = CollectionRecord {
                kind,
                created_micros: 9,
                attributes: attributes.clone(),
            };
            assert_eq!(CollectionRecord::decode(&c.encode()), Some(c));
        }
        for name in [
            BlobName::Own { map: 1, end: 2 },
            BlobName::Shared(BlobId(3)),
        ] {
            assert_eq!(decode_name(&encode_name(name)), Some(name));
        }
        assert_eq!(decode_counters(&encode_counters(5, -3)), Some((5, -3)));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(value in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = SuperRecord::decode(&value);
            let _ = CollectionRecord::decode(&value);
            let _ = decode_name(&value);
            let _ = decode_counters(&value);
            let _ = decode_number(&value);
        }
    }
}
