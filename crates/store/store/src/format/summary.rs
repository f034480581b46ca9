//! A segment summary: copies of rows in a data zone, among the data that they describe. It is there for
//! whoever has lost the database.

use crate::checksum::crc32c;
use codec::{Put, Reader};

const MAGIC: &[u8; 8] = b"ZSSEGSUM";
const VERSION: u32 = 1;
const CODEC_ZSTD: u8 = 1;
const HEADER: usize = 64;
const CRC_AT: usize = 12;

/// Most bytes of a summary's rows before compression: bytes from outside unpack to no more.
pub(crate) const MAX_RAW: usize = 8 << 20;

/// A row as it was when the summary was written: a key and its value, or that it had been deleted.
pub(crate) type Row = (Vec<u8>, Option<Vec<u8>>);

/// What a summary says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    /// Of several that have a row, the one with the highest sequence counts.
    pub sequence: u64,
    pub rows: Vec<Row>,
}

/// Bytes of a row before compression.
pub(crate) fn raw_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    8 + key.len() + value.map_or(0, <[u8]>::len)
}

/// A summary of the store `uuid`, not padded. `None`: more than [`MAX_RAW`] bytes.
pub(crate) fn encode<'a>(
    uuid: [u8; 16],
    sequence: u64,
    rows: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> Option<Vec<u8>> {
    let (mut raw, mut count) = (Vec::new(), 0);
    for (key, value) in rows {
        raw.put_u16(u16::try_from(key.len()).ok()?);
        raw.put_u16(u16::from(value.is_none()));
        raw.put_u32(u32::try_from(value.map_or(0, <[u8]>::len)).ok()?);
        raw.extend_from_slice(key);
        raw.extend_from_slice(value.unwrap_or_default());
        count += 1;
        if raw.len() > MAX_RAW {
            return None;
        }
    }
    let packed = zstd::bulk::compress(&raw, zstd::DEFAULT_COMPRESSION_LEVEL).ok()?;
    let mut out = MAGIC.to_vec();
    out.put_u32(VERSION);
    out.put_u32(0);
    out.extend_from_slice(&uuid);
    out.put_u64(sequence);
    for number in [count, raw.len() as u32, packed.len() as u32] {
        out.put_u32(number);
    }
    out.push(CODEC_ZSTD);
    out.resize(HEADER, 0);
    out.extend_from_slice(&packed);
    let sum = crc32c(&out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
    Some(out)
}

/// Whether a summary may begin here.
pub(crate) fn begins(block: &[u8]) -> bool {
    block.starts_with(MAGIC)
}

/// Bytes of the summary that begins here, without padding, as its header says.
pub(crate) fn bytes(block: &[u8]) -> Option<usize> {
    let mut r = Reader(block.get(48..)?);
    let packed = r.u32()? as usize;
    (packed <= 2 * MAX_RAW).then_some(HEADER + packed)
}

/// What the store `uuid` wrote here; what comes behind the summary is padding.
pub(crate) fn decode(bytes: &[u8], uuid: [u8; 16]) -> Option<Summary> {
    let (whose, summary) = parse(bytes)?;
    (whose == uuid).then_some(summary)
}

/// A summary, and the store that wrote it.
pub(crate) fn parse(bytes: &[u8]) -> Option<([u8; 16], Summary)> {
    let mut r = Reader(bytes);
    if r.take(8)? != MAGIC || r.u32()? != VERSION {
        return None;
    }
    let sum = r.u32()?;
    let uuid = r.take(16)?.try_into().ok()?;
    let sequence = r.u64()?;
    let (count, raw, packed) = (r.u32()?, r.u32()? as usize, r.u32()? as usize);
    if r.take(HEADER - 52)? != [CODEC_ZSTD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] || raw > MAX_RAW {
        return None;
    }
    let payload = r.take(packed)?;
    let mut covered = bytes[..HEADER + packed].to_vec();
    covered[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&covered) != sum {
        return None;
    }
    let rows = decode_rows(&zstd::bulk::decompress(payload, raw).ok()?, raw, count)?;
    Some((uuid, Summary { sequence, rows }))
}

fn decode_rows(bytes: &[u8], expected: usize, count: u32) -> Option<Vec<Row>> {
    if bytes.len() != expected {
        return None;
    }
    let (mut r, mut rows) = (Reader(bytes), Vec::new());
    for _ in 0..count {
        let (key_bytes, is_deleted, value_bytes) = (r.u16()?, r.u16()?, r.u32()?);
        let key = r.take(key_bytes.into())?.to_vec();
        let value = r.take(value_bytes as usize)?.to_vec();
        rows.push(match (is_deleted, value_bytes) {
            (0, _) => (key, Some(value)),
            (1, 0) => (key, None),
            _ => return None,
        });
    }
    r.end()?;
    Some(rows)
}

/// `Y`: where summaries begin in a zone, in blocks of the drive, and their bytes without padding.
pub(crate) fn encode_places(places: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (block, bytes) in places {
        out.put_u32(*block);
        out.put_u32(*bytes);
    }
    out
}

pub(crate) fn decode_places(value: &[u8]) -> Option<Vec<(u32, u32)>> {
    let (mut r, mut places) = (Reader(value), Vec::new());
    while r.end().is_none() {
        let (block, bytes) = (r.u32()?, r.u32()?);
        if bytes as usize <= HEADER || bytes as usize > HEADER + 2 * MAX_RAW {
            return None;
        }
        places.push((block, bytes));
    }
    (!places.is_empty()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let rows: [(&[u8], Option<&[u8]>); 3] = [
            (b"Ckey", Some(b"value")),
            (b"Ogone", None),
            (b"X", Some(b"")),
        ];
        encode([5; 16], 9, rows.into_iter()).unwrap()
    }

    #[test]
    fn a_summary_survives_the_round_trip_and_no_change() {
        let mut bytes = sample();
        let found = decode(&bytes, [5; 16]).unwrap();
        assert_eq!(found.sequence, 9);
        let rows = [
            (b"Ckey".to_vec(), Some(b"value".to_vec())),
            (b"Ogone".to_vec(), None),
            (b"X".to_vec(), Some(Vec::new())),
        ];
        assert_eq!(found.rows, rows);
        assert_eq!(decode(&bytes, [4; 16]), None);
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), None, "{length}");
        }
        for at in 0..bytes.len() * 8 {
            bytes[at / 8] ^= 1 << (at % 8);
            assert_eq!(parse(&bytes), None, "bit {at}");
            bytes[at / 8] ^= 1 << (at % 8);
        }
        assert!(begins(&bytes) && super::bytes(&bytes) == Some(bytes.len()));
        bytes.resize(4096, 0);
        assert!(parse(&bytes).is_some());
    }

    #[test]
    fn places_survive_the_round_trip() {
        let places = vec![(0, 4000), (7, 65)];
        assert_eq!(decode_places(&encode_places(&places)), Some(places));
        for wrong in [&[][..], &[0; 8], &[0, 0, 0, 0, 65, 0, 0]] {
            assert_eq!(decode_places(wrong), None);
        }
    }
}
