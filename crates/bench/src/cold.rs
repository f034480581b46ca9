//! Files as nobody has read them yet, and an order of reads that nobody foresees.

use crate::error::{Error, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// Has the host forget what it has in memory of a file; what is not on its disk stays. Of a device, or where the
/// host does not do it, nothing happens.
///
/// # Errors
/// The file cannot be opened.
pub fn forget(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    // Without it the figures are of reads from memory, on both sides.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// The number of the piece that is read as the `nth` of `count`: all of them, each far from the one before, so that the
/// host has not read it ahead. Who asks for objects does so in no order of theirs.
pub const fn scattered(nth: u64, count: u64) -> u64 {
    // The golden section of them, or the next number that has no factor in common with theirs.
    let mut step = (count as u128 * 618 / 1000) as u64 + 1;
    while common_factor(step, count) != 1 {
        step += 1;
    }
    (nth as u128 * step as u128 % count as u128) as u64
}

const fn common_factor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_piece_is_read_once_and_none_behind_the_one_before() {
        for count in [1, 2, 3, 10, 64, 97, 128, 1000, 4096] {
            let order: Vec<u64> = (0..count).map(|nth| scattered(nth, count)).collect();
            let pieces: BTreeSet<u64> = order.iter().copied().collect();
            assert_eq!(pieces, (0..count).collect(), "of {count}");
            let ahead = order.windows(2).filter(|two| two[1] == two[0] + 1).count();
            assert!(count < 8 || ahead == 0, "{ahead} of {count}: {order:?}");
        }
    }
}
