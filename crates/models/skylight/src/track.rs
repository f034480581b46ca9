//! How long a track is, and how far the next one is turned against it, by the angles of blocks: a block
//! is answered when it has passed under the head. Blocks are read in descending order, which a drive
//! that reads ahead does not have in its memory.

use crate::statistics::median;
use crate::target::{Target, TargetError, gather};
use drive_model::{BLOCK_BYTES, Lba, Request};
use serde::Serialize;

/// Rotation from each block to the one `step` blocks before it, in turns.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Distance between two blocks.
    pub step: u64,
    /// Rotations, in turns.
    pub back: Vec<f64>,
}

/// A track.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Track {
    /// Position on the drive, in bytes.
    pub at: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Milliseconds from the end of the track to the start of the next one.
    pub skew_ms: f64,
}

/// Number of tracks measured, and blocks of each.
const TRACKS: u64 = 5;
const BLOCKS: u64 = 48;

/// Runs the workload, from `first` on. `track` is about how many blocks a track has.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    first: Lba,
    track: u64,
) -> Result<Option<Observed>, TargetError> {
    let step = (track / BLOCKS).max(1);
    let count = (TRACKS * track / step).min((target.blocks() - 1 - first.0) / step);
    let last = first.0 + count * step;
    // The last block is read again at the end, because the duration of a turn may not be exact enough for so many
    // turns.
    let blocks = (0..=count).rev().map(|n| first.0 + n * step).chain([last]);
    let answers = gather(target, 1, blocks.map(|lba| Request::read(Lba(lba), 1)))?;
    let (Some(begin), Some(end)) = (answers.first(), answers.last()) else {
        return Ok(None);
    };
    let all = end.at.since(begin.at).millis();
    let turns = (all / turn_ms).round();
    // Known to less than a quarter of a turn over all of them, or to nothing.
    if turns < 1.0 || (all / turn_ms - turns).abs() > 0.25 {
        return Ok(None);
    }
    let turn_ms = all / turns;
    let back = answers[..answers.len() - 1]
        .windows(2)
        .map(|pair| (-pair[1].at.since(pair[0].at).millis() / turn_ms).rem_euclid(1.0))
        .collect();
    Ok(Some(Observed { step, back }))
}

/// Least skew between two tracks, in turns.
const LEAST_SKEW: f64 = 0.02;

/// What follows: blocks of a track, and turns from its end to the next one's beginning. None if what
/// looks like ends of tracks is not evenly apart.
pub fn infer(observed: &Observed) -> Option<(f64, f64)> {
    let usual = median(&observed.back);
    let is_end = |back: &f64| *back > usual + LEAST_SKEW;
    let ends: Vec<usize> = (0..observed.back.len())
        .filter(|n| is_end(&observed.back[*n]))
        .collect();
    let (first, last) = (*ends.first()?, *ends.last()?);
    if ends.len() < 3 {
        return None;
    }
    // Only blocks within tracks, to average out their jitter.
    let within = &observed.back[first..last];
    let within: Vec<f64> = within
        .iter()
        .filter(|back| !is_end(back))
        .copied()
        .collect();
    let each = crate::statistics::mean(&within);
    let blocks = observed.step as f64 / each;
    let apart = (last - first) as f64 / (ends.len() - 1) as f64;
    let even = ends
        .windows(2)
        .all(|pair| ((pair[1] - pair[0]) as f64 - apart).abs() < 1.5);
    let fits = (apart * observed.step as f64 / blocks - 1.0).abs() < 0.05;
    let skews: Vec<f64> = ends.iter().map(|n| observed.back[*n] - each).collect();
    (even && fits && each > 0.0).then(|| (blocks, median(&skews)))
}

/// The track around a block, with its skew in milliseconds.
///
/// # Errors
/// The target does not answer.
pub fn track(
    target: &mut dyn Target,
    turn_ms: f64,
    first: Lba,
    about: u64,
) -> Result<Option<Track>, TargetError> {
    let observed = workload(target, turn_ms, first, about)?;
    let found = observed.as_ref().and_then(infer);
    Ok(found.map(|(blocks, skew)| Track {
        at: first.0 * BLOCK_BYTES,
        bytes: (blocks * BLOCK_BYTES as f64) as u64,
        skew_ms: skew * turn_ms,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(track: usize, skew: f64, noise: impl Fn(usize) -> f64) -> Observed {
        let each = 4.0 / track as f64;
        let back = |n: usize| {
            let end = (n * 4) % track < 4;
            each + if end { skew } else { 0.0 } + noise(n)
        };
        Observed {
            step: 4,
            back: (1..track * 5 / 4).map(back).collect(),
        }
    }

    #[test]
    fn tracks_end_where_the_platters_turn_farther() {
        let (blocks, skew) = infer(&observed(200, 0.08, |_| 0.0)).unwrap();
        assert!((blocks - 200.0).abs() < 0.1 && (skew - 0.08).abs() < 1e-6);
        let jitter = |n: usize| (n * 7 % 11) as f64 * 1e-3 - 0.005;
        let (blocks, skew) = infer(&observed(300, 0.1, jitter)).unwrap();
        assert!((blocks - 300.0).abs() < 6.0 && (skew - 0.1).abs() < 0.01);
    }

    #[test]
    fn noise_has_no_tracks() {
        let noise = |n: usize| (n * 7919 % 101) as f64 / 101.0;
        assert_eq!(infer(&observed(200, 0.08, noise)), None);
        assert_eq!(infer(&observed(200, 0.0, |_| 0.0)), None);
        let rare = |n: usize| if n % 37 == 5 { 0.3 } else { 0.0 };
        assert_eq!(infer(&observed(200, 0.08, rare)), None);
    }
}
