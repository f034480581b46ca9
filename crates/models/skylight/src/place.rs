//! Tells whether a block is read from its native place or from the persistent cache.
//!
//! The neighbour after the block, which was never written, is read first. If the block is in its native place, it has
//! just passed under the head and takes a whole turn to come back; in a cache on the disk, it is at any angle and a
//! seek away; in flash, it is available at once. This depends on no layout, and holds wherever the two were moved
//! together.

use crate::fill::visit;
use crate::statistics::{median, midmean, quantile, share_near};
use crate::target::{Answer, Target, TargetError, gather};
use drive_model::Random;
use drive_model::{Lba, Request, Span};

/// A block counts as passing by if it comes back within so much of a turn: when all of the track but itself
/// has passed, and tracks may have as few as fifty blocks.
const NEAR: std::ops::RangeInclusive<f64> = 0.975..=1.012;
/// Times of blocks that pass by are off by less than that part of a turn from each other.
const SPREAD: f64 = 0.012;

/// A block that comes back so far from where it would pass by, in turns, is elsewhere, whatever the noise.
const FAR: f64 = 0.12;
/// The error, in turns, that the middle of several readings should have.
const ERROR: f64 = 0.006;
/// Readings that differ by less, in turns, are not noisy.
const STILL: f64 = 0.001;
/// How often a block is read behind its neighbour: at least where there is noise, and at most.
const READINGS: (usize, usize) = (4, 32);
/// What takes less, in turns, was answered by a memory when it was read again.
const MEMORY: f64 = 0.1;

/// Empties the persistent cache: by an erase where that is possible, otherwise by leaving the drive idle until what is
/// looked at has been cleaned, as [`wait_until_clean`] says. Whether the cache is known to be empty then.
///
/// # Errors
/// The target does not answer.
pub fn clean(target: &mut dyn Target, written: &[Lba]) -> Result<bool, TargetError> {
    if target.erase() {
        return Ok(true);
    }
    wait_until_clean(target, written)
}

/// Milliseconds of a turn; `None` if nothing rotates. It is the time of reading one block repeatedly, or of blocks in
/// descending order if a memory answers the second time. A device that is limited to a rate of requests has a steady
/// time too, so the rotation has to show in other reads as well.
///
/// # Errors
/// The target does not answer.
pub fn turn(target: &mut dyn Target, random: &mut Random) -> Result<Option<f64>, TargetError> {
    // Twice, because something may disturb the first measurement.
    for again in [true, false, true, false] {
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
    let about = median(all);
    let steady = share_near(all, about, about * 0.1) > 0.8;
    Ok((steady && (3.5..17.0).contains(&about)).then(|| mean_turn(all, about)))
}

/// Mean duration of a turn over all intervals, so that single late answers hardly matter. Some intervals are several
/// turns long, because the drive may be held up while its platters turn on.
fn mean_turn(intervals: &[f64], about: f64) -> f64 {
    let (mut millis, mut turns) = (0.0, 0.0f64);
    for interval in intervals {
        let whole = (interval / about).round();
        // Another is of a block that is not in its own place.
        if (interval / about - whole).abs() < 0.1 {
            (millis, turns) = (millis + interval, turns + whole);
        }
    }
    millis / turns.max(1.0)
}

/// Milliseconds from each answer to the next: the time of the platters, without that of the host between answer and
/// request.
fn intervals(answers: &[Answer]) -> Vec<f64> {
    let pairs = answers.windows(2);
    pairs
        .map(|pair| pair[1].at.since(pair[0].at).millis())
        .collect()
}

/// Number of positions measured, each against the previous one.
const PLACES: u64 = 32;

/// Whether platters rotate once in `turn` milliseconds: a seek to a far block takes any time, but the way back to the
/// first block's neighbour completes whole turns.
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
    let near = |parts: &[f64], of: f64, range: f64| {
        let apart = |part: &&f64| {
            let apart = (**part - of).abs();
            apart.min(1.0 - apart) < range
        };
        parts.iter().filter(apart).count() as f64 / parts.len().max(1) as f64
    };
    let mixed = !single.iter().any(|of| near(&single, *of, 0.05) > 0.5);
    Ok(mixed && near(&whole, 0.0, 0.08) > 0.7)
}

/// Most blocks of a band, 512 MiB: blocks that have to be in different bands are this far apart.
pub const LARGEST_BAND: u64 = 131_072;
/// Number of blocks written last, each in a band of its own.
const MARKS: u64 = 8;
/// Hours of the longest wait.
pub const MOST_HOURS: u32 = 12;
/// Seconds: first pause between two checks, longest pause, and limit of the wait.
const LOOKS: (f64, f64, f64) = (5.0, 600.0, MOST_HOURS as f64 * 3600.0);
/// The part of the blocks looked at that may seem not to be in its place: it lies at the end of a track. If it is in
/// the cache instead, it is cleaned in hardly more than that part of the wait: twice as long is added.
const AT_ENDS: f64 = 1.0 / 16.0;

/// Leaves the drive idle until blocks are in their native places that are written now, across the whole drive, and a
/// sample of those `written` before: some drives clean the oldest blocks first, others one part of the drive after
/// the other. Whether they were before the time was over.
///
/// # Errors
/// The target does not answer.
pub fn wait_until_clean(target: &mut dyn Target, written: &[Lba]) -> Result<bool, TargetError> {
    // Other positions each time.
    let mut random = Random::new(target.now().nanos());
    let mut turn = steady(target, &mut random, true)?;
    if turn.is_none() {
        turn = steady(target, &mut random, false)?;
    }
    let Some(turn_ms) = turn else {
        target.pause(Span::from_seconds(3600.0));
        return Ok(false);
    };
    // Each in a band of its own.
    let apart_by = target.blocks() / MARKS;
    let first = random.below((apart_by / 2).max(1)) * 2;
    let marks = (0..MARKS).map(|n| Lba(first + n * apart_by));
    let marks: Vec<Lba> = marks.filter(|lba| lba.0 + 1 < target.blocks()).collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    let are_native = |target: &mut dyn Target, blocks: &[Lba], part: f64| {
        // One reading of each block is enough, for most of them decide.
        let looked = pairs(target, blocks)?;
        let native = looked
            .iter()
            .filter(|pair| is_native(apart(pair, turn_ms), turn_ms));
        Ok::<_, TargetError>(native.count() as f64 >= part * looked.len() as f64)
    };
    let (mut pause, longest, most) = LOOKS;
    let mut seconds = 0.0;
    while seconds < most {
        target.pause(Span::from_seconds(pause));
        seconds += pause;
        if are_native(target, &marks, 0.8)? && are_native(target, written, 1.0 - AT_ENDS)? {
            if !written.is_empty() {
                target.pause(Span::from_seconds(seconds * 2.0 * AT_ENDS));
            }
            return Ok(true);
        }
        pause = (pause * 1.25).min(longest);
    }
    Ok(false)
}

/// Times of blocks relative to their neighbours.
#[derive(Clone, PartialEq, Debug)]
pub struct Behind {
    /// Median of the readings of each block, in milliseconds.
    pub millis: Vec<f64>,
    /// Typical error of the time of a block in its native place, in milliseconds.
    pub error_ms: f64,
    /// The first answer for each block.
    pub answers: Vec<Answer>,
}

/// Reads each block after its neighbour. Times are from answer to answer, because the host's time in between is not
/// the platters'. Blocks that may be in their native places are read again, as often as their noise requires: once
/// more without noise.
///
/// # Errors
/// The target does not answer.
pub fn behind_neighbours(
    target: &mut dyn Target,
    turn_ms: f64,
    blocks: &[Lba],
) -> Result<Behind, TargetError> {
    let first = pairs(target, blocks)?;
    let answers = first.iter().map(|pair| pair[1]).collect();
    let mut readings: Vec<Vec<f64>> = (first.iter())
        .map(|pair| vec![apart(pair, turn_ms)])
        .collect();
    let (mut count, mut wanted, mut noise) = (1, 2, 0.0f64);
    while count < wanted {
        // How far off the middle may be: of one reading nothing is known yet.
        let off = match count {
            1 => FAR,
            _ => (3.0 * noise / (count as f64).sqrt()).max(STILL),
        };
        let may_be = |millis: &Vec<f64>| is_within(midmean(millis), turn_ms, off);
        let open: Vec<usize> = (0..readings.len())
            .filter(|n| readings.get(*n).is_some_and(may_be))
            .collect();
        if open.is_empty() {
            break;
        }
        let again: Vec<Lba> = open.iter().map(|n| blocks[*n]).collect();
        for (n, pair) in open.iter().zip(pairs(target, &again)?) {
            let millis = apart(&pair, turn_ms);
            if pair[0].latency.millis().min(millis) > MEMORY * turn_ms {
                readings[*n].push(millis);
            }
        }
        count += 1;
        let open = open.iter().filter_map(|n| readings.get(*n));
        noise = spread(open) / turn_ms;
        let enough = (noise / ERROR).powi(2).ceil() as usize;
        wanted = if noise < STILL {
            2
        } else {
            enough.clamp(READINGS.0, READINGS.1)
        };
    }
    Ok(Behind {
        millis: readings.iter().map(|millis| midmean(millis)).collect(),
        error_ms: noise * turn_ms / (count as f64).sqrt(),
        answers,
    })
}

/// Reads each block after its neighbour, once. Adjacent blocks are far apart in the order, so that a temporary
/// disturbance does not affect a row of them.
fn pairs(target: &mut dyn Target, blocks: &[Lba]) -> Result<Vec<[Answer; 2]>, TargetError> {
    let count = blocks.len() as u64;
    let order: Vec<usize> = (0..count).map(|n| visit(n, count) as usize).collect();
    let requests = (order.iter().map(|n| blocks[*n]))
        .flat_map(|lba| [Request::read(lba.plus(1), 1), Request::read(lba, 1)]);
    let answers = gather(target, 1, requests)?;
    let mut pairs: Vec<(usize, [Answer; 2])> = (order.into_iter())
        .zip(answers.chunks_exact(2).map(|pair| [pair[0], pair[1]]))
        .collect();
    pairs.sort_unstable_by_key(|(n, _)| *n);
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// Milliseconds between the answers of a pair, without the extra turns of retries: between a half and one and a half
/// turns, unless it is less.
fn apart(pair: &[Answer; 2], turn_ms: f64) -> f64 {
    let millis = pair[1].at.since(pair[0].at).millis();
    millis - turn_ms * ((millis / turn_ms).round() - 1.0).max(0.0)
}

/// Standard deviation of repeated readings of a block, from the median of all differences, so that neither late
/// answers nor blocks that have moved affect it.
fn spread<'a>(readings: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let mut off = Vec::new();
    for millis in readings.filter(|millis| millis.len() > 1) {
        let (middle, count) = (midmean(millis), millis.len() as f64);
        let free = (count / (count - 1.0)).sqrt();
        off.extend(millis.iter().map(|one| (one - middle).abs() * free));
    }
    1.4826 * median(&off)
}

/// Whether a block that was answered `millis` after its neighbour is in its native place.
pub fn is_native(millis: f64, turn_ms: f64) -> bool {
    is_within(millis, turn_ms, 0.0)
}

/// As [`is_native`], with a tolerance of a part of a turn.
fn is_within(millis: f64, turn_ms: f64, off: f64) -> bool {
    let turns = millis / turn_ms;
    NEAR.start() - off <= turns && turns <= NEAR.end() + off
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
    let behind = behind_neighbours(target, turn_ms, blocks)?;
    let off = behind.error_ms / turn_ms;
    let native = behind.millis.iter();
    let native = native.map(|millis| is_within(*millis, turn_ms, off));
    Ok((native.collect(), behind.answers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive_model::Time;

    /// Two more tries at either of the two blocks take turns, and nothing else.
    #[test]
    fn further_tries_move_no_block() {
        let answer = |millis: f64| Answer {
            request: Request::read(Lba(0), 1),
            latency: Span::from_millis(9.0),
            at: Time::START + Span::from_millis(millis),
            result: Ok(()),
        };
        for (after, seen) in [
            (9.9, 9.9),
            (29.9, 9.9),
            (6.0, 6.0),
            (0.2, 0.2),
            (24.0, 14.0),
        ] {
            let found = apart(&[answer(100.0), answer(100.0 + after)], 10.0);
            assert!((found - seen).abs() < 1e-3, "{after}: {found}");
        }
    }

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
