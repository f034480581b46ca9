//! Health that is looked at again and again: which places are damaged or at risk costs little to tell, and is told anew
//! each time. What objects have there may take a pass over all of them, and is told anew when these places have changed,
//! and else so rarely that the asking takes a small part of the time.

use crate::Result;
use crate::health::{Health, ObjectsAtRisk, PlacesAtRisk};
use crate::inner::Inner;
use std::time::Duration;

/// A pass takes at most this part of the time while places change, or objects that share bytes come and go, and while
/// nothing does.
const PART_CHANGED: u32 = 5;
const PART_UNCHANGED: u32 = 50;

/// Health, and when the objects that it names were looked for.
#[derive(Clone, Debug)]
pub struct HealthLook {
    /// What is known to be lost or at risk.
    pub health: Health,
    /// How old the names and numbers of objects in it are. All else is of this moment.
    pub objects_age: Duration,
    /// How long this look has looked for objects; zero if it took over what an earlier one had found.
    pub objects_took: Duration,
    found: Option<Found>,
}

/// What objects have in some places.
#[derive(Clone, Debug)]
struct Found {
    places: PlacesAtRisk,
    objects: ObjectsAtRisk,
    /// On the clock of the store's runtime.
    at: Duration,
    took: Duration,
}

impl Found {
    /// Whether nobody need look again at this moment. That there is nothing to look for costs nothing to see.
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

    /// Health at this moment, behind an earlier look at it.
    pub(crate) fn health_after(&self, before: Option<&HealthLook>) -> Result<HealthLook> {
        let mut health = self.health_by_zones();
        let known = before.and_then(|before| before.found.clone());
        let mut took = Duration::ZERO;
        // What follows may need what the drive does not answer.
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
        self.judge(&mut health);
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
        // What costs nothing is never old.
        let quick = Found {
            took: Duration::ZERO,
            ..found
        };
        assert!(!quick.holds(&places(9), seconds(100)));
    }

    /// A clone moves nothing and writes nothing, and shows what its source has lost.
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
