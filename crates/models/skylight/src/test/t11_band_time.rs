//! Section 2.4.9: how long a band takes of which many blocks are in the cache. Like test 3, but in several
//! bands, whose edges test 11 has found: every other block of 4 MiB, and then two pauses.

use crate::place::native;
use crate::target::{Target, TargetError, gather};
use drive_model::{Lba, Request, Span};

/// Blocks that are written of a band, every other one of twice as many.
pub const WRITTEN: u64 = 512;
/// Bands that this is done to.
const BANDS: u64 = 24;
/// Blocks of a band that are looked at: most of them say whether it has been cleaned.
const LOOKED_AT: u64 = 5;
/// Bands that the second pause is to clean more than the first.
const MORE: f64 = 6.0;
/// Seconds of the first pause on top of two bands, and how many times it is made longer if nothing moves.
const FIRST_SECONDS: f64 = 1.5;
const LONGER: usize = 8;

/// A pause: seconds until the drive answered behind it, and bands that were cleaned meanwhile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pause {
    /// Seconds from its beginning to the answer, which may have waited for the end of a band.
    pub seconds: f64,
    /// Bands.
    pub cleaned: usize,
}

/// What the workload came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observed {
    /// The bands are too small, or there are too few.
    NoRoom,
    /// Some were cleaned before the drive was left alone.
    CleanedBefore,
    /// None was cleaned in the pauses, or all.
    NoneOrAll,
    /// A short pause, and a long one.
    Pauses([Pause; 2]),
}

/// Runs the workload: the bands that lie around an `edge` and have `band` blocks each, of which one with
/// a single new block takes `one_ms`.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    (edge, band): (Lba, u64),
    one_ms: f64,
) -> Result<Observed, TargetError> {
    let front = edge.0.checked_sub(BANDS / 2 * band);
    let front = front.filter(|front| front + BANDS * band <= target.blocks());
    let Some(front) = front.filter(|_| band >= 4 * WRITTEN) else {
        return Ok(Observed::NoRoom);
    };
    // In the middle of each, for edges further away are known less well.
    let first = |n: u64| Lba((front + n * band + band / 2 - WRITTEN) / 4 * 4);
    let writes = (0..BANDS).flat_map(|n| (0..WRITTEN).map(move |i| first(n).plus(2 * i)));
    gather(target, 31, writes.map(|lba| Request::write(lba, 1)))?;
    let mut bands = Bands {
        looked_at: (0..BANDS)
            .map(|n| {
                let part = |i: u64| first(n).plus(2 * (i * WRITTEN / LOOKED_AT));
                (0..LOOKED_AT).map(part).collect()
            })
            .collect(),
    };
    // One may seem to have moved by chance.
    if bands.look(target, turn_ms)? > 1 {
        return Ok(Observed::CleanedBefore);
    }
    let mut seconds = FIRST_SECONDS + 2.0 * one_ms / 1e3;
    let mut short = bands.pause(target, turn_ms, seconds)?;
    for _ in 0..LONGER {
        if short.cleaned > 0 {
            break;
        }
        seconds *= 1.5;
        short = bands.pause(target, turn_ms, seconds)?;
    }
    if short.cleaned == 0 {
        return Ok(Observed::NoneOrAll);
    }
    seconds += MORE * seconds / short.cleaned as f64;
    let long = bands.pause(target, turn_ms, seconds)?;
    Ok(if bands.looked_at.is_empty() {
        Observed::NoneOrAll
    } else {
        Observed::Pauses([short, long])
    })
}

/// The bands that have not been cleaned, with blocks of each.
struct Bands {
    looked_at: Vec<Vec<Lba>>,
}

impl Bands {
    /// How many have been cleaned since the last look.
    fn look(&mut self, target: &mut dyn Target, turn_ms: f64) -> Result<usize, TargetError> {
        let all: Vec<Lba> = self.looked_at.concat();
        let (moved, _) = native(target, turn_ms, &all)?;
        let before = self.looked_at.len();
        let mut moved = moved.chunks(LOOKED_AT as usize);
        self.looked_at.retain(|_| {
            let moved = moved.next().unwrap_or_default();
            moved.iter().filter(|moved| **moved).count() * 2 < moved.len()
        });
        Ok(before - self.looked_at.len())
    }

    fn pause(
        &mut self,
        target: &mut dyn Target,
        turn_ms: f64,
        seconds: f64,
    ) -> Result<Pause, TargetError> {
        let from = target.now();
        target.pause(Span::from_seconds(seconds));
        let any = self.looked_at.last().and_then(|band| band.first());
        let answer = gather(target, 1, any.map(|lba| Request::read(*lba, 1)))?;
        let until = answer.first().map_or(from, |answer| answer.at);
        Ok(Pause {
            seconds: until.since(from).seconds(),
            cleaned: self.look(target, turn_ms)?,
        })
    }
}

/// Milliseconds a band: what the longer pause cleaned more, so that how long the drive waited before it began is
/// in neither.
pub fn infer([short, long]: [Pause; 2]) -> Option<f64> {
    let more = long.cleaned.checked_sub(short.cleaned)?;
    let seconds = long.seconds - short.seconds;
    (more > 0 && seconds > 0.0).then(|| seconds * 1e3 / more as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drive_waits_before_it_cleans_does_not_count() {
        let pause = |cleaned: usize| Pause {
            seconds: 1.242 + 1.6 * cleaned as f64,
            cleaned,
        };
        assert_eq!(infer([pause(2), pause(12)]).map(f64::round), Some(1_600.0));
        assert_eq!(infer([pause(2), pause(2)]), None);
        assert_eq!(infer([pause(3), pause(2)]), None);
    }
}
