//! Health for callers that ask again and again. Which places are damaged or at risk is cheap to find out, and current
//! in each answer. Finding the objects there may take a pass over all of them: that is repeated when these places have
//! changed, and otherwise so rarely that it takes a small part of the time.

use crate::Result;
use crate::health::{Health, ObjectsAtRisk, PlacesAtRisk};
use crate::inner::Inner;
use std::time::Duration;

/// A search for objects takes at most one in this many parts of the time, while places or sharing objects change, and
/// while nothing does.
const PART_CHANGED: u32 = 5;
const PART_UNCHANGED: u32 = 50;

/// Health, with the age of the names in it.
#[derive(Clone, Debug)]
pub struct HealthLook {
    /// Known losses and risks.
    pub health: Health,
    /// Age of the names and numbers of objects. Everything else is current.
    pub objects_age: Duration,
    /// How long this call has searched for objects; zero if it reused an earlier result.
    pub objects_took: Duration,
    found: Option<Found>,
}

/// Result of a search for objects in some places.
#[derive(Clone, Debug)]
struct Found {
    places: PlacesAtRisk,
    objects: ObjectsAtRisk,
    /// When the search began, on the clock of the store's runtime.
    at: Duration,
    took: Duration,
}

impl Found {
    /// Whether the result can be reused at `now`. Without places, a new search is free.
    fn holds(&self, places: &PlacesAtRisk, now: Duration) -> bool {
        if places.is_empty() {
            return false;
        }
        let part = match self.places == *places {
            true => PART_UNCHANGED,
            false => PART_CHANGED,
        };
        now.saturating_sub(self.at) < self.took * part
    }
}

impl Inner {
    pub(crate) fn health(&self) -> Result<Health> {
        Ok(self.health_after(None)?.health)
    }

    /// Current health; reuses the search of the earlier call `before` if possible.
    pub(crate) fn health_after(&self, before: Option<&HealthLook>) -> Result<HealthLook> {
        // Before the rest, which names what this sets aside. A drive that does not answer would not answer this either.
        let told = match self.waiting().is_empty() {
            true => self.worn_zones(),
            false => Vec::new(),
        };
        let mut health = self.health_by_zones();
        let known = before.and_then(|before| before.found.clone());
        let mut took = Duration::ZERO;
        // The rest may need I/O, which would wait for the drive.
        let found = match health.waiting.is_empty() {
            true => {
                let places = self.places_at_risk(&mut health)?;
                let begin = self.runtime.now();
                let found = match known.filter(|known| known.holds(&places, begin)) {
                    Some(known) => known,
                    None => {
                        let objects = self.objects_at_risk(&places)?;
                        took = self.runtime.now().saturating_sub(begin);
                        Found {
                            places,
                            objects,
                            at: begin,
                            took,
                        }
                    }
                };
                self.look_at_metadata(&mut health)?;
                health.name_objects(&found.objects);
                Some(found)
            }
            false => known,
        };
        self.judge(&mut health, &told);
        let now = self.runtime.now();
        Ok(HealthLook {
            health,
            objects_age: found
                .as_ref()
                .map_or(Duration::ZERO, |found| now.saturating_sub(found.at)),
            objects_took: took,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::test_drive::{drive, mount, put};
    use crate::zone_failures::SetAside;
    use crate::{Store, Transaction};
    use zone::ZoneId;

    #[test]
    fn a_change_is_looked_at_soon_and_the_rest_takes_little_of_the_time() {
        let seconds = Duration::from_secs;
        let places = |live| PlacesAtRisk {
            live: match live {
                0 => vec![],
                live => vec![(ZoneId(7), live)],
            },
            ..PlacesAtRisk::default()
        };
        let cloned = PlacesAtRisk {
            shows: 1,
            ..places(9)
        };
        let found = Found {
            places: places(9),
            objects: ObjectsAtRisk::default(),
            at: seconds(100),
            took: seconds(2),
        };
        for (live, at, holds) in [
            (9, 199, true),
            (9, 200, false),
            (8, 109, true),
            (8, 110, false),
            (0, 100, false),
        ] {
            assert_eq!(
                found.holds(&places(live), seconds(at)),
                holds,
                "{live} {at}"
            );
        }
        assert!(found.holds(&cloned, seconds(109)) && !found.holds(&cloned, seconds(110)));
        // A result that cost nothing is not reused.
        let quick = Found {
            took: Duration::ZERO,
            ..found
        };
        assert!(!quick.holds(&places(9), seconds(100)));
    }

    /// A clone moves and writes no data, but shows its source's lost bytes.
    #[test]
    fn a_clone_of_what_is_damaged_is_a_change() {
        let store = mount(&drive());
        put(&store, "source");
        store.seal_open_zones().unwrap();
        let zone = store.zones()[0].zone;
        let freelist = &store.inner.freelist;
        assert!(freelist.set_aside(zone, SetAside::Unreadable, String::new()));
        let places = |store: &Store| {
            let mut health = store.inner.health_by_zones();
            store.inner.places_at_risk(&mut health).unwrap()
        };
        let before = places(&store);
        assert!(!before.is_empty());
        put(&store, "elsewhere");
        assert!(places(&store) == before, "which touches nothing of it");
        let mut tx = Transaction::new();
        tx.clone_object(("c", "source"), ("c", "clone"));
        store.commit(tx).unwrap();
        assert!(places(&store) != before);
        assert_eq!(
            store.health().unwrap().object_names,
            ["c/clone", "c/source"]
        );
    }
}
