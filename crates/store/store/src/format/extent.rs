//! An extent: a run of an object's bytes, in a zone with a checksum for every chunk, or inline.
//!
//! A zone extent covers `stored` bytes on the drive from `at` on, cut into chunks of
//! [`CHUNK`] bytes (the last may be shorter), each with its crc32c. What is visible of it in the
//! object are `length` bytes after the first `skip`. Every chunk belongs to one extent only, so
//! that live bytes can be counted.

use super::bytes::{Put, Reader};
use crate::checksum::{CHUNK, crc32c};
use zone::{ZoneAddress, ZoneId};

/// Most bytes that one extent stores.
pub(crate) const MAX_STORED: u64 = 4 << 20;
/// Most bytes that are kept inline in the metadata instead of in a zone.
pub(crate) const MAX_INLINE: u64 = 4 << 10;

const IN_ZONE: u8 = 1;
const INLINE: u8 = 2;
const CHUNK_SHIFT: u8 = 16;
const _: () = assert!(1 << CHUNK_SHIFT == CHUNK);

/// A run of an object's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    InZone(ZoneExtent),
    Inline(Vec<u8>),
}

/// A run of bytes in a zone; see the module's description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ZoneExtent {
    pub at: ZoneAddress,
    pub stored: u32,
    pub skip: u32,
    pub length: u32,
    pub checksums: Vec<u32>,
}

impl Extent {
    /// Bytes of the object that it holds.
    pub fn length(&self) -> u64 {
        match self {
            Self::InZone(extent) => u64::from(extent.length),
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::InZone(e) => {
                out.extend_from_slice(&[IN_ZONE, CHUNK_SHIFT, 0, 0]);
                out.put_u32(e.at.zone.0);
                out.put_u64(e.at.offset);
                out.put_u32(e.stored);
                out.put_u32(e.skip);
                out.put_u32(e.length);
                e.checksums.iter().for_each(|sum| out.put_u32(*sum));
            }
            Self::Inline(bytes) => {
                out.extend_from_slice(&[INLINE, 0, 0, 0]);
                out.put_u32(crc32c(bytes));
                out.extend_from_slice(bytes);
            }
        }
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        let (kind, shift) = (r.u8()?, r.u8()?);
        if r.take(2)? != [0, 0] {
            return None;
        }
        match (kind, shift) {
            (IN_ZONE, CHUNK_SHIFT) => {
                let at = ZoneAddress::new(ZoneId(r.u32()?), r.u64()?);
                let (stored, skip, length) = (r.u32()?, r.u32()?, r.u32()?);
                let chunks = u64::from(stored).div_ceil(CHUNK);
                let visible = u64::from(skip) + u64::from(length);
                if u64::from(stored) > MAX_STORED || length == 0 || visible > u64::from(stored) {
                    return None;
                }
                let checksums = (0..chunks).map(|_| r.u32()).collect::<Option<Vec<_>>>()?;
                r.end()?;
                Some(Self::InZone(ZoneExtent {
                    at,
                    stored,
                    skip,
                    length,
                    checksums,
                }))
            }
            (INLINE, 0) => {
                let sum = r.u32()?;
                (!r.0.is_empty() && r.0.len() as u64 <= MAX_INLINE && crc32c(r.0) == sum)
                    .then(|| Self::Inline(r.0.to_vec()))
            }
            _ => None,
        }
    }
}

impl ZoneExtent {
    /// Bytes on the drive, the padding of the last block included.
    pub fn padded(&self, block_size: u32) -> u64 {
        u64::from(self.stored).next_multiple_of(u64::from(block_size))
    }

    /// The part of it that shows the visible bytes `from..to`, without the chunks that it does
    /// not need. `from < to <= length`.
    pub fn slice(&self, from: u32, to: u32) -> Self {
        let (first, last) = (self.skip + from, self.skip + to);
        let chunk = CHUNK as u32;
        let first_chunk = first / chunk;
        let end = last.next_multiple_of(chunk).min(self.stored);
        let start = first_chunk * chunk;
        Self {
            at: ZoneAddress::new(self.at.zone, self.at.offset + u64::from(start)),
            stored: end - start,
            skip: first - start,
            length: to - from,
            checksums: self.checksums[first_chunk as usize..end.div_ceil(chunk) as usize].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(stored: u32) -> ZoneExtent {
        ZoneExtent {
            at: ZoneAddress::new(ZoneId(5), 1 << 20),
            stored,
            skip: 0,
            length: stored,
            checksums: (0..stored.div_ceil(CHUNK as u32)).collect(),
        }
    }

    #[test]
    fn a_slice_keeps_only_the_chunks_it_needs() {
        let e = sample(200_000);
        assert_eq!(e.slice(0, 200_000), e);
        let s = e.slice(70_000, 130_000);
        assert_eq!(
            (s.at.offset, s.skip, s.length),
            ((1 << 20) + 65_536, 4_464, 60_000)
        );
        assert_eq!((s.stored, s.checksums), (65_536, vec![1]));
        let s = e.slice(199_999, 200_000);
        assert_eq!((s.stored, s.checksums), (200_000 - 3 * 65_536, vec![3]));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(value in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(extent) = Extent::decode(&value) {
                prop_assert_eq!(extent.encode(), value);
            }
        }

        #[test]
        fn decoding_inverts_encoding(stored in 1u32..4_194_304, from in 0u32..1000, cut in 0u32..1000) {
            let e = sample(stored);
            let from = from.min(stored - 1);
            let to = stored - cut.min(stored - from - 1);
            let extent = Extent::InZone(e.slice(from, to));
            prop_assert_eq!(Extent::decode(&extent.encode()), Some(extent.clone()));
            prop_assert_eq!(extent.length(), u64::from(to - from));
        }
    }

    #[test]
    fn a_changed_inline_byte_is_noticed() {
        let mut value = Extent::Inline(b"hello".to_vec()).encode();
        assert!(Extent::decode(&value).is_some());
        *value.last_mut().unwrap() ^= 1;
        assert_eq!(Extent::decode(&value), None);
    }
}
