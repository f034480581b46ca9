//! Runs code under thread schedules that shuttle generates: at every lock it decides which thread runs next.
//!
//! Half of the schedules are random, half run one thread by preference and change it at a few points (PCT:
//! Burckhardt et al., ASPLOS 2010), which finds bugs that need a rare order of few events. Seeds are fixed; a
//! failure prints the schedule, for `shuttle::replay`.
//!
//! `ZONESTORE_SCHEDULES=n` runs n schedules of either kind, `ZONESTORE_SEED=n` those of another seed. Memory
//! orders weaker than the program's are not explored.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, MaxSteps, Runner};

pub use shuttle::rand::{Rng, thread_rng};
pub use shuttle::thread::spawn;

const SEED: u64 = 0x5eed;
/// Number of thread changes that PCT places.
const DEPTH: usize = 4;

/// Runs `history` under `schedules` random schedules and as many of PCT. A schedule of more than `most_steps`
/// steps counts as one that never ends, and fails.
pub fn explore(
    schedules: usize,
    most_steps: usize,
    history: impl Fn() + Copy + Send + Sync + 'static,
) {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let schedules = number("ZONESTORE_SCHEDULES").map_or(schedules, |n| n as usize);
    let seed = SEED + number("ZONESTORE_SEED").unwrap_or(0);
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(most_steps);
    let random = RandomScheduler::new_from_seed(seed, schedules);
    Runner::new(random, config.clone()).run(history);
    let pct = PctScheduler::new_from_seed(seed, DEPTH, schedules);
    Runner::new(pct, config).run(history);
}

/// A point at which shuttle may switch to another thread.
pub fn pause() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}
