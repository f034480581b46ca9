//! The map of the persistent cache: the logical blocks that are in it, and their positions. Extents never overlap; a
//! new one truncates or splits older ones.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run of logical blocks in one journal entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CachedRun {
    pub lba: u64,
    pub blocks: u32,
    /// The entry, and the index of the first block in it.
    pub entry: u64,
    pub offset: u32,
}

/// Logical blocks that are physically consecutive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub lba: u64,
    pub blocks: u64,
    /// Position in the cache; `None` for the native place.
    pub cached: Option<CachedRun>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Extents {
    by_lba: BTreeMap<u64, CachedRun>,
}

impl CachedRun {
    const fn end(&self) -> u64 {
        self.lba + self.blocks as u64
    }

    /// Whether `next` continues this run, both on the drive and in the entry.
    pub const fn is_followed_by(&self, next: &Self) -> bool {
        self.end() == next.lba
            && self.entry == next.entry
            && self.offset + self.blocks == next.offset
    }

    /// The part of the run inside a range that it touches.
    fn cut(&self, from: u64, to: u64) -> Self {
        let (first, end) = (self.lba.max(from), self.end().min(to));
        Self {
            lba: first,
            blocks: (end - first) as u32,
            entry: self.entry,
            offset: self.offset + (first - self.lba) as u32,
        }
    }
}

impl Extents {
    pub fn len(&self) -> usize {
        self.by_lba.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_lba.is_empty()
    }

    /// The extents that touch a range, in order.
    fn touching(&self, from: u64, to: u64) -> impl Iterator<Item = &CachedRun> {
        let before = self.by_lba.range(..from).next_back();
        let before = before
            .map(|(_, extent)| extent)
            .filter(move |e| e.end() > from);
        before
            .into_iter()
            .chain(self.by_lba.range(from..to).map(|(_, extent)| extent))
    }

    /// Position of a block in the cache.
    pub fn at(&self, lba: u64) -> Option<CachedRun> {
        self.touching(lba, lba + 1)
            .next()
            .map(|e| e.cut(lba, lba + 1))
    }

    /// Removes a range; returns the parts of extents that were in it.
    pub fn remove(&mut self, lba: u64, blocks: u64) -> Vec<CachedRun> {
        let end = lba + blocks;
        let touched: Vec<CachedRun> = self.touching(lba, end).copied().collect();
        for extent in &touched {
            self.by_lba.remove(&extent.lba);
            if extent.lba < lba {
                self.by_lba.insert(extent.lba, extent.cut(0, lba));
            }
            if extent.end() > end {
                self.by_lba.insert(end, extent.cut(end, u64::MAX));
            }
        }
        touched.iter().map(|extent| extent.cut(lba, end)).collect()
    }

    /// Inserts an extent; returns the parts of older extents that it replaces.
    pub fn insert(&mut self, extent: CachedRun) -> Vec<CachedRun> {
        let gone = self.remove(extent.lba, u64::from(extent.blocks));
        self.by_lba.insert(extent.lba, extent);
        gone
    }

    /// Splits a range into physically consecutive pieces.
    pub fn pieces(&self, lba: u64, blocks: u64) -> Vec<Piece> {
        let end = lba + blocks;
        let mut pieces = Vec::new();
        let mut next = lba;
        let native = |from: u64, to: u64| Piece {
            lba: from,
            blocks: to - from,
            cached: None,
        };
        for extent in self.touching(lba, end) {
            let part = extent.cut(lba, end);
            if part.lba > next {
                pieces.push(native(next, part.lba));
            }
            pieces.push(Piece {
                lba: part.lba,
                blocks: u64::from(part.blocks),
                cached: Some(part),
            });
            next = part.end();
        }
        if next < end {
            pieces.push(native(next, end));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_map_is_what_a_table_of_blocks_would_be(
            writes in proptest::collection::vec((0u64..60, 1u32..20, any::<bool>()), 0..60),
        ) {
            let mut extents = Extents::default();
            let mut table = vec![None; 80];
            for (entry, (lba, blocks, writes)) in writes.into_iter().enumerate() {
                let gone: u64 = if writes {
                    let new = CachedRun { lba, blocks, entry: entry as u64, offset: 0 };
                    extents.insert(new).iter().map(|e| u64::from(e.blocks)).sum()
                } else {
                    let gone = extents.remove(lba, u64::from(blocks));
                    gone.iter().map(|e| u64::from(e.blocks)).sum()
                };
                let range = lba as usize..lba as usize + blocks as usize;
                let was = table[range.clone()].iter().filter(|b: &&Option<(u64, u32)>| b.is_some());
                prop_assert_eq!(gone, was.count() as u64);
                for (offset, block) in table[range].iter_mut().enumerate() {
                    *block = writes.then_some((entry as u64, offset as u32));
                }
                for (lba, expected) in table.iter().enumerate() {
                    let found = extents.at(lba as u64).map(|e| (e.entry, e.offset));
                    prop_assert_eq!(found, *expected);
                }
                let pieces = extents.pieces(3, 70);
                prop_assert_eq!(pieces.iter().map(|p| p.blocks).sum::<u64>(), 70);
            }
        }
    }
}
