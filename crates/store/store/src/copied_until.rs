//! Tracks the batch up to which all rows are in summaries, so that a mount after a crash need not compare these. Pure.

use crate::format::copied::CopiedRecord;
use std::collections::BTreeSet;

/// Batches whose rows may be in no summary, apart from rows that wait in memory for one.
pub(crate) struct CopiedUntil {
    /// Number of the last batch that was begun.
    last: u64,
    /// Batches that were begun and whose rows do not wait for a summary yet.
    begun: BTreeSet<u64>,
    /// The first batch with rows that are in no summary and do not wait for one.
    missing: Option<u64>,
    /// How often [`Self::miss`] was called.
    misses: u64,
    /// The record on the drive may say that everything is copied: the next batch has to revoke it.
    is_all: bool,
}

impl CopiedUntil {
    /// State after a mount: the record, the last batch in the log, whether all rows are known to be copied, and whether
    /// those that are not may be any.
    pub fn new(record: CopiedRecord, last: u64, all_copied: bool, any: bool) -> Self {
        // The log may have lost batches behind the record. Without a number that no batch has, the log of this mount would
        // pass for one that goes back to the record.
        let last = last.max(record.batch) + u64::from(any);
        Self {
            last,
            begun: BTreeSet::new(),
            missing: (!all_copied).then(|| record.batch.saturating_add(1)),
            misses: 0,
            is_all: record.is_all,
        }
    }

    /// Begins a batch: its number, and a record that has to be part of it, if any. `waiting` is the batch of the oldest
    /// row that waits.
    pub fn begin(&mut self, waiting: Option<u64>) -> (u64, Option<CopiedRecord>) {
        let record = self.is_all.then(|| self.record(waiting));
        self.last += 1;
        self.begun.insert(self.last);
        (self.last, record)
    }

    /// Ends a batch: its rows wait, or none of it was written. `has_told`: the record that it had is written.
    pub fn end(&mut self, batch: u64, has_told: bool) {
        self.begun.remove(&batch);
        self.is_all &= !has_told;
    }

    /// Notes that a row of this batch neither waits nor is copied.
    pub fn miss(&mut self, batch: u64) {
        self.missing = Some(self.missing.map_or(batch, |first| first.min(batch)));
        self.misses += 1;
    }

    /// Number of misses; to be read before all rows are compared.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Notes that all rows were compared and those without a copy wait, if no row was missed since `misses` was read.
    pub fn looked_at_all(&mut self, misses: u64) {
        if self.misses == misses {
            self.missing = None;
        }
    }

    /// The first batch with a row that is in no summary; `waiting` is the batch of the oldest row that waits.
    fn first(&self, waiting: Option<u64>) -> Option<u64> {
        let begun = self.begun.first().copied();
        begun.into_iter().chain(self.missing).chain(waiting).min()
    }

    /// The record for the present state; `waiting` is the batch of the oldest row that waits.
    pub fn record(&self, waiting: Option<u64>) -> CopiedRecord {
        CopiedRecord {
            batch: self
                .first(waiting)
                .map_or(self.last, |first| first.saturating_sub(1)),
            is_all: false,
        }
    }

    /// Whether the record on the drive may say that everything is copied.
    pub fn says_all(&self) -> bool {
        self.is_all
    }

    /// Notes that a record is written that does not say that everything is copied.
    pub fn says_not_all(&mut self) {
        self.is_all = false;
    }

    /// The record that everything is copied but what waits, if that is so. No batch may begin until it is written.
    pub fn all_copied(&mut self) -> Option<CopiedRecord> {
        // `missing` counts even if it is above `last`: the log that had these batches may be gone.
        let is_so = self.first(None).is_none();
        // Also if it is not written after all: the next batch revokes it in any case.
        self.is_all |= is_so;
        is_so.then_some(CopiedRecord {
            batch: self.last,
            is_all: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_row_that_is_in_no_summary_counts() {
        let mut until = CopiedUntil::new(CopiedRecord::NEW, 0, true, false);
        let says_no = |batch| CopiedRecord {
            batch,
            is_all: false,
        };
        assert_eq!(until.begin(None), (1, Some(says_no(0))));
        // Beside the first one: either may come first in the log, and the log may go back to this one only.
        assert_eq!(until.begin(None), (2, Some(says_no(0))));
        until.end(2, true);
        assert_eq!(until.begin(None), (3, None));
        until.end(3, false);
        assert_eq!(until.record(Some(2)), says_no(0), "1 is not through");
        until.end(1, true);
        assert_eq!(until.record(Some(2)), says_no(1));
        assert_eq!(until.record(None), says_no(3));
        assert!(!until.says_all());
        let all = CopiedRecord {
            batch: 3,
            is_all: true,
        };
        assert_eq!(until.all_copied(), Some(all));
        assert!(until.says_all());
        assert_eq!(until.begin(None), (4, Some(says_no(3))));
        // The record that all is copied may not have been written, nor the keys of rows that wait.
        assert_eq!(until.begin(Some(2)), (5, Some(says_no(1))));
    }

    #[test]
    fn what_a_crash_left_is_missing_until_all_rows_were_looked_at() {
        let record = CopiedRecord {
            batch: 7,
            is_all: false,
        };
        let mut until = CopiedUntil::new(record, 9, false, false);
        // The log of the crash is gone, and nothing is known after 7.
        assert_eq!(CopiedUntil::new(record, 0, false, true).all_copied(), None);
        // Its own batches do not follow the record without a gap.
        assert_eq!(CopiedUntil::new(record, 0, false, true).begin(None).0, 9);
        assert_eq!(until.begin(None), (10, None));
        until.end(10, false);
        assert_eq!(until.record(None).batch, 7);
        let misses = until.misses();
        until.miss(10);
        until.looked_at_all(misses);
        assert_eq!(until.record(None).batch, 7, "one was missed meanwhile");
        until.looked_at_all(until.misses());
        assert_eq!(until.record(None).batch, 10);
    }
}
