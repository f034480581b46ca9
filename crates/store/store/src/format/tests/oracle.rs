//! A second decoder of every record, written from `docs/format/store.md` alone: slow, and one line of the
//! document after the other.

use super::Fields;

const MOST: u64 = 4_194_304;

/// What is left of a record.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// A little-endian number of so many bytes.
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut value = 0;
        for i in 0..bytes {
            value += u64::from(*self.0.get(i)?) << (8 * i);
        }
        self.0 = &self.0[bytes..];
        Some(value)
    }

    /// A number that has to be this one.
    fn is(&mut self, bytes: usize, expected: u64) -> Option<()> {
        (self.number(bytes)? == expected).then_some(())
    }

    fn between(&mut self, bytes: usize, low: u64, high: u64) -> Option<u64> {
        self.number(bytes).filter(|n| low <= *n && *n <= high)
    }

    fn bytes(&mut self, count: u64, fields: &mut Vec<u64>) -> Option<()> {
        for _ in 0..count {
            fields.push(self.number(1)?);
        }
        Some(())
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

pub(super) fn decode(record: &str, value: &[u8]) -> Fields {
    let mut rest = Rest(value);
    let mut fields = Vec::new();
    match record {
        "store" => {
            fields.push(rest.number(4)?);
            rest.bytes(16, &mut fields)?;
            return Some(fields);
        }
        "collection" => {
            rest.is(1, 1)?;
            let kind = rest.between(1, 1, 2)?;
            let by_hash = kind == 2;
            let bits = rest.between(1, 0, if by_hash { 32 } else { 0 })?;
            let source = rest.between(1, kind - 1, if by_hash { 2 } else { 0 })?;
            let (number, prefix) = (rest.number(4)?, rest.number(4)?);
            if prefix % (1 << (32 - bits)) != 0 || (!by_hash && prefix != 0) {
                return None;
            }
            rest.is(4, 0)?;
            fields.extend([kind, bits, source, number, prefix, rest.number(8)?]);
            attributes(&mut rest, &mut fields)?;
        }
        "onode" => onode(&mut rest, &mut fields)?,
        "extent" => extent(&mut rest, &mut fields)?,
        "shared" => shared(&mut rest, &mut fields)?,
        "name" => {
            let kind = rest.between(1, 1, 2)?;
            rest.is(3, 0)?;
            fields.extend([kind, rest.number(8)?]);
            if kind == 1 {
                fields.push(rest.number(8)?);
            }
        }
        "counters" => fields.extend([rest.number(8)?, rest.number(8)?]),
        "note" => note(&mut rest, &mut fields)?,
        "places" => {
            rest.0.first()?;
            while !rest.0.is_empty() {
                let most = 64 + 2 * 8_388_608;
                fields.extend([rest.number(4)?, rest.between(4, 65, most)?]);
            }
        }
        "summary" => {
            summary(value, &mut fields)?;
            return Some(fields);
        }
        other => panic!("no record {other}"),
    }
    rest.end()?;
    Some(fields)
}

fn attributes(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<()> {
    let count = rest.number(2)?;
    fields.push(count);
    let mut last: Option<Vec<u8>> = None;
    for _ in 0..count {
        let length = rest.number(2)?;
        let mut name = Vec::new();
        rest.bytes(length, &mut name)?;
        let bytes: Vec<u8> = name.iter().map(|byte| *byte as u8).collect();
        std::str::from_utf8(&bytes).ok()?;
        if last.is_some_and(|last| last >= bytes) {
            return None;
        }
        last = Some(bytes);
        fields.push(length);
        fields.extend(name);
        let length = rest.number(4)?;
        fields.push(length);
        rest.bytes(length, fields)?;
    }
    Some(())
}

fn onode(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<()> {
    rest.is(1, 1)?;
    rest.is(3, 0)?;
    fields.extend([rest.number(8)?, rest.number(8)?]);
    let count = rest.number(4)?;
    fields.push(count);
    let mut size: u64 = 0;
    for _ in 0..count {
        let (map, start, length) = (
            rest.number(8)?,
            rest.number(8)?,
            rest.between(8, 1, u64::MAX)?,
        );
        start.checked_add(length)?;
        size = size.checked_add(length)?;
        fields.extend([map, start, length]);
    }
    attributes(rest, fields)
}

fn extent(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<()> {
    let kind = rest.between(1, 1, 4)?;
    rest.is(3, 0)?;
    fields.push(kind);
    match kind {
        1 => {
            let (skip, length) = (rest.number(4)?, rest.between(4, 1, MOST)?);
            fields.extend([skip, length]);
            let (raw, released) = blob(rest, fields)?;
            (skip + length <= raw && !released).then_some(())
        }
        2 => {
            let sum = rest.number(4)?;
            let there = rest.0.len() as u64;
            if !(1..=4_096).contains(&there) || u64::from(crc32c(rest.0)) != sum {
                return None;
            }
            rest.bytes(there, fields)
        }
        3 => {
            let (skip, length) = (rest.number(4)?, rest.between(4, 1, MOST)?);
            fields.extend([skip, length, rest.number(8)?]);
            (skip + length <= MOST).then_some(())
        }
        _ => {
            fields.push(rest.between(8, 1, u64::MAX)?);
            Some(())
        }
    }
}

/// Raw bytes, and whether something is released.
fn blob(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<(u64, bool)> {
    let (codec, kind, shift) = (
        rest.between(1, 0, 2)?,
        rest.between(1, 0, 2)?,
        rest.between(1, 12, 17)?,
    );
    rest.is(1, 0)?;
    let (raw, count) = (rest.between(4, 1, MOST)?, rest.between(4, 1, MOST)?);
    fields.extend([codec, kind, shift, raw, count]);
    let (mut stored, mut released) = (0, false);
    for _ in 0..count {
        let (zone, length, offset) = (rest.number(4)?, rest.between(4, 1, MOST)?, rest.number(8)?);
        offset.checked_add(length)?;
        if zone == 4_294_967_295 {
            released = true;
            if offset != 0 {
                return None;
            }
        }
        stored += length;
        fields.extend([zone, length, offset]);
    }
    if stored > MOST || (codec == 0 && raw != stored) {
        return None;
    }
    checksums(rest, kind, shift, stored, fields)?;
    Some((raw, released))
}

fn checksums(
    rest: &mut Rest<'_>,
    kind: u64,
    shift: u64,
    bytes: u64,
    fields: &mut Vec<u64>,
) -> Option<()> {
    let mut covered = 0;
    while kind != 0 && covered < bytes {
        fields.push(rest.number(4)?);
        covered += 1 << shift;
    }
    Some(())
}

fn shared(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<()> {
    rest.is(1, 1)?;
    rest.is(3, 0)?;
    fields.push(rest.number(8)?);
    let count = rest.between(4, 2, MOST)?;
    fields.push(count);
    let mut last: Option<(u64, u64)> = None;
    for _ in 0..count {
        let (at, shown) = (rest.number(4)?, rest.number(4)?);
        let fits = match last {
            None => shown != 0,
            Some((before, same)) => before < at && same != shown,
        };
        if !fits {
            return None;
        }
        last = Some((at, shown));
        fields.extend([at, shown]);
    }
    let (raw, _) = blob(rest, fields)?;
    last.filter(|(at, shown)| *shown == 0 && *at <= raw)
        .map(drop)
}

fn note(rest: &mut Rest<'_>, fields: &mut Vec<u64>) -> Option<()> {
    rest.is(1, 1)?;
    rest.is(3, 0)?;
    fields.extend([rest.number(8)?, rest.number(8)?]);
    while !rest.0.is_empty() {
        fields.extend([rest.number(4)?, rest.number(8)?]);
        let length = rest.between(4, 1, MOST)?;
        let (kind, shift) = (rest.between(1, 0, 2)?, rest.between(1, 12, 17)?);
        rest.is(2, 0)?;
        fields.extend([length, kind, shift]);
        checksums(rest, kind, shift, length, fields)?;
    }
    Some(())
}

/// Behind it are zeros up to the next block.
fn summary(value: &[u8], fields: &mut Vec<u64>) -> Option<()> {
    let mut rest = Rest(value.strip_prefix(b"ZSSEGSUM")?);
    let version = rest.between(4, 1, 2)?;
    let sum = rest.number(4)?;
    rest.bytes(16, fields)?;
    fields.push(rest.number(8)?);
    let count = rest.number(4)?;
    let (raw, stored) = (rest.between(4, 0, 8_388_608)?, rest.number(4)? as usize);
    rest.is(1, version)?;
    rest.is(8, 0)?;
    rest.is(3, 0)?;
    let stored = rest.0.get(..stored)?;
    let header = [&value[..12], &[0; 4], &value[16..64]].concat();
    if u64::from(crc32c(&[&header, stored].concat())) != sum {
        return None;
    }
    if version == 2 {
        fields.push(count);
        for (key, value) in super::columns::rows(stored, count, raw)? {
            let deleted = value.is_none();
            let value = value.unwrap_or_default();
            fields.extend([key.len() as u64, deleted.into(), value.len() as u64]);
            fields.extend(key.into_iter().chain(value).map(u64::from));
        }
        return Some(());
    }
    let rows = zstd::decode_all(stored).ok()?;
    let mut rest = Rest(&rows);
    fields.push(count);
    for _ in 0..count {
        let (key, deleted) = (rest.number(2)?, rest.between(2, 0, 1)?);
        let value = rest.between(4, 0, if deleted == 1 { 0 } else { u64::MAX })?;
        fields.extend([key, deleted, value]);
        rest.bytes(key, fields)?;
        rest.bytes(value, fields)?;
    }
    rest.end()?;
    (rows.len() as u64 == raw).then_some(())
}

/// RFC 3720, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ 0x82f6_3b78
            } else {
                sum >> 1
            };
        }
    }
    !sum
}
