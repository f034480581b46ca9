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
/// Number of times that each length is written.
const PLACES: u64 = 5;
/// Number of these whose last block is seen in its native place if the length streams. A block in the cache seems to be
/// there once in thirty. A block at the end of a track never does, because its neighbour is on the next track.
const NATIVE: u64 = PLACES - 1;
/// Blocks by which each write of a length exceeds the one before. The ends are 32,771 blocks apart then, a prime number:
/// no two are at the end of a track where all tracks have the same length.
const LONGER: u64 = 3;
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
        let mut seen = 0;
        for n in 0..PLACES {
            target.set_volatile_cache(true);
            let last = place + length - MIB;
            let longer = MIB + n * LONGER;
            let writes =
                (0..length / MIB - 1).map(|n| Request::write(Lba(place + n * MIB), MIB as u32));
            let end = [Request::write(Lba(last), longer as u32), Request::flush()];
            gather(target, 1, writes.chain(end))?;
            target.set_volatile_cache(false);
            let (native, _) = native(target, turn_ms, &[Lba(last + longer - 1)])?;
            seen += u64::from(native[0]);
            place += 2 * MOST;
        }
        let streams = seen >= NATIVE;
        streamed.push((length, streams));
        if streams {
            yes = length;
        } else {
            no = length;
        }
        if !streams && length == MOST {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Model;
    use drive_model::Profile;

    /// The last block of each of three writes was at the end of a track: none of up to 64 MiB was said to stream.
    #[test]
    fn the_end_of_a_track_is_not_the_cache() {
        for track_blocks in [128, 256] {
            let mut profile = Profile::named("seagate-cmr").unwrap();
            profile.capacity_bytes = 64 << 30;
            let shape = &mut profile.shape;
            (shape.outer_track_blocks, shape.inner_track_blocks) = (track_blocks, track_blocks);
            shape.head_density.clear();
            let turn_ms = 60e3 / f64::from(shape.rpm);
            let mut model = Model::new(profile, 1).unwrap();
            assert!((model.blocks() / 4).is_multiple_of(u64::from(track_blocks)));
            model.set_look_ahead(false);
            let seen = workload(&mut model, turn_ms).unwrap();
            assert_eq!(infer(&seen), Some(MIB), "{track_blocks}: {seen:?}");
        }
    }
}
