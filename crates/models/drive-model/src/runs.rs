//! A set of blocks that forms few runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs that neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Runs {
    /// The end of each run by its start.
    ends: BTreeMap<u64, u64>,
}

impl Runs {
    /// Adds blocks to the set.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.remove(range.clone());
        let end = self.ends.remove(&range.end).unwrap_or(range.end);
        match self.ends.range_mut(..range.start).next_back() {
            Some((_, before)) if *before == range.start => *before = end,
            _ => drop(self.ends.insert(range.start, end)),
        }
    }

    /// Removes blocks from the set.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((_, end)) = self.ends.range_mut(..range.start).next_back() {
            let behind = *end;
            *end = behind.min(range.start);
            if behind > range.end {
                self.ends.insert(range.end, behind);
            }
        }
        while let Some((start, end)) = self.ends.range(range.clone()).next() {
            let (start, end) = (*start, *end);
            self.ends.remove(&start);
            if end > range.end {
                self.ends.insert(range.end, end);
            }
        }
    }

    /// The first block of a range that is not in the set.
    pub fn first_missing(&self, range: Range<u64>) -> Option<u64> {
        let run = self.ends.range(..=range.start).next_back();
        let end = run.map_or(range.start, |(_, end)| range.start.max(*end));
        (end < range.end).then_some(end)
    }
}
