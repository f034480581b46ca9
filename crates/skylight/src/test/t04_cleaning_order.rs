//! Tests 4 and 5 (section 2.4.5): which blocks have moved after a pause, in the order of writing,
//! and how many bands that are.

use crate::finding::Finding;
use crate::place::{LARGEST_BAND, native};
use crate::random::Random;
use crate::statistics::order;
use crate::target::{Target, TargetError, gather, millis};
use drive_model::{Lba, Request, Span};

/// How the drive took the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Seconds of pause.
    pub seconds: f64,
    /// For each block in the order of writing whether it was in its own place then.
    pub moved: Vec<bool>,
}

/// Stretches of the drive that have one mark each, at most.
const STRETCHES: u64 = 192;

/// Has the drive do it: one block in each of 192 stretches of the whole drive, none as short as a band, in random
/// order, and pauses until a quarter of them have moved. A part of the drive would not do: where each part of it
/// is cleaned in an order of its own, the few that are in a part look like one.
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
    let marks: Vec<Lba> = (random.shuffled(stretches).into_iter())
        .map(|n| Lba(n * stretch + 8 * random.below(stretch / 8 - 1)))
        .collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    let mut seconds = 0.0;
    let mut moved = vec![false; marks.len()];
    for pause in [20.0, 20.0, 40.0, 80.0, 160.0, 320.0] {
        target.pause(Span::from_seconds(pause));
        seconds += pause;
        moved = native(target, turn_ms, &marks)?.0;
        if moved.iter().filter(|moved| **moved).count() * 4 > moved.len() {
            break;
        }
    }
    Ok(Observed { seconds, moved })
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
        // The first may have to wait for a band that is being cleaned: none of those that count.
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
    let each = observed.seconds * 1e3 / moved.len() as f64;
    if left.len() < 8 || moved.len() < 8 {
        return (None, (left.len() >= 8).then_some(each));
    }
    let sorted = order(&moved, &left);
    let fifo = match sorted {
        IN_ORDER.. => Some(Finding::new(true, sorted)),
        ..MIXED => Some(Finding::new(false, 1.0 - sorted)),
        _ => None,
    };
    (fifo, Some(each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_first_was_written_first() {
        let moved = |f: fn(usize) -> bool| Observed {
            seconds: 30.0,
            moved: (0..100).map(f).collect(),
        };
        let (fifo, each) = infer(&moved(|n| n < 50));
        assert_eq!(fifo, Some(Finding::new(true, 1.0)));
        assert_eq!(each, Some(600.0));
        assert_eq!(
            infer(&moved(|n| n % 2 == 0)).0.map(|f| f.value),
            Some(false)
        );
        assert_eq!(infer(&moved(|_| false)), (None, None));
        // One in thirty of those that are left looks as if it had moved.
        let fifo = infer(&moved(|n| n < 25 || n % 30 == 7)).0;
        assert_eq!(fifo.map(|f| f.value), Some(true));
        // Two parts, one of which is done sooner.
        assert_eq!(infer(&moved(|n| n < 10 || n < 60 && n % 2 == 0)).0, None);
    }
}
