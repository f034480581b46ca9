//! Maps that a reader has open. A map that loses its last name while it is open is doomed: its
//! extents are given back when the reader is done (or at the next mount).

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

#[derive(Default)]
struct State {
    open: HashMap<u64, u32>,
    doomed: BTreeSet<u64>,
}

#[derive(Default)]
pub(crate) struct OpenMaps {
    state: Mutex<State>,
}

impl OpenMaps {
    pub fn open(&self, maps: impl IntoIterator<Item = u64>) {
        let mut state = self.state.lock();
        for map in maps {
            *state.open.entry(map).or_default() += 1;
        }
    }

    pub fn close(&self, maps: impl IntoIterator<Item = u64>) {
        let mut state = self.state.lock();
        for map in maps {
            if let Some(count) = state.open.get_mut(&map) {
                *count -= 1;
                if *count == 0 {
                    state.open.remove(&map);
                }
            }
        }
    }

    pub fn is_open(&self, map: u64) -> bool {
        self.state.lock().open.contains_key(&map)
    }

    /// Remembers maps whose extents are to be given back.
    pub fn doom(&self, maps: impl IntoIterator<Item = u64>) {
        self.state.lock().doomed.extend(maps);
    }

    /// Takes a doomed map that nobody has open any more.
    pub fn take_doomed(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let map = state
            .doomed
            .iter()
            .copied()
            .find(|map| !state.open.contains_key(map))?;
        state.doomed.remove(&map);
        Some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doomed_map_waits_for_its_last_reader() {
        let maps = OpenMaps::default();
        maps.open([1, 1, 2]);
        maps.doom([1]);
        maps.close([1]);
        assert_eq!(maps.take_doomed(), None);
        maps.close([1]);
        assert_eq!(maps.take_doomed(), Some(1));
        assert_eq!(maps.take_doomed(), None);
        assert!(maps.is_open(2));
    }
}
