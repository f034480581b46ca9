//! A batch: changes that happen together.

/// Changes that happen together or not at all, in the order in which they were added. A range is
/// deleted key by key: scans do not see RocksDB's deleted ranges, so that no error escapes them.
///
/// Kept as it goes to a log: for each change its kind, the lengths of key and value as `u64`, and both.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Changes, without what is for the log only.
    count: usize,
}

/// One change of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// A key gets a value.
    Put(&'a [u8], &'a [u8]),
    /// A key goes.
    Delete(&'a [u8]),
    /// A value is merged into that of a key.
    Merge(&'a [u8], &'a [u8]),
    /// For the log only.
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
        for part in [key, value] {
            self.bytes.extend((part.len() as u64).to_le_bytes());
        }
        self.bytes.extend([key, value].concat());
        self.count += usize::from(kind != LOG_DATA);
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Whether it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes in a log, apart from what the log adds.
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// As it goes to a log.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What [`Self::as_bytes`] answered; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mut count, mut rest) = (0, bytes);
        while !rest.is_empty() {
            let (change, behind) = split_change(rest)?;
            count += usize::from(!matches!(change, Change::LogData(_)));
            rest = behind;
        }
        let bytes = bytes.to_vec();
        Some(Self { bytes, count })
    }

    /// The changes in order.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (change, behind) = split_change(rest)?;
            rest = behind;
            Some(change)
        })
    }
}

/// The first change, and what is behind it.
fn split_change(bytes: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (key_length, rest) = split_length(rest)?;
    let (value_length, rest) = split_length(rest)?;
    let (key, rest) = rest.split_at_checked(key_length)?;
    let (value, rest) = rest.split_at_checked(value_length)?;
    let change = match (*kind, key, value) {
        (PUT, _, _) => Change::Put(key, value),
        (DELETE, _, []) => Change::Delete(key),
        (MERGE, _, _) => Change::Merge(key, value),
        (LOG_DATA, [], _) => Change::LogData(value),
        _ => return None,
    };
    Some((change, rest))
}

fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    Some((usize::try_from(u64::from_le_bytes(*length)).ok()?, rest))
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
