//! Whether a block is read from its own place or from the persistent cache.
//!
//! Its neighbour behind it is read first, which was never written. If the block is in its own place
//! it has just passed under the head and takes a whole turn to come back; in a cache on the disk it
//! is at any angle and a seek away, in flash it is there at once. That depends on no layout, and
//! holds wherever the two were moved together.

use crate::statistics::{median, share_near};
use crate::target::{Answer, Target, TargetError, gather, millis};
use drive_model::{Lba, Request};

/// A block counts as passing by if it comes back within so much of a turn.
const NEAR: f64 = 0.015;

/// Milliseconds of a turn: what reading one block again and again takes. None if there are no turns.
///
/// # Errors
/// The target does not answer.
pub fn turn(target: &mut dyn Target) -> Result<Option<f64>, TargetError> {
    let lba = Lba(target.blocks() / 3);
    let read = gather(target, 1, (0..40).map(|_| Request::read(lba, 1)))?;
    let all = &millis(&read)[5..];
    let turn = median(all);
    let steady = share_near(all, turn, turn * 0.05) > 0.8;
    // From 3,600 to 15,000 turns a minute.
    Ok((steady && (3.5..17.0).contains(&turn)).then_some(turn))
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
    let pairs = blocks
        .iter()
        .flat_map(|lba| [Request::read(lba.plus(1), 1), Request::read(*lba, 1)]);
    let answers = gather(target, 1, pairs)?;
    let second: Vec<Answer> = answers.chunks_exact(2).map(|pair| pair[1]).collect();
    let native = second
        .iter()
        .map(|answer| (answer.latency.millis() - turn_ms).abs() < turn_ms * NEAR)
        .collect();
    Ok((native, second))
}
