//! A second decoder of a summary's columns, written from `docs/format/store.md` alone.

const HEX: &str = "0123456789abcdef";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) type Rows = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What is left of a part.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let (found, behind) = self.0.split_at_checked(count)?;
        self.0 = behind;
        Some(found.to_vec())
    }

    /// A little-endian number of so many bytes.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        let bytes = self.take(bytes)?.into_iter().rev();
        Some(bytes.fold(0, |sum, byte| (sum << 8) + usize::from(byte)))
    }

    /// Digits, bit by bit.
    fn digits(&mut self, count: usize, bits: usize, alphabet: &str) -> Option<Vec<u8>> {
        let packed = self.take((count * bits).div_ceil(8))?;
        let bit = |at: usize| usize::from(packed[at / 8] >> (at % 8) & 1);
        if (count * bits..packed.len() * 8).any(|at| bit(at) == 1) {
            return None;
        }
        let value = |n: usize| (0..bits).map(|b| bit(n * bits + b) << b).sum::<usize>();
        let digit = |n: usize| alphabet.as_bytes()[value(n)];
        Some((0..count).map(digit).collect())
    }
}

/// Pieces of one kind and length.
struct Table {
    kind: Vec<u8>,
    length: usize,
    count: usize,
    modes: Option<Vec<u8>>,
    cells: std::vec::IntoIter<Vec<u8>>,
}

impl Table {
    fn fill(&mut self, first: &mut Rest<'_>, second: &mut Rest<'_>) -> Option<()> {
        if self.length.checked_mul(self.count)? > 8_388_608 {
            return None;
        }
        let Some(modes) = &self.modes else {
            let cells = (0..self.count).map(|_| first.take(self.length));
            self.cells = cells.collect::<Option<Vec<_>>>()?.into_iter();
            return Some(());
        };
        let mut cells = vec![Vec::new(); self.count];
        for mode in modes {
            let column = match mode {
                0 | 1 => first.take(self.count)?,
                2 => second.take(self.count)?,
                3 => second.digits(self.count, 4, HEX)?,
                4 => second.digits(self.count, 6, BASE64)?,
                _ => return None,
            };
            let mut above = 0_u8;
            for (cell, byte) in cells.iter_mut().zip(column) {
                above = if *mode == 1 {
                    above.wrapping_add(byte)
                } else {
                    byte
                };
                cell.push(above);
            }
        }
        self.cells = cells.into_iter();
        Some(())
    }
}

/// The rows in the stored bytes of a summary of version 2.
pub(super) fn rows(stored: &[u8], count: u64, raw: u64) -> Option<Rows> {
    let mut rest = Rest(stored);
    let (bytes, packed) = (rest.number(4)?, rest.number(4)?);
    let first = zstd::decode_all(&rest.take(packed)?[..]).ok()?;
    if bytes > 16_777_216 || first.len() != bytes {
        return None;
    }
    let mut second = rest;
    let mut first = Rest(&first);
    let mut tables = Vec::new();
    for _ in 0..first.number(4)? {
        let length = first.number(2)?;
        let kind = first.take(length)?;
        let (length, count) = (first.number(4)?, first.number(4)?);
        let modes = match first.number(1)? {
            0 => None,
            1 => Some(first.take(length)?),
            _ => return None,
        };
        let cells = Vec::new().into_iter();
        tables.push(Table {
            kind,
            length,
            count,
            modes,
            cells,
        });
    }
    let mut shapes = Vec::new();
    for _ in 0..first.number(4)? {
        let (flags, pieces) = (first.number(1)?, first.number(2)?);
        let pieces = (0..pieces).map(|_| first.number(4));
        shapes.push((flags, pieces.collect::<Option<Vec<_>>>()?));
    }
    let of_rows = (0..count).map(|_| first.number(4));
    let of_rows = of_rows.collect::<Option<Vec<_>>>()?;
    let mut texts = Vec::new();
    for shape in &of_rows {
        if shapes.get(*shape)?.0 & 2 == 2 {
            let length = first.number(2)?;
            texts.push(first.take(length)?);
        }
    }
    for table in &mut tables {
        table.fill(&mut first, &mut second)?;
    }
    let (mut texts, mut rows, mut found) = (texts.into_iter(), Vec::new(), 0);
    for shape in of_rows {
        let (flags, pieces) = &shapes[shape];
        if *flags > 7 || flags & 5 == 5 {
            return None;
        }
        let mut cells = Vec::new();
        for piece in pieces {
            let table = tables.get_mut(*piece)?;
            cells.push((table.kind.clone(), table.cells.next()?));
        }
        let mut cells = cells.into_iter();
        let key = match flags & 2 {
            2 => texts.next()?,
            _ => cells.next()?.1,
        };
        let mut value = match flags & 1 {
            1 => None,
            _ => Some(cells.next()?.1),
        };
        if let Some(value) = value.as_mut().filter(|_| flags & 4 == 4) {
            value.extend(u16::try_from(cells.len()).ok()?.to_le_bytes());
            for (kind, bytes) in cells.by_ref() {
                let name = kind.get(1..)?;
                value.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
                value.extend(name);
                value.extend((bytes.len() as u32).to_le_bytes());
                value.extend(bytes);
            }
        }
        if cells.next().is_some() {
            return None;
        }
        found += 8 + key.len() + value.as_ref().map_or(0, Vec::len);
        rows.push((key, value));
    }
    let is_over = first.0.is_empty() && second.0.is_empty();
    let is_used = tables.iter().all(|table| table.cells.len() == 0);
    (is_over && is_used && found as u64 == raw).then_some(rows)
}
