//! Bytes of the files: records of logs and snapshots, and CURRENT (`docs/format/kv-log.md`).

use crc_fast::{CrcAlgorithm, checksum};

/// Bytes before each record's batch: a crc32c of all that follows, and the batch's length.
pub(crate) const HEADER_BYTES: usize = 12;
/// Version of the files' format.
pub(crate) const VERSION: u32 = 1;

fn crc32c(bytes: &[u8]) -> u32 {
    // The crate returns the 32-bit result in the low half of 64 bits.
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Encodes a record with `batch`.
pub(crate) fn record(batch: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + batch.len());
    bytes.extend([0; 4]);
    bytes.extend((batch.len() as u64).to_le_bytes());
    bytes.extend(batch);
    let sum = crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Why a file's batches end before the file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The last record is incomplete.
    Torn,
    /// A complete record does not match its checksum.
    Damaged,
}

/// The batches of a log or snapshot, in order; last, why they end before the file does, if so.
pub(crate) fn records(file: &[u8]) -> impl Iterator<Item = Result<&[u8], Stop>> {
    let mut rest = file;
    std::iter::from_fn(move || {
        let bytes = std::mem::take(&mut rest);
        if bytes.is_empty() {
            return None;
        }
        Some(split_record(bytes).map(|(batch, behind)| {
            rest = behind;
            batch
        }))
    })
}

fn split_record(bytes: &[u8]) -> Result<(&[u8], &[u8]), Stop> {
    let (sum, summed) = bytes.split_first_chunk().ok_or(Stop::Torn)?;
    let (length, batch) = summed.split_first_chunk().ok_or(Stop::Torn)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| Stop::Torn)?;
    let (batch, behind) = batch.split_at_checked(length).ok_or(Stop::Torn)?;
    if u32::from_le_bytes(*sum) != crc32c(&summed[..8 + length]) {
        return Err(Stop::Damaged);
    }
    Ok((batch, behind))
}

/// Contents of the file `CURRENT`: which snapshot and log are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Current {
    /// Number in the names of both files.
    pub generation: u64,
    /// Size of the snapshot; 0: there is none.
    pub snapshot_bytes: u64,
}

impl Current {
    /// A line of text: `kv-log`, version, generation, length of the snapshot, crc32c of all that.
    pub fn encode(self) -> String {
        let Self {
            generation,
            snapshot_bytes,
        } = self;
        let text = format!("kv-log {VERSION} {generation} {snapshot_bytes}");
        format!("{text} {:08x}\n", crc32c(text.as_bytes()))
    }

    /// Decodes a line; `None` for anything that [`Self::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ').skip(2);
        let current = Self {
            generation: words.next()?.parse().ok()?,
            snapshot_bytes: words.next()?.parse().ok()?,
        };
        (current.encode().as_bytes() == bytes).then_some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_document_are_what_is_written() {
        const DOCUMENT: &str = include_str!("../../../../docs/format/kv-log.md");
        let mut batch = kv::Batch::default();
        batch.put(b"k", b"v");
        let bytes = record(batch.as_bytes()).into_iter();
        let hex = bytes.map(|byte| format!("{byte:02x}"));
        let hex = hex.collect::<Vec<_>>().join(" ");
        let current = Current {
            generation: 12,
            snapshot_bytes: 345,
        };
        for example in [&hex, current.encode().trim_end()] {
            assert!(DOCUMENT.contains(example), "not in the document: {example}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_what_is_torn_or_damaged() {
        let file = [record(b"first"), record(b""), record(b"third")].concat();
        let whole: [&[u8]; 3] = [b"first", b"", b"third"];
        assert!(records(&file).eq(whole.map(Ok)));
        let ends = [17, 29, file.len()];
        for length in 0..file.len() {
            let read: Vec<_> = records(&file[..length]).collect();
            let count = ends.iter().filter(|end| **end <= length).count();
            assert!(
                read.iter()
                    .copied()
                    .take(count)
                    .eq(whole[..count].iter().map(|b| Ok(*b)))
            );
            let torn = length != 0 && !ends.contains(&length);
            assert_eq!(read.get(count), torn.then_some(&Err(Stop::Torn)));
        }
        for at in 0..file.len() {
            let mut other = file.clone();
            other[at] ^= 1;
            assert!(records(&other).any(|batch| batch.is_err()), "{at}");
        }
    }

    #[test]
    fn current_is_read_only_as_it_was_written() {
        let current = Current {
            generation: 12,
            snapshot_bytes: 345,
        };
        let text = current.encode();
        assert_eq!(Current::decode(text.as_bytes()), Some(current));
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            assert_eq!(Current::decode(&other), None);
            assert_eq!(Current::decode(&text.as_bytes()[..at]), None);
        }
    }
}
