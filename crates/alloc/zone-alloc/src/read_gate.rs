//! Orders readers and resets: a zone is reset only when no reader can still read from an address in it.
//!
//! A reader enters, looks its addresses up, declares the zones they are in, reads, and leaves. A thread that
//! resets a zone first makes sure that no lookup finds an address in it any more, and then waits for the
//! readers that entered before and may have found one. Readers never wait, neither for a reset nor for each
//! other, and a read that hangs delays the reset of its own zones only. The thread that resets may bound how long it
//! waits.

use runtime::sync::{Condvar, Mutex};
use runtime::{Runtime, thread};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
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
}

impl Places {
    fn has(&self, zone: ZoneId) -> bool {
        match self {
            Self::Unknown => true,
            Self::In(zones) => zones.has(zone),
        }
    }
}

struct Reader {
    number: u64,
    places: Places,
    /// It may stay for any length of time: it has said so, or was waited for in vain.
    stays: bool,
}

impl Reader {
    /// Whether it entered before the reader of this number, and may read from `zone`.
    fn may_read(&self, before: u64, zone: ZoneId) -> bool {
        self.number < before && self.places.has(zone)
    }
}

#[derive(Default)]
struct State {
    /// The number of the reader that enters next.
    next: u64,
    /// The readers that have entered, in any order; there are few at a time.
    readers: Vec<Reader>,
    /// Number of threads that wait to reset a zone.
    waiting: usize,
}

impl State {
    fn position(&self, number: u64) -> Option<usize> {
        self.readers.iter().rposition(|r| r.number == number)
    }

    fn reads(&self, before: u64, zone: ZoneId) -> bool {
        self.readers.iter().any(|r| r.may_read(before, zone))
    }

    fn stays(&self, before: u64, zone: ZoneId) -> bool {
        let mut readers = self.readers.iter();
        readers.any(|r| r.stays && r.may_read(before, zone))
    }

    /// Counts those that read from `zone` as staying there; false if there are none.
    fn give_up(&mut self, before: u64, zone: ZoneId) -> bool {
        let is_read =
            |r: &&mut Reader| r.may_read(before, zone) && !matches!(r.places, Places::Unknown);
        let reads = self.readers.iter_mut().filter(is_read);
        reads.map(|reader| reader.stays = true).count() > 0
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

/// How often a thread that waits for readers looks at the clock.
const LOOK_AT_CLOCK: Duration = Duration::from_millis(100);

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
        state.readers.push(Reader {
            number,
            places,
            stays: false,
        });
        drop(state);
        Reading {
            gate: self.clone(),
            part,
            number,
        }
    }

    /// Whether a reader that has entered can still read from `zone`.
    pub fn has_readers(&self, zone: ZoneId) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.state.lock().reads(u64::MAX, zone))
    }

    /// The zones that readers stay in now, so that [`Self::wait_at_most`] returns false for them at once.
    pub fn stayed_in(&self) -> impl Fn(ZoneId) -> bool + use<> {
        let mut zones = BTreeSet::new();
        for part in &self.parts {
            for reader in part.state.lock().readers.iter().filter(|r| r.stays) {
                match &reader.places {
                    Places::Unknown => {}
                    Places::In(Zones::One(zone)) => _ = zones.insert(*zone),
                    Places::In(Zones::Many(many)) => zones.extend(many),
                }
            }
        }
        move |zone| zones.contains(&zone)
    }

    /// Waits until no reader that entered before this call can still read from `zone`. The caller has made sure
    /// that readers that enter later find no address in it.
    pub fn wait_for_readers(&self, zone: ZoneId) {
        for (part, next) in self.parts.iter().zip(self.entered()) {
            let mut state = part.state.lock();
            state.waiting += 1;
            while state.reads(next, zone) {
                part.left.wait(&mut state);
            }
            state.waiting -= 1;
        }
    }

    /// As [`Self::wait_for_readers`]; false if a reader still reads from the zone after this time of `runtime`. The
    /// drive may never answer it, so that reader counts from then on as one that stays ([`Reading::stay_in`]) until it
    /// says where it reads next. Returns false at once if a reader stays in the zone. For those that look
    /// addresses up it waits for as long as they take: until then, no zone can be reset.
    #[must_use]
    pub fn wait_at_most(&self, zone: ZoneId, time: Duration, runtime: &Runtime) -> bool {
        let entered = self.entered();
        let parts = || self.parts.iter().zip(entered);
        if parts().any(|(part, next)| part.state.lock().stays(next, zone)) {
            return false;
        }
        let until = runtime.now() + time;
        parts().all(|(part, next)| {
            let mut state = part.state.lock();
            state.waiting += 1;
            while state.reads(next, zone) && !state.stays(next, zone) {
                let left = until.saturating_sub(runtime.now());
                let pause = match left {
                    Duration::ZERO if state.give_up(next, zone) => break,
                    Duration::ZERO => LOOK_AT_CLOCK,
                    left => left.min(LOOK_AT_CLOCK),
                };
                part.left.wait_for(&mut state, pause);
            }
            state.waiting -= 1;
            !state.reads(next, zone)
        })
    }

    /// A number for each part that is above those of the readers in it; later ones have yet to look addresses up.
    fn entered(&self) -> [u64; PARTS] {
        self.parts.each_ref().map(|part| part.state.lock().next)
    }
}

impl Reading {
    /// Declares that the addresses found lie in these zones and are read now.
    pub fn only_in(&self, zones: impl IntoIterator<Item = ZoneId>) {
        self.set(zones.into_iter().collect(), false);
    }

    /// Declares that the addresses found lie in these zones and are read at any later time.
    pub fn stay_in(&self, zones: impl IntoIterator<Item = ZoneId>) {
        self.set(zones.into_iter().collect(), true);
    }

    fn set(&self, zones: Zones, stays: bool) {
        let part = self.part();
        let mut state = part.state.lock();
        if let Some(at) = state.position(self.number) {
            state.readers[at].places = Places::In(zones);
            state.readers[at].stays = stays;
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
        gate.wait_for_readers(B);
        let (waits, goes_on) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gate.wait_for_readers(A);
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
                reset.join().unwrap();
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
            reset.join().unwrap();
        });
    }

    #[test]
    fn who_enters_with_places_is_waited_for_in_each_of_their_zones() {
        let gate = Arc::new(ReadGate::default());
        for zones in [vec![A], vec![A, A], vec![B, A, B], vec![B, B, A]] {
            let reading = gate.enter_in(zones.clone());
            assert_eq!(gate.has_readers(B), zones.contains(&B), "{zones:?}");
            std::thread::scope(|scope| {
                let reset = scope.spawn(|| gate.wait_for_readers(A));
                while waiting(&gate) == 0 {
                    std::thread::yield_now();
                }
                assert!(!reset.is_finished(), "{zones:?}");
                drop(reading);
                reset.join().unwrap();
            });
        }
        drop(gate.enter_in([]));
        gate.wait_for_readers(A);
    }

    /// The clock stands.
    fn is_free(gate: &ReadGate, zone: ZoneId) -> bool {
        gate.wait_at_most(zone, Duration::from_secs(1), &Runtime::seeded(0))
    }

    #[test]
    fn nobody_waits_for_who_stays() {
        let gate = Arc::new(ReadGate::default());
        let stays = gate.enter();
        stays.stay_in([A]);
        assert!(!is_free(&gate, A) && is_free(&gate, B));
        assert!(gate.has_readers(A) && !gate.has_readers(B));
        assert!(gate.stayed_in()(A) && !gate.stayed_in()(B));
        drop(stays);
        assert!(!gate.has_readers(A) && !gate.stayed_in()(A));
        assert!(is_free(&gate, A));
    }

    #[test]
    fn a_reader_that_is_waited_for_in_vain_counts_as_staying_until_it_reads_elsewhere() {
        let gate = Arc::new(ReadGate::default());
        let runtime = Runtime::seeded(0);
        let is_free_now = |zone| gate.wait_at_most(zone, Duration::ZERO, &runtime);
        let hangs = gate.enter_in([A]);
        assert!(!is_free_now(A));
        assert!(!is_free(&gate, A) && gate.stayed_in()(A));
        assert!(is_free(&gate, B) && !gate.stayed_in()(B));
        hangs.only_in([B]);
        assert!(is_free(&gate, A) && !gate.stayed_in()(B));
        drop(hangs);
        // No zone can be reset before it has found its places.
        let looks_up = gate.enter();
        std::thread::scope(|scope| {
            let reset = scope.spawn(|| is_free_now(B));
            while waiting(&gate) == 0 {
                std::thread::yield_now();
            }
            assert!(!reset.is_finished() && !gate.stayed_in()(B));
            looks_up.only_in([A]);
            assert!(reset.join().unwrap());
        });
    }
}
