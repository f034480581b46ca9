//! Tests 9 and 10 (section 2.4.7): fewer blocks than the cache has room for, written again and
//! again. In the same order a circular log finds only stale ones at its tail and never cleans; in
//! random order it meets newer ones and has to. A cache that overwrites in place never has to.

use crate::fill::{Filled, Until, until_cleaning};
use crate::finding::Finding;
use crate::place::clean;
use crate::target::{Target, TargetError};
use drive_model::Random;
use drive_model::{Lba, Request};

/// Measurements of both tests.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Writes until the cache was full of different blocks (test 6).
    pub full: u64,
    /// In the same order.
    pub repeated: Filled,
    /// In random order.
    pub shuffled: Filled,
}

/// Number of blocks that show whether the pool has been cleaned.
const SAMPLE: usize = 256;

fn pool(target: &dyn Target, random: &mut Random, full: u64) -> Vec<u64> {
    let blocks = target.blocks();
    (0..full * 44 / 100).map(|_| random.below(blocks)).collect()
}

/// Runs the workload with an empty cache, `full` being the writes of test 6; at most a third more than that each
/// time. `None` if the cache was not known to be empty before the second.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    random: &mut Random,
    (full, until): (u64, Until),
) -> Result<Option<Observed>, TargetError> {
    let most = full * 13 / 10;
    let places = pool(target, random, full);
    let at = |n: u64| places[(n % places.len() as u64) as usize];
    let alone = Until {
        most,
        beyond: 0,
        ..until
    };
    let repeated = until_cleaning(target, 1, alone, |n| Request::write(Lba(at(n)), 1))?;
    let written = places.iter().map(|at| Lba(*at));
    let written: Vec<Lba> = written.filter(|lba| lba.0 + 1 < target.blocks()).collect();
    if !clean(target, &written[..written.len().min(SAMPLE)])? {
        return Ok(None);
    }
    let count = places.len() as u64;
    let shuffled = until_cleaning(target, 1, Until { most, ..until }, |_| {
        Request::write(Lba(places[random.below(count) as usize]), 1)
    })?;
    Ok(Some(Observed {
        full,
        repeated,
        shuffled,
    }))
}

/// What follows. That no log was seen to come round is no proof that there is none: where few of its entries are
/// still valid by then, no write waits for long.
pub fn infer(observed: &Observed) -> Option<Finding<bool>> {
    let log = !observed.repeated.stalled && observed.shuffled.stalled;
    // It should have been about when the log came round.
    let off = observed.shuffled.writes as f64 / observed.full as f64 - 1.0;
    log.then(|| Finding::new(true, (1.0 - off.abs()).max(0.5)))
}
