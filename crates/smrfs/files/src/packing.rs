//! Tells whether cleaning gains a band if each file lies in one band as a whole. Pure.
//!
//! The end of a band where the next file did not fit is dead space, and moving the files creates most of it again
//! elsewhere. So cleaning one band after the other may gain nothing for ever; this simulates it first.

use std::collections::{BTreeMap, BTreeSet};

/// The bands that whole files can move to, with the free blocks of each.
#[derive(Clone, Debug)]
pub struct Packing {
    /// Empty bands.
    pub free: BTreeSet<u32>,
    /// The open band, and its free blocks.
    pub open: Option<(u32, u32)>,
    /// Bands that have room and are not open, with their free blocks.
    pub partial: BTreeMap<u32, u32>,
    /// Limit on partial bands; beyond it, the one with the least room is finished.
    pub most_partial: usize,
    /// Number of blocks in a band.
    pub band_blocks: u32,
}

impl Packing {
    /// Moves files of these sizes out of a band one after the other, so that the band is empty; `false` if one finds
    /// no room.
    pub fn clean(&mut self, band: u32, files: impl IntoIterator<Item = u32>) -> bool {
        self.partial.remove(&band);
        let has_room = files.into_iter().all(|size| self.place(size));
        has_room && self.free.insert(band)
    }

    fn place(&mut self, size: u32) -> bool {
        if let Some((band, room)) = self.open.filter(|(_, room)| *room >= size) {
            self.open = Some((band, room - size));
            return true;
        }
        self.partial.extend(self.open.take());
        let mut partial = self.partial.iter();
        let found = partial.find(|(_, room)| **room >= size);
        if let Some((band, room)) = found.map(|(band, room)| (*band, *room)) {
            self.partial.remove(&band);
            self.open = Some((band, room - size));
            return true;
        }
        let (Some(band), Some(room)) = (self.free.pop_first(), self.band_blocks.checked_sub(size))
        else {
            return false;
        };
        self.open = Some((band, room));
        self.partial.retain(|_, room| *room > 0);
        while self.partial.len() > self.most_partial {
            let least = self.partial.iter().min_by_key(|(_, room)| **room);
            let Some(band) = least.map(|(band, _)| *band) else {
                break;
            };
            self.partial.remove(&band);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packing() -> Packing {
        Packing {
            free: BTreeSet::from([7, 8]),
            open: None,
            partial: BTreeMap::new(),
            most_partial: 2,
            band_blocks: 10,
        }
    }

    #[test]
    fn what_dead_files_left_is_a_gain_and_rests_are_none() {
        let mut halves = packing();
        assert!(halves.clean(1, [5]) && halves.clean(2, [5]));
        assert_eq!(halves.free.len(), 3);
        let mut rests = packing();
        for band in 0..6 {
            assert!(rests.clean(band, [3, 6]));
        }
        assert_eq!(rests.free.len(), 2);
    }

    #[test]
    fn a_small_file_goes_to_what_a_large_one_left() {
        let mut packing = packing();
        assert!(packing.clean(1, [9]) && packing.clean(2, [8]) && packing.clean(3, [2, 1]));
        assert_eq!(packing.free.len(), 3);
        packing.free.clear();
        assert!(!packing.clean(4, [2]));
    }
}
