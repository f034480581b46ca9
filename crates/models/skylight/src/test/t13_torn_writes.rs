//! Test 13 (section 2.4.11): the power is cut during a sequential write. A drive that overwrites its bands in place
//! leaves tracks unreadable that the head had begun to overlap; a drive that rewrites bands elsewhere does not. It
//! needs a switch for the drive's power.

use crate::finding::Finding;
use crate::target::{Target, TargetError, gather, serve};
use drive_model::{Failure, Lba, Request, Span};
use std::ops::ControlFlow;

/// Measurements of the test.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Observed {
    /// Results of each cut.
    pub cuts: Vec<Cut>,
}

/// One cut of the power.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Cut {
    /// The block after the last one that was acknowledged.
    pub at: u64,
    /// Blocks near `at` that could not be read.
    pub unreadable: Vec<u64>,
}

/// Number of cuts; the paper makes up to 50.
const CUTS: u64 = 12;
/// Number of cuts with damage after which the test ends.
const ENOUGH: usize = 3;
/// Seconds of writing before each cut, and of rest after it.
const WRITING: f64 = 10.0;
const REST: f64 = 5.0;
/// Blocks in front of the place, and behind it, that are read back. The paper has 5,000 and 1,000; what
/// was answered can be further ahead of what was written by as much as the volatile cache holds.
const BACK: u64 = 40_000;
const BEHIND: u64 = 1_000;
/// Blocks of one read; after a failure, blocks are read one by one.
const PIECE: u64 = 64;
/// One mebibyte.
const MIB: u64 = 256;
/// Blocks that the writes of one cut may take: those of 300 MB/s, fewer on a drive that has not as many.
const ROOM: u64 = 1 << 20;

/// First blocks of the reads that fail.
fn failing(
    target: &mut dyn Target,
    reads: impl IntoIterator<Item = Request>,
) -> Result<Vec<u64>, TargetError> {
    let unreadable = |failure| matches!(failure, Failure::Unreadable { .. });
    let mut failed = Vec::new();
    target.run(1, &mut reads.into_iter(), &mut |answer| {
        if answer.result.is_err_and(unreadable) {
            failed.push(answer.request.lba.0);
        }
        ControlFlow::Continue(())
    })?;
    Ok(failed)
}

/// Runs the workload, with its volatile cache on, each time somewhere else. None if its power cannot
/// be cut.
///
/// # Errors
/// The target does not answer.
pub fn workload(target: &mut dyn Target) -> Result<Option<Observed>, TargetError> {
    // On an idle drive the cut does no harm, and shows whether there is a switch at all.
    if !target.power_cut() {
        return Ok(None);
    }
    let mut seen = Observed::default();
    let first = target.blocks() / 8;
    let room = ROOM.min((target.blocks() - first) / CUTS);
    for cut in 0..CUTS {
        target.set_volatile_cache(true);
        let from = (first + cut * room) / MIB * MIB;
        // Not always at the same moment of a band.
        let stop = target.now() + Span::from_seconds(WRITING + 0.037 * cut as f64);
        // What lies behind them is read too.
        let count = (room - BEHIND - PIECE) / MIB;
        let mut writes = (0..count).map(|n| Request::write(Lba(from + n * MIB), MIB as u32));
        let mut at = from;
        serve(target, 1, &mut writes, &mut |answer| {
            at = answer.request.end().0;
            if answer.at < stop {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        target.power_cut();
        target.pause(Span::from_seconds(REST));
        target.set_volatile_cache(false);
        let back = at.saturating_sub(BACK).max(from);
        let pieces = (back..at + BEHIND).step_by(PIECE as usize);
        let pieces = failing(
            target,
            pieces.map(|lba| Request::read(Lba(lba), PIECE as u32)),
        )?;
        let blocks = pieces.into_iter().flat_map(|lba| lba..lba + PIECE);
        let unreadable = failing(target, blocks.map(|lba| Request::read(Lba(lba), 1)))?;
        // Rewriting makes the blocks readable again.
        let again = unreadable.iter().map(|lba| Request::write(Lba(*lba), 1));
        gather(target, 1, again)?;
        seen.cuts.push(Cut { at, unreadable });
        if seen.damaged() >= ENOUGH {
            break;
        }
    }
    Ok(Some(seen))
}

impl Observed {
    /// Number of cuts that left unreadable blocks.
    pub fn damaged(&self) -> usize {
        let damaged = self.cuts.iter().filter(|cut| !cut.unreadable.is_empty());
        damaged.count()
    }
}

/// What follows: whether a cut tears what is written. Seen once is certain; that it was not seen is no
/// proof, and the more cuts the better a sign.
pub fn infer(observed: &Observed) -> Option<Finding<bool>> {
    let cuts = observed.cuts.len();
    if observed.damaged() > 0 {
        return Some(Finding::new(true, 1.0));
    }
    (cuts > 0).then(|| Finding::new(false, 1.0 - 0.8f64.powi(cuts as i32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unreadable_block_is_enough_and_none_is_no_proof() {
        let cut = |unreadable: &[u64]| Cut {
            at: 100,
            unreadable: unreadable.to_vec(),
        };
        let seen = |cuts: &[Cut]| {
            infer(&Observed {
                cuts: cuts.to_vec(),
            })
        };
        assert_eq!(seen(&[]), None);
        assert_eq!(seen(&[cut(&[]), cut(&[90])]), Some(Finding::new(true, 1.0)));
        let one = seen(&[cut(&[])]).unwrap();
        let many = seen(&vec![cut(&[]); 20]).unwrap();
        assert!(!one.value && !many.value);
        assert!(one.confidence < 0.5 && many.confidence > 0.95);
    }
}
