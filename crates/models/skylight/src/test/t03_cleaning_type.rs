//! Test 3 (section 2.4.5): whether blocks move from the cache to their own places in a pause.

use crate::finding::{CleaningType, Finding};
use crate::place::native;
use crate::target::{Target, TargetError, gather, millis};
use drive_model::Random;
use drive_model::{Lba, Request, Span};

/// How the drive took the test: the part of the blocks that was in its own place at once, and after
/// each pause.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Share of the blocks in their native places directly after the writes.
    pub before: f64,
    /// Seconds of pause so far, and the share after it.
    pub after: Vec<(f64, f64)>,
    /// Milliseconds of the reads straight after the writes and after the last pause, in the order of
    /// writing, each behind its neighbour.
    pub latencies: [Vec<f64>; 2],
}

fn share(all: &[bool]) -> f64 {
    all.iter().filter(|native| **native).count() as f64 / all.len().max(1) as f64
}

/// Runs the workload. The paper pauses for three to five seconds; a drive that still has other
/// bands to clean first gets more.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
) -> Result<Observed, TargetError> {
    // Within 4 MiB, so within one band.
    let first = target.blocks() / 8 * 3;
    let marks: Vec<Lba> = (random.shuffled(64).into_iter())
        .map(|n| Lba(first + n * 16))
        .collect();
    gather(target, 1, marks.iter().map(|lba| Request::write(*lba, 1)))?;
    let (moved, answers) = native(target, turn_ms, &marks)?;
    let before = share(&moved);
    let mut latencies = [millis(&answers), Vec::new()];
    let mut after = Vec::new();
    let mut seconds = 0.0;
    for pause in [5.0, 25.0, 120.0, 450.0] {
        target.pause(Span::from_seconds(pause));
        seconds += pause;
        let (moved, answers) = native(target, turn_ms, &marks)?;
        let now = share(&moved);
        latencies[1] = millis(&answers);
        after.push((seconds, now));
        if now > 0.8 {
            break;
        }
    }
    Ok(Observed {
        before,
        after,
        latencies,
    })
}

/// Draws the conclusion from the measurements.
pub fn infer(observed: &Observed) -> Finding<CleaningType> {
    let most = observed
        .after
        .iter()
        .map(|(_, share)| *share)
        .fold(0.0, f64::max);
    let gained = most - observed.before;
    if gained > 0.5 {
        Finding::new(CleaningType::Aggressive, gained.min(1.0))
    } else {
        Finding::new(CleaningType::Lazy, 1.0 - gained.max(0.0))
    }
}
