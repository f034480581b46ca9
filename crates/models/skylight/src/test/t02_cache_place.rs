//! Test 2 (section 2.4.4): fragmented reads from low to high addresses. The head goes from a
//! block in its own place to its neighbour in the cache; how far that is shows where the cache is.

use crate::finding::{CachePlace, Finding};
use crate::statistics::{mean, quantile};
use crate::target::{Answer, Target, TargetError, gather};
use drive_model::Random;
use drive_model::{Lba, Request};

/// The regions that are looked at, as parts of the drive; the paper has three. They are not evenly apart: many
/// caches that are, each behind its part of the drive, would lie further and further from such regions.
pub const REGIONS: [f64; 7] = [0.0, 0.14, 0.37, 0.5, 0.61, 0.88, 1.0];

/// How the drive took the test: reads of blocks in the cache behind their neighbours, in regions from
/// the beginning to the end, in milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// By region.
    pub latencies: Vec<Vec<f64>>,
}

/// Blocks in each region.
const MARKS: u64 = 96;
/// Blocks of a region: 16 MiB.
const REGION: u64 = 4096;

/// Behind the first GiB, which test 1 has written to.
fn region(blocks: u64, part: f64) -> u64 {
    let first = (1 << 19).min(blocks / 64);
    let room = blocks.saturating_sub(first + 2 * REGION);
    (first + (room as f64 * part) as u64) / REGION * REGION
}

/// Runs the workload. Writes in random order, so that all angles between the two places come up.
///
/// # Errors
/// The target does not answer.
pub fn workload(target: &mut dyn Target, random: &mut Random) -> Result<Observed, TargetError> {
    let mut latencies = Vec::new();
    for part in REGIONS {
        let first = region(target.blocks(), part);
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
        let second = answers.chunks_exact(2).map(|pair| pair[1].latency.millis());
        latencies.push(second.collect());
    }
    Ok(Observed { latencies })
}

/// What follows. The quickest of the reads in a region are those that waited for no turn: what is left
/// is the seek, which grows with the root of the distance and more. A cache in one place is where that
/// fits best; where it fits nowhere, there is one near every block.
pub fn infer(observed: &Observed) -> Option<Finding<CachePlace>> {
    let seeks: Vec<f64> = observed
        .latencies
        .iter()
        .map(|all| quantile(all, 0.08))
        .collect();
    // Where strokes are long, what lies in the middle of the blocks may be half of one away.
    let places = [
        (CachePlace::Outer, 0.0),
        (CachePlace::Middle, 0.42),
        (CachePlace::Middle, 0.5),
        (CachePlace::Middle, 0.58),
        (CachePlace::Inner, 1.0),
    ];
    let fits = places.map(|(place, at)| {
        let distances = REGIONS.map(|part| (part - at).abs().sqrt());
        let (rise, share) = line(&distances, &seeks);
        (place, rise, share)
    });
    let best = fits.into_iter().max_by(|a, b| a.2.total_cmp(&b.2));
    match best {
        // Across the disk a seek takes many milliseconds longer than to the next track.
        Some((place, rise, share)) if rise > LEAST_RISE_MS && share > SINGLE => {
            Some(Finding::new(place, share))
        }
        Some((_, rise, share)) if rise > LEAST_RISE_MS && share > MULTIPLE => None,
        Some((_, _, share)) => {
            let sure = 1.0 - share.max(0.0) / 2.0;
            Some(Finding::new(CachePlace::Multiple, sure))
        }
        None => None,
    }
}

/// The share of the differences that one place explains, where it is the only one; with less than the other there
/// are several. In between are a few caches in large parts of the drive, and nothing is said.
const SINGLE: f64 = 0.8;
const MULTIPLE: f64 = 0.6;

/// What a seek across the disk takes longer than a short one, at least. Caches in nine zones can lie as one at
/// the end would, but a third of the way is the farthest of them.
const LEAST_RISE_MS: f64 = 8.0;

/// The line through points that is nearest to them: how much it rises from 0 to 1, and the share of
/// the differences that it explains, negative if it falls.
fn line(x: &[f64], y: &[f64]) -> (f64, f64) {
    let (mx, my) = (mean(x), mean(y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| f(x - mx, y - my)).sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx == 0.0 || yy == 0.0 {
        return (0.0, 0.0);
    }
    (xy / xx, xy * xy.abs() / (xx * yy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_region_is_where_the_cache_is() {
        let at = |seeks: [f64; 7]| {
            let turns = |seek: f64| (0..96).map(|n| seek + f64::from(n) / 9.6).collect();
            let latencies = seeks.into_iter().map(turns).collect();
            infer(&Observed { latencies }).unwrap().value
        };
        assert_eq!(
            at([1.0, 6.0, 8.0, 10.0, 12.0, 13.5, 15.0]),
            CachePlace::Outer
        );
        assert_eq!(
            at([10.0, 8.0, 6.0, 1.0, 6.0, 8.0, 10.0]),
            CachePlace::Middle
        );
        assert_eq!(
            at([10.9, 8.3, 5.4, 5.0, 8.0, 12.2, 14.1]),
            CachePlace::Middle
        );
        assert_eq!(
            at([15.0, 13.5, 12.0, 10.0, 8.0, 6.0, 1.0]),
            CachePlace::Inner
        );
        assert_eq!(
            at([1.5, 1.0, 2.0, 5.4, 1.6, 2.2, 3.3]),
            CachePlace::Multiple
        );
        // Nine zones with a cache behind each: 12, 8, 7, 6, 6, 1 and 0 hundredths of the drive away.
        assert_eq!(
            at([7.6, 6.4, 6.4, 6.0, 6.3, 3.4, 2.0]),
            CachePlace::Multiple
        );
    }
}
