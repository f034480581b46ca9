//! Orders readers and resets: a zone is reset only when no reader can still read from an address in it.
//!
//! A reader enters, looks its addresses up, declares the zones they are in, reads, and leaves. A thread that
//! resets a zone first makes sure that no lookup finds an address in it any more, and then waits for the
//! readers that entered before and may have found one. Readers never wait, neither for a reset nor for each
//! other, and a read that hangs delays the reset of its own zones only.

use runtime::sync::{Condvar, Mutex};
use runtime::thread;
use std::sync::Arc;
use zone::ZoneId;

/// A set of zones that allocates no memory in the common case of one zone.
enum Zones {
    One(ZoneId),
    Many(Vec<ZoneId>),
}

impl FromIterator<ZoneId> for Zones {
    fn from_iter<I: IntoIterator<Item = ZoneId>>(zones: I) -> Self {
        let mut zones = zones.into_iter();
        let Some(first) = zones.next() else {
            return Self::Many(Vec::new());
        };
        match zones.find(|zone| *zone != first) {
            None => Self::One(first),
            Some(other) => Self::Many([first, other].into_iter().chain(zones).collect()),
        }
    }
}

impl Zones {
    fn has(&self, zone: ZoneId) -> bool {
        match self {
            Self::One(one) => *one == zone,
            Self::Many(zones) => zones.contains(&zone),
        }
    }
}

/// The zones that a reader may read from.
enum Places {
    /// The reader is still looking its addresses up: it may read anywhere.
    Unknown,
    In(Zones),
    /// The zones of a reader that may stay for any length of time.
    StaysIn(Zones),
}

impl Places {
    fn is_in(&self, zone: ZoneId) -> bool {
        match self {
            Self::Unknown => true,
            Self::In(zones) | Self::StaysIn(zones) => zones.has(zone),
        }
    }
}

#[derive(Default)]
struct State {
    /// The number of the reader that enters next.
    next: u64,
    /// The readers that have entered, with their numbers, in any order; there are few at a time.
    readers: Vec<(u64, Places)>,
    /// Number of threads that wait to reset a zone.
    waiting: usize,
}

impl State {
    /// The readers that entered before the one of this number.
    fn before(&self, number: u64) -> impl Iterator<Item = &Places> {
        let earlier = self.readers.iter().filter(move |(n, _)| *n < number);
        earlier.map(|(_, places)| places)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.readers.iter().rposition(|(n, _)| *n == number)
    }

    fn reads(&self, before: u64, zone: ZoneId) -> bool {
        self.before(before).any(|places| places.is_in(zone))
    }

    fn stays(&self, before: u64, zone: ZoneId) -> bool {
        let mut earlier = self.before(before);
        earlier.any(|p| matches!(p, Places::StaysIn(zones) if zones.has(zone)))
    }
}

/// The readers of a subset of the threads, so that threads seldom contend; on a processor cache line of its
/// own.
#[derive(Default)]
#[repr(align(64))]
struct Part {
    state: Mutex<State>,
    left: Condvar,
}

impl Part {
    fn wake(&self, state: &State) {
        if state.waiting > 0 {
            self.left.notify_all();
        }
    }
}

const PARTS: usize = 16;

/// The readers of a drive's zones, which resets wait for.
#[derive(Default)]
pub struct ReadGate {
    parts: [Part; PARTS],
}

/// A reader that has entered; dropping it is leaving.
pub struct Reading {
    gate: Arc<ReadGate>,
    part: usize,
    number: u64,
}

impl ReadGate {
    /// Enters a reader that is about to look addresses up.
    pub fn enter(self: &Arc<Self>) -> Reading {
        self.enter_at(Places::Unknown)
    }

    /// Enters a reader that has found addresses in these zones and still holds the lock that it found them
    /// under, so that no other thread can invalidate them before this call returns.
    pub fn enter_in(self: &Arc<Self>, zones: impl IntoIterator<Item = ZoneId>) -> Reading {
        self.enter_at(Places::In(zones.into_iter().collect()))
    }

    fn enter_at(self: &Arc<Self>, places: Places) -> Reading {
        let part = thread::number() % PARTS;
        let mut state = self.parts[part].state.lock();
        let number = state.next;
        state.next += 1;
        state.readers.push((number, places));
        drop(state);
        Reading {
            gate: self.clone(),
            part,
            number,
        }
    }

    /// Whether a reader that has entered can still read from `zone`, so that [`Self::wait_for_readers`] would
    /// wait for it or return false.
    pub fn has_readers(&self, zone: ZoneId) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.state.lock().reads(u64::MAX, zone))
    }

    /// Waits until no reader that entered before this call can still read from `zone`. The caller has made sure
    /// that readers that enter later find no address in it. Returns false at once if one of the earlier readers
    /// stays in the zone for longer than a read ([`Reading::stay_in`]).
    #[must_use]
    pub fn wait_for_readers(&self, zone: ZoneId) -> bool {
        // Readers that have entered a part so far have numbers below `next`; later ones have yet to look
        // addresses up.
        let mut before = [0; PARTS];
        for (part, next) in self.parts.iter().zip(&mut before) {
            let state = part.state.lock();
            *next = state.next;
            if state.stays(*next, zone) {
                return false;
            }
        }
        self.parts.iter().zip(before).all(|(part, next)| {
            let mut state = part.state.lock();
            state.waiting += 1;
            while state.reads(next, zone) && !state.stays(next, zone) {
                part.left.wait(&mut state);
            }
            state.waiting -= 1;
            !state.reads(next, zone)
        })
    }
}

impl Reading {
    /// Declares that the addresses found lie in these zones and are read now.
    pub fn only_in(&self, zones: impl IntoIterator<Item = ZoneId>) {
        self.set(Places::In(zones.into_iter().collect()));
    }

    /// Declares that the addresses found lie in these zones and are read at any later time.
    pub fn stay_in(&self, zones: impl IntoIterator<Item = ZoneId>) {
        self.set(Places::StaysIn(zones.into_iter().collect()));
    }

    fn set(&self, places: Places) {
        let part = self.part();
        let mut state = part.state.lock();
        if let Some(at) = state.position(self.number) {
            state.readers[at].1 = places;
        }
        part.wake(&state);
    }

    fn part(&self) -> &Part {
        &self.gate.parts[self.part]
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let part = self.part();
        let mut state = part.state.lock();
        if let Some(at) = state.position(self.number) {
            state.readers.swap_remove(at);
        }
        part.wake(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn waiting(gate: &ReadGate) -> usize {
        let parts = gate.parts.iter();
        parts.map(|part| part.state.lock().waiting).sum()
    }

    const A: ZoneId = ZoneId(5);
    const B: ZoneId = ZoneId(6);

    #[test]
    fn a_reset_waits_for_earlier_readers_of_its_zone_only() {
        let gate = Arc::new(ReadGate::default());
        let (in_a, in_b) = (gate.enter(), gate.enter());
        in_a.only_in([A]);
        in_b.only_in([B]);
        drop(in_b);
        // Would never come back if it waited for the reader of A.
        assert!(gate.wait_for_readers(B));
        let (waits, goes_on) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(gate.wait_for_readers(A));
                waits.send(()).unwrap();
            });
            while waiting(&gate) == 0 {
                std::thread::yield_now();
            }
            // A reader that enters now finds another address and is not waited for.
            let later = gate.enter();
            assert!(goes_on.try_recv().is_err());
            drop(in_a);
            goes_on.recv().unwrap();
            drop(later);
        });
    }

    #[test]
    fn readers_of_all_threads_are_waited_for() {
        let gate = Arc::new(ReadGate::default());
        for _ in 0..2 * PARTS {
            let reading = std::thread::scope(|scope| scope.spawn(|| gate.enter_in([A])).join());
            std::thread::scope(|scope| {
                let reset = scope.spawn(|| gate.wait_for_readers(A));
                while waiting(&gate) == 0 {
                    std::thread::yield_now();
                }
                assert!(!reset.is_finished());
                drop(reading);
                assert!(reset.join().unwrap());
            });
        }
    }

    #[test]
    fn who_still_looks_up_may_find_any_zone() {
        let gate = Arc::new(ReadGate::default());
        let looking = gate.enter();
        std::thread::scope(|scope| {
            let reset = scope.spawn(|| gate.wait_for_readers(A));
            while waiting(&gate) == 0 {
                std::thread::yield_now();
            }
            assert!(!reset.is_finished());
            looking.only_in([B]);
            assert!(reset.join().unwrap());
        });
    }

    #[test]
    fn who_enters_with_places_is_waited_for_in_each_of_their_zones() {
        let gate = Arc::new(ReadGate::default());
        for zones in [vec![A], vec![A, A], vec![B, A, B], vec![B, B, A]] {
            let reading = gate.enter_in(zones.clone());
            assert!(zones.contains(&B) || gate.wait_for_readers(B), "{zones:?}");
            std::thread::scope(|scope| {
                let reset = scope.spawn(|| gate.wait_for_readers(A));
                while waiting(&gate) == 0 {
                    std::thread::yield_now();
                }
                assert!(!reset.is_finished(), "{zones:?}");
                drop(reading);
                assert!(reset.join().unwrap());
            });
        }
        drop(gate.enter_in([]));
        assert!(gate.wait_for_readers(A));
    }

    #[test]
    fn nobody_waits_for_who_stays() {
        let gate = Arc::new(ReadGate::default());
        let stays = gate.enter();
        stays.stay_in([A]);
        assert!(!gate.wait_for_readers(A));
        assert!(gate.wait_for_readers(B));
        assert!(gate.has_readers(A) && !gate.has_readers(B));
        drop(stays);
        assert!(!gate.has_readers(A));
        assert!(gate.wait_for_readers(A));
    }
}
