//! The code itself under schedules that shuttle makes up: at every lock it decides who runs next. Half
//! of the schedules are random, half prefer one thread and change it at a few places (PCT: Burckhardt
//! et al., ASPLOS 2010), which finds what needs a rare order of few things. Seeds are fixed; a failure
//! prints the schedule, for `shuttle::replay`.
//!
//! `ZONESTORE_SCHEDULES=n` runs n of either kind, `ZONESTORE_SEED=n` others. Orders of memory weaker
//! than the program's are not among them.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, MaxSteps, Runner};

pub use shuttle::rand::{Rng, thread_rng};
pub use shuttle::thread::spawn;

const SEED: u64 = 0x5eed;
/// Changes of thread that PCT places.
const DEPTH: usize = 4;

/// Runs `history` in `schedules` random orders and as many of PCT. A schedule that takes more steps
/// than `most_steps` counts as one that does not end, and fails.
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

/// A moment at which others may run.
pub fn pause() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}
