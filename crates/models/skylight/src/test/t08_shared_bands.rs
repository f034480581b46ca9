//! How many bands a set-associative cache has (behind test 8). Where a band of data can only go into one
//! band of the cache, the cache is full as soon as the most shared of these is, so that what fills it says
//! how many bands of data share one, and no more. So one band of the cache is filled, by writes in one
//! band of data, and then each further band of data is written to: the first that has to wait shares it.
//! What lies between the two is as large as the cache.

use crate::target::{Target, TargetError};
use crate::test::t11_band_size::{Usual, until_one_waits};
use drive_model::{Lba, Request};

/// Blocks of a write that fills, and of one that looks whether a band is full: more than is left free.
const FILLING: u32 = 64;
const LOOKING: u32 = 320;
/// Blocks that may be left free: two writes that were cut short, and what a band's size may be off by.
const LEFT: u64 = 192;

/// A band of data: its first block, and how many it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// Its first block.
    pub first: Lba,
    /// Blocks.
    pub blocks: u64,
}

impl Band {
    /// Writes within it that add up to so many blocks, not near its edges.
    fn writes(self, blocks: u64) -> impl Iterator<Item = Request> {
        let room = (self.blocks / 2 / u64::from(FILLING)).max(1);
        let first = self.first.plus(self.blocks / 4);
        let place = move |n| first.plus(n % room * u64::from(FILLING));
        (0..blocks / u64::from(FILLING)).map(move |n| Request::write(place(n), FILLING))
    }
}

/// Fills the band's part of the cache but for [`LEFT`] blocks and a write. Whether that is how the drive is
/// made: a write waits for cleaning each time when the blocks of a band have been written.
fn fill(target: &mut dyn Target, band: Band, usual: &mut Usual) -> Result<bool, TargetError> {
    // What is in there already is not known, and some of it may not count.
    if until_one_waits(target, usual, band.writes(3 * band.blocks))?.is_none() {
        return Ok(false);
    }
    let all = band.blocks.saturating_sub(LEFT);
    Ok(until_one_waits(target, usual, band.writes(all))?.is_none())
}

/// Runs the workload, with an empty cache. Blocks between two bands that share one of the cache's; none
/// if there are no such two, as far as `most` blocks. A band takes `band_ms`, if that is known.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    band: Band,
    most: u64,
    band_ms: Option<f64>,
) -> Result<Option<u64>, TargetError> {
    let usual = &mut Usual::for_bands(band_ms);
    if band.blocks < LEAST_BAND || !fill(target, band, usual)? {
        return Ok(None);
    }
    // What is full but for a little shows in the next few writes.
    let full = until_one_waits(target, usual, band.writes(2 * LEFT))?.is_some();
    if !full || !fill(target, band, usual)? {
        return Ok(None);
    }
    let last = target.blocks().saturating_sub(2 * band.blocks);
    let most = most.min(last.saturating_sub(band.first.0));
    // At a quarter and at three of each, so that no band is passed over if the size is off by a little.
    let quarter = band.first.plus(band.blocks / 4);
    let half = band.blocks / 2;
    let look = |n: u64| Request::write(quarter.plus(n * half), LOOKING);
    let looking = &mut Usual::for_bands(band_ms);
    until_one_waits(target, looking, others(band))?;
    let looks = (NEXT..most / half).map(look);
    let Some(waited) = until_one_waits(target, looking, looks)? else {
        return Ok(None);
    };
    let halves = NEXT + waited.before;
    // Once more, without most of the bands between.
    if !fill(target, band, usual)? {
        return Ok(None);
    }
    let again = [halves + 3, halves.saturating_sub(3).max(NEXT), halves];
    let again = until_one_waits(target, looking, again.map(look))?;
    let same = again.is_some_and(|again| again.before == 2);
    Ok(same.then(|| distance(halves, band.blocks)))
}

/// Half bands to the next band.
const NEXT: u64 = 2;
/// Blocks of a band whose part of the cache is not filled by what looks at it.
const LEAST_BAND: u64 = 4 * LOOKING as u64;

/// Writes that say how long one takes that waits for nothing, in a few bands in front of one.
fn others(band: Band) -> impl Iterator<Item = Request> {
    let place = move |n: u64| {
        let back = (2 + n % 6) * band.blocks;
        Lba(band.first.0.saturating_sub(back) + band.blocks / 4)
    };
    (0..Usual::ENOUGH as u64).map(move |n| Request::write(place(n), LOOKING))
}

/// Blocks between two bands, from half bands: whole bands, as long as these add up exactly enough.
const fn distance(halves: u64, band: u64) -> u64 {
    // A band's size is off by two blocks, so that so many of them are off by a quarter of one.
    if halves * 4 < band {
        halves / 2 * band
    } else {
        halves * band / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_whole_bands_as_far_as_these_are_known() {
        assert_eq!(distance(32, 10_000), 160_000);
        assert_eq!(distance(33, 10_000), 160_000);
        assert_eq!(distance(4_001, 10_000), 20_005_000);
    }
}
