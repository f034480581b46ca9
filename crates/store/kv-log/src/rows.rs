//! All rows in memory: applying batches to them, and walks over them.

use kv::{Batch, Change, Cursor, Error, MergeOperator, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Most bytes that a row takes in a snapshot besides its key and value.
const ROW: usize = 16;

/// All rows. Cheap to clone: a walk keeps the rows of its beginning.
#[derive(Clone, Default)]
pub(crate) struct Rows {
    rows: Arc<BTreeMap<Vec<u8>, Arc<[u8]>>>,
    bytes: usize,
}

/// First bytes of the keys that accept merges.
pub(crate) type Merges = [(u8, MergeOperator)];

impl Rows {
    /// Approximate size of a snapshot in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.rows.get(key).map(|value| value.to_vec())
    }

    pub fn all(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Applies a batch that [`check`] has accepted.
    pub fn apply(&mut self, batch: &Batch) {
        // Copies all rows while a walk holds the old ones.
        let rows = Arc::make_mut(&mut self.rows);
        for change in batch.changes() {
            let (key, value): (_, Option<Arc<[u8]>>) = match change {
                Change::Put(key, value) => (key, Some(value.into())),
                Change::Delete(key) => (key, None),
                Change::Merge(key, value) => {
                    let sum = add(rows.get(key).map_or(&[], |before| before), value);
                    (key, Some(sum.into()))
                }
                Change::LogData(_) => continue,
            };
            let size = |value: Arc<[u8]>| key.len() + value.len() + ROW;
            self.bytes += value.clone().map_or(0, size);
            let before = match value {
                Some(value) => rows.insert(key.to_vec(), value),
                None => rows.remove(key),
            };
            self.bytes -= before.map_or(0, size);
        }
    }

    pub fn scan(self, lower: &[u8], upper: Option<&[u8]>) -> RowCursor {
        RowCursor {
            rows: self,
            next: Bound::Included(lower.to_vec()),
            upper: upper.map(<[u8]>::to_vec),
        }
    }
}

/// Refuses a batch that merges into a key that accepts no merges.
pub(crate) fn check(batch: &Batch, merges: &Merges) -> Result<()> {
    for change in batch.changes() {
        if let Change::Merge(key, value) = change {
            let takes = merges.iter().any(|(prefix, _)| key.first() == Some(prefix));
            if !takes || value.len() % 8 != 0 {
                return Err(Error::Invalid {
                    message: format!("no merge into {}", key.escape_ascii()),
                });
            }
        }
    }
    Ok(())
}

/// The operator [`MergeOperator::AddI64s`].
fn add(before: &[u8], value: &[u8]) -> Vec<u8> {
    let counter = |counters: &[u8], at: usize| {
        let bytes = counters.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| i64::from_le_bytes(*bytes))
    };
    (0..before.len().max(value.len()))
        .step_by(8)
        .flat_map(|at| {
            let sum = counter(before, at).wrapping_add(counter(value, at));
            sum.to_le_bytes()
        })
        .collect()
}

/// A walk from [`Rows::scan`].
pub(crate) struct RowCursor {
    rows: Rows,
    next: Bound<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Cursor for RowCursor {
    fn seek(&mut self, key: &[u8]) {
        self.next = Bound::Included(key.to_vec());
    }
}

impl Iterator for RowCursor {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = (self.next.as_ref(), Bound::Unbounded);
        let (key, value) = self.rows.rows.range::<Vec<u8>, _>(from).next()?;
        if self.upper.as_ref().is_some_and(|upper| key >= upper) {
            return None;
        }
        self.next = Bound::Excluded(key.clone());
        Some(Ok((key.clone(), value.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_one_by_one_with_wrapping() {
        let counters = |all: &[i64]| all.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<_>>();
        let sum = add(&counters(&[i64::MAX, 2]), &counters(&[1]));
        assert_eq!(sum, counters(&[i64::MIN, 2]));
        assert_eq!(add(&[], &counters(&[1, -5])), counters(&[1, -5]));
    }

    #[test]
    fn a_walk_sees_the_rows_of_its_beginning() {
        let mut rows = Rows::default();
        let put = |rows: &mut Rows, keys: &[&[u8]]| {
            let mut batch = Batch::default();
            keys.iter().for_each(|key| batch.put(key, b"1"));
            rows.apply(&batch);
        };
        put(&mut rows, &[b"a", b"b", b"c", b"d"]);
        let mut walk = rows.clone().scan(b"b", Some(b"d"));
        put(&mut rows, &[b"bb"]);
        let keys = |walk: &mut RowCursor| walk.map(|row| row.unwrap().0).collect::<Vec<_>>();
        assert_eq!(keys(&mut walk), [b"b", b"c"]);
        walk.seek(b"a");
        assert_eq!(keys(&mut walk), [b"a", b"b", b"c"]);
        assert_eq!(keys(&mut rows.scan(b"b", Some(b"c"))), [&b"b"[..], b"bb"]);
    }
}
