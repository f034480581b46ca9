//! Zones that must not be reset because a reader reads the store as it was at a moment: data that was live in a zone
//! then has to stay there, even if it is dead now.
//!
//! A hold ends when its reader is done, or when it is given up because the zones are needed. Pure.

use std::collections::BTreeMap;
use zone::ZoneId;

#[derive(Default)]
pub(crate) struct Holds {
    next: u64,
    /// Zones that each moment holds, sorted.
    moments: BTreeMap<u64, Vec<ZoneId>>,
}

impl Holds {
    /// Holds these sorted zones; returns the moment's number.
    pub fn begin(&mut self, zones: Vec<ZoneId>) -> u64 {
        debug_assert!(zones.is_sorted());
        self.next += 1;
        self.moments.insert(self.next, zones);
        self.next
    }

    /// Ends a moment, whose reader is done.
    pub fn end(&mut self, moment: u64) {
        self.moments.remove(&moment);
    }

    /// Whether the moment has neither ended nor been given up.
    pub fn lasts(&self, moment: u64) -> bool {
        self.moments.contains_key(&moment)
    }

    /// Gives all moments up.
    pub fn give_up(&mut self) {
        self.moments.clear();
    }

    /// Whether a moment holds the zone.
    pub fn has(&self, zone: ZoneId) -> bool {
        let mut moments = self.moments.values();
        moments.any(|zones| zones.binary_search(&zone).is_ok())
    }

    /// The zones that moments hold; one may occur more than once.
    pub fn zones(&self) -> impl Iterator<Item = ZoneId> {
        self.moments.values().flatten().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holds: &Holds) -> Vec<u32> {
        (0..8).filter(|zone| holds.has(ZoneId(*zone))).collect()
    }

    #[test]
    fn a_zone_is_held_until_the_last_moment_that_has_it_ends() {
        let mut holds = Holds::default();
        let zones = |zones: &[u32]| zones.iter().copied().map(ZoneId).collect();
        let first = holds.begin(zones(&[1, 2, 5]));
        let second = holds.begin(zones(&[2, 7]));
        assert_eq!(held(&holds), [1, 2, 5, 7]);
        holds.end(first);
        assert!(!holds.lasts(first) && holds.lasts(second));
        assert_eq!(held(&holds), [2, 7]);
        holds.end(first);
        holds.end(second);
        assert!(holds.is_empty() && held(&holds).is_empty());
    }

    #[test]
    fn what_is_given_up_does_not_come_back() {
        let mut holds = Holds::default();
        let first = holds.begin(vec![ZoneId(1)]);
        holds.give_up();
        assert!(!holds.lasts(first) && !holds.has(ZoneId(1)));
        let second = holds.begin(vec![ZoneId(3)]);
        assert_ne!(first, second);
        holds.end(first);
        assert_eq!(held(&holds), [3]);
    }
}
