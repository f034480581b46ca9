//! Tests 6 to 8 (section 2.4.6): how much can be written until the drive begins to clean: small
//! writes one at a time (journal entries), small ones many at a time (map), large ones many at a
//! time (bytes).

use crate::fill::{Filled, spread, until_cleaning, visit};
use crate::target::{Target, TargetError};
use drive_model::{Lba, Request};

/// What the drive is written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Test 6: 4 KiB, one at a time.
    Entries,
    /// Test 7: 4 KiB, 31 at a time.
    Map,
    /// Test 8: so many blocks, 31 at a time.
    Bytes {
        /// Blocks of a write.
        blocks: u32,
    },
}

impl Load {
    const fn blocks(self) -> u32 {
        match self {
            Self::Entries | Self::Map => 1,
            Self::Bytes { blocks } => blocks,
        }
    }

    const fn depth(self) -> usize {
        match self {
            Self::Entries => 1,
            Self::Map | Self::Bytes { .. } => 31,
        }
    }
}

/// Has the drive do it, with a limit as of [`until_cleaning`], spread evenly over its first `room` blocks. A cache in
/// parts is full when one of them is: where `band` blocks belong together and are known, each band
/// is written once before the first is written again, so that all parts fill alike.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    load: Load,
    (band, room): (Option<u64>, u64),
    limit: (u64, u64),
) -> Result<Filled, TargetError> {
    let blocks = u64::from(load.blocks());
    let all = room;
    let band = band.filter(|band| *band >= blocks);
    let bands = band.map_or(1, |band| all / band);
    let place = move |n: u64| match band {
        Some(band) => {
            let (pass, which) = (n / bands, visit(n, bands));
            which * band + spread(pass, band / blocks) * blocks
        }
        None => spread(n, all / blocks) * blocks,
    };
    until_cleaning(target, load.depth(), limit, |n| {
        Request::write(Lba(place(n)), blocks as u32)
    })
}

/// What follows: the writes until it cleaned.
pub fn infer(filled: &Filled) -> Option<u64> {
    filled.stalled.then_some(filled.writes)
}
