//! Test 11 (section 2.4.8): a grid of single blocks over many bands; cleaning is made to happen, and
//! the blocks that have moved to their own places are those of whole bands. The edges of one band
//! are then looked at with a finer grid.

use crate::place::clean;
use crate::place::{LARGEST_BAND, native};
use crate::statistics::median;
use crate::target::{Target, TargetError, gather, millis, serve};
use drive_model::Random;
use drive_model::{Lba, Request, Span};
use std::ops::ControlFlow;

/// Measurements of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Blocks between the points of the grid.
    pub step: u64,
    /// The points, each with whether it had moved.
    pub points: Vec<(Lba, bool)>,
    /// Milliseconds of their reads, each behind its neighbour.
    pub latencies: Vec<f64>,
}

/// A run of points that have moved, with points on both sides that have not: blocks between the
/// last before it and its first, and between its last and the first behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The last point that has not moved, and the first that has.
    pub front: (Lba, Lba),
    /// The last that has, and the first that has not.
    pub back: (Lba, Lba),
}

impl Run {
    /// The fewest and the most blocks that lie between its edges.
    pub fn blocks(&self) -> (u64, u64) {
        let least = self.back.0.0 - self.front.1.0;
        let most = self.back.1.0 - self.front.0.0;
        (least, most)
    }

    fn holds(&self, at: Lba) -> bool {
        self.front.1 <= at && at <= self.back.0
    }

    pub(super) fn middle(&self) -> u64 {
        let (least, most) = self.blocks();
        least.midpoint(most)
    }
}

/// How to make the drive clean one band, and as few others as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Force {
    /// By leaving the drive alone, each time a little longer, by so much at most, until it has cleaned.
    Pause(Span),
    /// By writing 256 KiB in the band again and again until a write has to wait, at most so many
    /// times.
    Hammer(u64),
}

/// The runs of points that have moved. A single point that has not moved is noise.
pub fn runs(observed: &Observed) -> Vec<Run> {
    let mut points = observed.points.clone();
    for index in 1..points.len().saturating_sub(1) {
        let (before, behind) = (points[index - 1].1, points[index + 1].1);
        if before == behind && points[index].1 != before {
            points[index].1 = before;
        }
    }
    let mut runs = Vec::new();
    let mut front = None;
    for pair in points.windows(2) {
        match (pair[0], pair[1]) {
            ((last, false), (first, true)) => front = Some((last, first)),
            ((last, true), (next, false)) => {
                let run = front.take().map(|front| Run {
                    front,
                    back: (last, next),
                });
                runs.extend(run);
            }
            _ => {}
        }
    }
    runs
}

/// Which of three sizes is several times the one that the other two are: that was several bands.
pub fn several(sizes: [u64; 3]) -> Option<usize> {
    let times = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    let whole = |times: f64| (times - times.round()).abs() < 0.01 * times;
    let [a, b, c] = sizes;
    [(a, b, c), (b, a, c), (c, a, b)]
        .iter()
        .position(|(one, x, y)| {
            (times(*x, *y) - 1.0).abs() < 0.01 && times(*one, *x) > 1.5 && whole(times(*one, *x))
        })
}

/// Points that seem to have moved by chance are rarely more than two beside each other.
const POINTS: u64 = 4;

/// A run that is one band: the one that `at` is in, if its band was to be cleaned; else the one of
/// middle length, for bands beside each other may have been cleaned as well.
pub fn infer(observed: &Observed, at: Lba) -> Option<Run> {
    let by_chance = |run: &Run| run.middle() < POINTS * observed.step;
    let mut runs = runs(observed);
    runs.retain(|run| !by_chance(run));
    runs.sort_by_key(Run::middle);
    let there = runs.iter().find(|run| run.holds(at));
    there.or_else(|| runs.get(runs.len() / 2)).copied()
}

/// Blocks in the band that is to be cleaned: written first, and so many that it is the one with the
/// oldest block and the most, whichever the drive goes by.
const EXTRA: u64 = 48;
/// Blocks in other bands, written next, for drives that clean several bands at once: so many on each
/// side, as far from each other as the largest band is large.
const DECOYS: u64 = 8;
const AWAY: u64 = LARGEST_BAND;
/// Large writes in one place between the first blocks and the others: as much as the largest band,
/// so that where a cache is emptied band by band they are not in the same one.
const FILLER: u64 = LARGEST_BAND / 64;
/// Milliseconds without which no band is cleaned: one of some mebibytes, read and written.
const LEAST_CLEANING_MS: f64 = 50.0;
/// Pauses in milliseconds, each longer than the last by an eighth at most.
const PAUSES: (f64, f64) = (200.0, 20_000.0);

fn extra(at: Lba) -> impl Iterator<Item = Lba> {
    // Even ones, like all points: the odd ones stay in their own places for comparison.
    (0..EXTRA).map(move |n| at.plus(2 * n))
}

/// The run that `at` is in, where nothing else has been cleaned: edges such that the fewest points are
/// on the wrong side of them. A point in the cache seems to have moved once in thirty; one that has
/// moved seems not to have where a track ends behind it, which is rarer.
pub fn around(observed: &Observed, at: Lba) -> Option<Run> {
    let behind = observed.points.partition_point(|(lba, _)| *lba <= at);
    let (front, back) = observed.points.split_at(behind);
    // How many of each kind lie in front of every place.
    let edge = |outwards: &[(Lba, bool)]| {
        let outside = outwards.iter().filter(|(_, moved)| *moved).count() as i64;
        let (mut wrong, mut best) = (outside, (outside, 0));
        for (count, (_, moved)) in outwards.iter().enumerate() {
            // One more point is inside.
            wrong += if *moved { -1 } else { 2 };
            if wrong <= best.0 {
                best = (wrong, count + 1);
            }
        }
        let inside = best.1.checked_sub(1)?;
        Some((outwards[inside].0, outwards.get(best.1)?.0))
    };
    let inwards: Vec<(Lba, bool)> = front.iter().rev().copied().collect();
    let (first, before) = edge(&inwards)?;
    let (last, next) = edge(back)?;
    Some(Run {
        front: (before, first),
        back: (last, next),
    })
}

/// Writes blocks in the band of `at`, so that it can be cleaned.
///
/// # Errors
/// The target does not answer.
pub fn write_in(
    target: &mut dyn Target,
    random: &mut Random,
    how: Force,
    at: Lba,
) -> Result<(), TargetError> {
    mark(target, random, &[], (how, at))
}

fn mark(
    target: &mut dyn Target,
    random: &mut Random,
    points: &[Lba],
    (how, at): (Force, Lba),
) -> Result<(), TargetError> {
    let order = random.shuffled(points.len() as u64);
    let decoys = (1..=DECOYS).flat_map(|n| [at.0.checked_sub(n * AWAY), Some(at.0 + n * AWAY)]);
    let last = target.blocks() - 2;
    let decoys = decoys.flatten().map(Lba).filter(|lba| lba.0 <= last);
    let extra: Vec<Lba> = extra(at).collect();
    let first = random
        .shuffled(EXTRA)
        .into_iter()
        .map(|n| extra[n as usize]);
    let points = order.into_iter().map(|n| points[n as usize]);
    let points = points.filter(|point| !extra.contains(point));
    let filler = match how {
        Force::Pause(_) => 0,
        Force::Hammer(_) => FILLER,
    };
    let filler = (0..filler).map(|_| Request::write(Lba((at.0 + AWAY).min(last - 64)), 64));
    let behind = decoys.chain(points).map(|lba| Request::write(lba, 1));
    let first = first.map(|lba| Request::write(lba, 1));
    let all: Vec<Request> = first.chain(filler).chain(behind).collect();
    gather(target, 1, all).map(drop)
}

/// Leaves the drive alone, each time a little longer, until most of some blocks have moved: by half of what a band
/// takes at most, so that the next band is not cleaned as well. Whether they have.
pub(super) fn wait(
    target: &mut dyn Target,
    turn_ms: f64,
    blocks: &[Lba],
    step: Span,
) -> Result<bool, TargetError> {
    let mut pause = PAUSES.0;
    while pause < PAUSES.1 {
        target.pause(Span::from_millis(pause));
        if have_moved(target, turn_ms, blocks)? {
            return Ok(true);
        }
        pause += (pause / 8.0).min(step.millis());
    }
    Ok(false)
}

/// Whether most of some blocks are in their own places.
fn have_moved(target: &mut dyn Target, turn_ms: f64, blocks: &[Lba]) -> Result<bool, TargetError> {
    let (moved, _) = native(target, turn_ms, blocks)?;
    Ok(moved.iter().filter(|moved| **moved).count() > moved.len() / 2)
}

/// What came of an attempt to have a band cleaned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Forced {
    /// Whether its blocks have moved.
    pub is_cleaned: bool,
    /// Milliseconds that a write waited for it, if one did.
    pub waited_ms: Option<f64>,
}

/// Makes the drive clean the band of `at`.
///
/// # Errors
/// The target does not answer.
pub fn force(
    target: &mut dyn Target,
    turn_ms: f64,
    force: Force,
    at: Lba,
) -> Result<Forced, TargetError> {
    let few: Vec<Lba> = extra(at).step_by(7).collect();
    match force {
        Force::Pause(step) => Ok(Forced {
            is_cleaned: wait(target, turn_ms, &few, step)?,
            waited_ms: None,
        }),
        Force::Hammer(most) => {
            let (mut usual, mut done) = (Usual::for_bands(None), 0);
            loop {
                let writes = (done..most).map(|_| Request::write(at.plus(2 * EXTRA), 64));
                let Some(waited) = until_one_waits(target, &mut usual, writes)? else {
                    return Ok(Forced {
                        is_cleaned: false,
                        waited_ms: None,
                    });
                };
                // It may have been busy with itself instead.
                if have_moved(target, turn_ms, &few)? {
                    return Ok(Forced {
                        is_cleaned: true,
                        waited_ms: Some(waited.millis),
                    });
                }
                done += waited.before + 1;
            }
        }
    }
}

/// A write that had to wait for cleaning.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Waited {
    /// Number of writes before it.
    pub before: u64,
    /// Its milliseconds.
    pub millis: f64,
}

/// Latency of writes that do not wait, from the first few.
pub(super) struct Usual {
    millis: Vec<f64>,
    /// Least milliseconds of a write that waits for cleaning.
    least_ms: f64,
}

impl Usual {
    /// Where cleaning a band takes so long, if that is known. Further out it takes less than in the mean.
    pub fn for_bands(band_ms: Option<f64>) -> Self {
        Self {
            millis: Vec::new(),
            least_ms: band_ms.map_or(0.0, |ms| ms / 3.0).max(LEAST_CLEANING_MS),
        }
    }

    /// Number of writes that determine the usual latency.
    pub const ENOUGH: usize = 16;

    /// Whether a write of this latency waited for cleaning.
    fn is_passed(&mut self, millis: f64) -> bool {
        if self.millis.len() < Self::ENOUGH {
            self.millis.push(millis);
            return false;
        }
        millis > 3.0 * median(&self.millis) && millis > self.least_ms
    }
}

/// Writes, one request at a time, until one has to wait for cleaning.
pub(super) fn until_one_waits(
    target: &mut dyn Target,
    usual: &mut Usual,
    writes: impl IntoIterator<Item = Request>,
) -> Result<Option<Waited>, TargetError> {
    let (mut before, mut waited) = (0, None);
    serve(target, 1, &mut writes.into_iter(), &mut |answer| {
        let millis = answer.latency.millis();
        if usual.is_passed(millis) {
            waited = Some(Waited { before, millis });
            return ControlFlow::Break(());
        }
        before += 1;
        ControlFlow::Continue(())
    })?;
    Ok(waited)
}

/// Runs the workload, with an empty cache: marks the points, makes it clean and looks which of them have moved.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    points: &[Lba],
    (how, at): (Force, Lba),
) -> Result<(Observed, Option<f64>), TargetError> {
    // A pause does not empty what is cleaned only where there is need.
    if matches!(how, Force::Pause(_)) || target.can_erase() {
        clean(target, &[])?;
    }
    mark(target, random, points, (how, at))?;
    let stall = force(target, turn_ms, how, at)?.waited_ms;
    let (moved, answers) = native(target, turn_ms, points)?;
    let latencies = millis(&answers);
    let step = points.get(1).map_or(0, |second| second.0 - points[0].0);
    let points = points.iter().copied().zip(moved).collect();
    let observed = Observed {
        step,
        points,
        latencies,
    };
    Ok((observed, stall))
}

/// The points of a grid of `step` blocks from `from` to `to`.
pub fn grid(from: u64, to: u64, step: u64) -> Vec<Lba> {
    (from..to).step_by(step.max(1) as usize).map(Lba).collect()
}

/// Result of a search for a band.
#[derive(Clone, PartialEq, Debug)]
pub struct Search {
    /// Whether the edges were found with the finest grid.
    pub fine: bool,
    /// Number of blocks in a band.
    pub band: Option<u64>,
    /// First block of the band that was found.
    pub edge: Option<Lba>,
    /// Measurements of the grids, coarse to fine.
    pub seen: Vec<Observed>,
    /// Milliseconds that a write waited for cleaning, if one was made to.
    pub waited_ms: Option<f64>,
}

/// Blocks between the points of the finest grid.
pub(super) const FINEST: u64 = 4;

/// A band, found to within a few blocks: a coarse grid of 1 MiB over `span` blocks from `first` on,
/// then finer ones over the edges of the band in the middle of one of its runs.
///
/// # Errors
/// The target does not answer.
pub fn search(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    (first, span): (u64, u64),
    how: Force,
) -> Result<Search, TargetError> {
    let mut seen = Vec::new();
    let mut points = grid(first / 4 * 4, first + span, 256);
    let mut at = Lba((first + span / 2) / 4 * 4);
    let mut waited = None;
    let mut found: Option<Run> = None;
    for step in [32, FINEST, 0] {
        let (observed, stall) = workload(target, turn_ms, random, &points, (how, at))?;
        waited = waited.or(stall);
        let chosen = match found {
            None => infer(&observed, at),
            // The same band again: the run that holds its middle.
            Some(_) => runs(&observed).into_iter().find(|run| run.holds(at)),
        };
        let Some(run) = chosen else {
            seen.push(observed);
            break;
        };
        found = Some(run);
        if step == 0 {
            seen.push(observed);
            break;
        }
        // Points on both sides of each edge, and a few between that say it is this band.
        let middle = Run::middle(&run);
        at = Lba((run.front.1.0 + (run.back.0.0 - run.front.1.0) / 2) / 4 * 4);
        // Points of the coarser grid may be wrong, where a track ends between one and its neighbour.
        let wide = (2 * observed.step).max(4 * step);
        let edge = |(a, b): (Lba, Lba)| grid(a.0.saturating_sub(wide), b.0 + wide + step, step);
        points = edge(run.front);
        points.extend(grid(
            run.front.1.0 + 4 * step,
            run.back.0.0 - 4 * step,
            (middle / 12).max(8),
        ));
        points.extend(edge(run.back));
        points.sort_unstable();
        points.dedup();
        seen.push(observed);
    }
    let fine = found.is_some_and(|run| run.blocks().1 - run.blocks().0 <= 2 * FINEST);
    Ok(Search {
        fine,
        band: found.as_ref().map(Run::middle),
        edge: found.map(|run| run.front.1),
        seen,
        waited_ms: waited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_the_fewest_points_on_the_wrong_side() {
        let moved = [0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0];
        let points = moved
            .iter()
            .enumerate()
            .map(|(n, m)| (Lba(n as u64), *m == 1));
        let observed = Observed {
            step: 1,
            points: points.collect(),
            latencies: Vec::new(),
        };
        let run = around(&observed, Lba(8)).unwrap();
        assert_eq!(
            (run.front, run.back),
            ((Lba(3), Lba(4)), (Lba(10), Lba(11)))
        );
    }

    #[test]
    fn two_bands_that_were_cleaned_together_are_not_one() {
        assert_eq!(several([138_625_024, 138_625_024, 277_250_048]), Some(2));
        assert_eq!(several([17_121_280, 8_568_832, 8_568_832]), Some(0));
        // Bands that become shorter inwards.
        assert_eq!(several([36 << 20, 27 << 20, 18 << 20]), None);
        assert_eq!(several([20 << 20; 3]), None);
    }

    #[test]
    fn a_run_of_moved_points_is_a_band() {
        let moved = [
            0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1,
        ];
        let points = moved
            .iter()
            .enumerate()
            .map(|(n, m)| (Lba(n as u64 * 10), *m == 1));
        let observed = Observed {
            step: 10,
            points: points.collect(),
            latencies: Vec::new(),
        };
        let run = infer(&observed, Lba(40)).unwrap();
        // Points 2 to 6: the one that seems not to have moved is noise, like the two further on.
        assert_eq!(run.front, (Lba(10), Lba(20)));
        assert_eq!(run.back, (Lba(60), Lba(70)));
        assert_eq!(run.blocks(), (40, 60));
    }
}
