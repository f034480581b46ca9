//! Test 11 on a drive that cleans while it is written to: a large grid would find bands that were cleaned
//! and written to again. So few points are written at a time that it does not clean, around one place.

use crate::place::clean;
use crate::place::{LARGEST_BAND, native};
use crate::target::{Target, TargetError, gather, millis};
use crate::test::t11_band_size::{FINEST, Observed, Run, Search, around, grid, wait};
use drive_model::Random;
use drive_model::{Lba, Request, Span};

/// Of the points around a run, more that differ from both their neighbours say that it was cleaned while
/// points were still written.
const MIXED: f64 = 0.12;

/// Whether the points around `at` have moved and not moved without order: the drive cleans while it is
/// written to, and what was written into a band after that is in the cache again.
pub fn mixed(observed: &Observed, at: Lba) -> bool {
    let middle = observed.points.partition_point(|(lba, _)| *lba < at);
    let around = middle.saturating_sub(AROUND)..(middle + AROUND).min(observed.points.len());
    let points = &observed.points[around];
    let lonely = |triple: &&[(Lba, bool)]| triple[0].1 != triple[1].1 && triple[1].1 != triple[2].1;
    let lonely = points.windows(3).filter(lonely).count();
    lonely as f64 > MIXED * points.len().saturating_sub(2).max(1) as f64
}

/// Points of a grid on each side of a place that are looked at there.
const AROUND: usize = 64;

/// Blocks in the band that is to be cleaned, at every other block, and others far away, where few writes
/// have to do.
const FEW: u64 = 6;
const FAR: u64 = 4;
/// Points on each side in the first round, and blocks between them: bands of up to 80 MiB, and if it is
/// larger, of up to 512 MiB.
const SIDE: u64 = 20;
const WIDE: [u64; 2] = [1024, LARGEST_BAND / SIDE / 4 * 4];

/// A band of a drive that cleans while it is written to: with so few writes that it does not. Everything
/// is done twice, for a point in the cache seems to have moved once in thirty.
///
/// # Errors
/// The target does not answer.
pub fn search(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    at: Lba,
) -> Result<Search, TargetError> {
    let mut search = around_with(target, turn_ms, random, (at, WIDE[0]))?;
    if search.edge.is_none() {
        search = around_with(target, turn_ms, random, (at, WIDE[1]))?;
    }
    Ok(search)
}

/// The same with a first grid of so many blocks.
fn around_with(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    (at, wide): (Lba, u64),
) -> Result<Search, TargetError> {
    let mut seen = Vec::new();
    let mut step = wide;
    let mut points = grid(
        at.0.saturating_sub(SIDE * wide) / 4 * 4,
        at.0 + SIDE * wide,
        wide,
    );
    let mut found;
    loop {
        let inside = (0..FEW).map(|n| at.plus(2 * n));
        points.extend(inside);
        points.sort_unstable();
        points.dedup();
        let first = few(target, turn_ms, random, &points, at)?;
        let mut both = few(target, turn_ms, random, &points, at)?;
        for (point, before) in both.points.iter_mut().zip(&first.points) {
            point.1 &= before.1;
        }
        both.step = step;
        found = around(&both, at);
        seen.push(both);
        let Some(run) = &found else { break };
        if step <= FINEST {
            break;
        }
        // Ten points between those on both sides of each edge, and one more at each end.
        step = (step / 10 / 4 * 4).max(FINEST);
        points = Vec::new();
        for (a, b) in [run.front, run.back] {
            points.extend(grid(a.0.saturating_sub(step) / 4 * 4, b.0 + step + 1, step));
        }
    }
    let fine = found.is_some_and(|run| run.blocks().1 - run.blocks().0 <= 2 * FINEST);
    Ok(Search {
        fine,
        band: found.filter(|_| fine).as_ref().map(Run::middle),
        edge: found.map(|run| run.front.1),
        seen,
        waited_ms: None,
    })
}

/// Writes the points and as little else as possible, has the band of `at` cleaned and looks which of them
/// have moved.
fn few(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    points: &[Lba],
    at: Lba,
) -> Result<Observed, TargetError> {
    clean(target, &[])?;
    let inside: Vec<Lba> = (0..FEW).map(|n| at.plus(2 * n)).collect();
    let order = random.shuffled(points.len() as u64);
    let points_behind = order.into_iter().map(|n| points[n as usize]);
    let points_behind = points_behind.filter(|point| !inside.contains(point));
    let far = (1..=FAR).map(|n| Lba((at.0 + n * target.blocks() / 16) % (target.blocks() - 1)));
    let all = inside.iter().copied().chain(far).chain(points_behind);
    let all: Vec<Request> = all.map(|lba| Request::write(lba, 1)).collect();
    gather(target, 1, all)?;
    wait(target, turn_ms, &inside, Span::from_seconds(1.0))?;
    let (moved, answers) = native(target, turn_ms, points)?;
    Ok(Observed {
        step: 0,
        points: points.iter().copied().zip(moved).collect(),
        latencies: millis(&answers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(moved: impl Fn(u64) -> bool) -> Observed {
        let points = (0..1_000).map(|n| (Lba(n * 256), moved(n)));
        Observed {
            step: 256,
            points: points.collect(),
            latencies: Vec::new(),
        }
    }

    #[test]
    fn a_band_with_a_little_noise_is_not_mixed() {
        let at = Lba(500 * 256);
        assert!(!mixed(
            &observed(|n| (490..520).contains(&n) || n % 30 == 7),
            at
        ));
        assert!(mixed(&observed(|n| n * n * 7919 % 101 < 60), at));
    }
}
