//! MD5 of concurrently received bodies, computed together in the lanes of a vector.
//!
//! A piece is not digested when it arrives: it waits until its body ends, or until [`MOST_BEHIND`] bytes wait. The
//! thread that then needs the body's state computes it, beside as many other bodies as a vector has lanes; these join
//! and leave at every [`STRIDE`]. So lanes are full even if bodies arrive more slowly than one is digested. The only
//! body under way does not wait: it is digested piece by piece.
//!
//! At most half as many threads compute as there are processors, so that others can hand in their pieces; further
//! threads sleep until their body is done or they may compute.

use crate::md5_blocks::{State, alone, most_lanes, side_by_side};
use bytes::{Buf, Bytes};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Bytes of each body between two points where bodies join and leave.
const STRIDE: usize = 16 * 1024;
/// A body whose first piece is shorter than this is cheaper to digest alone.
const LEAST: usize = STRIDE;
/// Bytes of a body that may wait, without the last piece: so long, they stay in memory.
const MOST_BEHIND: usize = 1 << 20;

/// The bodies of this process, which share its processors.
pub static MD5: LazyLock<Together> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Together::new(processors / 2, most_lanes())
});

/// With fewer lanes than this and than there are bodies, a thread lets others run so many times before it computes: a vector
/// takes as long for two lanes as for all, and what it takes is time of the processors that the others need.
const FEW: usize = 8;
const YIELDS: usize = 8;

/// Bodies under way, and the threads that digest them.
pub struct Together {
    bodies: Mutex<Bodies>,
    /// Bodies that have not ended, also those without a piece.
    begun: AtomicUsize,
    most_computing: usize,
    most_lanes: usize,
}

#[derive(Default)]
struct Bodies {
    /// In the order in which they began.
    by_number: BTreeMap<u64, Body>,
    next_number: u64,
    /// Threads that compute.
    computing: usize,
}

#[derive(Default)]
struct Body {
    /// State after the last computed byte.
    state: State,
    /// Whole blocks that wait for a lane; no piece is empty.
    waiting: VecDeque<Bytes>,
    /// Bytes that wait or are in a lane.
    behind: usize,
    has_lane: bool,
    is_asleep: bool,
    wake: Arc<Condvar>,
}

/// A piece of a body that is being digested.
struct Lane {
    number: u64,
    state: State,
    left: Bytes,
}

impl Body {
    /// The next piece of the body; `None` if it is in a lane already or has none.
    fn begin(&mut self, number: u64) -> Option<Lane> {
        if self.has_lane {
            return None;
        }
        let left = self.waiting.pop_front()?;
        self.has_lane = true;
        Some(Lane {
            number,
            state: self.state,
            left,
        })
    }
}

impl Bodies {
    /// Adds waiting bodies until there are `most` lanes.
    fn fill(&mut self, lanes: &mut Vec<Lane>, most: usize) {
        let bodies = self.by_number.iter_mut();
        let waiting = bodies.filter_map(|(number, body)| body.begin(*number));
        lanes.extend(waiting.take(most - lanes.len()));
    }

    /// Records that `computed` bytes of a body are digested; returns the lane if the body has more.
    fn note(&mut self, mut lane: Lane, computed: usize) -> Option<Lane> {
        // Without an entry, the body was dropped and its digest is not needed.
        let body = self.by_number.get_mut(&lane.number)?;
        body.state = lane.state;
        body.behind -= computed;
        if lane.left.is_empty() {
            let Some(next) = body.waiting.pop_front() else {
                body.has_lane = false;
                body.wake.notify_one();
                return None;
            };
            lane.left = next;
        }
        Some(lane)
    }

    /// Puts the rest of a lane's piece back.
    fn leave(&mut self, lane: Lane) {
        if let Some(body) = self.by_number.get_mut(&lane.number) {
            body.has_lane = false;
            body.waiting.push_front(lane.left);
        }
    }

    fn is_behind(&self, number: u64) -> bool {
        let body = self.by_number.get(&number);
        body.is_some_and(|body| body.behind > 0)
    }

    /// Wakes a thread that sleeps and whose body is in no lane.
    fn wake_one(&mut self) {
        let mut bodies = self.by_number.values_mut();
        let is_left = |body: &&mut Body| body.is_asleep && !body.has_lane && body.behind > 0;
        if let Some(body) = bodies.find(is_left) {
            body.is_asleep = false;
            body.wake.notify_one();
        }
    }
}

impl Together {
    /// At most `most_computing` threads (at least one) compute at a time, each in at most `most_lanes` lanes.
    fn new(most_computing: usize, most_lanes: usize) -> Self {
        Self {
            bodies: Mutex::default(),
            begun: AtomicUsize::new(0),
            most_computing: most_computing.max(1),
            most_lanes,
        }
    }

    /// Digests all waiting bytes of a body, or waits until another thread has.
    fn catch_up(&self, bodies: &mut MutexGuard<'_, Bodies>, number: u64) {
        while bodies.is_behind(number) {
            let may_compute = bodies.computing < self.most_computing;
            let Some(body) = bodies.by_number.get_mut(&number) else {
                return;
            };
            if let Some(lane) = may_compute.then(|| body.begin(number)).flatten() {
                bodies.computing += 1;
                self.compute(bodies, lane);
                bodies.computing -= 1;
                bodies.wake_one();
                continue;
            }
            // Woken by the thread that has computed this body, or that stops and leaves it.
            body.is_asleep = true;
            body.wake.clone().wait(bodies);
            if let Some(body) = bodies.by_number.get_mut(&number) {
                body.is_asleep = false;
            }
        }
    }

    /// Digests a body to its end, and others beside it.
    fn compute(&self, bodies: &mut MutexGuard<'_, Bodies>, lane: Lane) {
        let number = lane.number;
        let (mut lanes, mut yielded) = (vec![lane], 0);
        while bodies.is_behind(number) {
            let had = lanes.len();
            bodies.fill(&mut lanes, self.most_lanes);
            if lanes.len() > had {
                yielded = 0;
            }
            let few = FEW
                .min(self.most_lanes)
                .min(self.begun.load(Ordering::Relaxed));
            if lanes.len() < few && yielded < YIELDS {
                // If processors are short, other threads can hand in their pieces now; if not, this costs nothing.
                yielded += 1;
                MutexGuard::unlocked(bodies, std::thread::yield_now);
                continue;
            }
            let computed = MutexGuard::unlocked(bodies, || advance(&mut lanes));
            let noted = lanes.into_iter();
            lanes = noted
                .filter_map(|lane| bodies.note(lane, computed))
                .collect();
        }
        for lane in lanes {
            bodies.leave(lane);
        }
    }
}

/// Digests a stride of each lane, or less where one of them ends; returns the number of bytes of each.
fn advance(lanes: &mut [Lane]) -> usize {
    let length = lanes.iter().map(|lane| lane.left.len()).min();
    let length = length.unwrap_or(0).min(STRIDE);
    let mut states: Vec<State> = lanes.iter().map(|lane| lane.state).collect();
    let heads: Vec<&[u8]> = lanes.iter().map(|lane| &lane.left[..length]).collect();
    side_by_side(&mut states, &heads);
    for (lane, state) in lanes.iter_mut().zip(states) {
        lane.left.advance(length);
        lane.state = state;
    }
    length
}

/// A body that is digested with those of `together`, from its first long piece until it is dropped or settled.
pub struct Stream<'a> {
    together: &'a Together,
    number: Option<u64>,
}

impl<'a> Stream<'a> {
    /// A body without any piece.
    pub fn new(together: &'a Together) -> Self {
        together.begun.fetch_add(1, Ordering::Relaxed);
        let number = None;
        Self { together, number }
    }

    /// Returns the result of `work`, and has `blocks` digested meanwhile or later. `state` includes them only after
    /// [`Self::settle`].
    pub fn beside<T>(&mut self, state: &mut State, blocks: Bytes, work: impl FnOnce() -> T) -> T {
        let is_short = self.number.is_none() && blocks.len() < LEAST;
        if is_short || self.together.most_lanes == 1 {
            *state = alone(*state, &blocks);
            return work();
        }
        let number = self.hand_in(*state, blocks);
        let worked = work();
        let bodies = &mut self.together.bodies.lock();
        let behind = bodies.by_number.get(&number).map_or(0, |body| body.behind);
        if bodies.by_number.len() == 1 || behind >= MOST_BEHIND {
            self.together.catch_up(bodies, number);
        }
        worked
    }

    fn hand_in(&mut self, state: State, blocks: Bytes) -> u64 {
        let bodies = &mut *self.together.bodies.lock();
        let number = *self.number.get_or_insert_with(|| {
            bodies.next_number += 1;
            bodies.next_number
        });
        let body = bodies.by_number.entry(number).or_insert_with(|| Body {
            state,
            ..Body::default()
        });
        // Nothing to compute wakes nobody.
        if !blocks.is_empty() {
            body.behind += blocks.len();
            body.waiting.push_back(blocks);
        }
        number
    }

    /// Digests all pieces handed in, and sets `state` to the result.
    pub fn settle(&mut self, state: &mut State) {
        let Some(number) = self.number.take() else {
            return;
        };
        let bodies = &mut self.together.bodies.lock();
        self.together.catch_up(bodies, number);
        if let Some(body) = bodies.by_number.remove(&number) {
            *state = body.state;
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.together.begun.fetch_sub(1, Ordering::Relaxed);
        if let Some(number) = self.number {
            self.together.bodies.lock().by_number.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// So many threads, each with bodies of lengths of its own that come in pieces, on `together`.
    fn check(together: &Together, threads: usize) {
        let begin = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (begin, together) = (&begin, &together);
                scope.spawn(move || {
                    begin.wait();
                    for piece in [0, 64, STRIDE - 64, STRIDE, 2048 * thread, 300_032, 1 << 20] {
                        let data = Bytes::from(vec![thread as u8; piece]);
                        let (mut state, mut expected) = ([7; 4], [7; 4]);
                        let mut stream = Stream::new(together);
                        for number in 0..4 {
                            let worked = stream.beside(&mut state, data.clone(), || number);
                            assert_eq!(worked, number);
                            expected = alone(expected, &data);
                        }
                        // What is left of a body may be less than a block.
                        stream.beside(&mut state, Bytes::new(), || ());
                        stream.settle(&mut state);
                        assert_eq!(state, expected, "{piece}");
                    }
                });
            }
        });
        assert_eq!(together.bodies.lock().by_number.len(), 0);
        assert_eq!(together.bodies.lock().computing, 0);
        assert_eq!(together.begun.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn everybody_gets_the_state_of_their_own_bytes() {
        for (most_computing, lanes, threads) in [
            (0, 16, 1),
            (1, 16, 2),
            (1, 2, 9),
            (2, 16, 9),
            (8, 8, 3),
            (2, 1, 3),
        ] {
            check(&Together::new(most_computing, lanes), threads);
        }
    }

    #[test]
    fn a_piece_waits_for_others_only_where_there_are_others_and_not_for_ever() {
        let together = Together::new(1, 16);
        let behind = |stream: &Stream<'_>| {
            let bodies = together.bodies.lock();
            stream.number.map(|number| bodies.by_number[&number].behind)
        };
        let piece = |blocks: usize| Bytes::from(vec![1; blocks << 14]);
        let (mut first, mut second) = (Stream::new(&together), Stream::new(&together));
        let (mut states, mut expected) = ([[1; 4], [2; 4]], [[1; 4], [2; 4]]);
        first.beside(&mut states[0], piece(3), || ());
        assert_eq!(behind(&first), Some(0));
        second.beside(&mut states[1], piece(5), || ());
        first.beside(&mut states[0], piece(9), || ());
        assert_eq!(
            (behind(&first), behind(&second)),
            (Some(9 << 14), Some(5 << 14))
        );
        // Who computes takes along as much of the others as it has itself.
        second.settle(&mut states[1]);
        assert_eq!((behind(&first), behind(&second)), (Some(4 << 14), None));
        second.beside(&mut states[1], piece(1), || ());
        first.beside(&mut states[0], piece(60), || ());
        assert_eq!((behind(&first), behind(&second)), (Some(0), Some(0)));
        first.settle(&mut states[0]);
        second.settle(&mut states[1]);
        for (state, blocks) in expected.iter_mut().zip([72, 6]) {
            *state = alone(*state, &piece(blocks));
        }
        assert_eq!(states, expected);
    }

    /// Whoever sleeps until its body is done is woken with the last block, and by nothing that comes behind it.
    #[test]
    fn nothing_waits_behind_the_last_block_of_a_body() {
        let together = Together::new(1, 16);
        let blocks = || Bytes::from(vec![1; STRIDE]);
        let (mut first, mut second) = (Stream::new(&together), Stream::new(&together));
        let mut states = [[1; 4], [2; 4]];
        first.hand_in(states[0], blocks());
        let number = second.hand_in(states[1], blocks());
        second.hand_in(states[1], Bytes::new());
        first.settle(&mut states[0]);
        let bodies = together.bodies.lock();
        let second = &bodies.by_number[&number];
        assert_eq!((second.behind, second.has_lane), (0, false));
        assert!(second.waiting.is_empty());
    }

    #[test]
    fn a_body_that_is_dropped_leaves_nobody_waiting() {
        let together = Together::new(1, 16);
        let piece = || Bytes::from(vec![1; 1 << 17]);
        let mut state = [0; 4];
        let mut stalled = Stream::new(&together);
        stalled.beside(&mut [0; 4], piece(), || ());
        std::thread::scope(|scope| {
            let broken = scope.spawn(|| {
                let mut stream = Stream::new(&together);
                stream.beside(&mut [0; 4], piece(), || ());
                stream.beside(&mut [0; 4], piece(), || panic!("meanwhile"));
            });
            assert!(broken.join().is_err());
        });
        assert_eq!(together.bodies.lock().by_number.len(), 1);
        let mut stream = Stream::new(&together);
        stream.beside(&mut state, piece(), || ());
        drop(stalled);
        stream.settle(&mut state);
        assert_eq!(state, alone([0; 4], &piece()));
    }
}
