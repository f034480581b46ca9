//! Checks that a target has the size that it reports. Some end earlier; counterfeit drives wrap around to their first
//! byte, or drop writes.

use super::{Target, TargetError};
use drive_model::{BLOCK_BYTES, Lba};

/// Bytes that identify a written block.
pub(super) type Stamp = [u8; 16];

/// A target whose block contents can be read and written.
pub(super) trait Stamps: Target {
    /// Writes a block that begins with `stamp`.
    fn stamp(&mut self, lba: Lba, stamp: Stamp) -> Result<(), TargetError>;

    /// Reads the first bytes of a block.
    fn read_stamp(&mut self, lba: Lba) -> Result<Stamp, TargetError>;
}

/// Reads at the end, and writes if that is allowed.
pub(super) fn check(target: &mut impl Stamps, write: bool) -> Result<(), TargetError> {
    let blocks = target.blocks();
    let Some(last) = blocks.checked_sub(1) else {
        return Err(TargetError::Ends {
            reported: 0,
            found: 0,
        });
    };
    ends(target, last)?;
    if write { wraps(target, last) } else { Ok(()) }
}

/// Checks that the last block can be read; if only earlier ones can, reports the end. If not even the first can be
/// read, that tells nothing about the size, and the failure is the error.
fn ends(target: &mut impl Stamps, last: u64) -> Result<(), TargetError> {
    let mut failed = None;
    let mut readable = |block| match target.read_stamp(Lba(block)) {
        Ok(_) => Ok(true),
        Err(error @ (TargetError::Short { .. } | TargetError::Failed { .. })) => {
            failed = Some(error);
            Ok(false)
        }
        Err(error) => Err(error),
    };
    if readable(last)? {
        return Ok(());
    }
    let (mut yes, mut no): (Option<u64>, u64) = (None, last);
    while yes.map_or(0, |yes| yes + 1) < no {
        let middle = yes.unwrap_or(0).midpoint(no);
        if readable(middle)? {
            yes = Some(middle);
        } else {
            no = middle;
        }
    }
    let ends = TargetError::Ends {
        reported: (last + 1) * BLOCK_BYTES,
        found: no * BLOCK_BYTES,
    };
    let none = failed.filter(|error| no == 0 && matches!(error, TargetError::Failed { .. }));
    Err(none.unwrap_or(ends))
}

/// Blocks to stamp: the first one, and those a power of two after it, which are the sizes at which drives wrap around.
/// The first is not block 0, where partition tables are.
fn places(last: u64) -> Vec<u64> {
    let first = 5.min(last);
    let steps = (3..u64::BITS).map(|bit| 1 << bit);
    let behind = steps.map_while(|step: u64| first.checked_add(step));
    let mut all: Vec<u64> = behind.take_while(|place| *place < last).collect();
    all.extend([first, last]);
    all.sort_unstable();
    all.dedup();
    all
}

fn stamp(place: u64, run: u64) -> Stamp {
    let mut stamp = Stamp::default();
    stamp[..8].copy_from_slice(&(place ^ 0x5a6f_6e65_0000_0000).to_le_bytes());
    stamp[8..].copy_from_slice(&run.to_le_bytes());
    stamp
}

/// Writes a stamp at each offset in ascending order, and compares afterwards.
fn wraps(target: &mut impl Stamps, last: u64) -> Result<(), TargetError> {
    let run = target.now().nanos() | 1;
    let places = places(last);
    for place in &places {
        match target.stamp(Lba(*place), stamp(*place, run)) {
            Ok(()) => {}
            // A drive with zones refuses this; its zone table gives its size.
            Err(TargetError::Failed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    for place in &places {
        let found = target.read_stamp(Lba(*place))?;
        if found == stamp(*place, run) {
            continue;
        }
        let other = places.iter().find(|other| found == stamp(**other, run));
        return Err(match other {
            Some(other) => TargetError::Wraps {
                reported: (last + 1) * BLOCK_BYTES,
                at: other * BLOCK_BYTES,
                found: place * BLOCK_BYTES,
            },
            None => TargetError::Forgets {
                at: place * BLOCK_BYTES,
            },
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_powers_of_two_apart_and_on_the_drive() {
        assert_eq!(places(0), [0]);
        assert_eq!(places(100), [5, 13, 21, 37, 69, 100]);
        assert!(places(u64::MAX / BLOCK_BYTES).len() < 60);
    }
}
