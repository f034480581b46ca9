//! The code itself under schedules that shuttle makes up: at every lock, and in the middle of every
//! command to the drive, it decides who runs next. Half of the schedules are random, half prefer one
//! thread and change it at a few places (PCT: Burckhardt et al., ASPLOS 2010), which finds what needs
//! a rare order of few things. Seeds are fixed; a failure prints the schedule, for `shuttle::replay`.
//!
//!     cargo test -p bluefs --features schedules --lib schedules
//!
//! `ZONESTORE_SCHEDULES=n` runs n of either kind, `ZONESTORE_SEED=n` others. Orders of memory weaker than the program's are not
//! among them.

#![allow(clippy::unwrap_used)]

mod drive;
mod flushes;
mod zones;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};

const SEED: u64 = 0x5eed;
/// Changes of thread that PCT places.
const DEPTH: usize = 4;

/// Runs `history` in `schedules` random orders and as many of PCT. A schedule that takes more steps
/// than `most_steps` counts as one that does not end, and fails.
fn explore(schedules: usize, most_steps: usize, history: impl Fn() + Copy + Send + Sync + 'static) {
    let given = std::env::var("ZONESTORE_SCHEDULES");
    let schedules = given.ok().and_then(|n| n.parse().ok()).unwrap_or(schedules);
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(most_steps);
    let more = std::env::var("ZONESTORE_SEED").ok();
    let seed = SEED + more.map_or(0, |n| n.parse::<u64>().unwrap());
    let random = RandomScheduler::new_from_seed(seed, schedules);
    Runner::new(random, config.clone()).run(history);
    let pct = PctScheduler::new_from_seed(seed, DEPTH, schedules);
    Runner::new(pct, config).run(history);
}
