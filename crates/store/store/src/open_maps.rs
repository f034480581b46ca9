//! Maps that readers have open. A map that loses its last name while it is open is doomed: its extents are given back
//! when the last reader has closed it, or at the next mount.
//!
//! A commit announces the maps that it drops before it writes, so that a reader that opens one of them meanwhile knows
//! that its extents are about to go. Neither waits for the other.

use runtime::sync::{Condvar, Mutex};
use runtime::{HashMap, Runtime};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Default)]
struct State {
    open: HashMap<u64, u32>,
    doomed: BTreeMap<u64, Purged>,
    /// Doomed maps with a damaged row, which no purge has ended.
    stuck: BTreeSet<u64>,
    /// Maps that commits under way drop, and that no reader had open when these began.
    dropping: BTreeSet<u64>,
    /// Changes of `dropping` and `doomed`: counted before and after the batch that removes a map's last name.
    drops: u64,
    /// Doomed maps that threads have taken out to purge them.
    purging: u32,
    /// Steps of purges that were written, and purges that have ended.
    steps: u64,
}

/// Progress of the purge of a doomed map: all its rows before these positions are deleted, so that the next step need
/// not skip over them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Purged {
    /// End of the last extent that was deleted.
    pub extents: u64,
    /// Lower bound of the omap keys that are left.
    pub omap: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct OpenMaps {
    state: Mutex<State>,
    /// [`State::steps`] has changed.
    stepped: Condvar,
}

impl OpenMaps {
    /// Opens maps of an onode that was read when [`Self::drops`] was `drops`.
    pub fn open(&self, maps: impl IntoIterator<Item = u64>, drops: u64) -> Opened {
        let mut state = self.state.lock();
        let mut opened = match state.drops {
            now if now == drops => Opened::ForSure,
            _ => Opened::PerhapsGone,
        };
        for map in maps {
            *state.open.entry(map).or_default() += 1;
            if state.dropping.contains(&map) {
                opened = Opened::AboutToGo;
            }
        }
        opened
    }

    /// A number that changes whenever a commit begins to remove a map's last name or has ended. Call it before the
    /// onode is read.
    pub fn drops(&self) -> u64 {
        self.state.lock().drops
    }

    /// True if a doomed map has lost its last reader.
    pub fn close(&self, maps: impl IntoIterator<Item = u64>) -> bool {
        let mut state = self.state.lock();
        let mut frees = false;
        for map in maps {
            if let Some(count) = state.open.get_mut(&map) {
                *count -= 1;
                if *count == 0 {
                    state.open.remove(&map);
                    frees |= state.doomed.contains_key(&map);
                }
            }
        }
        frees
    }

    /// Announces that a commit will remove the last name of a map: true if a reader has the map open, so that its
    /// extents must stay.
    pub fn begin_drop(&self, map: u64) -> bool {
        let mut state = self.state.lock();
        state.drops += 1;
        let is_open = state.open.contains_key(&map);
        if !is_open {
            state.dropping.insert(map);
        }
        is_open
    }

    fn end_drop(&self, map: u64) {
        let mut state = self.state.lock();
        state.drops += 1;
        state.dropping.remove(&map);
    }

    /// Adds maps whose extents are to be given back once no reader has them open.
    pub fn doom(&self, maps: impl IntoIterator<Item = u64>) {
        let mut state = self.state.lock();
        state.drops += 1;
        let whole = maps.into_iter().map(|map| (map, Purged::default()));
        state.doomed.extend(whole);
    }

    /// Keeps a map with a damaged row, whose purge ends for now, until [`Self::doom_stuck`].
    pub fn stick(&self, map: u64) {
        self.state.lock().stuck.insert(map);
    }

    /// Dooms maps with a damaged row once more.
    pub fn doom_stuck(&self) {
        let stuck = std::mem::take(&mut self.state.lock().stuck);
        self.doom(stuck);
    }

    /// Whether there are doomed maps, those that are being purged among them.
    pub fn has_doomed(&self) -> bool {
        let state = self.state.lock();
        state.purging > 0 || !state.doomed.is_empty()
    }

    /// Notes that a step of a purge was written, which may have freed something.
    pub fn step(&self) {
        self.state.lock().steps += 1;
        self.stepped.notify_all();
    }

    /// Ends the purge of a map that [`Self::take_doomed`] took; with the progress made, if the map stays doomed.
    pub fn end_purge(&self, map: u64, left: Option<Purged>) {
        let mut state = self.state.lock();
        state.purging -= 1;
        state.doomed.extend(left.map(|purged| (map, purged)));
        state.steps += 1;
        self.stepped.notify_all();
    }

    /// A number that changes with each step of a purge.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// Waits for a step of a purge since [`Self::steps`] was `seen`. False if no thread purges, or at the moment `until`.
    pub fn wait_for_step(&self, seen: u64, runtime: &Runtime, until: Duration) -> bool {
        let mut state = self.state.lock();
        loop {
            let left = until.saturating_sub(runtime.now());
            if left.is_zero() {
                return false;
            }
            if state.steps != seen || state.purging == 0 {
                return state.steps != seen;
            }
            self.stepped.wait_for(&mut state, left);
        }
    }

    /// Takes out a doomed map that no reader has open.
    pub fn take_doomed(&self) -> Option<(u64, Purged)> {
        let mut state = self.state.lock();
        let mut all = state.doomed.keys();
        let map = *all.find(|map| !state.open.contains_key(map))?;
        state.purging += 1;
        state.doomed.remove_entry(&map)
    }
}

/// Fate of the maps that a reader opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opened {
    /// Their extents stay until they are closed.
    ForSure,
    /// A commit under way drops one of them and takes its extents.
    AboutToGo,
    /// A commit may have dropped them before they were opened: read the onode again.
    PerhapsGone,
}

/// The maps that one commit drops, until it ends.
pub(crate) struct Drops<'a> {
    maps: &'a OpenMaps,
    dropped: Vec<u64>,
}

impl<'a> Drops<'a> {
    pub const fn new(maps: &'a OpenMaps) -> Self {
        let dropped = Vec::new();
        Self { maps, dropped }
    }

    /// Announces that the commit drops `map`: true if a reader has it open, so that its extents must stay.
    pub fn begin(&mut self, map: u64) -> bool {
        self.dropped.push(map);
        self.maps.begin_drop(map)
    }
}

impl Drop for Drops<'_> {
    fn drop(&mut self) {
        self.dropped.iter().for_each(|map| self.maps.end_drop(*map));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doomed_map_waits_for_its_last_reader() {
        let maps = OpenMaps::default();
        assert_eq!(maps.open([1, 1, 2], 0), Opened::ForSure);
        maps.doom([1]);
        assert!(!maps.close([1]));
        assert_eq!(maps.take_doomed(), None);
        assert!(maps.close([1]));
        assert_eq!(maps.take_doomed(), Some((1, Purged::default())));
        assert_eq!(maps.take_doomed(), None);
        let omap = b"key".to_vec();
        let half = Purged { extents: 7, omap };
        maps.end_purge(1, Some(half.clone()));
        assert_eq!(maps.take_doomed(), Some((1, half)));
        assert!(maps.begin_drop(2));
    }

    #[test]
    fn who_opens_a_map_knows_of_commits_that_drop_it() {
        let maps = OpenMaps::default();
        let before = maps.drops();
        let mut drops = Drops::new(&maps);
        assert!(!drops.begin(7));
        assert_eq!(maps.open([7], maps.drops()), Opened::AboutToGo);
        assert!(!maps.close([7]));
        drop(drops);
        assert_eq!(maps.open([8], before), Opened::PerhapsGone);
        assert_eq!(maps.open([8], maps.drops()), Opened::ForSure);
    }

    #[test]
    fn who_read_an_onode_while_a_commit_dropped_its_map_looks_again() {
        let maps = OpenMaps::default();
        let mut drops = Drops::new(&maps);
        assert!(!drops.begin(7));
        // The onode is read here, before the commit's batch.
        let before = maps.drops();
        drop(drops);
        assert_eq!(maps.open([7], before), Opened::PerhapsGone);
    }

    #[test]
    fn who_read_an_onode_while_a_commit_doomed_its_map_looks_again() {
        let maps = OpenMaps::default();
        assert_eq!(maps.open([7], maps.drops()), Opened::ForSure);
        assert!(maps.begin_drop(7));
        let before = maps.drops();
        maps.doom([7]);
        assert!(maps.close([7]));
        assert_eq!(maps.take_doomed(), Some((7, Purged::default())));
        assert_eq!(maps.open([7], before), Opened::PerhapsGone);
    }

    #[test]
    fn who_waits_for_a_purge_waits_no_longer_than_for_its_next_step() {
        let (maps, runtime) = (OpenMaps::default(), Runtime::seeded(1));
        let (now, later) = (runtime.now(), runtime.now() + Duration::from_secs(10));
        assert!(!maps.wait_for_step(maps.steps(), &runtime, later));
        maps.doom([7]);
        assert!(!maps.wait_for_step(maps.steps(), &runtime, later));
        let (map, purged) = maps.take_doomed().unwrap();
        assert!(maps.has_doomed());
        let seen = maps.steps();
        assert!(!maps.wait_for_step(seen, &runtime, now));
        maps.step();
        assert!(maps.wait_for_step(seen, &runtime, later));
        assert!(!maps.wait_for_step(seen, &runtime, now));
        let seen = maps.steps();
        maps.end_purge(map, Some(purged));
        assert!(maps.wait_for_step(seen, &runtime, later));
        assert_eq!(maps.take_doomed(), Some((7, Purged::default())));
        maps.end_purge(7, None);
        assert!(!maps.has_doomed());
    }
}
