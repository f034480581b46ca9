//! A batch of changes that a database applies atomically.

use codec::{Put, Reader};

/// Changes that happen together or not at all, in the order in which they were added. A range is
/// deleted key by key: scans do not see RocksDB's deleted ranges, so that no error escapes them.
///
/// Stored in the form for a log: for each change its kind, the lengths of key and value as `u64`, and both.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Number of changes, without those for the log only.
    count: usize,
}

/// One change of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// Sets a key's value.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
    /// Merges a value into that of a key.
    Merge(&'a [u8], &'a [u8]),
    /// Bytes for the log only.
    LogData(&'a [u8]),
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const MERGE: u8 = 3;
const LOG_DATA: u8 = 4;

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.add(PUT, key, value);
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.add(DELETE, key, &[]);
    }

    /// Merges `value` into a key's value.
    pub fn merge(&mut self, key: &[u8], value: &[u8]) {
        self.add(MERGE, key, value);
    }

    /// Adds bytes that go to the write-ahead log only, for a [`crate::ReplayFilter`] to see.
    pub fn log_data(&mut self, blob: &[u8]) {
        self.add(LOG_DATA, &[], blob);
    }

    fn add(&mut self, kind: u8, key: &[u8], value: &[u8]) {
        self.bytes.push(kind);
        self.bytes
            .reserve(2 * size_of::<u64>() + key.len() + value.len());
        for part in [key, value] {
            self.bytes.put_u64(part.len() as u64);
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += usize::from(kind != LOG_DATA);
    }

    /// Removes all changes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Whether no key changes; bytes for the log only do not count.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the batch takes in a log, without the log's own headers.
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The batch in the form for a log.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The batch that [`Self::as_bytes`] was called on; `None` for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mut count, mut fields) = (0, Reader(bytes));
        while fields.end().is_none() {
            let change = next_change(&mut fields)?;
            count += usize::from(!matches!(change, Change::LogData(_)));
        }
        let bytes = bytes.to_vec();
        Some(Self { bytes, count })
    }

    /// The changes in order.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let mut fields = Reader(&self.bytes);
        std::iter::from_fn(move || next_change(&mut fields))
    }
}

/// Decodes and removes the first change.
fn next_change<'a>(fields: &mut Reader<'a>) -> Option<Change<'a>> {
    let kind = fields.u8()?;
    let lengths = [fields.u64()?, fields.u64()?];
    let key = fields.take(usize::try_from(lengths[0]).ok()?)?;
    let value = fields.take(usize::try_from(lengths[1]).ok()?)?;
    match (kind, key, value) {
        (PUT, _, _) => Some(Change::Put(key, value)),
        (DELETE, _, []) => Some(Change::Delete(key)),
        (MERGE, _, _) => Some(Change::Merge(key, value)),
        (LOG_DATA, [], _) => Some(Change::LogData(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_what_its_bytes_say_and_nothing_else_is_one() {
        let mut batch = Batch::default();
        batch.put(b"key", b"value");
        batch.delete(b"gone");
        batch.merge(b"", b"12345678");
        batch.log_data(b"note");
        let changes = [
            Change::Put(b"key", b"value"),
            Change::Delete(b"gone"),
            Change::Merge(b"", b"12345678"),
            Change::LogData(b"note"),
        ];
        assert!(batch.changes().eq(changes));
        let bytes = batch.as_bytes();
        assert_eq!(Batch::from_bytes(bytes), Some(batch.clone()));
        let whole = [0, 25, 46, 71, bytes.len()];
        for length in 0..=bytes.len() {
            let read = Batch::from_bytes(&bytes[..length]);
            assert_eq!(read.is_some(), whole.contains(&length), "{length}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.to_vec();
            other[at] = 0xff;
            // Some other batch, or none; no panic.
            let _ = Batch::from_bytes(&other);
        }
    }
}
