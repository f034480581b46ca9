//! MD5 of bodies that arrive at the same time, computed together.
//!
//! A thread hands in its piece, does something else meanwhile, and comes back for the state. Whoever comes back
//! first computes: its own piece beside as many others as a vector has lanes for; they may join and leave at every
//! [`STRIDE`].
//! Fewer threads compute than there are processors, so that pieces come together where they are many; a piece
//! that is alone does not wait for another.

use crate::md5_blocks::{State, alone, most_lanes, side_by_side};
use bytes::{Buf, Bytes};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

/// Bytes of each stream between two looks at who waits.
const STRIDE: usize = 16 * 1024;
/// Less than this costs less alone than to be handed in.
const LEAST: usize = STRIDE;

/// Those of this process: processors are what they share.
pub static MD5: LazyLock<Together> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Together::new(processors / 2)
});

/// Pieces that wait for a lane.
pub struct Together {
    waiting: Mutex<Waiting>,
    most_computing: usize,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    /// Threads.
    computing: usize,
}

struct Piece {
    state: State,
    /// Whole blocks.
    left: Bytes,
    owner: Arc<Owner>,
}

/// Who handed in a piece; all but the state is used under the lock of those who wait.
#[derive(Default)]
struct Owner {
    done: OnceLock<State>,
    is_asleep: AtomicBool,
    wake: Condvar,
}

impl Owner {
    fn sleep(&self, waiting: &mut MutexGuard<'_, Waiting>) {
        self.is_asleep.store(true, Ordering::Relaxed);
        self.wake.wait(waiting);
        self.is_asleep.store(false, Ordering::Relaxed);
    }
}

impl Together {
    /// At most so many threads compute at a time, at least one.
    pub fn new(most_computing: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            most_computing: most_computing.max(1),
        }
    }

    /// Does `work`, and answers the state behind `blocks` beside what that answers.
    pub fn beside<T>(&self, state: State, blocks: Bytes, work: impl FnOnce() -> T) -> (State, T) {
        if blocks.len() < LEAST {
            return (alone(state, &blocks), work());
        }
        let owner = Arc::new(Owner::default());
        self.waiting.lock().pieces.push_back(Piece {
            state,
            left: blocks,
            owner: owner.clone(),
        });
        let worked = work();
        (self.wait_for(&owner), worked)
    }

    fn wait_for(&self, owner: &Owner) -> State {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(state) = owner.done.get() {
                return *state;
            }
            if waiting.pieces.is_empty() || waiting.computing == self.most_computing {
                // Who computes our piece wakes us, and so does who stops and leaves it.
                owner.sleep(&mut waiting);
                continue;
            }
            waiting.computing += 1;
            let left = compute(&mut waiting, owner);
            waiting.computing -= 1;
            for piece in left.into_iter().rev() {
                waiting.pieces.push_front(piece);
            }
            let mut owners = waiting.pieces.iter().map(|piece| &piece.owner);
            if let Some(next) = owners.find(|owner| owner.is_asleep.load(Ordering::Relaxed)) {
                next.wake.notify_one();
            }
        }
    }
}

/// Computes pieces that wait until that of `owner` is done or somebody else has it; answers what is begun.
fn compute(waiting: &mut MutexGuard<'_, Waiting>, owner: &Owner) -> Vec<Piece> {
    let most = most_lanes();
    let (mut lanes, mut has_yielded) = (Vec::with_capacity(most), false);
    while owner.done.get().is_none() {
        let free = (most - lanes.len()).min(waiting.pieces.len());
        lanes.extend(waiting.pieces.drain(..free));
        if lanes.is_empty() {
            break;
        }
        if lanes.len() == 1 && !has_yielded {
            // Where processors are short, others get to hand in theirs; where not, nothing happens.
            has_yielded = true;
            MutexGuard::unlocked(waiting, std::thread::yield_now);
            continue;
        }
        MutexGuard::unlocked(waiting, || advance(&mut lanes));
        lanes.retain(|piece| {
            let is_done = piece.left.is_empty();
            if is_done {
                let _ = piece.owner.done.set(piece.state);
                piece.owner.wake.notify_one();
            }
            !is_done
        });
    }
    lanes
}

/// Computes a stride of each, or less where one of them ends.
fn advance(lanes: &mut [Piece]) {
    let length = lanes.iter().map(|piece| piece.left.len()).min();
    let length = length.unwrap_or(0).min(STRIDE);
    let mut states: Vec<State> = lanes.iter().map(|piece| piece.state).collect();
    let heads: Vec<&[u8]> = lanes.iter().map(|piece| &piece.left[..length]).collect();
    side_by_side(&mut states, &heads);
    for (piece, state) in lanes.iter_mut().zip(states) {
        piece.left.advance(length);
        piece.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::md5::Md5;
    use crate::md5_blocks::BLOCK;
    use std::sync::Barrier;

    /// So many threads, each with pieces of lengths of its own, on `together`.
    fn check(together: &Together, threads: usize) {
        let begin = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (begin, together) = (&begin, &together);
                scope.spawn(move || {
                    begin.wait();
                    for length in [0, 63, 64, 255, 256, STRIDE, 70_000, 1000 * thread, 300_000] {
                        let data = Bytes::from(vec![thread as u8; length]);
                        let mut md5 = Md5::new();
                        let blocks = data.slice_ref(md5.take_blocks(&data));
                        let (state, worked) = together.beside(md5.state, blocks, || thread);
                        md5.state = state;
                        let mut expected = Md5::new();
                        expected.update(&data);
                        assert_eq!(
                            (md5.finish(), worked),
                            (expected.finish(), thread),
                            "{length}"
                        );
                    }
                });
            }
        });
        let waiting = together.waiting.lock();
        assert_eq!((waiting.pieces.len(), waiting.computing), (0, 0));
    }

    #[test]
    fn everybody_gets_the_state_of_their_own_bytes() {
        for (most_computing, threads) in [(0, 1), (1, 2), (1, 9), (2, 9), (8, 3)] {
            check(&Together::new(most_computing), threads);
        }
    }

    #[test]
    fn who_panics_meanwhile_leaves_nobody_waiting() {
        let together = Together::new(1);
        let piece = || Bytes::from(vec![1; 2000 * BLOCK]);
        std::thread::scope(|scope| {
            let broken = scope.spawn(|| together.beside([0; 4], piece(), || panic!("meanwhile")));
            assert!(broken.join().is_err());
        });
        // What it handed in is computed for nobody.
        let (state, ()) = together.beside([0; 4], piece(), || ());
        assert_eq!(state, alone([0; 4], &piece()));
    }
}
