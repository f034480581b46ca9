//! Cold reads: drops a file from the page cache, and gives an order of reads that read-ahead does not help.

use crate::error::{Error, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// Has the host drop the clean pages of a file from its page cache. On a device, or where the host does not support
/// this, nothing happens.
///
/// # Errors
/// The file cannot be opened.
pub fn forget(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    // If this fails, both sides are measured with reads from memory.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// The piece that is read as the `nth` of `count`: each piece once, far from the one before, so that the host has not
/// read it ahead. Clients ask for objects in such an order, too.
pub const fn scattered(nth: u64, count: u64) -> u64 {
    // The golden section of `count`, or the next number that has no factor in common with it.
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
