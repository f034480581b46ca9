//! Zones that were left and could not be finished, and when that is tried again.

use crate::Retries;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::time::Duration;
use zone::ZoneId;

#[derive(Default, Debug)]
struct State {
    zones: BTreeSet<ZoneId>,
    retries: Retries,
    /// The zone that was tried last.
    last: Option<ZoneId>,
}

/// Zones that were left and could not be finished. Each holds an active resource of the drive until it is finished or reset.
/// The first retry is due at once, later ones as [`Retries`] says.
#[derive(Default, Debug)]
pub struct Unfinished(Mutex<State>);

impl Unfinished {
    /// Adds a zone whose finish has failed.
    pub fn add(&self, zone: ZoneId) {
        self.0.lock().zones.insert(zone);
    }

    /// Removes a zone that was finished or reset.
    pub fn remove(&self, zone: ZoneId) {
        let mut state = self.0.lock();
        state.zones.remove(&zone);
        if state.zones.is_empty() {
            state.retries.end();
        }
    }

    /// Whether the last finish of `zone` has failed.
    pub fn contains(&self, zone: ZoneId) -> bool {
        self.0.lock().zones.contains(&zone)
    }

    /// Whether there is no such zone.
    pub fn is_empty(&self) -> bool {
        self.0.lock().zones.is_empty()
    }

    /// Time of the next retry, zero if that is the first one; `None` if there is nothing to retry.
    pub fn due_at(&self) -> Option<Duration> {
        let state = self.0.lock();
        (!state.zones.is_empty()).then(|| state.retries.due_at().unwrap_or_default())
    }

    /// Whether a zone is to be retried at `now`, if the pause after the last failure is limited to `at_most` as in
    /// [`Retries::is_due`].
    pub fn is_due(&self, now: Duration, at_most: Duration) -> bool {
        let state = self.0.lock();
        let is_due = state.retries.due_at().is_none() || state.retries.is_due(now, at_most);
        is_due && !state.zones.is_empty()
    }

    /// If a retry is due, calls `finish` for one zone after the other until it returns `Some(false)`: the zone could not be
    /// finished. `Some(true)` removes the zone, which is finished or need not be; `None` leaves it to a later call. True if a
    /// zone was removed.
    pub fn try_again(
        &self,
        runtime: &Runtime,
        at_most: Duration,
        finish: impl Fn(ZoneId) -> Option<bool>,
    ) -> bool {
        let mut any = false;
        if !self.is_due(runtime.now(), at_most) {
            return any;
        }
        let zones = self.0.lock().zones.len();
        for _ in 0..zones {
            let Some(zone) = self.next() else { break };
            let began = runtime.now();
            match finish(zone) {
                Some(true) => {
                    self.remove(zone);
                    any = true;
                }
                Some(false) => {
                    let mut state = self.0.lock();
                    // Otherwise it was reset meanwhile.
                    if state.zones.contains(&zone) {
                        state.retries.begin(began);
                        state.retries.failed_again(began, runtime.now());
                    }
                    break;
                }
                None => {}
            }
        }
        any
    }

    /// The zone behind the one that was tried last, or the first one.
    fn next(&self) -> Option<ZoneId> {
        let mut state = self.0.lock();
        let last = state.last;
        let zones = state.zones.iter().copied();
        let next = zones.min_by_key(|zone| (Some(*zone) <= last, *zone));
        state.last = next;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IN_NEED;
    use runtime::SimulatedClock;
    use std::cell::RefCell;
    use std::sync::Arc;

    #[test]
    fn zones_are_tried_one_at_a_time_until_they_are_finished() {
        let clock = Arc::<SimulatedClock>::default();
        let runtime = Runtime::seeded(1).with_clock(clock.clone());
        let unfinished = Unfinished::default();
        let tried = RefCell::new(Vec::new());
        let again = |at_most, can_be: bool| {
            let finish = |zone: ZoneId| {
                tried.borrow_mut().push(zone.0);
                Some(can_be)
            };
            let any = unfinished.try_again(&runtime, at_most, finish);
            (any, tried.take())
        };
        assert_eq!(again(Duration::ZERO, true), (false, vec![]));
        assert_eq!(unfinished.due_at(), None);
        [5, 3, 8]
            .into_iter()
            .for_each(|zone| unfinished.add(ZoneId(zone)));
        assert_eq!(again(Duration::MAX, false), (false, vec![3]));
        assert_eq!(again(Duration::MAX, false), (false, vec![]));
        assert!(unfinished.due_at() > Some(runtime.now()));
        // Others come first, and each failure doubles the pause.
        for zone in [5, 8, 3] {
            clock.advance(Duration::from_secs(1));
            assert_eq!(again(Duration::MAX, false), (false, vec![zone]));
        }
        clock.advance(IN_NEED);
        assert_eq!(again(Duration::MAX, true), (false, vec![]));
        assert_eq!(again(IN_NEED, true), (true, vec![5, 8, 3]));
        assert!(unfinished.is_empty());
        // The next one is tried at once.
        unfinished.add(ZoneId(4));
        unfinished.remove(ZoneId(4));
        unfinished.add(ZoneId(7));
        assert_eq!(again(Duration::MAX, true), (true, vec![7]));
        // One that cannot be tried yet keeps no other from it, and begins no pause.
        unfinished.add(ZoneId(1));
        unfinished.add(ZoneId(2));
        let finish = |zone: ZoneId| (zone != ZoneId(1)).then_some(true);
        assert!(unfinished.try_again(&runtime, Duration::MAX, finish));
        assert_eq!(unfinished.due_at(), Some(Duration::ZERO));
    }
}
