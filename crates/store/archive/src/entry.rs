//! An object in an archive: its extended header, and the layout of its data.

use crate::pax;
use crate::tar_block::BLOCK;
use std::ops::Range;
use store::{Attributes, Name};

/// Prefix of keywords of extended attributes, as GNU tar, star and libarchive write them.
const XATTR: &[u8] = b"SCHILY.xattr.user.zonestore.";
const ATTRIBUTE: &[u8] = b"attribute.";
const MICROS: u64 = 1_000_000;

/// An object without its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub collection: String,
    pub name: Name,
    /// Path of the file for other programs.
    pub path: String,
    pub modified_micros: u64,
    pub attributes: Attributes,
    pub size: u64,
    /// Ranges with data, in order, not empty and not adjacent; the rest are holes.
    pub ranges: Vec<Range<u64>>,
}

/// Escapes an attribute's name: a keyword must not contain `=` or unprintable bytes.
fn keyword(attribute: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in attribute.bytes() {
        match byte {
            b'=' | b'%' | 0..=b' ' | 0x7f => out.extend(format!("%{byte:02X}").bytes()),
            byte => out.push(byte),
        }
    }
    out
}

fn attribute(keyword: &[u8]) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = keyword.iter();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'%' => {
                let digits = [*rest.next()?, *rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(out).ok()
}

/// Parses `SECONDS.MICROSECONDS`, with six digits, into microseconds.
fn micros(time: &[u8]) -> Option<u64> {
    let (seconds, micros) = std::str::from_utf8(time).ok()?.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    seconds.checked_mul(MICROS)?.checked_add(micros)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses `START-END START-END …`, in order.
fn ranges(text: &str) -> Option<Vec<Range<u64>>> {
    let mut last = 0;
    let ranges = text.split(' ').map(|range| {
        let (start, end) = range.split_once('-')?;
        let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
        let is_next = last <= start && start < end;
        last = end;
        is_next.then_some(start..end)
    });
    ranges.collect()
}

impl Entry {
    pub fn is_sparse(&self) -> bool {
        let whole = 0..self.size;
        self.size > 0 && self.ranges != [whole]
    }

    /// The ranges that the archive holds as data: for an object with holes, whole blocks, because GNU tar starts each
    /// run at a block.
    pub fn stored(&self) -> Vec<Range<u64>> {
        if !self.is_sparse() {
            return self.ranges.clone();
        }
        let mut stored: Vec<Range<u64>> = Vec::new();
        for range in &self.ranges {
            let start = range.start / BLOCK as u64 * BLOCK as u64;
            let end = range.end.checked_next_multiple_of(BLOCK as u64);
            let end = end.unwrap_or(range.end).min(self.size);
            match stored.last_mut() {
                Some(last) if last.end >= start => last.end = end,
                _ => stored.push(start..end),
            }
        }
        stored
    }

    /// Time of the last change in seconds, for the tar header.
    pub fn modified(&self) -> u64 {
        self.modified_micros / MICROS
    }

    /// COLLECTION/OBJECT, for messages.
    pub fn label(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// The records of the object's extended header.
    pub fn records(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let time = format!("{}.{:06}", self.modified(), self.modified_micros % MICROS);
        pax::add(&mut out, b"mtime", time.as_bytes());
        if self.is_sparse() {
            pax::add(&mut out, b"GNU.sparse.major", b"1");
            pax::add(&mut out, b"GNU.sparse.minor", b"0");
            pax::add(&mut out, b"GNU.sparse.name", self.path.as_bytes());
            let size = self.size.to_string();
            pax::add(&mut out, b"GNU.sparse.realsize", size.as_bytes());
        } else {
            pax::add(&mut out, b"path", self.path.as_bytes());
        }
        let mut own =
            |name: &[u8], value: &[u8]| pax::add(&mut out, &[XATTR, name].concat(), value);
        if self.stored() != self.ranges {
            let ranges = self.ranges.iter();
            let ranges = ranges.map(|range| format!("{}-{}", range.start, range.end));
            own(b"data", ranges.collect::<Vec<_>>().join(" ").as_bytes());
        }
        own(b"collection", self.collection.as_bytes());
        own(b"name", &self.name);
        for (name, value) in &self.attributes {
            own(&[ATTRIBUTE, &keyword(name)].concat(), value);
        }
        out
    }

    /// Decodes an extended header; also returns whether the object has holes. If so, `ranges` are left to its map; if
    /// not, its size is `stored`, from the header of the data.
    pub fn decode(records: &[u8], stored: u64) -> Option<(Self, bool)> {
        let mut entry = Self {
            collection: String::new(),
            name: Name::default(),
            path: String::new(),
            modified_micros: 0,
            attributes: Attributes::new(),
            size: stored,
            ranges: Vec::new(),
        };
        let mut is_sparse = false;
        for (keyword, value) in pax::parse(records)? {
            let text = || String::from_utf8(value.clone()).ok();
            match keyword.strip_prefix(XATTR) {
                Some(b"collection") => entry.collection = text()?,
                Some(b"data") => entry.ranges = ranges(&text()?)?,
                Some(b"name") => entry.name = (&value).into(),
                Some(own) => {
                    let name = attribute(own.strip_prefix(ATTRIBUTE)?)?;
                    entry.attributes.insert(name, value);
                }
                None => match &*keyword {
                    b"mtime" => entry.modified_micros = micros(&value)?,
                    b"path" => entry.path = text()?,
                    b"GNU.sparse.major" => is_sparse = true,
                    b"GNU.sparse.minor" => {}
                    b"GNU.sparse.name" => entry.path = text()?,
                    b"GNU.sparse.realsize" => entry.size = number(&value)?,
                    _ => return None,
                },
            }
        }
        Some((entry, is_sparse))
    }

    /// The map before the data of an object with holes: numbers in lines, without the padding.
    pub fn map(&self) -> Vec<u8> {
        let stored = self.stored();
        let mut ranges: Vec<_> = stored.iter().map(|r| (r.start, r.end - r.start)).collect();
        if stored.last().is_none_or(|last| last.end < self.size) {
            // For readers that take the object's size from the map.
            ranges.push((self.size, 0));
        }
        let mut out = format!("{}\n", ranges.len());
        for (offset, length) in ranges {
            out.push_str(&format!("{offset}\n{length}\n"));
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_survive(
            name: Vec<u8>, modified_micros: u64, size: u64,
            attributes in proptest::collection::btree_map(".{0,9}", proptest::collection::vec(any::<u8>(), 0..20), 0..5),
            is_sparse: bool,
        ) {
            let ranges = Some(0..size).filter(|_| !is_sparse).into_iter().collect();
            let name = Name::from(&name);
            let (collection, path) = ("ü".to_owned(), "a\nb=c".to_owned());
            let entry = Entry { collection, name, path, modified_micros, attributes, size, ranges };
            let is_sparse = is_sparse && size > 0;
            let stored = if is_sparse { 5 } else { size };
            let found = Entry::decode(&entry.records(), stored);
            prop_assert_eq!(found, Some((Entry { ranges: Vec::new(), ..entry }, is_sparse)));
        }

        #[test]
        fn any_header_is_one_or_not(value: Vec<u8>, which in 0usize..8) {
            let keywords = ["mtime", "path", "GNU.sparse.realsize", "GNU.sparse.name", "other",
                "SCHILY.xattr.user.zonestore.attribute.%zz", "SCHILY.xattr.user.zonestore.collection", "GNU.sparse.major"];
            let mut records = Vec::new();
            pax::add(&mut records, keywords[which].as_bytes(), &value);
            let _ = Entry::decode(&records, 0);
        }
    }
}
