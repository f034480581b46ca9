//! Whether a block is read from its own place or from the persistent cache.
//!
//! Its neighbour behind it is read first, which was never written. If the block is in its own place
//! it has just passed under the head and takes a whole turn to come back; in a cache on the disk it
//! is at any angle and a seek away, in flash it is there at once. That depends on no layout, and
//! holds wherever the two were moved together.

use crate::random::Random;
use crate::statistics::{median, quantile, share_near};
use crate::target::{Answer, Target, TargetError, gather};
use drive_model::{Lba, Request, Span};

/// A block counts as passing by if it comes back within so much of a turn: when all of the track but itself
/// has passed, and tracks may have as few as fifty blocks.
const NEAR: std::ops::RangeInclusive<f64> = 0.975..=1.012;
/// Times of blocks that pass by are off by less than that part of a turn from each other.
const SPREAD: f64 = 0.006;

/// Milliseconds of a turn, None if there are no turns: what reading one block again and again takes, or
/// blocks in descending order where a memory answers the second time. A steady time alone would also be said of
/// a device that is held to so many requests a second; so the platters have to be seen turning.
///
/// # Errors
/// The target does not answer.
pub fn turn(target: &mut dyn Target, random: &mut Random) -> Result<Option<f64>, TargetError> {
    for again in [true, false] {
        if let Some(turn) = steady(target, random, again)?
            && turns(target, random, turn)?
        {
            return Ok(Some(turn));
        }
    }
    Ok(None)
}

/// The time from one answer to the next, if it is nearly always the same and one that platters turn in
/// (from 3,600 to 15,000 turns a minute): reading a block somewhere again and again, or that one and
/// those in front of it.
fn steady(
    target: &mut dyn Target,
    random: &mut Random,
    again: bool,
) -> Result<Option<f64>, TargetError> {
    const READS: u64 = 40;
    let room = target.blocks().saturating_sub(READS).max(1);
    let last = READS + random.below(room);
    let reads = (0..READS).map(|n| if again { last } else { last - n });
    let answers = gather(target, 1, reads.map(|lba| Request::read(Lba(lba), 1)))?;
    let all = intervals(&answers);
    let all = all.get(4..).unwrap_or_default();
    let turn = median(all);
    let steady = share_near(all, turn, turn * 0.05) > 0.8;
    Ok((steady && (3.5..17.0).contains(&turn)).then_some(turn))
}

/// Milliseconds from each answer to the next: what platters do, however long the host took to ask.
fn intervals(answers: &[Answer]) -> Vec<f64> {
    let pairs = answers.windows(2);
    pairs
        .map(|pair| pair[1].at.since(pair[0].at).millis())
        .collect()
}

/// Places that are looked at, each against the last.
const PLACES: u64 = 32;

/// Whether platters turn once in so many milliseconds: from a block to one far away takes any time, from
/// there to the first block's neighbour as much as makes it whole turns.
fn turns(target: &mut dyn Target, random: &mut Random, turn: f64) -> Result<bool, TargetError> {
    let blocks = target.blocks();
    let mut block = || 1 + random.below(blocks - 1);
    let pairs: Vec<(u64, u64)> = (0..PLACES).map(|_| (block(), block())).collect();
    let reads = pairs
        .iter()
        .flat_map(|(a, b)| [*a, *b, a - 1].map(|lba| Request::read(Lba(lba), 1)));
    let answers = gather(target, 1, reads)?;
    let part = |millis: f64| (millis / turn).rem_euclid(1.0);
    let (mut single, mut whole) = (Vec::new(), Vec::new());
    for place in answers.chunks_exact(3) {
        let of = |from: usize| part(place[2].at.since(place[from].at).millis());
        single.push(of(1));
        whole.push(of(0));
    }
    let near = |parts: &[f64], of: f64| {
        let apart = |part: &&f64| {
            let apart = (**part - of).abs();
            apart.min(1.0 - apart) < 0.05
        };
        parts.iter().filter(apart).count() as f64 / parts.len().max(1) as f64
    };
    let mixed = !single.iter().any(|of| near(&single, *of) > 0.5);
    Ok(mixed && near(&whole, 0.0) > 0.7)
}

/// No band is taken to have more blocks: 512 MiB. What is to lie in bands of its own is so far apart.
pub const LARGEST_BAND: u64 = 131_072;
/// Blocks that are written last, each in a band of its own.
const MARKS: u64 = 8;
/// Seconds between two looks, each longer than the last, and until nobody waits any more.
const LOOKS: (f64, f64, f64) = (5.0, 600.0, 12.0 * 3600.0);

/// Leaves the drive alone until blocks that were written last are in their own places: cleaning takes
/// the oldest first, as far as is known.
///
/// # Errors
/// The target does not answer.
pub fn wait_until_clean(target: &mut dyn Target) -> Result<(), TargetError> {
    // Somewhere else each time.
    let mut random = Random::new(target.now().nanos());
    let mut turn = steady(target, &mut random, true)?;
    if turn.is_none() {
        turn = steady(target, &mut random, false)?;
    }
    let Some(turn_ms) = turn else {
        target.pause(Span::from_seconds(3600.0));
        return Ok(());
    };
    let room = target.blocks().saturating_sub(MARKS * LARGEST_BAND).max(1);
    let first = random.below(room) / 2 * 2;
    let marks: Vec<Lba> = (0..MARKS).map(|n| Lba(first + n * LARGEST_BAND)).collect();
    let marks: Vec<Lba> = marks
        .into_iter()
        .filter(|lba| lba.0 + 1 < target.blocks())
        .collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    let (mut pause, longest, most) = LOOKS;
    let mut seconds = 0.0;
    while seconds < most {
        target.pause(Span::from_seconds(pause));
        seconds += pause;
        let (moved, _) = native(target, turn_ms, &marks)?;
        if moved.iter().filter(|moved| **moved).count() * 4 > moved.len() * 3 {
            break;
        }
        pause = (pause * 1.25).min(longest);
    }
    Ok(())
}

/// Reads each block behind its neighbour: milliseconds from answer to answer, for the host's own time
/// between the two is none of the platters', and the answers.
///
/// # Errors
/// The target does not answer.
pub fn behind_neighbours(
    target: &mut dyn Target,
    blocks: &[Lba],
) -> Result<(Vec<f64>, Vec<Answer>), TargetError> {
    let pairs = blocks
        .iter()
        .flat_map(|lba| [Request::read(lba.plus(1), 1), Request::read(*lba, 1)]);
    let answers = gather(target, 1, pairs)?;
    let pairs = answers.chunks_exact(2);
    Ok(pairs
        .map(|pair| (pair[1].at.since(pair[0].at).millis(), pair[1]))
        .unzip())
}

/// Whether a block that was answered so long after its neighbour is in its own place.
pub fn is_native(millis: f64, turn_ms: f64) -> bool {
    NEAR.contains(&(millis / turn_ms))
}

/// Whether such times of blocks in their own places are exact enough to tell them from others one by
/// one: three in four are near the middle one, which lies in front of a turn by as much as a block takes
/// to pass. The rest may be at ends of tracks.
pub fn is_exact(millis: &[f64], turn_ms: f64) -> bool {
    let middle = median(millis);
    let off: Vec<f64> = millis
        .iter()
        .map(|millis| (millis - middle).abs())
        .collect();
    is_native(middle, turn_ms) && quantile(&off, 0.75) < turn_ms * SPREAD
}

/// Reads each block behind its neighbour; which of them are in their own places, and the answers.
///
/// # Errors
/// The target does not answer.
pub fn native(
    target: &mut dyn Target,
    turn_ms: f64,
    blocks: &[Lba],
) -> Result<(Vec<bool>, Vec<Answer>), TargetError> {
    let (millis, answers) = behind_neighbours(target, blocks)?;
    let native = millis.iter().map(|millis| is_native(*millis, turn_ms));
    Ok((native.collect(), answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes back has all of its track but itself to wait for.
    #[test]
    fn short_tracks_are_as_exact_as_long_ones() {
        for blocks in [50.0, 110.0, 166.0, 560.0] {
            let times = |spread: f64| -> Vec<f64> {
                let off = |n: u32| (f64::from(n % 9) / 8.0 - 0.5) * spread;
                (0..64)
                    .map(|n| 10.0 * (1.0 - 1.0 / blocks + off(n)))
                    .collect()
            };
            assert!(times(0.0).iter().all(|millis| is_native(*millis, 10.0)));
            assert!(is_exact(&times(0.008), 10.0), "{blocks}");
            assert!(!is_exact(&times(0.04), 10.0), "{blocks}");
        }
        assert!(!is_exact(&[9.0; 64], 10.0), "not in their places");
    }
}
