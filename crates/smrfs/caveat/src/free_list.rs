//! The free extents of a drive, by address and by size. Neighbours are coalesced. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Which free extent an allocation takes (thesis, section 4.4.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// The smallest extent that is large enough.
    Best,
    /// The extent with the lowest address that is large enough.
    First,
    /// The next extent after the last allocation.
    Next,
    /// The next extent after the drive's head, wherever the last read or write has left it.
    LastAccessed,
    /// The largest extent.
    Worst,
}

impl Fit {
    /// All five, in the order of the thesis's tables.
    pub const ALL: [Self; 5] = [
        Self::Best,
        Self::First,
        Self::Next,
        Self::LastAccessed,
        Self::Worst,
    ];

    /// The name in the thesis's tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best => "best fit",
            Self::First => "first fit",
            Self::Next => "next fit",
            Self::LastAccessed => "last accessed position fit",
            Self::Worst => "worst fit",
        }
    }
}

/// Free extents, of which no two touch.
#[derive(Clone, Default, Debug)]
pub struct FreeList {
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free: u64,
    footer: u64,
    room: u64,
}

impl FreeList {
    /// A list with one extent of `blocks` blocks from 0.
    pub fn new(blocks: u64) -> Self {
        let mut list = Self::default();
        if blocks > 0 {
            list.insert(0, blocks);
        }
        list
    }

    /// An empty list, from which every allocation takes `footer` blocks in addition to those that it keeps.
    pub fn with_footer(footer: u64) -> Self {
        Self {
            footer,
            ..Self::default()
        }
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.by_address.insert(start, length);
        self.by_size.insert((length, start));
        self.free += length;
        self.room += length.saturating_sub(self.footer);
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.by_address.remove(&start);
        self.by_size.remove(&(length, start));
        self.free -= length;
        self.room -= length.saturating_sub(self.footer);
    }

    /// Number of free blocks.
    pub const fn free(&self) -> u64 {
        self.free
    }

    /// Number of blocks that allocations of any size can keep, each with its footer, as long as none splits an extent
    /// in the middle.
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// The largest extent: start and length.
    pub fn largest(&self) -> Option<(u64, u64)> {
        self.by_size.last().map(|(length, start)| (*start, *length))
    }

    /// Number of extents.
    pub fn count(&self) -> u64 {
        self.by_address.len() as u64
    }

    /// Takes `length` blocks from `at`; `false`, and nothing is taken, if not all of them are free.
    pub fn take_at(&mut self, at: u64, length: u64) -> bool {
        let Some((start, size)) = self.by_address.range(..=at).next_back() else {
            return false;
        };
        let (start, size) = (*start, *size);
        if start + size < at + length {
            return false;
        }
        self.take_from(start, size, at, length);
        true
    }

    /// Free blocks in extents of fewer than `least` blocks.
    pub fn below(&self, least: u64) -> u64 {
        let small = self.by_size.range(..(least, 0));
        small.map(|(length, _)| length).sum()
    }

    /// All extents by address: start and length.
    pub fn extents(&self) -> impl Iterator<Item = (u64, u64)> {
        self.by_address
            .iter()
            .map(|(start, length)| (*start, *length))
    }

    /// Takes `length` blocks and returns the first; `None` if no extent is large enough. [`Fit::Next`] and
    /// [`Fit::LastAccessed`] begin at `behind`, inside the extent that contains it or in the next one, and wrap
    /// around to the start.
    pub fn take(&mut self, length: u64, fit: Fit, behind: u64) -> Option<u64> {
        let found = match fit {
            Fit::Best => self.by_size.range((length, 0)..).next().copied(),
            Fit::Worst => self
                .by_size
                .last()
                .copied()
                .filter(|(size, _)| *size >= length),
            Fit::First => self.first_from(0, length),
            Fit::Next | Fit::LastAccessed => {
                if let Some((start, size)) = self.by_address.range(..=behind).next_back()
                    && start + size >= behind + length
                {
                    // The extent is split: the part before `behind` stays free.
                    let (start, size) = (*start, *size);
                    self.take_from(start, size, behind, length);
                    return Some(behind);
                }
                self.first_from(behind, length)
                    .or_else(|| self.first_from(0, length))
            }
        };
        let (size, start) = found?;
        self.take_from(start, size, start, length);
        Some(start)
    }

    fn first_from(&self, from: u64, length: u64) -> Option<(u64, u64)> {
        let mut extents = self.by_address.range(from..);
        let found = extents.find(|(_, size)| **size >= length);
        found.map(|(start, size)| (*size, *start))
    }

    fn take_from(&mut self, start: u64, size: u64, at: u64, length: u64) {
        self.remove(start, size);
        if at > start {
            self.insert(start, at - start);
        }
        let (end, rest) = (at + length, start + size);
        if rest > end {
            self.insert(end, rest - end);
        }
    }

    /// Frees blocks and merges them with free neighbours.
    pub fn give(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let (mut from, mut to) = (start, start + length);
        if let Some((before, size)) = self.by_address.range(..start).next_back()
            && before + size == start
        {
            let (before, size) = (*before, *size);
            self.remove(before, size);
            from = before;
        }
        if let Some(size) = self.by_address.get(&to).copied() {
            self.remove(to, size);
            to += size;
        }
        self.insert(from, to - from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(extents: &[(u64, u64)]) -> FreeList {
        let mut list = FreeList::default();
        extents
            .iter()
            .for_each(|(start, length)| list.give(*start, *length));
        list
    }

    #[test]
    fn each_fit_takes_its_extent() {
        let free = [(0, 10), (20, 5), (40, 30), (80, 6)];
        let take = |fit, behind| list(&free).take(5, fit, behind);
        assert_eq!(take(Fit::Best, 0), Some(20));
        assert_eq!(take(Fit::First, 50), Some(0));
        assert_eq!(take(Fit::Worst, 0), Some(40));
        assert_eq!(take(Fit::Next, 22), Some(40));
        assert_eq!(take(Fit::Next, 50), Some(50));
        assert_eq!(take(Fit::LastAccessed, 82), Some(0));
        assert_eq!(list(&free).take(31, Fit::Worst, 0), None);
        assert_eq!(list(&free).below(6), 5);
    }

    proptest! {
        #[test]
        fn blocks_are_taken_once_and_neighbours_coalesce(
            steps in prop::collection::vec((0..5_usize, 1..20_u64, 0..200_u64, any::<bool>()), 1..120),
        ) {
            let mut list = FreeList::new(200);
            let mut table = [true; 200];
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (fit, length, behind, gives) in steps {
                if gives && !taken.is_empty() {
                    let (start, length) = taken.swap_remove(behind as usize % taken.len());
                    list.give(start, length);
                    table[start as usize..(start + length) as usize].fill(true);
                } else if let Some(start) = list.take(length, Fit::ALL[fit], behind) {
                    for block in &mut table[start as usize..(start + length) as usize] {
                        prop_assert!(std::mem::replace(block, false));
                    }
                    taken.push((start, length));
                } else {
                    let is_fit = |run: &[bool]| run.iter().all(|free| *free);
                    prop_assert!(!table.windows(length as usize).any(is_fit));
                }
                let mut end = None;
                for (start, length) in list.extents() {
                    prop_assert_ne!(end, Some(start));
                    prop_assert!(table[start as usize..(start + length) as usize].iter().all(|free| *free));
                    end = Some(start + length);
                }
                prop_assert_eq!(list.free(), table.iter().filter(|free| **free).count() as u64);
            }
        }
    }
}
