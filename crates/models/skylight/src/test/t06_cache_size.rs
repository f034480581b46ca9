//! Tests 6 to 8 (section 2.4.6): how much can be written until the drive begins to clean: small
//! writes one at a time (journal entries), small ones many at a time (map), large ones many at a
//! time (bytes).

use crate::fill::{Filled, Until, spread, until_cleaning, visit};
use crate::finding::{Bound, Size};
use crate::target::{Target, TargetError};
use drive_model::{BLOCK_BYTES, Lba, Request};
use std::ops::ControlFlow;

/// What the drive is written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Test 6: 4 KiB, one at a time.
    Entries,
    /// Test 7: 4 KiB, 31 at a time.
    Map,
    /// The same, 12 at a time: entries of a journal have fewer of them, a map has as many.
    Fewer,
    /// Test 8: so many blocks, 31 at a time.
    Bytes {
        /// Blocks of a write.
        blocks: u32,
    },
}

impl Load {
    const fn blocks(self) -> u32 {
        match self {
            Self::Entries | Self::Map | Self::Fewer => 1,
            Self::Bytes { blocks } => blocks,
        }
    }

    const fn depth(self) -> usize {
        match self {
            Self::Entries => 1,
            Self::Fewer => 12,
            Self::Map | Self::Bytes { .. } => 31,
        }
    }
}

/// Runs the workload, until what `until_cleaning` says, spread evenly over its first `room` blocks. A cache in
/// parts is full when one of them is: where `band` blocks belong together and are known, each band
/// is written once before the first is written again, so that all parts fill alike.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    load: Load,
    (band, room): (Option<u64>, u64),
    until: Until,
) -> Result<Filled, TargetError> {
    let place = places(load, (band, room));
    until_cleaning(target, load.depth(), until, |n| {
        Request::write(Lba(place(n)), load.blocks())
    })
}

/// The first block of each write.
fn places(load: Load, (band, room): (Option<u64>, u64)) -> impl Fn(u64) -> u64 {
    let blocks = u64::from(load.blocks());
    let band = band.filter(|band| *band >= blocks);
    let bands = band.map_or(1, |band| room / band);
    move |n| match band {
        Some(band) => {
            let (pass, which) = (n / bands, visit(n, bands));
            which * band + spread(pass, band / blocks) * blocks
        }
        None => spread(n, room / blocks) * blocks,
    }
}

/// Number of blocks that show whether what was written has been cleaned.
const SAMPLE: u64 = 256;

/// Last blocks of some of the first `writes`: what lies behind such a block was not written together with it.
pub fn sample(load: Load, (band, room): (Option<u64>, u64), writes: u64) -> Vec<Lba> {
    let place = places(load, (band, room));
    let all = (0..SAMPLE.min(writes)).map(|n| place(n * writes / SAMPLE.min(writes)));
    let last = all.map(|first| Lba(first + u64::from(load.blocks()) - 1));
    last.filter(|lba| lba.0 + 1 < room).collect()
}

/// What follows: the writes until it cleaned.
pub fn infer(filled: &Filled) -> Option<u64> {
    filled.stalled.then_some(filled.writes)
}

/// Of a size that is said, this much may be another's.
const SAME: f64 = 0.03;
/// A journal counts as used up by writes that took so much of the time in which single ones use it up.
const USED_UP: f64 = 0.9;
/// With less it was not, whatever the noise.
const MAY_BE_USED_UP: f64 = 0.5;

/// What the drive was seen to run out of with small writes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Limits {
    /// Entries of its map: writes of test 7, which each are an entry of their own.
    pub map: Option<u64>,
    /// Milliseconds of single writes until its journal has no room for another entry (test 6): as long as
    /// the head takes to pass over all of it, whatever is written.
    pub journal_ms: Option<f64>,
}

impl Limits {
    /// Those that follow from tests 7 and 6.
    pub fn new(map: &Filled, entries: &Filled) -> Self {
        // Single writes that met the map's limit say nothing of a journal.
        let journal = infer(entries).filter(|writes| *writes < below(map.writes));
        Self {
            map: infer(map),
            journal_ms: journal.map(|_| busy_ms(entries)),
        }
    }

    /// Whether the journal may have ended test 7, by a time that noise makes longer or shorter.
    pub fn may_be_journal(&self, map: &Filled) -> bool {
        let all = self.journal_ms;
        all.is_some_and(|all| busy_ms(map) > MAY_BE_USED_UP * all) && !self.used_up(map)
    }

    /// The size of the map, out of test 7, and of the same with fewer writes at a time if there is doubt.
    pub fn map_size(&self, map: &Filled, fewer: Option<&Filled>) -> Option<Size> {
        let less = fewer.is_some_and(|fewer| fewer.writes < below(map.writes));
        Some(if self.used_up(map) || less {
            Size::at_least(self.map?, Bound::Journal)
        } else {
            Size::exact(self.map?)
        })
    }

    fn used_up(&self, filled: &Filled) -> bool {
        let all = self.journal_ms;
        all.is_some_and(|all| busy_ms(filled) > USED_UP * all)
    }

    /// What ended a fill with large writes, if it was not the cache itself.
    pub fn ended(&self, filled: &Filled) -> Option<Bound> {
        if !filled.stalled {
            Some(Bound::Test)
        } else if self.map.is_some_and(|map| filled.writes > below(map)) {
            Some(Bound::Map)
        } else {
            self.used_up(filled).then_some(Bound::Journal)
        }
    }
}

/// Less than that is not the same.
fn below(size: u64) -> u64 {
    (size as f64 * (1.0 - SAME)) as u64
}

/// Milliseconds of all writes until it cleaned, without those that a merge of the map takes once in a while.
fn busy_ms(filled: &Filled) -> f64 {
    filled.before_ms * filled.writes as f64
}

/// The size of the cache so far: from a fill with writes of so many blocks, and the bytes of one with
/// smaller ones. Larger writes may say more where the map ended it, for each takes an entry whatever its
/// length, unless it is longer than an entry can be: the bytes so far.
pub fn cache_size(
    limits: &Limits,
    (blocks, filled): (u32, &Filled),
    smaller: Option<u64>,
) -> ControlFlow<Size, u64> {
    let bytes = filled.writes * u64::from(blocks) * BLOCK_BYTES;
    let more = smaller.is_none_or(|smaller| below(bytes) > smaller);
    let most = bytes.max(smaller.unwrap_or(0));
    match limits.ended(filled) {
        None if more => ControlFlow::Break(Size::exact(bytes)),
        // Twice as large, and no more of them fit: their entries are cut to a length.
        None => ControlFlow::Break(Size::at_least(most, Bound::Map)),
        Some(Bound::Map) if more && blocks < LARGEST_WRITE => ControlFlow::Continue(bytes),
        Some(bound) => ControlFlow::Break(Size::at_least(most, bound)),
    }
}

/// Blocks of the largest write: 16 MiB.
pub const LARGEST_WRITE: u32 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(writes: u64, before_ms: f64) -> Filled {
        Filled {
            writes,
            stalled: true,
            before_ms,
            stall_ms: 1_000.0,
            beyond_ms: None,
            latencies: [before_ms].into_iter().collect(),
        }
    }

    /// Table 2.2: 31 small writes an entry of 5 half tracks, one every 25 ms.
    #[test]
    fn a_map_that_the_journal_ended_is_at_least_that_large() {
        let single = filled(22_800, 25.0);
        let map = filled(182_231, 25.0 / 31.0);
        let limits = Limits::new(&map, &single);
        assert_eq!(limits.map_size(&map, None), Some(Size::exact(182_231)));
        // A journal of fewer entries than the map would fill.
        let (single, map) = (filled(4_400, 25.0), filled(136_400, 25.0 / 31.0));
        let limits = Limits::new(&map, &single);
        let at_least = Size::at_least(136_400, Bound::Journal);
        assert_eq!(limits.map_size(&map, None), Some(at_least));
        // Single writes that fill the map are no journal's.
        let (single, map) = (filled(20_000, 10.0), filled(20_000, 0.5));
        let limits = Limits::new(&map, &single);
        assert_eq!(limits.journal_ms, None);
        assert_eq!(limits.map_size(&map, None), Some(Size::exact(20_000)));
    }

    /// 16.8 GiB in a map that holds 9 GiB of writes of 256 KiB.
    #[test]
    fn a_cache_that_the_map_ended_is_filled_with_larger_writes() {
        let (single, map) = (filled(22_800, 25.0), filled(36_864, 0.8));
        let limits = Limits::new(&map, &single);
        let small = filled(36_800, 2.5);
        let smaller = 36_800 << 18;
        let first = cache_size(&limits, (64, &small), None);
        assert_eq!(first, ControlFlow::Continue(smaller));
        let large = filled(34_406, 5.0);
        let size = cache_size(&limits, (128, &large), Some(smaller));
        assert_eq!(size, ControlFlow::Break(Size::exact(34_406 << 19)));
        // Entries no longer than those before: as many bytes, and who knows what ended it.
        let cut = filled(18_400, 5.0);
        let size = cache_size(&limits, (128, &cut), Some(smaller));
        assert_eq!(
            size,
            ControlFlow::Break(Size::at_least(36_800 << 18, Bound::Map))
        );
        // The journal is passed over once.
        let all = filled(20_000, 28.0);
        let size = cache_size(&limits, (64, &all), None);
        assert_eq!(
            size,
            ControlFlow::Break(Size::at_least(20_000 << 18, Bound::Journal))
        );
    }
}
