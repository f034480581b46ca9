//! Encoding of blobs, which are in the row of the extent that owns them or in a row of their own.

use codec::{Put, Reader};
use object::{
    Blob, ChecksumBlock, ChecksumKind, Codec, Fragment, MAX_STORED, References, SharedBlob,
};
use zone::{ZoneAddress, ZoneId};

const VERSION: u8 = 1;
/// Zone number of a fragment that was released.
const RELEASED: u32 = u32::MAX;

pub(crate) fn checksum_kind(number: u8) -> Option<ChecksumKind> {
    let kinds = [ChecksumKind::None, ChecksumKind::Crc32c, ChecksumKind::Xxh3];
    kinds.into_iter().find(|kind| *kind as u8 == number)
}

/// As many checksums as `stored` bytes need.
pub(crate) fn decode_checksums(
    r: &mut Reader<'_>,
    kind: ChecksumKind,
    block: ChecksumBlock,
    stored: u32,
) -> Option<Vec<u32>> {
    let count = match kind {
        ChecksumKind::None => 0,
        _ => stored.div_ceil(block.bytes()),
    };
    (0..count).map(|_| r.u32()).collect()
}

pub(crate) fn encode_blob(blob: &Blob, out: &mut Vec<u8>) {
    let shift = blob.checksum_block.shift();
    out.extend_from_slice(&[blob.codec as u8, blob.checksum_kind as u8, shift, 0]);
    out.put_u32(blob.raw);
    out.put_u32(blob.fragments.len() as u32);
    for fragment in &blob.fragments {
        let at = fragment.at.unwrap_or(ZoneAddress::new(ZoneId(RELEASED), 0));
        out.put_u32(at.zone.0);
        out.put_u32(fragment.length);
        out.put_u64(at.offset);
    }
    blob.checksums.iter().for_each(|sum| out.put_u32(*sum));
}

/// Decodes the blob that fills the rest of a record.
pub(crate) fn decode_blob(r: &mut Reader<'_>) -> Option<Blob> {
    let codecs = [Codec::None, Codec::Zstd, Codec::Lz4];
    let codec = r.u8()?;
    let codec = codecs.into_iter().find(|known| *known as u8 == codec)?;
    let checksum_kind = checksum_kind(r.u8()?)?;
    let checksum_block = ChecksumBlock::from_shift(r.u8()?)?;
    if r.u8()? != 0 {
        return None;
    }
    let (raw, count) = (r.u32()?, r.u32()? as usize);
    if count > r.0.len() / 16 {
        return None;
    }
    let mut stored: u32 = 0;
    let mut fragments = Vec::with_capacity(count);
    for _ in 0..count {
        let (zone, length, offset) = (r.u32()?, r.u32()?, r.u64()?);
        stored = stored.checked_add(length).filter(|s| *s <= MAX_STORED)?;
        offset.checked_add(length.into())?;
        if length == 0 || (zone == RELEASED && offset != 0) {
            return None;
        }
        let at = (zone != RELEASED).then_some(ZoneAddress::new(ZoneId(zone), offset));
        fragments.push(Fragment { at, length });
    }
    let is_right = match codec {
        Codec::None => raw == stored,
        _ => (1..=MAX_STORED).contains(&raw),
    };
    if stored == 0 || !is_right {
        return None;
    }
    let checksums = decode_checksums(r, checksum_kind, checksum_block, stored)?;
    r.end()?;
    Some(Blob {
        codec,
        raw,
        fragments,
        checksum_kind,
        checksum_block,
        checksums,
    })
}

pub(crate) fn encode_shared(shared: &SharedBlob) -> Vec<u8> {
    let mut out = vec![VERSION, 0, 0, 0];
    out.put_u64(shared.map.unwrap_or(0));
    let steps = shared.references.steps();
    out.put_u32(steps.len() as u32);
    for (from, count) in steps {
        out.put_u32(*from);
        out.put_u32(*count);
    }
    encode_blob(&shared.blob, &mut out);
    out
}

pub(crate) fn decode_shared(value: &[u8]) -> Option<SharedBlob> {
    let mut r = Reader(value);
    if r.take(4)? != [VERSION, 0, 0, 0] {
        return None;
    }
    let map = Some(r.u64()?).filter(|map| *map != 0);
    let count = r.u32()? as usize;
    if count > r.0.len() / 8 {
        return None;
    }
    let steps = (0..count).map(|_| Some((r.u32()?, r.u32()?)));
    let references = References::from_steps(steps.collect::<Option<_>>()?)?;
    let blob = decode_blob(&mut r)?;
    if references.is_empty() || references.end() > blob.raw {
        return None;
    }
    Some(SharedBlob {
        blob,
        map,
        references,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(mut value in proptest::collection::vec(any::<u8>(), 16..200)) {
            value[..4].copy_from_slice(&[VERSION, 0, 0, 0]);
            if let Some(shared) = decode_shared(&value) {
                prop_assert_eq!(encode_shared(&shared), value);
            }
        }

        #[test]
        fn decoding_inverts_encoding(
            lengths in proptest::collection::vec((1u32..300_000, any::<bool>()), 1..9),
            shift in 12u8..=17,
            kind in 0u8..3,
        ) {
            let fragments: Vec<_> = lengths.iter().map(|(length, released)| Fragment {
                at: (!released).then_some(ZoneAddress::new(ZoneId(9), 4096)),
                length: *length,
            }).collect();
            let stored = fragments.iter().map(|f| f.length).sum::<u32>();
            let checksum_block = ChecksumBlock::from_shift(shift).unwrap();
            let checksum_kind = checksum_kind(kind).unwrap();
            let count = if kind == 0 { 0 } else { stored.div_ceil(checksum_block.bytes()) };
            let blob = Blob {
                codec: Codec::None,
                raw: stored,
                fragments,
                checksum_kind,
                checksum_block,
                checksums: (0..count).collect(),
            };
            let mut references = References::one(0..stored);
            references.add(stored / 3..stored);
            let shared = SharedBlob { blob, map: None, references };
            prop_assert_eq!(decode_shared(&encode_shared(&shared)), Some(shared));
        }
    }
}
