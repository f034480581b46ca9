//! What the findings mean for the owner of the drive, in numbers. They come from closed forms, so they are only as
//! good as the measured times.

use crate::finding::{CacheType, CleaningType, DriveType, Findings, Mapping};
use drive_model::BLOCK_BYTES;
use serde::Serialize;

/// Derived figures. A missing one does not apply, or could not be determined.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Meaning {
    /// Random writes of 4 KiB, 31 at a time, until the drive cleans.
    pub burst_writes: Option<u64>,
    /// Such writes a second until then.
    pub burst_writes_per_second: Option<f64>,
    /// Writes of 4 KiB, one at a time, until the drive cleans, if those are fewer.
    pub burst_writes_one_at_a_time: Option<u64>,
    /// Random writes a second in the long run without a pause, 31 at a time.
    pub sustained_writes_per_second: Option<f64>,
    /// Hours in which it cleans all of its bands and takes hardly any write, where bursts and cleaning take
    /// turns: its cache fills up in all parts at once. Not so where room comes back write by write.
    pub hours_of_cleaning: Option<f64>,
    /// Number of bands that the drive cleans in an idle hour, if it cleans when idle.
    pub bands_an_idle_hour: Option<f64>,
    /// Hours to write every block once in order, as a RAID rebuild does.
    pub rebuild_hours: Option<f64>,
}

/// Derives the figures for a drive of `blocks` blocks.
pub fn meaning(f: &Findings, blocks: u64) -> Meaning {
    let rebuild_hours = rebuild_hours(f, blocks);
    if f.drive_type.map(|kind| kind.value) != Some(DriveType::DriveManaged) {
        return Meaning {
            rebuild_hours,
            ..Meaning::default()
        };
    }
    let aggressive = f.cleaning.map(|cleaning| cleaning.value) == Some(CleaningType::Aggressive);
    let idle = f.band_cleaning_ms.filter(|_| aggressive);
    let mut all = Meaning {
        burst_writes: f
            .map_limit()
            .or(f.burst_bytes().map(|bytes| bytes / BLOCK_BYTES)),
        burst_writes_per_second: f.burst_writes_per_second,
        burst_writes_one_at_a_time: f.writes_until_full,
        bands_an_idle_hour: idle.map(|ms| 3.6e6 / ms),
        rebuild_hours,
        ..Meaning::default()
    };
    let (Some(burst), Some(quick), Some(band), Some(ms)) = (
        all.burst_writes,
        all.burst_writes_per_second,
        f.middle_band(),
        f.band_cleaning_ms,
    ) else {
        return all;
    };
    let bands = (blocks * BLOCK_BYTES) as f64 / band as f64;
    // Blocks of a band in the cache when the cache is full.
    let each = burst as f64 / bands;
    // Those that were written at random lie anywhere in it: half a turn for each, if it turns.
    let on_disk = f.cache_type.map(|cache| cache.value) == Some(CacheType::Disk);
    let another_ms = f.turn_ms.filter(|_| on_disk).map_or(0.0, |turn| turn / 2.0);
    let band_seconds = (ms + another_ms * (each - 1.0).max(0.0)) / 1e3;
    // A map's or a log's room comes back entry by entry: each band that is cleaned makes room for its
    // blocks and the one that it was cleaned for, (1 + C/B) / t with a cache of C blocks over B bands.
    // Else a part of the cache is free when all of its bands are cleaned, and then for as many writes.
    let (writes, seconds) = if f.map_limit().is_some() {
        (1.0 + each, band_seconds)
    } else {
        all.hours_of_cleaning = Some(bands * band_seconds / 3600.0);
        (burst as f64, bands * band_seconds)
    };
    all.sustained_writes_per_second = Some(writes / (writes / quick + seconds));
    all
}

/// At the rate of sequential reads, from the outermost tracks to the innermost, if such writes go to their
/// places; else into the cache and out of it again, and each band is cleaned.
fn rebuild_hours(f: &Findings, blocks: u64) -> Option<f64> {
    let (outer, inner) = f.sequential_bytes_per_second?;
    let mean = f64::midpoint(outer, inner);
    let bytes = (blocks * BLOCK_BYTES) as f64;
    let straight = (mean > 0.0).then(|| bytes / mean / 3600.0)?;
    let managed = f.drive_type.map(|kind| kind.value) == Some(DriveType::DriveManaged);
    if !managed || f.stream_bytes.is_some() {
        return Some(straight);
    }
    // Whether a drive streams that moves its bands cannot be seen in the positions of blocks.
    if f.mapping.map(|mapping| mapping.value) != Some(Mapping::Static) {
        return None;
    }
    let bands = bytes / f.middle_band()? as f64;
    // Flash may be slower than the disk. Large writes to a cache on the disk were at random, and these are not.
    let on_flash = f.cache_type.map(|cache| cache.value) == Some(CacheType::Flash);
    let cached = f.burst_bytes_per_second.filter(|_| on_flash);
    let cached = cached.map(|rate| bytes / rate / 3600.0);
    Some(
        2.0 * cached.map_or(straight, |hours| hours.max(straight))
            + bands * f.band_cleaning_ms? / 3.6e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Bound, Finding, Size};

    fn managed() -> Findings {
        Findings {
            drive_type: Some(Finding::new(DriveType::DriveManaged, 1.0)),
            band_bytes: [Some(40 << 20); 3],
            band_cleaning_ms: Some(1_000.0),
            burst_writes_per_second: Some(100.0),
            sequential_bytes_per_second: Some((150e6, 50e6)),
            ..Findings::default()
        }
    }

    #[test]
    fn a_rebuild_takes_as_long_as_the_whole_drive_at_its_mean_rate() {
        let mut f = Findings {
            drive_type: Some(Finding::new(DriveType::Conventional, 1.0)),
            ..Findings::default()
        };
        let blocks = 3_600_000_000_000 / BLOCK_BYTES;
        assert_eq!(
            meaning(&f, blocks),
            Meaning::default(),
            "the rate is not known"
        );
        f.sequential_bytes_per_second = Some((150e6, 50e6));
        let hours = meaning(&f, blocks).rebuild_hours.unwrap();
        assert!((hours - 10.0).abs() < 0.01, "{hours}");
        assert_eq!(meaning(&managed(), blocks).rebuild_hours, None);
        let fixed = Findings {
            mapping: Some(Finding::new(Mapping::Static, 1.0)),
            ..managed()
        };
        // Through a cache: twice that, and a second for each of 85,831 bands.
        let hours = meaning(&fixed, blocks).rebuild_hours.unwrap();
        assert!((hours - 20.0 - 23.84).abs() < 0.01, "{hours}");
        let streams = Findings {
            stream_bytes: Some(8 << 20),
            ..managed()
        };
        let hours = meaning(&streams, blocks).rebuild_hours.unwrap();
        assert!((hours - 10.0).abs() < 0.01, "{hours}");
    }

    #[test]
    fn room_that_comes_back_by_entry_is_sustained_and_that_by_band_takes_turns() {
        let blocks = 100_000 * (40 << 20) / BLOCK_BYTES;
        // One block of each band.
        let by_entry = Findings {
            map_entries: Some(Size::exact(100_000)),
            ..managed()
        };
        let found = meaning(&by_entry, blocks);
        let rate = found.sustained_writes_per_second.unwrap();
        assert!((rate - 2.0 / 1.02).abs() < 1e-3, "{rate}");
        assert_eq!(found.hours_of_cleaning, None);
        // 100 of each: 10⁵ seconds of writing 10⁷ at 100 a second, and 10⁵ of cleaning.
        let by_band = Findings {
            cache_bytes: Some(Size::exact(10_000_000 * BLOCK_BYTES)),
            ..managed()
        };
        let found = meaning(&by_band, blocks);
        let rate = found.sustained_writes_per_second.unwrap();
        assert!((rate - 50.0).abs() < 0.1, "{rate}");
        let hours = found.hours_of_cleaning.unwrap();
        assert!((hours - 27.8).abs() < 0.1, "{hours}");
        // Only a drive that cleans when it is idle gains by a pause.
        assert_eq!(found.bands_an_idle_hour, None);
        // It was never made to clean: what the test wrote is no burst of the drive's.
        let unmet = Findings {
            cache_bytes: Some(Size::at_least(10_000_000 * BLOCK_BYTES, Bound::Test)),
            ..managed()
        };
        let found = meaning(&unmet, blocks);
        let numbers = (found.burst_writes, found.hours_of_cleaning);
        assert_eq!(numbers, (None, None));
        assert_eq!(found.sustained_writes_per_second, None);
    }

    #[test]
    fn more_blocks_of_a_band_take_longer_on_a_disk() {
        let blocks = 1_000 * (40 << 20) / BLOCK_BYTES;
        let on = |cache| Findings {
            map_entries: Some(Size::exact(201_000)),
            turn_ms: Some(10.0),
            cache_type: Some(Finding::new(cache, 1.0)),
            burst_writes_per_second: Some(1e9),
            ..managed()
        };
        let rate = |f: &Findings| meaning(f, blocks).sustained_writes_per_second.unwrap();
        assert!((rate(&on(CacheType::Disk)) - 202.0 / 2.0).abs() < 0.1);
        assert!((rate(&on(CacheType::Flash)) - 202.0).abs() < 0.1);
    }
}
