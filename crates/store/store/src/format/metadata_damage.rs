//! The file `/damage`: metadata that a scrub found damaged in all copies.

use crate::checksum::crc32c;
use codec::{Put, Reader};

const VERSION: u32 = 1;
/// Offset of the checksum.
const CRC_AT: usize = 4;
/// Most entries that are kept.
pub(crate) const MAX_ENTRIES: usize = 1000;

/// [`Entry::inode`] of damage that was found in rows.
pub(crate) const ROWS: u64 = 0;
/// [`Entry::inode`] of damage to the file system itself.
pub(crate) const FILE_SYSTEM: u64 = u64::MAX;

/// One finding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    /// Number of the damaged file, [`ROWS`] or [`FILE_SYSTEM`].
    pub inode: u64,
    /// When it was found, a file for the first time, rows for the last: Unix time in microseconds.
    pub found_micros: u64,
    /// Path of the file, or a description of the damage.
    pub what: String,
}

pub(crate) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(VERSION);
    out.put_u32(0);
    for entry in entries {
        out.put_u64(entry.inode);
        out.put_u64(entry.found_micros);
        let most = entry.what.floor_char_boundary(usize::from(u16::MAX));
        out.put_u16(most as u16);
        out.extend_from_slice(&entry.what.as_bytes()[..most]);
    }
    let sum = crc32c(&out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
    out
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut r = Reader(bytes);
    if r.u32()? != VERSION {
        return None;
    }
    let sum = r.u32()?;
    let mut covered = bytes.to_vec();
    covered[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&covered) != sum {
        return None;
    }
    let mut entries = Vec::new();
    while r.end().is_none() {
        let (inode, found_micros, length) = (r.u64()?, r.u64()?, r.u16()?);
        let what = std::str::from_utf8(r.take(length.into())?).ok()?.to_owned();
        entries.push(Entry {
            inode,
            found_micros,
            what,
        });
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_round_trip_and_no_change() {
        let entry = |inode, what: &str| Entry {
            inode,
            found_micros: 7,
            what: what.to_owned(),
        };
        let entries = [entry(3, "/db/000012.sst"), entry(0, "a key is damaged")];
        let mut bytes = encode(&entries);
        assert_eq!(decode(&bytes).unwrap(), entries);
        for at in 0..bytes.len() * 8 {
            bytes[at / 8] ^= 1 << (at % 8);
            assert_eq!(decode(&bytes), None, "bit {at}");
            bytes[at / 8] ^= 1 << (at % 8);
        }
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "{length}");
        }
    }
}
