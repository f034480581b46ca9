//! Segment summaries: copies of rows in a data zone, beside the data that they describe, from which a salvage restores
//! objects when the database is lost.

use super::summary_columns::{self, Columns};
pub(crate) use super::summary_row::{MAX_RAW, Row, raw_bytes};
use crate::checksum::crc32c;
use codec::{Put, Reader};

const MAGIC: &[u8; 8] = b"ZSSEGSUM";
/// Version with rows one after the other, written by earlier programs: only read.
const BY_ROWS: u32 = 1;
const VERSION: u32 = 2;
/// Codecs: for version 1, of the whole payload; for version 2, of its first part.
const CODEC_ZSTD: u8 = 1;
const CODEC_COLUMNS: u8 = 2;
const HEADER: usize = 64;
const CRC_AT: usize = 12;

/// Most bytes of the compressible part, before compression.
const MAX_COMPRESSIBLE: usize = 2 * MAX_RAW;

/// Decoded summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    /// Order of writing: if several summaries have a row, the highest sequence counts.
    pub sequence: u64,
    pub rows: Vec<Row>,
}

/// Encodes a summary of the store `uuid`, without padding; `None` if the rows exceed [`MAX_RAW`] bytes.
pub(crate) fn encode<'a>(
    uuid: [u8; 16],
    sequence: u64,
    rows: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> Option<Vec<u8>> {
    let (mut raw, mut count) = (0, 0);
    let counted = rows.inspect(|(key, value)| {
        raw += raw_bytes(key, *value);
        count += 1;
    });
    let Columns {
        compressible,
        random,
    } = summary_columns::encode(counted)?;
    if raw > MAX_RAW || compressible.len() > MAX_COMPRESSIBLE {
        return None;
    }
    let frame = zstd::bulk::compress(&compressible, zstd::DEFAULT_COMPRESSION_LEVEL).ok()?;
    let mut packed = Vec::new();
    packed.put_u32(compressible.len() as u32);
    packed.put_u32(frame.len() as u32);
    packed.extend_from_slice(&frame);
    packed.extend_from_slice(&random);
    let mut out = MAGIC.to_vec();
    out.put_u32(VERSION);
    out.put_u32(0);
    out.extend_from_slice(&uuid);
    out.put_u64(sequence);
    for number in [count, raw as u32, packed.len() as u32] {
        out.put_u32(number);
    }
    out.push(CODEC_COLUMNS);
    out.resize(HEADER, 0);
    out.extend_from_slice(&packed);
    let sum = crc32c(&out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
    Some(out)
}

/// Whether the block starts with a summary's magic.
pub(crate) fn begins(block: &[u8]) -> bool {
    block.starts_with(MAGIC)
}

/// Length without padding of the summary that starts here, as its header says; `None` if that is too long.
pub(crate) fn bytes(block: &[u8]) -> Option<usize> {
    let mut r = Reader(block.get(48..)?);
    let packed = r.u32()? as usize;
    (packed <= 2 * MAX_RAW).then_some(HEADER + packed)
}

/// Decodes a summary of the store `uuid`; bytes after it are padding. `None` if it is another store's or damaged.
pub(crate) fn decode(bytes: &[u8], uuid: [u8; 16]) -> Option<Summary> {
    let (whose, summary) = parse(bytes)?;
    (whose == uuid).then_some(summary)
}

/// Decodes a summary of any store; returns that store's UUID too.
pub(crate) fn parse(bytes: &[u8]) -> Option<([u8; 16], Summary)> {
    let mut r = Reader(bytes);
    if r.take(8)? != MAGIC {
        return None;
    }
    let codec = match r.u32()? {
        BY_ROWS => CODEC_ZSTD,
        VERSION => CODEC_COLUMNS,
        _ => return None,
    };
    let sum = r.u32()?;
    let uuid = r.take(16)?.try_into().ok()?;
    let sequence = r.u64()?;
    let (count, raw, packed) = (r.u32()?, r.u32()? as usize, r.u32()? as usize);
    if r.take(HEADER - 52)? != [codec, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] || raw > MAX_RAW {
        return None;
    }
    let payload = r.take(packed)?;
    let mut covered = bytes[..HEADER + packed].to_vec();
    covered[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&covered) != sum {
        return None;
    }
    let rows = match codec {
        CODEC_ZSTD => decode_rows(&zstd::bulk::decompress(payload, raw).ok()?, raw, count)?,
        _ => {
            let mut r = Reader(payload);
            let (bytes, packed) = (r.u32()? as usize, r.u32()? as usize);
            let frame = r.take(packed)?;
            if bytes > MAX_COMPRESSIBLE {
                return None;
            }
            let parts = Columns {
                compressible: zstd::bulk::decompress(frame, bytes).ok()?,
                random: r.0.to_vec(),
            };
            if parts.compressible.len() != bytes {
                return None;
            }
            summary_columns::decode(&parts, count, raw)?
        }
    };
    let are_rows = rows.iter().all(|(key, _)| !key.is_empty());
    are_rows.then_some((uuid, Summary { sequence, rows }))
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

/// Value of a `Y` record: where summaries begin in a zone, in blocks of the drive, and their bytes without padding.
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

    /// Encodes rows as version 1 did.
    fn by_rows(rows: &[(&[u8], Option<&[u8]>)]) -> Vec<u8> {
        let mut raw = Vec::new();
        for (key, value) in rows {
            raw.put_u16(key.len() as u16);
            raw.put_u16(u16::from(value.is_none()));
            raw.put_u32(value.map_or(0, <[u8]>::len) as u32);
            raw.extend_from_slice(key);
            raw.extend_from_slice(value.unwrap_or_default());
        }
        let packed = zstd::bulk::compress(&raw, zstd::DEFAULT_COMPRESSION_LEVEL).unwrap();
        sealed(BY_ROWS, CODEC_ZSTD, (rows.len(), raw.len()), &packed)
    }

    /// A summary of these stored bytes; how many rows it has, and of how many bytes.
    fn sealed(version: u32, codec: u8, (count, raw): (usize, usize), packed: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u32(version);
        out.put_u32(0);
        out.extend_from_slice(&[5; 16]);
        out.put_u64(9);
        for number in [count, raw, packed.len()] {
            out.put_u32(number as u32);
        }
        out.push(codec);
        out.resize(HEADER, 0);
        out.extend_from_slice(packed);
        let sum = crc32c(&out);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// With a checksum that matches: every key that the encoding of columns has begins with a namespace, but bytes of
    /// somebody else need not.
    #[test]
    fn a_row_without_a_key_is_refused() {
        let with = |key: &[u8]| {
            let rows: [(&[u8], Option<&[u8]>); 1] = [(key, Some(b"v"))];
            // A table with the value; a shape with a key that is a text; the row's shape; the key; the value.
            let mut columns = Vec::new();
            columns.put_u32(1);
            columns.put_u16(2);
            columns.extend_from_slice(b"vC");
            columns.put_u32(1);
            columns.put_u32(1);
            columns.push(0);
            columns.put_u32(1);
            columns.push(2);
            columns.put_u16(1);
            columns.put_u32(0);
            columns.put_u32(0);
            columns.put_u16(key.len() as u16);
            columns.extend_from_slice(key);
            columns.push(b'v');
            let frame = zstd::bulk::compress(&columns, zstd::DEFAULT_COMPRESSION_LEVEL).unwrap();
            let mut packed = Vec::new();
            packed.put_u32(columns.len() as u32);
            packed.put_u32(frame.len() as u32);
            packed.extend_from_slice(&frame);
            let raw = raw_bytes(key, Some(b"v"));
            [
                by_rows(&rows),
                sealed(VERSION, CODEC_COLUMNS, (1, raw), &packed),
            ]
        };
        assert!(with(b"C").iter().all(|bytes| parse(bytes).is_some()));
        assert!(with(b"").iter().all(|bytes| parse(bytes).is_none()));
    }

    #[test]
    fn rows_of_the_first_version_are_read() {
        let rows: [(&[u8], Option<&[u8]>); 3] = [
            (b"Ckey", Some(b"value")),
            (b"Ogone", None),
            (b"X", Some(b"")),
        ];
        let found = decode(&by_rows(&rows), [5; 16]).unwrap();
        assert_eq!(found, decode(&sample(), [5; 16]).unwrap());
    }

    /// Rows of `count` objects like those that S3 makes.
    fn of_objects(count: u64, random: &mut fastrand::Rng) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let mut rows = Vec::new();
        for number in 0..count {
            let mut md5 = [0; 16];
            random.fill(&mut md5);
            let sum = |random: &mut fastrand::Rng| {
                let digit = |random: &mut fastrand::Rng| random.alphanumeric();
                let digits: String = (0..6).map(|_| digit(random)).collect();
                format!("CRC32:{digits}==")
            };
            let mut attributes = crate::Attributes::new();
            let mut put = |name: &str, value: String| attributes.insert(name.into(), value.into());
            put("etag", hex(&md5));
            put("checksum", sum(random));
            put("content-type", "image/jpeg".to_owned());
            if random.bool() {
                put("meta:mtime", random.u32(..).to_string());
            }
            let onode = crate::format::onode::Onode {
                modified_micros: 1_700_000_000_000_000 + number * 13_000,
                omap: None,
                segments: vec![object::Segment {
                    map: number + 1,
                    start: 0,
                    length: 65_536,
                }],
                attributes,
            };
            let name = "x".repeat(random.usize(0..40));
            let key = crate::format::key::onode(1, format!("{name}{number}").as_bytes());
            rows.push((key, random.bool().then(|| onode.encode())));
            let extent = (0..44).map(|_| random.u8(..)).collect();
            rows.push((crate::format::key::extent(number + 1, 65_536), Some(extent)));
        }
        rows
    }

    #[test]
    fn any_rows_survive_the_round_trip() {
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..60 {
            let mut rows = of_objects(round * 3, &mut random);
            for _ in 0..random.usize(..10) {
                // Random keys and values.
                let namespace = *random.choice(b"CHOXBZ").unwrap();
                let mut key = vec![namespace];
                key.extend((0..random.usize(..30)).map(|_| random.u8(..)));
                let value = (0..random.usize(..80)).map(|_| random.u8(..4)).collect();
                rows.push((key, random.bool().then_some(value)));
            }
            let borrowed = rows.iter().map(|(k, v)| (k.as_slice(), v.as_deref()));
            let mut bytes = encode([5; 16], 9, borrowed).unwrap();
            assert_eq!(decode(&bytes, [5; 16]).unwrap().rows, rows);
            // Damaged bytes with a valid checksum may decode to anything, but must not panic.
            for _ in 0..20 {
                let at = random.usize(HEADER - 16..bytes.len());
                let before = bytes[at];
                bytes[at] ^= 1 << random.u8(..8);
                bytes[CRC_AT..CRC_AT + 4].fill(0);
                let sum = crc32c(&bytes);
                bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
                let _ = parse(&bytes);
                bytes[at] = before;
            }
        }
    }

    #[test]
    fn columns_take_less_than_rows() {
        let rows = of_objects(120, &mut fastrand::Rng::with_seed(5));
        let rows: Vec<_> = rows
            .iter()
            .map(|(k, v)| (k.as_slice(), v.as_deref()))
            .collect();
        let columns = encode([5; 16], 9, rows.iter().copied()).unwrap().len();
        let by_rows = by_rows(&rows).len();
        assert!(columns * 10 < by_rows * 9, "{columns} of {by_rows}");
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
