//! Rows of a summary encoded as columns: bytes that are alike in many rows lie together, and random bytes lie apart
//! from those worth compressing.
//!
//! A row falls into pieces: its key, and its value; an onode's value into its head and each attribute. Pieces of one
//! kind (the same name and length) form a table with a row for each piece, which is stored column by column. A column
//! of hexadecimal or Base64 digits that looks random takes four or six bits a digit, one of random bytes a byte each,
//! uncompressed; all other columns are compressed together, as differences to the row above where fewer values result.

use super::key;
use super::summary_row::{MAX_RAW, Row, raw_bytes};
use codec::{Put, Reader};
use std::collections::BTreeMap;

/// Tables with fewer rows are stored row by row.
const LEAST_ROWS: usize = 8;
const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const PLAIN: u8 = 0;
const DIFFERENCES: u8 = 1;
const BYTES: u8 = 2;
const HEX_DIGITS: u8 = 3;
const BASE64_DIGITS: u8 = 4;
/// Marks a table without columns: its cells follow each other.
const BY_ROWS: u8 = 0;
const BY_COLUMNS: u8 = 1;

/// Flags of a row: its key was deleted, its key is a text of any length, its value is an onode.
const DELETED: u8 = 1;
const TEXT_KEY: u8 = 2;
const ONODE: u8 = 4;

/// Name and length that all pieces of a table share.
type Kind = (Vec<u8>, usize);

/// How a row is assembled: its flags and the numbers of its pieces' kinds.
type Shape = (u8, Vec<u32>);

/// Encoded rows in two parts: one worth compressing, and one that is not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Columns {
    pub compressible: Vec<u8>,
    pub random: Vec<u8>,
}

#[derive(Default)]
struct Numbers<T: Ord>(BTreeMap<T, u32>);

impl<T: Ord> Numbers<T> {
    fn of(&mut self, thing: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert(next)
    }

    fn in_order(self) -> Vec<T> {
        let mut all: Vec<(T, u32)> = self.0.into_iter().collect();
        all.sort_by_key(|(_, number)| *number);
        all.into_iter().map(|(thing, _)| thing).collect()
    }
}

/// Encodes rows; `None` if a key or value is larger than a summary can hold.
pub(super) fn encode<'a>(
    rows: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> Option<Columns> {
    let (mut kinds, mut shapes) = (Numbers::default(), Numbers::default());
    let mut tables: Vec<Vec<&[u8]>> = Vec::new();
    let (mut order, mut texts) = (Vec::new(), Vec::new());
    for (key, value) in rows {
        let namespace = *key.first()?;
        let mut flags = 0;
        let mut pieces: Vec<(Kind, &[u8])> = Vec::new();
        if is_text(namespace) {
            flags |= TEXT_KEY;
            texts.put_u16(u16::try_from(key.len()).ok()?);
            texts.extend_from_slice(key);
        } else {
            pieces.push(((vec![b'k', namespace], key.len()), key));
        }
        match value {
            None => flags |= DELETED,
            Some(value) => match split(namespace, value) {
                Some(of_onode) => {
                    flags |= ONODE;
                    pieces.extend(of_onode);
                }
                None => pieces.push(((vec![b'v', namespace], value.len()), value)),
            },
        }
        let mut numbers = Vec::new();
        for (kind, piece) in pieces {
            let number = kinds.of(kind);
            if tables.len() <= number as usize {
                tables.push(Vec::new());
            }
            tables[number as usize].push(piece);
            numbers.push(number);
        }
        order.push(shapes.of((flags, numbers)));
    }
    let mut out = Columns::default();
    let kinds = kinds.in_order();
    out.compressible.put_u32(kinds.len() as u32);
    let mut cells = Vec::new();
    for ((name, length), table) in kinds.into_iter().zip(&tables) {
        let head = &mut out.compressible;
        head.put_u16(u16::try_from(name.len()).ok()?);
        head.extend_from_slice(&name);
        head.put_u32(u32::try_from(length).ok()?);
        head.put_u32(table.len() as u32);
        if table.len() < LEAST_ROWS {
            head.push(BY_ROWS);
            table.iter().for_each(|cell| cells.extend_from_slice(cell));
        } else {
            head.push(BY_COLUMNS);
            for column in 0..length {
                let bytes: Vec<u8> = table.iter().map(|cell| cell[column]).collect();
                head.push(put_column(&bytes, &mut cells, &mut out.random));
            }
        }
    }
    let head = &mut out.compressible;
    let shapes = shapes.in_order();
    head.put_u32(shapes.len() as u32);
    for (flags, pieces) in shapes {
        head.push(flags);
        head.put_u16(u16::try_from(pieces.len()).ok()?);
        pieces.iter().for_each(|kind| head.put_u32(*kind));
    }
    order.iter().for_each(|shape| head.put_u32(*shape));
    head.extend_from_slice(&texts);
    head.extend_from_slice(&cells);
    Some(out)
}

/// Whether keys of this namespace end with a name, and so vary in length.
fn is_text(namespace: u8) -> bool {
    !matches!(namespace, key::EXTENT | key::BLOB)
}

/// Splits an onode into its head and attributes; `None` if the value is not exactly that, or has attributes that are
/// one too many or one byte too long for pieces of their own.
fn split(namespace: u8, value: &[u8]) -> Option<Vec<(Kind, &[u8])>> {
    if !key::ONODES.contains(&namespace) {
        return None;
    }
    let mut r = Reader(value);
    let segments = u32::from_le_bytes(value.get(20..24)?.try_into().ok()?) as usize;
    let head = r.take(segments.checked_mul(24)?.checked_add(24)?)?;
    let mut pieces = vec![((b"o".to_vec(), head.len()), head)];
    for _ in 0..r.u16()? {
        let length = r.u16()?;
        let mut name = b"a".to_vec();
        name.extend_from_slice(r.take(length.into())?);
        let length = r.u32()? as usize;
        pieces.push(((name, length), r.take(length)?));
    }
    r.end()?;
    let fits = |count: usize| u16::try_from(count).is_ok();
    (fits(pieces.len()) && pieces.iter().all(|((name, _), _)| fits(name.len()))).then_some(pieces)
}

/// Appends a column to `cells` or `random`; returns its mode.
fn put_column(column: &[u8], cells: &mut Vec<u8>, random: &mut Vec<u8>) -> u8 {
    let differences: Vec<u8> = std::iter::once(column[0])
        .chain(column.windows(2).map(|two| two[1].wrapping_sub(two[0])))
        .collect();
    let [plain, less] = [column, &differences].map(different);
    let rows = column.len();
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // Number of different values from which on a column counts as random.
    let (mode, many) = match () {
        () if column.iter().all(is_hex) => (HEX_DIGITS, 12),
        () if column.iter().all(is_base64) => (BASE64_DIGITS, rows.min(64) / 2),
        () => (BYTES, rows.min(256) / 2),
    };
    if plain.min(less) < many.max(2) {
        let is_plain = plain <= less;
        cells.extend_from_slice(if is_plain { column } else { &differences });
        return if is_plain { PLAIN } else { DIFFERENCES };
    }
    match mode {
        HEX_DIGITS => pack(column, HEX, 4, random),
        BASE64_DIGITS => pack(column, BASE64, 6, random),
        _ => random.extend_from_slice(column),
    }
    mode
}

fn different(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes
        .iter()
        .for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Packs digits with `bits` bits each, the lowest bits first; the last byte is padded with zeros.
fn pack(digits: &[u8], alphabet: &[u8], bits: u32, out: &mut Vec<u8>) {
    let (mut held, mut count) = (0_u32, 0);
    for digit in digits {
        let value = alphabet
            .iter()
            .position(|known| known == digit)
            .unwrap_or(0) as u32;
        held |= value << count;
        count += bits;
        while count >= 8 {
            out.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        out.push(held as u8);
    }
}

fn unpack(r: &mut Reader<'_>, rows: usize, alphabet: &[u8], bits: u32) -> Option<Vec<u8>> {
    let packed = r.take(rows.checked_mul(bits as usize)?.div_ceil(8))?;
    let mut digits = Vec::with_capacity(rows);
    let (mut held, mut count, mut bytes) = (0_u32, 0, packed.iter());
    for _ in 0..rows {
        while count < bits {
            held |= u32::from(*bytes.next()?) << count;
            count += 8;
        }
        digits.push(alphabet[(held & ((1 << bits) - 1)) as usize]);
        held >>= bits;
        count -= bits;
    }
    (held == 0).then_some(digits)
}

/// A table while it is decoded: its modes and cells, and the index of the next piece to hand out.
struct Table {
    name: Vec<u8>,
    length: usize,
    rows: usize,
    /// Mode of each column; `None` if stored by rows.
    modes: Option<Vec<u8>>,
    cells: Vec<u8>,
    next: usize,
}

impl Table {
    fn head(r: &mut Reader<'_>) -> Option<Self> {
        let name_bytes = r.u16()?;
        let name = r.take(name_bytes.into())?.to_vec();
        let (length, rows) = (r.u32()? as usize, r.u32()? as usize);
        let modes = match r.u8()? {
            BY_ROWS => None,
            BY_COLUMNS => Some(r.take(length)?.to_vec()),
            _ => return None,
        };
        Some(Self {
            name,
            length,
            rows,
            modes,
            cells: Vec::new(),
            next: 0,
        })
    }

    fn fill(&mut self, r: &mut Reader<'_>, random: &mut Reader<'_>) -> Option<()> {
        let (length, rows) = (self.length, self.rows);
        let bytes = length.checked_mul(rows).filter(|bytes| *bytes <= MAX_RAW)?;
        let Some(modes) = &self.modes else {
            self.cells = r.take(bytes)?.to_vec();
            return Some(());
        };
        self.cells = vec![0; bytes];
        for (column, mode) in modes.iter().enumerate() {
            let mut values = match *mode {
                PLAIN | DIFFERENCES => r.take(rows)?.to_vec(),
                BYTES => random.take(rows)?.to_vec(),
                HEX_DIGITS => unpack(random, rows, HEX, 4)?,
                BASE64_DIGITS => unpack(random, rows, BASE64, 6)?,
                _ => return None,
            };
            if *mode == DIFFERENCES {
                for row in 1..rows {
                    values[row] = values[row].wrapping_add(values[row - 1]);
                }
            }
            for (row, value) in values.into_iter().enumerate() {
                self.cells[row * length + column] = value;
            }
        }
        Some(())
    }

    fn next(&mut self) -> Option<&[u8]> {
        let from = self.next.checked_mul(self.length)?;
        self.next = self.next.checked_add(1).filter(|next| *next <= self.rows)?;
        self.cells.get(from..from + self.length)
    }
}

/// Decodes `count` rows of `raw` bytes in all; `None` for bytes that [`encode`] never writes.
pub(super) fn decode(parts: &Columns, count: u32, raw: usize) -> Option<Vec<Row>> {
    let (mut r, mut random) = (Reader(&parts.compressible), Reader(&parts.random));
    let mut tables = Vec::new();
    for _ in 0..r.u32()? {
        tables.push(Table::head(&mut r)?);
    }
    let mut shapes: Vec<Shape> = Vec::new();
    for _ in 0..r.u32()? {
        let flags = r.u8()?;
        let pieces = (0..r.u16()?).map(|_| r.u32()).collect::<Option<_>>()?;
        shapes.push((flags, pieces));
    }
    let order = (0..count).map(|_| r.u32()).collect::<Option<Vec<_>>>()?;
    let is_text_of = |shape: &u32| {
        let flags = shapes.get(*shape as usize).map(|(flags, _)| *flags);
        flags.map(|flags| flags & TEXT_KEY > 0)
    };
    let mut texts = Vec::new();
    for shape in &order {
        if is_text_of(shape)? {
            let length = r.u16()?;
            texts.push(r.take(length.into())?);
        }
    }
    for table in &mut tables {
        table.fill(&mut r, &mut random)?;
    }
    r.end()?;
    random.end()?;
    let (mut texts, mut rows, mut found) = (texts.into_iter(), Vec::new(), 0_usize);
    for shape in order {
        let (flags, pieces) = shapes.get(shape as usize)?;
        let row = assemble(*flags, pieces, &mut tables, &mut texts)?;
        found = found.checked_add(raw_bytes(&row.0, row.1.as_deref()))?;
        if found > raw {
            return None;
        }
        rows.push(row);
    }
    let is_used = tables.iter().all(|table| table.next == table.rows);
    (found == raw && is_used).then_some(rows)
}

fn assemble<'a>(
    flags: u8,
    pieces: &[u32],
    tables: &mut [Table],
    texts: &mut impl Iterator<Item = &'a [u8]>,
) -> Option<Row> {
    if flags & !(DELETED | TEXT_KEY | ONODE) > 0 || flags & DELETED > 0 && flags & ONODE > 0 {
        return None;
    }
    let mut pieces = pieces.iter();
    let mut next = |tables: &mut [Table]| {
        let table = tables.get_mut(*pieces.next()? as usize)?;
        let name = table.name.clone();
        Some((name, table.next()?.to_vec()))
    };
    let key = match flags & TEXT_KEY > 0 {
        true => texts.next()?.to_vec(),
        false => next(tables)?.1,
    };
    let value = match flags & (DELETED | ONODE) {
        DELETED => None,
        0 => Some(next(tables)?.1),
        _ => {
            let mut value = next(tables)?.1;
            let at = value.len();
            value.put_u16(0);
            let mut attributes = 0_u16;
            while let Some((name, bytes)) = next(tables) {
                let name = name.get(1..)?;
                value.put_u16(u16::try_from(name.len()).ok()?);
                value.extend_from_slice(name);
                value.put_u32(bytes.len() as u32);
                value.extend_from_slice(&bytes);
                attributes = attributes.checked_add(1)?;
            }
            value[at..at + 2].copy_from_slice(&attributes.to_le_bytes());
            Some(value)
        }
    };
    next(tables).is_none().then_some((key, value))
}
