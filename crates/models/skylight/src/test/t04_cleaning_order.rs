//! Tests 4 and 5 (section 2.4.5): which blocks have moved after a pause, in the order of writing,
//! and how many bands that are.

use crate::finding::Finding;
use crate::place::{LARGEST_BAND, native};
use crate::statistics::order;
use crate::target::{Target, TargetError, gather, millis};
use crate::test::t11_band_time::{self, Pause};
use drive_model::Random;
use drive_model::{Lba, Request, Span};

/// Measurements of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// The pauses, in order.
    pub pauses: Vec<Pause>,
    /// For each block in the order of writing, whether it was in its native place after the last pause.
    pub moved: Vec<bool>,
    /// The part of all blocks in their own places that is counted: those that passed for cleaned at once are not
    /// among them, and as many as of blocks beside them, which nobody has written, are not seen for noise.
    pub counted: f64,
}

/// Stretches of the drive that have one mark each, at most.
const STRETCHES: u64 = 192;
/// Seconds of the first pause, and of any at most; and pauses.
const FIRST_SECONDS: f64 = 5.0;
const MOST_SECONDS: f64 = 320.0;
const MOST_PAUSES: usize = 8;

/// Runs the workload: one block in each of 192 stretches of the whole drive, none as short as a band, in random
/// order, and two pauses or more, until a quarter of them have moved. A part of the drive would not do: where each
/// part of it is cleaned in an order of its own, the few that are in a part look like one.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
) -> Result<Observed, TargetError> {
    let stretches = (target.blocks() / LARGEST_BAND).clamp(1, STRETCHES);
    let stretch = target.blocks() / stretches;
    let mut marks: Vec<Lba> = (random.shuffled(stretches).into_iter())
        .map(|n| Lba(n * stretch + 8 * random.below(stretch / 8 - 1)))
        .collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    // Blocks that look cleaned before any has been tell nothing.
    let mut passes = native(target, turn_ms, &marks)?.0.into_iter();
    marks.retain(|_| !passes.next().unwrap_or_default());
    let mut seen = Observed {
        pauses: Vec::new(),
        moved: vec![false; marks.len()],
        counted: 1.0,
    };
    let count = |moved: &[bool]| moved.iter().filter(|moved| **moved).count();
    let mut pause = FIRST_SECONDS;
    while seen.pauses.len() < 2 || count(&seen.moved) * 4 < marks.len() {
        if seen.pauses.len() == MOST_PAUSES {
            break;
        }
        let from = target.now();
        target.pause(Span::from_seconds(pause));
        // The first answer may wait until a band has been cleaned.
        let answer = gather(target, 1, marks.first().map(|lba| Request::read(*lba, 1)))?;
        let until = answer.first().map_or(from, |answer| answer.at);
        let (moved, _) = native(target, turn_ms, &marks)?;
        let seconds = until.since(from).seconds();
        let cleaned = count(&moved).saturating_sub(count(&seen.moved));
        seen.moved = moved;
        seen.pauses.push(Pause { seconds, cleaned });
        // The next pause is meant to clean a sixth of the bands more.
        let more = match cleaned {
            0 => pause,
            _ => marks.len() as f64 / 6.0 * seconds / cleaned as f64,
        };
        pause = (pause + more).min(MOST_SECONDS);
    }
    let beside: Vec<Lba> = marks.iter().map(|lba| lba.plus(4)).collect();
    let (there, _) = native(target, turn_ms, &beside)?;
    seen.counted = count(&there) as f64 / stretches as f64;
    Ok(seen)
}

/// Milliseconds of reads in the order of writing, by minutes of pause before them.
pub type Reads = Vec<(f64, Vec<f64>)>;

fn read_after(
    target: &mut dyn Target,
    marks: &[Lba],
    minutes: &[f64],
) -> Result<Reads, TargetError> {
    let mut all = Vec::new();
    let mut before = 0.0;
    for at in minutes {
        if *at > before {
            target.pause(Span::from_seconds((at - before) * 60.0));
        }
        before = *at;
        // The first read may wait for a band that is being cleaned, so it is not counted.
        gather(target, 1, marks.last().map(|lba| Request::read(*lba, 1)))?;
        let reads = marks.iter().map(|lba| Request::read(*lba, 1));
        all.push((*at, millis(&gather(target, 1, reads)?)));
    }
    Ok(all)
}

/// Test 4 to the letter, for figure 2.12: 4,096 random blocks, read in the order of writing at once and
/// after 10, 30 and 50 minutes. Those that are still in a log come at one latency.
///
/// # Errors
/// The target does not answer.
pub fn over_time(target: &mut dyn Target, random: &mut Random) -> Result<Reads, TargetError> {
    let blocks = target.blocks();
    let marks: Vec<Lba> = (0..4096).map(|_| Lba(random.below(blocks))).collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    read_after(target, &marks, &[0.0, 10.0, 30.0, 50.0])
}

/// Test 5 to the letter, for figure 2.13: 128 blocks of a region of 256 MiB, 128 of the whole drive, 128
/// others of the region; read in the order of writing after one minute and after two.
///
/// # Errors
/// The target does not answer.
pub fn three_steps(target: &mut dyn Target, random: &mut Random) -> Result<Reads, TargetError> {
    const REGION: u64 = 1 << 16;
    let blocks = target.blocks();
    let first = blocks / 8;
    let region = random.shuffled(REGION.min(blocks / 8));
    let (one, three) = (&region[..128], &region[128..256]);
    let mut marks: Vec<Lba> = one.iter().map(|n| Lba(first + n)).collect();
    marks.extend((0..128).map(|_| Lba(random.below(blocks))));
    marks.extend(three.iter().map(|n| Lba(first + n)));
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    read_after(target, &marks, &[1.0, 2.0])
}

/// Blocks that were cleaned first were written first from that on, and in no order up to that. One in thirty of
/// those in the cache passes for one in its own place, which takes a twentieth off. In between lie drives of two
/// or three parts that are each in order, and nothing is said.
const IN_ORDER: f64 = 0.9;
const MIXED: f64 = 0.75;

/// Milliseconds a band: what the pause that cleaned most cleaned more than the one that cleaned least, so that how
/// long the drive waits before it begins is in neither.
fn each_ms(pauses: &[Pause]) -> Option<f64> {
    let least = pauses.iter().min_by_key(|pause| pause.cleaned)?;
    let most = pauses.iter().max_by_key(|pause| pause.cleaned)?;
    t11_band_time::infer([*least, *most])
}

/// What follows: whether the oldest blocks are cleaned first, and milliseconds a band.
pub fn infer(observed: &Observed) -> (Option<Finding<bool>>, Option<f64>) {
    let places = |moved: bool| -> Vec<f64> {
        let all = observed.moved.iter().enumerate();
        all.filter(|(_, m)| **m == moved)
            .map(|(place, _)| place as f64)
            .collect()
    };
    let (moved, left) = (places(true), places(false));
    if moved.is_empty() {
        return (None, None);
    }
    let each = each_ms(&observed.pauses).filter(|_| left.len() >= 8);
    let each = each.map(|ms| ms * observed.counted);
    if left.len() < 8 || moved.len() < 8 {
        return (None, each);
    }
    let sorted = order(&moved, &left);
    let fifo = match sorted {
        IN_ORDER.. => Some(Finding::new(true, sorted)),
        // One half is no order at all.
        ..MIXED => Some(Finding::new(false, 1.0 - 2.0 * (sorted - 0.5).max(0.0))),
        _ => None,
    };
    (fifo, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_first_was_written_first() {
        let pause = |seconds, cleaned| Pause { seconds, cleaned };
        let moved = |f: fn(usize) -> bool| Observed {
            pauses: vec![pause(11.0, 10), pause(25.0, 40)],
            moved: (0..100).map(f).collect(),
            counted: 1.0,
        };
        let (fifo, each) = infer(&moved(|n| n < 50));
        assert_eq!(fifo, Some(Finding::new(true, 1.0)));
        // 14 s for 30 bands more, whatever it waited in front of the first.
        assert_eq!(each.map(f64::round), Some(467.0));
        let mixed = infer(&moved(|n| n % 2 == 0)).0.unwrap();
        assert!(!mixed.value && mixed.confidence > 0.95, "{mixed:?}");
        assert_eq!(infer(&moved(|_| false)), (None, None));
        // One in thirty of those that are left looks as if it had moved.
        let fifo = infer(&moved(|n| n < 25 || n % 30 == 7)).0;
        assert_eq!(fifo.map(|f| f.value), Some(true));
        // Two parts, one of which is done sooner.
        assert_eq!(infer(&moved(|n| n < 10 || n < 60 && n % 2 == 0)).0, None);
    }
}
