//! Test 15 (section 3.4.3): the shortest sequential write that is written to its native place directly. The paper
//! looked at the position of the head; this test checks whether the last block of the write is in its native place.

use crate::place::native;
use crate::target::{Target, TargetError, gather};
use drive_model::{Lba, Request};

/// Whether sequential writes of each length went to their native places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// Length in blocks, and whether the write did, by length.
    pub streamed: Vec<(u64, bool)>,
}

/// The longest write that is tried: 64 MiB.
const MOST: u64 = 16_384;
/// Number of times that each length is written: a block in the cache seems to be in its native place once in thirty.
const PLACES: usize = 3;
/// One mebibyte.
const MIB: u64 = 256;

/// Runs the workload, with its volatile cache on, each time somewhere else; halves the range in
/// which the shortest must lie, down to a mebibyte.
///
/// # Errors
/// The target does not answer.
pub fn workload(target: &mut dyn Target, turn_ms: f64) -> Result<Observed, TargetError> {
    let mut streamed = Vec::new();
    let (mut no, mut yes) = (0, MOST + MIB);
    let mut place = target.blocks() / 4;
    while yes - no > MIB {
        let length = if no == 0 && yes > MOST {
            MOST
        } else {
            (no + yes) / 2 / MIB * MIB
        };
        let mut all = true;
        for _ in 0..PLACES {
            target.set_volatile_cache(true);
            let writes =
                (0..length / MIB).map(|n| Request::write(Lba(place + n * MIB), MIB as u32));
            gather(target, 1, writes.chain([Request::flush()]))?;
            target.set_volatile_cache(false);
            let (native, _) = native(target, turn_ms, &[Lba(place + length - 1)])?;
            all &= native[0];
            place += 2 * MOST;
        }
        streamed.push((length, all));
        if all {
            yes = length;
        } else {
            no = length;
        }
        if !all && length == MOST {
            break;
        }
    }
    streamed.sort_unstable();
    Ok(Observed { streamed })
}

/// What follows: the shortest that went to its place, in blocks.
pub fn infer(observed: &Observed) -> Option<u64> {
    let shortest = observed.streamed.iter().find(|(_, streamed)| *streamed);
    shortest.map(|(blocks, _)| *blocks)
}
