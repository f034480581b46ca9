//! Batches and keys in the database's log at mount, for the search for rows without a copy in segment summaries.

use crate::format::key;
use std::collections::BTreeSet;
use zone::ZoneId;

/// Most bytes of keys that are kept; the keys of a longer log are forgotten.
const MAX_BYTES: usize = 64 << 20;

/// Where rows that may be in no summary are searched.
#[derive(Default)]
pub(crate) struct Uncopied {
    /// Among those in the log, and those that waited at the last unmount.
    pub logged: Option<Logged>,
    /// Among all rows, because the log does not reach back far enough.
    pub any: bool,
}

impl Uncopied {
    /// Whether all rows are in summaries or wait for one.
    pub fn is_none(&self) -> bool {
        self.logged.is_none() && !self.any
    }
}

/// Numbers of the batches in the log, and keys that they changed.
#[derive(Default, Debug)]
pub(crate) struct Logged {
    numbers: BTreeSet<u64>,
    /// Keys of rows that summaries copy, and of places of summaries.
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    is_too_long: bool,
}

impl Logged {
    /// Adds a record of the log: the numbers of its batches, and the keys that they set or removed.
    pub fn add(&mut self, numbers: impl Iterator<Item = u64>, keys: &[&[u8]]) {
        self.numbers.extend(numbers);
        if self.is_too_long {
            return;
        }
        for key in keys.iter().filter(|key| is_copied(key) || is_place(key)) {
            if self.keys.insert(key.to_vec()) {
                self.bytes += key.len();
            }
        }
        if self.bytes > MAX_BYTES {
            self.is_too_long = true;
            self.keys.clear();
        }
    }

    /// Adds keys of rows that waited for a summary at the last unmount.
    pub fn add_waiting(&mut self, keys: BTreeSet<Vec<u8>>) {
        self.keys.extend(keys);
    }

    /// Whether the log has a batch after this one.
    pub fn goes_behind(&self, batch: u64) -> bool {
        self.numbers.last().is_some_and(|last| *last > batch)
    }

    /// Whether the log has all batches after this one, at least one, and all keys are kept.
    pub fn has_all_behind(&self, batch: u64) -> bool {
        let behind = self.numbers.range(batch.saturating_add(1)..);
        let mut expected = batch;
        let mut is_next = |number: &u64| {
            expected += 1;
            *number == expected
        };
        !self.is_too_long && self.goes_behind(batch) && behind.into_iter().all(&mut is_next)
    }

    /// Keys of rows that summaries copy.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let rows = self.keys.iter().filter(|key| is_copied(key));
        rows.map(Vec::as_slice)
    }

    /// Zones that got or lost summaries.
    pub fn zones(&self) -> impl Iterator<Item = ZoneId> {
        let places = self.keys.iter().filter(|key| is_place(key));
        places.filter_map(|key| key::parse_summaries(key))
    }
}

fn is_copied(key: &[u8]) -> bool {
    let Some(first) = key.first() else {
        return false;
    };
    [key::COLLECTION, key::BLOB, key::EXTENT].contains(first) || key::ONODES.contains(first)
}

fn is_place(key: &[u8]) -> bool {
    key.first() == Some(&key::SUMMARIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_not_in_the_log_is_missed() {
        let mut logged = Logged::default();
        assert!(!logged.goes_behind(0) && !logged.has_all_behind(0));
        logged.add([4, 3].into_iter(), &[b"Ca", b"Sformat", b"G"]);
        logged.add([6].into_iter(), &[&key::summaries(ZoneId(7))]);
        let all = |batch| logged.has_all_behind(batch);
        assert_eq!(
            [1, 2, 3, 4, 5, 6].map(all),
            [false, false, false, false, true, false]
        );
        logged.add([5].into_iter(), &[]);
        assert!(logged.has_all_behind(2) && !logged.has_all_behind(1));
        assert_eq!(logged.rows().collect::<Vec<_>>(), [b"Ca"]);
        assert_eq!(logged.zones().collect::<Vec<_>>(), [ZoneId(7)]);
    }

    #[test]
    fn a_log_that_is_too_long_has_not_all() {
        let mut logged = Logged::default();
        let key = vec![key::ONODE; MAX_BYTES / 2 + 1];
        logged.add([1].into_iter(), &[&key]);
        assert!(logged.has_all_behind(0));
        logged.add([2].into_iter(), &[&[&key[..], b"more"].concat()]);
        assert!(!logged.has_all_behind(0) && logged.goes_behind(1));
        assert_eq!(logged.rows().count(), 0);
    }
}
