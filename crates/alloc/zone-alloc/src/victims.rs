//! The zones that could be cleaned, ordered so that a victim is found without a scan of all of them.
//!
//! Zones are kept by their share of dead bytes, in [`SHARES`] classes of equal width, the oldest first in each
//! class. Of two zones with the same share every policy prefers the older one, so the oldest of each class are
//! enough to choose from: the choice equals that from all zones, or has a share that is less by at most one
//! 256th. The borders of all degrees of [`crate::Pressure`] are borders of classes.
//!
//! A change costs O(log n), a choice compares 256 zones, and memory is 9 bytes a zone.

use crate::Candidate;
use std::cmp::Reverse;
use zone::ZoneId;

/// Number of classes of zones that have both live and dead bytes.
const SHARES: usize = 256;
/// The class of zones without live bytes.
const DEAD: usize = SHARES + 1;
const NOWHERE: u32 = u32::MAX;

/// The candidates of a drive, in one heap for each class of dead share.
#[derive(Clone, Debug)]
pub struct Victims {
    /// By class: a heap of zones, the oldest on top. Zones without dead bytes are in none.
    classes: Vec<Vec<u32>>,
    /// By zone: its index in the heap of its class.
    places: Vec<u32>,
}

/// The sort keys of the zones in [`Victims`].
pub trait Ages {
    /// The time the zone was filled, and its dead bytes; between zones of one age, the one with more dead bytes
    /// comes first.
    fn age(&self, zone: ZoneId) -> (u64, u64);
}

impl Victims {
    /// An empty set for a drive of `zones` zones.
    pub fn new(zones: u32) -> Self {
        Self {
            classes: vec![Vec::new(); DEAD + 1],
            places: vec![NOWHERE; zones as usize],
        }
    }

    /// The class of zones with a share of dead bytes above (class - 1) ÷ 256, up to class ÷ 256.
    fn class(candidate: &Candidate) -> usize {
        if candidate.live == 0 {
            return DEAD;
        }
        let dead = u128::from(candidate.dead()) * SHARES as u128;
        dead.div_ceil(u128::from(candidate.written.max(1))) as usize
    }

    /// Adds a zone that is not in the set. Its candidate and age must not change until it is removed.
    pub fn insert(&mut self, candidate: &Candidate, ages: &impl Ages) {
        let class = Self::class(candidate);
        if class == 0 {
            return;
        }
        let heap = &mut self.classes[class];
        if heap.len() == heap.capacity() {
            heap.reserve_exact(heap.len() / 8 + 4);
        }
        heap.push(candidate.zone.0);
        let last = heap.len() - 1;
        self.places[candidate.zone.index()] = last as u32;
        self.rise(class, last, ages);
    }

    /// Removes a zone; `candidate` must be equal to the one that was inserted.
    pub fn remove(&mut self, candidate: &Candidate, ages: &impl Ages) {
        let class = Self::class(candidate);
        let place = std::mem::replace(&mut self.places[candidate.zone.index()], NOWHERE) as usize;
        let heap = &mut self.classes[class];
        if class == 0 || heap.get(place) != Some(&candidate.zone.0) {
            debug_assert_eq!(class, 0, "{candidate:?} was entered as another");
            return;
        }
        heap.swap_remove(place);
        if heap.len() < heap.capacity() / 2 {
            heap.shrink_to(heap.len() + heap.len() / 8);
        }
        if let Some(moved) = heap.get(place) {
            self.places[*moved as usize] = place as u32;
            let place = self.rise(class, place, ages);
            self.sink(class, place, ages);
        }
    }

    /// The oldest zone of each class in which something is live; between zones of equal age the one with more
    /// dead bytes, then the one with the lower number.
    pub fn shortlist(&self) -> impl Iterator<Item = ZoneId> {
        let classes = self.classes[..DEAD].iter();
        classes.filter_map(|heap| heap.first().copied().map(ZoneId))
    }

    /// Zones without live bytes, in no order.
    pub fn dead(&self) -> impl Iterator<Item = ZoneId> {
        self.classes[DEAD].iter().copied().map(ZoneId)
    }

    fn is_before(&self, class: usize, a: usize, b: usize, ages: &impl Ages) -> bool {
        let heap = &self.classes[class];
        let key = |place: usize| {
            let (filled_at, dead) = ages.age(ZoneId(heap[place]));
            (filled_at, Reverse(dead), heap[place])
        };
        key(a) < key(b)
    }

    fn swap(&mut self, class: usize, a: usize, b: usize) {
        let heap = &mut self.classes[class];
        heap.swap(a, b);
        self.places[heap[a] as usize] = a as u32;
        self.places[heap[b] as usize] = b as u32;
    }

    /// Moves a zone above those that are younger; returns its new index.
    fn rise(&mut self, class: usize, mut place: usize, ages: &impl Ages) -> usize {
        while place > 0 && self.is_before(class, place, (place - 1) / 2, ages) {
            let above = (place - 1) / 2;
            self.swap(class, place, above);
            place = above;
        }
        place
    }

    /// Moves a zone below those that are older.
    fn sink(&mut self, class: usize, mut place: usize, ages: &impl Ages) {
        loop {
            let below = [place * 2 + 1, place * 2 + 2].into_iter();
            let below = below.filter(|child| *child < self.classes[class].len());
            let first = below.reduce(|a, b| match self.is_before(class, b, a, ages) {
                true => b,
                false => a,
            });
            match first {
                Some(first) if self.is_before(class, first, place, ages) => {
                    self.swap(class, place, first);
                    place = first;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CleaningPolicy, CostBenefit, Greedy, Pressure, ZoneView};
    use proptest::prelude::*;

    const WRITTEN: u64 = 1 << 20;

    struct Zones(Vec<Option<Candidate>>);

    impl Ages for Zones {
        fn age(&self, zone: ZoneId) -> (u64, u64) {
            self.0[zone.index()].map_or((0, 0), |c| (c.filled_at, c.dead()))
        }
    }

    fn benefit(c: &Candidate, dead: u64, now: u64) -> f64 {
        let live = c.written - dead;
        dead as f64 * (now - c.filled_at + 1) as f64 / (c.written + live) as f64
    }

    /// Checks that the choice from the shortlist is within one 256th of a zone of the choice from all.
    fn compare(victims: &Victims, zones: &Zones, now: u64) {
        let all: Vec<Candidate> = zones.0.iter().flatten().copied().collect();
        let (dead, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.live == 0);
        assert_eq!(victims.dead().count(), dead.len());
        let short: Vec<Candidate> = victims
            .shortlist()
            .filter_map(|zone| zones.0[zone.index()])
            .collect();
        for pressure in [Pressure::Ahead, Pressure::Urgent, Pressure::Any] {
            let choose = |policy: &dyn CleaningPolicy, zones: &[Candidate]| {
                policy.choose(ZoneView { zones, now }, pressure)
            };
            let (best, found) = (choose(&Greedy, &all), choose(&Greedy, &short));
            assert_eq!(best.is_some(), found.is_some());
            if let (Some(best), Some(found)) = (best, found) {
                assert!(
                    found.live <= best.live + WRITTEN / 256,
                    "{found:?} {best:?}"
                );
            }
            let (best, found) = (choose(&CostBenefit, &all), choose(&CostBenefit, &short));
            assert_eq!(best.is_some(), found.is_some());
            if let (Some(best), Some(found)) = (best, found) {
                let least = benefit(&best, best.dead().saturating_sub(WRITTEN / 256), now);
                assert!(
                    benefit(&found, found.dead(), now) >= least,
                    "{found:?} {best:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn the_shortlist_has_a_victim_as_good_as_the_best(
            steps in prop::collection::vec((0..64_u32, 0..=WRITTEN, any::<bool>()), 1..300),
        ) {
            let mut victims = Victims::new(64);
            let mut zones = Zones(vec![None; 64]);
            for (now, (zone, live, is_filled)) in (1..).zip(steps) {
                let old = zones.0[zone as usize];
                if let Some(old) = old {
                    victims.remove(&old, &zones);
                }
                // Bytes die in place, or zones are refilled.
                let new = match old {
                    Some(old) if !is_filled => Candidate { live: old.live.min(live), ..old },
                    _ => Candidate { zone: ZoneId(zone), live, written: WRITTEN, filled_at: now },
                };
                zones.0[zone as usize] = Some(new);
                victims.insert(&new, &zones);
                compare(&victims, &zones, now);
            }
            for zone in 0..64 {
                if let Some(old) = zones.0[zone] {
                    victims.remove(&old, &zones);
                    zones.0[zone] = None;
                    compare(&victims, &zones, 1_000);
                }
            }
        }
    }

    #[test]
    fn a_zone_takes_nine_bytes() {
        const ZONES: u32 = 110_000;
        let mut victims = Victims::new(ZONES);
        let zones = Zones(vec![None; ZONES as usize]);
        for zone in (0..ZONES).map(ZoneId) {
            let candidate = Candidate {
                zone,
                live: 1,
                written: WRITTEN,
                filled_at: 0,
            };
            victims.insert(&candidate, &zones);
        }
        let entries: usize = victims.classes.iter().map(Vec::capacity).sum();
        assert!((entries + victims.places.capacity()) * 4 <= 9 * ZONES as usize);
    }
}
