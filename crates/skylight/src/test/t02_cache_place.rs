//! Test 2 (section 2.4.4): fragmented reads at low, middle and high addresses. The head goes from a
//! block in its own place to its neighbour in the cache; how far that is shows where the cache is.

use crate::finding::{CachePlace, Finding};
use crate::random::Random;
use crate::statistics::quantile;
use crate::target::{Answer, Target, TargetError, gather};
use drive_model::{Lba, Request};

/// How the drive took the test: reads of blocks in the cache behind their neighbours, at the
/// beginning, in the middle and at the end, in milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// By region.
    pub latencies: [Vec<f64>; 3],
}

/// Blocks in each region.
const MARKS: u64 = 96;
/// Blocks of a region: 16 MiB.
const REGION: u64 = 4096;

/// Where a region begins.
pub fn region(blocks: u64, part: u64) -> u64 {
    let last = blocks.saturating_sub(2 * REGION);
    last / 2 * part / REGION * REGION
}

/// Has the drive do it. Writes in random order, so that all angles between the two places come up.
///
/// # Errors
/// The target does not answer.
pub fn workload(target: &mut dyn Target, random: &mut Random) -> Result<Observed, TargetError> {
    let mut latencies = [Vec::new(), Vec::new(), Vec::new()];
    for (part, latencies) in latencies.iter_mut().enumerate() {
        let first = region(target.blocks(), part as u64);
        let every = REGION / MARKS;
        let marks: Vec<Lba> = (random.shuffled(MARKS).into_iter())
            .map(|mark| Lba(first + mark * every))
            .collect();
        gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
        let mut order = marks;
        order.sort_unstable();
        let pairs = order
            .iter()
            .flat_map(|lba| [Request::read(lba.plus(1), 1), Request::read(*lba, 1)]);
        let answers: Vec<Answer> = gather(target, 1, pairs)?;
        *latencies = answers
            .chunks_exact(2)
            .map(|pair| pair[1].latency.millis())
            .collect();
    }
    Ok(Observed { latencies })
}

/// What follows. The quickest of the reads at a place are those that waited for no turn: what is left
/// is the seek.
pub fn infer(observed: &Observed) -> Finding<CachePlace> {
    let [low, middle, high] = observed.latencies.each_ref().map(|all| quantile(all, 0.08));
    // A seek across half of the disk takes some milliseconds longer than a short one, and across all
    // of it longer still. What is neither is a cache near wherever the data is.
    let half = |near: f64, far: f64| far - near > HALF_STROKE_MS;
    let further = |near: f64, far: f64| far - near > HALF_STROKE_MS / 3.0;
    let sure = |near: f64, far: f64| ((far - near) / (2.0 * HALF_STROKE_MS)).min(1.0);
    if half(middle, low) && half(middle, high) {
        Finding::new(CachePlace::Middle, sure(middle, low.min(high)))
    } else if half(low, high) && further(low, middle) && further(middle, high) {
        Finding::new(CachePlace::Outer, sure(low, high))
    } else if half(high, low) && further(high, middle) && further(middle, low) {
        Finding::new(CachePlace::Inner, sure(high, low))
    } else {
        let range = low.max(middle).max(high) - low.min(middle).min(high);
        Finding::new(CachePlace::Multiple, (1.0 - range / 12.0).max(0.5))
    }
}

/// What half of the stroke takes longer than a short seek, at least.
const HALF_STROKE_MS: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_region_is_where_the_cache_is() {
        let at = |seeks: [f64; 3]| {
            let turns = |seek: f64| (0..96).map(|n| seek + f64::from(n) / 9.6).collect();
            infer(&Observed {
                latencies: seeks.map(turns),
            })
            .value
        };
        assert_eq!(at([1.0, 9.0, 15.0]), CachePlace::Outer);
        assert_eq!(at([9.0, 1.0, 9.0]), CachePlace::Middle);
        assert_eq!(at([15.0, 9.0, 1.0]), CachePlace::Inner);
        assert_eq!(at([1.5, 1.0, 2.0]), CachePlace::Multiple);
    }
}
