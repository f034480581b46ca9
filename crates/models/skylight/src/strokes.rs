//! Finds strokes, which are runs of blocks on one surface, in the times of sequential reads, and infers the number of
//! surfaces from the order in which strokes follow each other. Pure.

use crate::finding::Finding;
use crate::statistics::{mean, median};

/// Sequential reads of one surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stroke {
    /// Index of the first read.
    pub first: usize,
    /// Number of reads.
    pub reads: usize,
    /// Logarithm of the rate of the reads, in any unit.
    pub rate: f64,
    /// Whether a turn was missed before the first read, because the arm had to go far.
    pub missed: bool,
}

/// A read with a track change takes at least this much longer than one without: a share of it, or this many
/// milliseconds if that is less. Surfaces and places differ by less than either.
const SWITCH: f64 = 0.35;
const SWITCH_MS: f64 = 0.3;
/// Reads on either side whose median is the time without a track change; few of them have one.
const BESIDE: usize = 4;
/// A change to another surface takes at least this many times as long as one to the next track.
const OTHER_HEAD: f64 = 1.12;

/// Strokes of tens of tracks, from the times in milliseconds of reads of a small part of a track each. The reads that
/// take longer change the track, and the slower of these the surface.
pub fn narrow(fine: &[f64], turn_ms: f64) -> Vec<Stroke> {
    let all = median(fine);
    let switch = (SWITCH * all).min(SWITCH_MS);
    // The difference to the neighbours: the time without a track change differs between surfaces.
    let longer: Vec<f64> = (0..fine.len())
        .map(|n| {
            fine[n] - median(&fine[n.saturating_sub(BESIDE)..(n + BESIDE + 1).min(fine.len())])
        })
        .collect();
    let switches: Vec<f64> = (longer.iter().copied())
        .filter(|ms| (switch..turn_ms * 0.9).contains(ms))
        .collect();
    // Most changes are to the next track.
    let next_track = median(&switches);
    let other = |ms: f64| ms > OTHER_HEAD * next_track + 0.02;
    let edges: Vec<usize> = (1..fine.len()).filter(|n| other(longer[*n])).collect();
    let mut strokes = Vec::new();
    let mut first = 0;
    for end in edges.into_iter().chain([fine.len()]) {
        let within: Vec<f64> = (first..end)
            .filter(|n| longer[*n] < switch)
            .map(|n| fine[n])
            .collect();
        if within.len() >= 8 {
            strokes.push(Stroke {
                first,
                reads: end - first,
                rate: -median(&within).ln(),
                missed: longer[first] > turn_ms * 0.8,
            });
        }
        first = end;
    }
    // Reads that are cut into short pieces belong to surfaces, too: without these, the others would look like all.
    let seen: usize = strokes.iter().map(|stroke| stroke.reads).sum();
    if seen * 10 < fine.len() * 9 {
        return Vec::new();
    }
    strokes
}

/// Reads in a window, of a mebibyte each, whose mean is compared.
const WINDOW: usize = 128;
/// Two windows in a row whose logarithmic rate is off by this much are on another surface.
const STEP: f64 = 0.0035;

/// Strokes of gigabytes, from the times in milliseconds of reads of a mebibyte each. Within a stroke the rate is
/// steady; between strokes it changes, or the arm goes far and misses a turn.
pub fn plateaus(coarse: &[f64], turn_ms: f64) -> Vec<Stroke> {
    // A read that misses a turn takes at least half a turn longer than its neighbours.
    let usual: Vec<f64> = coarse.chunks(WINDOW).map(median).collect();
    let at = |n: usize| usual[n / WINDOW];
    let missed = |n: usize| n > 0 && coarse[n] > at(n) + turn_ms * 0.5;
    let missed: Vec<usize> = (0..coarse.len()).filter(|n| missed(*n)).collect();
    let mut all = Vec::new();
    let mut first = 0;
    for end in missed.iter().copied().chain([coarse.len()]) {
        steady(coarse, first, end, &mut all);
        first = end;
    }
    all.retain(|stroke: &Stroke| stroke.reads > WINDOW / 2);
    let lengths: Vec<f64> = all.iter().map(|stroke| stroke.reads as f64).collect();
    // Windows that are hardly shorter than strokes cover several each, and their means beat.
    if median(&lengths) < (SHORTEST * WINDOW) as f64 {
        return Vec::new();
    }
    split(&all)
}

/// The least number of windows in a stroke.
const SHORTEST: usize = 4;

/// Splits reads without a missed turn where the rate changes.
fn steady(coarse: &[f64], first: usize, end: usize, all: &mut Vec<Stroke>) {
    // The read that missed a turn does not show the rate.
    let body = (first + usize::from(first > 0)).min(end);
    let rates: Vec<f64> = coarse[body..end]
        .chunks_exact(WINDOW)
        .map(|window| -mean(window).ln())
        .collect();
    let mut begin = 0;
    let mut edges = Vec::new();
    let mut n = 1;
    let mut sum = rates.first().copied().unwrap_or(0.0);
    while n + 1 < rates.len() {
        let here = sum / (n - begin) as f64;
        let off = |rate: f64| (rate - here).abs() > STEP && (rate - here).abs() < 0.5;
        let same_side = (rates[n] - here) * (rates[n + 1] - here) > 0.0;
        if off(rates[n]) && off(rates[n + 1]) && same_side {
            // The edge may lie within this window, which then does not show the rate that follows.
            edges.push(n);
            begin = n + 1;
            sum = rates[n + 1];
            n += 1;
        } else {
            sum += rates[n];
        }
        n += 1;
    }
    let mut from = 0;
    for to in edges.into_iter().chain([rates.len()]) {
        let inside = &rates[from..to];
        // A window across the edge shows the rate of neither stroke.
        let rate = median(if inside.len() > 3 {
            &inside[1..inside.len() - 1]
        } else {
            inside
        });
        let start = if from == 0 {
            first
        } else {
            body + from * WINDOW
        };
        let stop = if to == rates.len() {
            end
        } else {
            body + to * WINDOW
        };
        if stop > start {
            all.push(Stroke {
                first: start,
                reads: stop - start,
                rate,
                missed: from == 0 && first > 0,
            });
        }
        from = to;
    }
}

/// Strokes on either side with nearly as many tracks, even if the number falls steadily.
const NEAR: usize = 24;

/// Tracks of one stroke, from those of all that look like one: a quarter of all tracks are in shorter ones.
fn unit(lengths: &[f64]) -> f64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut left = sorted.iter().sum::<f64>() / 4.0;
    let unit = sorted.into_iter().find(|length| {
        left -= length;
        left <= 0.0
    });
    unit.unwrap_or(0.0)
}

/// Splits what looks like one stroke. Adjacent strokes of equal density do; as all strokes around have about as many
/// tracks, one with several times as many is several.
fn split(strokes: &[Stroke]) -> Vec<Stroke> {
    let tracks = |stroke: &Stroke| stroke.reads as f64 * (-stroke.rate).exp();
    let inside = strokes.get(1..strokes.len().saturating_sub(1));
    let lengths: Vec<f64> = inside.unwrap_or_default().iter().map(tracks).collect();
    let mut all = Vec::new();
    for (n, stroke) in strokes.iter().enumerate() {
        // `lengths` leaves out the first stroke.
        let around = n.saturating_sub(NEAR + 1)..(n + NEAR).min(lengths.len());
        let unit = unit(lengths.get(around).unwrap_or_default());
        let count = if unit > 0.0 {
            (tracks(stroke) / unit).round().max(1.0)
        } else {
            1.0
        };
        let count = (count as usize).min(stroke.reads.max(1));
        let each = stroke.reads / count;
        all.extend((0..count).map(|n| Stroke {
            first: stroke.first + n * each,
            reads: each,
            rate: stroke.rate,
            missed: stroke.missed && n == 0,
        }));
    }
    all
}

/// More surfaces than any disk has.
const MOST_SURFACES: usize = 24;
/// With more strokes than this, any number of surfaces can be counted.
pub const ENOUGH: usize = MOST_SURFACES * 5 / 2 + 2;
/// The least spread of the surfaces' logarithmic rates with which they can be told apart.
const LEAST_SPREAD: f64 = 0.002;
/// The largest residual with the right number of surfaces, as a share of their spread.
const UNEXPLAINED: f64 = 0.08;

/// The least number of strokes beyond the parameters for surfaces and groups.
const LEAST_FREE: f64 = 5.0;

/// The number of surfaces: the least with which the rates of the strokes are explained. `None` if the surfaces are
/// equally dense, or too few strokes were seen to be sure.
///
/// The strokes of a group go down through all surfaces, and those of the next group up again. The rate of a stroke is
/// that of its surface, less what the group lies further in. Where the arm has to go back to begin the next stroke,
/// except between two groups, missed turns give the number, too.
pub fn surfaces(strokes: &[Stroke], short: bool) -> Option<Finding<u32>> {
    // The last one was cut off.
    let strokes = &strokes[..strokes.len().saturating_sub(1)];
    if !short && in_pieces(strokes) {
        return None;
    }
    let rates: Vec<f64> = strokes.iter().map(|stroke| stroke.rate).collect();
    if let Some(two) = two(&rates) {
        return Some(two);
    }
    let by_rate = (2..=MOST_SURFACES).find_map(|count| {
        // Two groups and a half, so that one of them tests what the others show.
        if rates.len() * 2 < count * 5 {
            return None;
        }
        let fits = (0..2 * count).filter_map(|phase| fit(&rates, count, phase));
        let explains =
            |(left, spread): &(f64, f64)| *spread > LEAST_SPREAD && *left < UNEXPLAINED * spread;
        let (left, spread) = (fits.filter(explains)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Finding::new(count as u32, (1.0 - left / spread).max(0.0)))
    });
    let steps = rates.windows(2).map(|pair| (pair[0] - pair[1]).abs());
    let alike = steps.filter(|step| *step > STEP).count() * 8 < rates.len();
    if by_rate.is_some() || short || !alike {
        return by_rate;
    }
    let near: Vec<usize> = (1..strokes.len()).filter(|n| !strokes[*n].missed).collect();
    let gaps: Vec<usize> = near.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = *gaps.first()?;
    let same = count >= 3 && gaps.len() >= 2 && gaps.iter().all(|gap| *gap == count);
    same.then(|| Finding::new(count as u32, BY_TURNS))
}

/// Surfaces are mirrored if their rates and the same in reverse order differ by less than this share of their spread.
const MIRRORED: f64 = 0.15;
/// With fewer strokes than this for each cut, the beginnings of strokes cannot be told.
const MOST_CUTS: usize = 32;

/// Whether turns are missed in the middle of strokes, as over spare bands that hold no blocks: the rate is the same
/// before and after the turn, but the two runs are not equally long.
pub fn in_pieces(strokes: &[Stroke]) -> bool {
    let cut = |pair: &&[Stroke]| {
        let same = (pair[0].rate - pair[1].rate).abs() < STEP / 2.0;
        let length = pair[0].reads as f64 / pair[1].reads.max(1) as f64;
        pair[1].missed && same && !(0.87..1.15).contains(&length)
    };
    strokes.windows(2).filter(cut).count() * MOST_CUTS > strokes.len()
}

/// Confidence of a number of surfaces that rests on missed turns alone.
const BY_TURNS: f64 = 0.75;
/// Two surfaces take turns if at least the first share of the strokes have the rate of the last but one, to within
/// the second share of the difference to the last.
const IN_TURN: (f64, f64) = (0.85, 0.15);

/// Finds two surfaces, by rates that alternate. With two, the adjacent strokes between groups may look like one, and
/// no other strokes show that these are two.
fn two(rates: &[f64]) -> Option<Finding<u32>> {
    let near = |triple: &&[f64]| {
        let step = (triple[0] - triple[1]).abs();
        step > LEAST_SPREAD && (triple[0] - triple[2]).abs() < step * IN_TURN.1
    };
    let all = rates.len().saturating_sub(2);
    let in_turn = rates.windows(3).filter(near).count() as f64 / all.max(1) as f64;
    (all >= 10 && in_turn > IN_TURN.0).then(|| Finding::new(2, in_turn))
}

/// Fits `count` surfaces to the rates, with the first stroke in place `phase` of two groups. Returns the residual,
/// and the spread of the surfaces' rates; `None` if they do not fit.
fn fit(rates: &[f64], count: usize, phase: usize) -> Option<(f64, f64)> {
    let place = |n: usize| {
        let (group, at) = ((n + phase) / count, (n + phase) % count);
        let head = if group.is_multiple_of(2) {
            at
        } else {
            count - 1 - at
        };
        (head, group - phase / count)
    };
    let groups = place(rates.len().checked_sub(1)?).1 + 1;
    let free = rates.len() as f64 - (count + groups - 1) as f64;
    if free < LEAST_FREE {
        return None;
    }
    let (mut heads, mut levels) = (vec![0.0; count], vec![0.0; groups]);
    // Alternating means of surfaces and of groups converge to the least squares.
    for _ in 0..40 {
        let mut sums = vec![(0.0, 0u32); count];
        for (n, rate) in rates.iter().enumerate() {
            let (head, group) = place(n);
            sums[head] = (sums[head].0 + rate - levels[group], sums[head].1 + 1);
        }
        for (head, (sum, of)) in heads.iter_mut().zip(&sums) {
            *head = sum / f64::from((*of).max(1));
        }
        let mut sums = vec![(0.0, 0u32); groups];
        for (n, rate) in rates.iter().enumerate() {
            let (head, group) = place(n);
            sums[group] = (sums[group].0 + rate - heads[head], sums[group].1 + 1);
        }
        for (level, (sum, of)) in levels.iter_mut().zip(&sums) {
            *level = sum / f64::from((*of).max(1));
        }
    }
    let squares = |n: usize, rate: &f64| {
        let (head, group) = place(n);
        (rate - heads[head] - levels[group]).powi(2)
    };
    let left: f64 = rates
        .iter()
        .enumerate()
        .map(|(n, rate)| squares(n, rate))
        .sum();
    let left = (left / free).sqrt();
    let middle = mean(&heads);
    let spread = heads
        .iter()
        .map(|head| (head - middle).powi(2))
        .sum::<f64>()
        / count as f64;
    let spread = spread.sqrt();
    // Tracks do not become longer inwards, so the rate must not rise.
    let rises = levels.windows(2).map(|pair| pair[1] - pair[0]);
    let rise = rises.fold(0.0, f64::max);
    let falls = rise <= STEP / 2.0 + UNEXPLAINED * spread;
    (falls && !is_mirrored(&heads, spread)).then_some((left, spread))
}

/// Whether the surfaces are the same in reverse order: then they are a way down and up again through half as many.
fn is_mirrored(heads: &[f64], spread: f64) -> bool {
    let squares = heads.iter().zip(heads.iter().rev());
    let squares: Vec<f64> = squares.map(|(a, b)| (a - b).powi(2)).collect();
    heads.len() > 3 && mean(&squares).sqrt() < MIRRORED * spread
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strokes(heads: &[f64], count: usize, from: usize) -> Vec<Stroke> {
        (from..from + count)
            .map(|n| {
                let (group, at) = (n / heads.len(), n % heads.len());
                let head = if group.is_multiple_of(2) {
                    at
                } else {
                    heads.len() - 1 - at
                };
                Stroke {
                    first: n,
                    reads: 1,
                    rate: heads[head] - 0.003 * group as f64,
                    missed: false,
                }
            })
            .collect()
    }

    #[test]
    fn surfaces_are_counted_down_and_up_again() {
        let heads = [0.0, -0.03, 0.02, -0.01, 0.03, -0.02, 0.01, 0.004];
        for count in [2, 3, 5, 8] {
            for from in [0, 1, 5] {
                let found = surfaces(&strokes(&heads[..count], 3 * count + 10, from), false);
                assert_eq!(found.map(|f| f.value), Some(count as u32), "{count} {from}");
                assert!(found.is_some_and(|f| f.confidence > 0.95));
            }
        }
    }

    #[test]
    fn equal_surfaces_cannot_be_counted_nor_too_few_strokes() {
        assert_eq!(surfaces(&strokes(&[0.0; 4], 40, 0), false), None);
        let heads = [0.0, -0.03, 0.02, -0.01, 0.03, -0.02];
        assert_eq!(surfaces(&strokes(&heads, 12, 0), false), None);
        let random: Vec<f64> = (0..40u32)
            .map(|n| f64::from(n * n * 7919 % 997) / 2e4)
            .collect();
        let all = strokes(&random, 39, 0);
        assert_eq!(surfaces(&all, false), None, "no pattern");
    }

    /// Four surfaces whose outer ones differ as much as the inner ones: of two, groups would rise and fall.
    #[test]
    fn groups_further_in_are_not_faster() {
        let heads = [-0.022, 0.028, 0.0217, -0.0283];
        let found = surfaces(&strokes(&heads, 40, 0), true);
        assert_eq!(found.map(|f| f.value), Some(4));
    }

    /// Where some strokes of two look like one, the way down and up again looks like a way down.
    #[test]
    fn a_way_down_and_up_again_is_not_a_way_down() {
        let mirrored = [0.0, -0.03, 0.02, 0.02, -0.03, 0.0];
        let found = surfaces(&strokes(&mirrored, 40, 0), false);
        assert_ne!(found.map(|f| f.value), Some(6));
        let odd = [0.0, -0.03, 0.02, -0.01, 0.02, -0.03, 0.0];
        assert_eq!(surfaces(&strokes(&odd, 40, 0), false), None);
    }

    /// Three surfaces, of which the strokes of one are in two pieces each: they look like four.
    #[test]
    fn strokes_in_pieces_are_not_counted() {
        let mut all = strokes(&[0.0, -0.03, -0.03, 0.02], 40, 0);
        assert_eq!(surfaces(&all, false).map(|f| f.value), Some(4));
        for n in (1..40).step_by(4) {
            (all[n].reads, all[n + 1].reads) = (6, 3);
            all[n + 1].missed = true;
        }
        assert_eq!(surfaces(&all, false), None);
    }

    #[test]
    fn the_unit_is_a_stroke_that_is_no_exception() {
        let slivers = [vec![2.0; 9], vec![100.0; 12], vec![200.0; 2]].concat();
        assert_eq!(unit(&slivers), 100.0);
        assert_eq!(unit(&[]), 0.0);
    }

    #[test]
    fn missed_turns_count_surfaces_too() {
        let mut all = strokes(&[0.0; 6], 40, 0);
        for (n, stroke) in all.iter_mut().enumerate() {
            stroke.missed = n % 6 != 4;
        }
        assert_eq!(surfaces(&all, false).map(|f| f.value), Some(6));
        all[16].missed = true;
        assert_eq!(surfaces(&all, false), None, "not the same throughout");
    }
}
