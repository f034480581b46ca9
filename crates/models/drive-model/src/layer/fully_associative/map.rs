//! The map of the cache: the cache band and index of the newest copy of each block, and the number of extents, that
//! is runs of blocks that are consecutive on the drive and in the cache.

use runtime::HashMap;
use serde::{Deserialize, Serialize};

/// A slot of a zone's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Slot {
    /// Physical band in the zone, and index of the block in the band.
    pub band: u32,
    pub index: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Map {
    slots: HashMap<u32, Slot>,
    /// Number of extents; `None` if they are not limited, because counting takes time.
    extents: Option<u32>,
}

impl Map {
    pub fn new(counts: bool) -> Self {
        Self {
            slots: HashMap::default(),
            extents: counts.then_some(0),
        }
    }

    pub fn get(&self, block: u64) -> Option<Slot> {
        self.slots.get(&(block as u32)).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Number of extents, if they are counted.
    pub const fn extents(&self) -> Option<u32> {
        self.extents
    }

    /// Maps consecutive blocks to consecutive slots; returns the slots of older copies.
    pub fn insert(&mut self, first: u64, blocks: u64, slot: Slot) -> Vec<Slot> {
        self.change(first, blocks, |slots| {
            let places = (0..blocks as u32).map(|n| Slot {
                band: slot.band,
                index: slot.index + n,
            });
            let all = (first..).zip(places);
            all.filter_map(|(block, place)| slots.insert(block as u32, place))
                .collect()
        })
    }

    /// Removes blocks; returns their slots.
    pub fn remove(&mut self, first: u64, blocks: u64) -> Vec<Slot> {
        self.change(first, blocks, |slots| {
            let all = first..first + blocks;
            all.filter_map(|block| slots.remove(&(block as u32)))
                .collect()
        })
    }

    fn change(
        &mut self,
        first: u64,
        blocks: u64,
        change: impl FnOnce(&mut HashMap<u32, Slot>) -> Vec<Slot>,
    ) -> Vec<Slot> {
        let before = self.extents.map(|all| all - self.beginnings(first, blocks));
        let slots = change(&mut self.slots);
        self.extents = before.map(|others| others + self.beginnings(first, blocks));
        slots
    }

    /// Number of extents that begin in a range or right after it: those that a change in the range affects.
    fn beginnings(&self, first: u64, blocks: u64) -> u32 {
        let mut before = first.checked_sub(1).and_then(|block| self.get(block));
        let mut count = 0;
        for block in first..=first + blocks {
            let here = self.get(block);
            let goes_on = |(a, b): (Slot, Slot)| (a.band, a.index + 1) == (b.band, b.index);
            count += u32::from(here.is_some() && !before.zip(here).is_some_and(goes_on));
            before = here;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extents_are_those_of_a_whole_count(
            changes in proptest::collection::vec((0u64..60, 1u64..20, any::<bool>()), 0..60),
        ) {
            let mut map = Map::new(true);
            let mut index = 0;
            for (first, blocks, writes) in changes {
                if writes {
                    map.insert(first, blocks, Slot { band: 0, index });
                    index += blocks as u32;
                } else {
                    map.remove(first, blocks);
                }
                prop_assert_eq!(map.extents(), Some(map.beginnings(0, 90)));
            }
        }
    }
}
