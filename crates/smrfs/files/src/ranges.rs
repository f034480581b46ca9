//! A set of numbers, as ranges that do not touch. Pure.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, as ranges.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ranges {
    /// End (exclusive) of each range by its start.
    ranges: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// All ranges in order, each as start and end (exclusive).
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(start, end)| (*start, *end))
    }

    /// How many numbers are in the set.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// How many ranges there are.
    pub fn count(&self) -> u64 {
        self.ranges.len() as u64
    }

    /// Whether a number is in the set.
    pub fn has(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, end)| *end > number)
    }

    /// Whether any number of a range is in the set.
    pub fn overlap(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.range(..range.end).next_back();
        before.is_some_and(|(_, end)| *end > range.start)
    }

    /// The parts of `from..to` that are not in the set.
    pub fn gaps(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = from;
        let before = self.ranges.range(..=from).next_back();
        if let Some((_, end)) = before {
            at = at.max(*end);
        }
        for (start, end) in self.ranges.range(from.saturating_add(1)..) {
            if *start >= to {
                break;
            }
            if *start > at {
                gaps.push((at, *start));
            }
            at = at.max(*end);
        }
        if at < to {
            gaps.push((at, to));
        }
        gaps
    }

    /// Adds `from..to`, which may overlap ranges of the set.
    pub fn insert(&mut self, mut from: u64, mut to: u64) {
        if from >= to {
            return;
        }
        // Merges all ranges that touch the new one.
        while let Some((start, end)) = self.ranges.range(..=to).next_back() {
            let (start, end) = (*start, *end);
            if end < from {
                break;
            }
            from = from.min(start);
            to = to.max(end);
            self.ranges.remove(&start);
            self.total -= end - start;
        }
        self.ranges.insert(from, to);
        self.total += to - from;
    }

    /// Removes `from..to`.
    pub fn remove(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        while let Some((start, end)) = self.ranges.range(..to).next_back() {
            let (start, end) = (*start, *end);
            if end <= from {
                break;
            }
            self.ranges.remove(&start);
            self.total -= end - start;
            for (from, to) in [(start, from), (to, end)] {
                if from < to {
                    self.ranges.insert(from, to);
                    self.total += to - from;
                }
            }
            if start < from {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_a_table_of_numbers_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut ranges, mut table) = (Ranges::default(), [false; 64]);
        for _ in 0..3_000 {
            let from = random.u64(0..64);
            let to = random.u64(from..=64);
            let is_added = random.bool();
            match is_added {
                true => ranges.insert(from, to),
                false => ranges.remove(from, to),
            }
            table[from as usize..to as usize].fill(is_added);
            let numbers = 0..64_u64;
            assert!(numbers.clone().all(|n| ranges.has(n) == table[n as usize]));
            let (from, to) = (random.u64(0..64), random.u64(0..=64));
            let gaps = ranges.gaps(from, to);
            let is_any = (from..to).any(|n| table[n as usize]);
            assert_eq!(from < to && ranges.overlap(&(from..to)), is_any);
            let in_gap = |n: u64| gaps.iter().any(|(from, to)| (*from..*to).contains(&n));
            assert!(
                numbers
                    .clone()
                    .all(|n| in_gap(n) == ((from..to).contains(&n) && !table[n as usize]))
            );
            assert_eq!(
                ranges.total(),
                numbers.filter(|n| table[*n as usize]).count() as u64
            );
            let mut apart = ranges.iter().zip(ranges.iter().skip(1));
            assert!(apart.all(|((_, end), (start, _))| end < start));
            assert_eq!(ranges.count(), ranges.iter().count() as u64);
        }
    }
}
