//! Rows of extents.

use super::blob::{decode_blob, encode_blob};
use crate::checksum::crc32c;
use codec::{Put, Reader};
use object::{BlobId, Content, Extent, MAX_INLINE, MAX_STORED};

const OWN: u8 = 1;
/// The first byte of an extent whose bytes are in its row.
pub(crate) const INLINE: u8 = 2;
const SHARED: u8 = 3;
const HOLE: u8 = 4;

pub(crate) fn encode(extent: &Extent) -> Vec<u8> {
    let kind = |kind: u8| vec![kind, 0, 0, 0];
    match &extent.content {
        Content::Own { blob, skip } => {
            let mut out = kind(OWN);
            out.put_u32(*skip);
            out.put_u32(extent.length as u32);
            encode_blob(blob, &mut out);
            out
        }
        Content::Inline(bytes) => {
            let mut out = kind(INLINE);
            out.put_u32(crc32c(bytes));
            out.extend_from_slice(bytes);
            out
        }
        Content::Shared { blob, skip } => {
            let mut out = kind(SHARED);
            out.put_u32(*skip);
            out.put_u32(extent.length as u32);
            out.put_u64(blob.0);
            out
        }
        Content::Hole => {
            let mut out = kind(HOLE);
            out.put_u64(extent.length);
            out
        }
    }
}

pub(crate) fn decode(value: &[u8]) -> Option<Extent> {
    let mut r = Reader(value);
    let kind = r.u8()?;
    if r.take(3)? != [0; 3] {
        return None;
    }
    match kind {
        OWN => {
            let (skip, length) = (r.u32()?, r.u32()?);
            let blob = decode_blob(&mut r)?;
            let fits = length > 0 && skip.checked_add(length)? <= blob.raw;
            let is_there = blob.fragments.iter().all(|f| f.at.is_some());
            let content = Content::Own { blob, skip };
            (fits && is_there).then_some(Extent {
                length: length.into(),
                content,
            })
        }
        INLINE => {
            let sum = r.u32()?;
            (!r.0.is_empty() && r.0.len() as u64 <= MAX_INLINE && crc32c(r.0) == sum)
                .then(|| Extent::inline(r.0.to_vec()))
        }
        SHARED => {
            let (skip, length) = (r.u32()?, r.u32()?);
            let blob = BlobId(r.u64()?);
            r.end()?;
            let fits = length > 0 && skip.checked_add(length)? <= MAX_STORED;
            fits.then_some(Extent {
                length: length.into(),
                content: Content::Shared { blob, skip },
            })
        }
        HOLE => {
            let length = r.u64()?;
            r.end()?;
            (length > 0).then_some(Extent::hole(length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(
            kind in 0u8..6,
            rest in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let value = [&[kind, 0, 0, 0][..], &rest].concat();
            if let Some(extent) = decode(&value) {
                prop_assert_eq!(encode(&extent), value);
            }
        }
    }

    #[test]
    fn a_changed_inline_byte_is_noticed() {
        let mut value = encode(&Extent::inline(b"hello".to_vec()));
        assert!(decode(&value).is_some());
        *value.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&value), None);
    }
}
