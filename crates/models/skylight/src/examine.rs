//! Runs the tests in an order in which each has the results that it needs.

use crate::fill::{Filled, Until};
use crate::finding::{
    Bound, CachePlace, CacheType, CleaningType, DriveType, Findings, Mapping, Size,
};
use crate::place::clean;
use crate::place::{LARGEST_BAND, MOST_HOURS, is_exact, turn};
use crate::target::{Target, TargetError};
use crate::test::t08_shared_bands::Band;
use crate::test::{
    t01_drive_type, t02_cache_place, t03_cleaning_type, t04_cleaning_order, t06_cache_size,
    t08_shared_bands, t09_circular_log, t11_band_size, t11_band_time, t11_few_writes, t12_mapping,
    t13_torn_writes, t14_zone_structure, t15_streaming,
};
use drive_model::Random;
use drive_model::{BLOCK_BYTES, Lba, Span, Time};
use std::ops::ControlFlow;

/// Measurements for the figures.
#[derive(Clone, Default, Debug)]
pub struct Observations {
    /// Test 1.
    pub drive_type: Option<t01_drive_type::Observed>,
    /// Latency by size, after test 1, if it was requested for the figures.
    pub by_size: Option<t01_drive_type::BySize>,
    /// Test 2.
    pub cache_place: Option<t02_cache_place::Observed>,
    /// Test 3.
    pub cleaning_type: Option<t03_cleaning_type::Observed>,
    /// Test 4.
    pub cleaning_order: Option<t04_cleaning_order::Observed>,
    /// Tests 4 and 5 exactly as in the paper, if they were requested for the figures.
    pub over_time: Option<t04_cleaning_order::Reads>,
    /// Test 5.
    pub three_steps: Option<t04_cleaning_order::Reads>,
    /// Tests 6, 7 and 8.
    pub fills: Vec<(t06_cache_size::Load, Filled)>,
    /// Tests 9 and 10.
    pub circular_log: Option<t09_circular_log::Observed>,
    /// Test 11, by region and grid.
    pub bands: Vec<Vec<t11_band_size::Observed>>,
    /// Test 12.
    pub mapping: Option<t12_mapping::Observed>,
    /// Test 13, if the target's power can be cut.
    pub torn_writes: Option<t13_torn_writes::Observed>,
    /// Test 14.
    pub zone_structure: Option<t14_zone_structure::Observed>,
    /// Test 15.
    pub streaming: Option<t15_streaming::Observed>,
}

/// Extent of the examination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Finds only the kind of drive, which writes some megabytes.
    pub quick: bool,
    /// Seed of all random positions.
    pub seed: u64,
}

/// As [`examine`], with additional measurements that only figures need and that take hours of the drive's time.
pub fn examine_for_figures(
    target: &mut dyn Target,
    options: Options,
    progress: &mut dyn FnMut(&str),
) -> (Findings, Observations, Result<(), TargetError>) {
    go(target, options, progress, true)
}

/// Examines a drive, and tells `progress` the next step. If the target stops answering, the findings up to then are
/// kept.
pub fn examine(
    target: &mut dyn Target,
    options: Options,
    progress: &mut dyn FnMut(&str),
) -> (Findings, Observations, Result<(), TargetError>) {
    go(target, options, progress, false)
}

fn go(
    target: &mut dyn Target,
    options: Options,
    progress: &mut dyn FnMut(&str),
    figures: bool,
) -> (Findings, Observations, Result<(), TargetError>) {
    let mut examination = Examination {
        target,
        random: Random::new(options.seed),
        progress,
        figures,
        findings: Findings::default(),
        seen: Observations::default(),
        start: Time::START,
        band: None,
        written: Vec::new(),
    };
    let result = examination.all(options.quick);
    examination.findings.seconds = examination.target.now().since(examination.start).seconds();
    (examination.findings, examination.seen, result)
}

struct Examination<'a> {
    target: &'a mut dyn Target,
    random: Random,
    progress: &'a mut dyn FnMut(&str),
    figures: bool,
    findings: Findings,
    seen: Observations,
    start: Time,
    /// A band in the middle of the drive, if its edges are known.
    band: Option<Band>,
    /// Some blocks of the last fill, until they are known to have been cleaned.
    written: Vec<Lba>,
}

/// Most writes to find a limit in a drive that may have none. A finding that rests on this bound says so.
const MOST_ENTRIES: u64 = 60_000;
const MOST_MAP: u64 = 640 << 10;
/// Number of writes to measure the rate where no limit is searched for.
const FOR_A_RATE: u64 = 20_000;
/// Blocks of a write that fills a cache.
const LARGE: u32 = 64;
/// Milliseconds that a drive may need for its map from time to time, where the time of a band is not known.
const HICCUP_MS: f64 = 400.0;
/// Least milliseconds by which each pause is longer than the last: no band takes less than twice as long.
const LEAST_STEP_MS: f64 = 25.0;
/// Number of bands made dirty in a drive that cannot be erased, at about a second each.
const MOST_BANDS: u64 = 8_192;
/// Tests from 2 on need room between the positions that they write: 16 GiB.
const LEAST_BLOCKS: u64 = 16 << 18;
/// Test 14 needs room between those that it reads: 64 MiB.
const LEAST_READ: u64 = 64 << 8;

impl Examination<'_> {
    fn all(&mut self, quick: bool) -> Result<(), TargetError> {
        self.start = self.target.now();
        (self.progress)("size");
        self.target.check_size(true)?;
        let durable = self.target.set_volatile_cache(false);
        self.target.set_look_ahead(false);
        (self.progress)("rotation");
        let turn_ms = turn(self.target, &mut self.random)?;
        self.findings.turn_ms = turn_ms;
        (self.progress)("test 1, drive type");
        let random = &mut self.random;
        let mut test = || t01_drive_type::workload(self.target, turn_ms, durable, random);
        let mut seen = test()?;
        if seen.refused.is_none() && t01_drive_type::infer(&seen).is_err() {
            // Once more, because the drive may have cleaned the tested blocks meanwhile.
            seen = test()?;
        }
        let inferred = t01_drive_type::infer(&seen);
        let refused = seen.refused;
        let exact = turn_ms.is_none_or(|turn_ms| is_exact(&seen.control, turn_ms));
        self.seen.drive_type = Some(seen);
        let (kind, cache) = match inferred {
            Ok(found) => found,
            Err(why) => {
                self.findings.unknown.push(format!("kind of drive: {why}"));
                return refused.map_or(Ok(()), |lba| Err(TargetError::refused(self.target, lba)));
            }
        };
        self.findings.drive_type = Some(kind);
        self.findings.cache_type = cache;
        let (Some(turn_ms), false) = (turn_ms, quick) else {
            return Ok(());
        };
        let managed = kind.value == DriveType::DriveManaged;
        let hindered = if !exact {
            Some("what is inside: something disturbs the times, such as other requests")
        } else {
            let least = if managed { LEAST_BLOCKS } else { LEAST_READ };
            (self.target.blocks() < least)
                .then_some("what is inside: it is too small to be looked into")
        };
        let conventional = kind.value == DriveType::Conventional;
        if conventional && self.target.blocks() < LEAST_READ {
            self.findings.unknown.extend(hindered.map(str::to_owned));
            return Ok(());
        }
        if let Some(why) = hindered {
            if managed {
                self.findings.unknown.push(why.into());
            } else if conventional {
                // The rate of sequential reads needs no exact times.
                (self.progress)("test 14, zone structure");
                let across = t14_zone_structure::across(self.target)?;
                self.findings.sequential_bytes_per_second = Some(t14_zone_structure::rate(&across));
            }
            return Ok(());
        }
        if !managed {
            // A drive with zones may answer reads of unwritten blocks without its medium.
            return if conventional {
                self.zone_structure(turn_ms)
            } else {
                Ok(())
            };
        }
        if cache.is_some_and(|cache| cache.value == CacheType::Disk) {
            (self.progress)("test 2, cache location");
            let seen = t02_cache_place::workload(self.target, &mut self.random)?;
            self.findings.cache_place = t02_cache_place::infer(&seen);
            if self.findings.cache_place.is_none() {
                let why =
                    "location of the cache: one place does not explain the seeks, nor do many";
                self.findings.unknown.push(why.into());
            }
            self.seen.cache_place = Some(seen);
        }
        (self.progress)("test 3, cleaning type");
        let seen = t03_cleaning_type::workload(self.target, turn_ms, &mut self.random)?;
        let cleaning = t03_cleaning_type::infer(&seen);
        self.findings.cleaning = Some(cleaning);
        self.seen.cleaning_type = Some(seen);
        let aggressive = cleaning.value == CleaningType::Aggressive;
        if aggressive {
            (self.progress)("tests 4 and 5, cleaning algorithm");
            self.clean()?;
            let seen = t04_cleaning_order::workload(self.target, turn_ms, &mut self.random)?;
            (self.findings.fifo, self.findings.band_cleaning_ms) = t04_cleaning_order::infer(&seen);
            self.seen.cleaning_order = Some(seen);
        }
        self.bands(turn_ms, aggressive)?;
        if aggressive || self.target.can_erase() {
            self.sizes()?;
        } else {
            let why = "sizes: it cleans only where it has to, so a full cache cannot be emptied";
            self.findings.unknown.push(why.into());
        }
        (self.progress)("test 15, streaming");
        self.clean()?;
        let seen = t15_streaming::workload(self.target, turn_ms)?;
        self.findings.stream_bytes = t15_streaming::infer(&seen).map(|blocks| blocks * BLOCK_BYTES);
        self.seen.streaming = Some(seen);
        (self.progress)("test 13, torn writes");
        self.seen.torn_writes = t13_torn_writes::workload(self.target)?;
        let seen = self.seen.torn_writes.as_ref();
        self.findings.torn_writes = seen.and_then(t13_torn_writes::infer);
        self.clean()?;
        self.zone_structure(turn_ms)?;
        if self.figures { self.extras() } else { Ok(()) }
    }

    fn zone_structure(&mut self, turn_ms: f64) -> Result<(), TargetError> {
        (self.progress)("test 14, zone structure");
        let seen = t14_zone_structure::workload(self.target, turn_ms, &mut self.random)?;
        let found = t14_zone_structure::infer(&seen);
        self.findings.surfaces = found.surfaces;
        self.findings.zone_bytes = found.stroke_bytes;
        self.findings.sequential_bytes_per_second = Some(found.rate);
        // Only overlapping bands have a direction.
        if self.findings.cache_type.is_some() {
            self.findings.shingling = found.shingling;
            self.findings.serpentine_middle = found.serpentine_middle;
        }
        self.seen.zone_structure = Some(seen);
        Ok(())
    }

    /// Empties the cache, if that is possible. Whether it is known to be empty then.
    fn clean(&mut self) -> Result<bool, TargetError> {
        let lazy =
            self.findings.cleaning.map(|cleaning| cleaning.value) == Some(CleaningType::Lazy);
        if lazy && !self.target.can_erase() {
            return Ok(false);
        }
        let clean = clean(self.target, &self.written)?;
        if clean {
            self.written.clear();
        }
        Ok(clean)
    }

    /// Blocks over which fills are spread: all, or as many as can be cleaned in an hour or two. If each part of the
    /// drive has a cache of its own, all parts have to be included.
    fn fill_room(&self) -> u64 {
        let all = self.target.blocks();
        let on_disk = self.findings.cache_type.map(|cache| cache.value) == Some(CacheType::Disk);
        let parts = match self.findings.cache_place.map(|place| place.value) {
            Some(place) => place == CachePlace::Multiple,
            None => on_disk,
        };
        if parts || self.target.can_erase() {
            return all;
        }
        let band = self.findings.bands().max();
        let bands = band.map_or(0, |bytes| MOST_BANDS * (bytes / BLOCK_BYTES));
        bands.max(all / 25).min(all)
    }

    /// `None`, and no size is said that would follow, if the cache was not known to be empty.
    fn fill(
        &mut self,
        load: t06_cache_size::Load,
        band: Option<u64>,
        most: u64,
    ) -> Result<Option<Filled>, TargetError> {
        if !self.clean()? {
            let why = format!(
                "sizes: after {MOST_HOURS} hours without work, not all that was written had been cleaned"
            );
            self.findings.unknown.push(why);
            return Ok(None);
        }
        let spread = (band, self.fill_room());
        let until = self.until(most);
        let filled = t06_cache_size::workload(self.target, load, spread, until)?;
        self.written = t06_cache_size::sample(load, spread, filled.writes);
        self.seen.fills.push((load, filled.clone()));
        Ok(Some(filled))
    }

    /// Limits of a fill that ends when a write waits longer than half of the cleaning time of a band.
    fn until(&self, most: u64) -> Until {
        let band_ms = self.findings.band_cleaning_ms;
        Until {
            most,
            beyond: self.beyond(),
            hiccup_ms: band_ms.map_or(HICCUP_MS, |ms| ms / 2.0),
        }
    }

    /// Number of writes after a cache is full, to show how the drive continues.
    const fn beyond(&self) -> u64 {
        if self.figures { 3_000 } else { 0 }
    }

    /// Measurements that only figures need. They come after the tests, so that these have the same results with and
    /// without them.
    fn extras(&mut self) -> Result<(), TargetError> {
        use t06_cache_size::Load;
        (self.progress)("more for the figures");
        let aggressive = self.seen.cleaning_order.is_some();
        if self.seen.cache_place.is_none() {
            self.clean()?;
            let seen = t02_cache_place::workload(self.target, &mut self.random)?;
            self.seen.cache_place = Some(seen);
        }
        self.clean()?;
        self.seen.by_size = Some(t01_drive_type::by_size(self.target, &mut self.random)?);
        if aggressive {
            self.clean()?;
            let seen = t04_cleaning_order::over_time(self.target, &mut self.random)?;
            self.seen.over_time = Some(seen);
            self.clean()?;
            let seen = t04_cleaning_order::three_steps(self.target, &mut self.random)?;
            self.seen.three_steps = Some(seen);
        }
        if self.findings.map_limit().is_some() {
            self.fill(Load::Bytes { blocks: 16 }, None, MOST_MAP)?;
            self.fill(Load::Bytes { blocks: 32 }, None, MOST_MAP)?;
        }
        self.clean()?;
        Ok(())
    }

    /// Number of writes for a measurement: few if the size is known.
    const fn most(&self, most: u64) -> u64 {
        let known = self.findings.data_bands_per_cache_band.is_some();
        if known && !self.figures && most > FOR_A_RATE {
            FOR_A_RATE
        } else {
            most
        }
    }

    fn sizes(&mut self) -> Result<(), TargetError> {
        use t06_cache_size::{Limits, Load};
        if self.findings.band_cleaning_ms.is_none() {
            let why = format!(
                "sizes that a write waits for less than {HICCUP_MS:.0} ms for: how long a band takes is not known"
            );
            self.findings.unknown.push(why);
        }
        (self.progress)("cache bands");
        self.shared_bands()?;
        (self.progress)("test 7, cache map size");
        let Some(map) = self.fill(Load::Map, None, self.most(MOST_MAP))? else {
            return Ok(());
        };
        self.findings.burst_writes_per_second = rate(&map);
        (self.progress)("test 8, cache size");
        let room = (self.target.blocks() / 4).min(self.fill_room());
        let load = Load::Bytes { blocks: LARGE };
        let most = self.most(room / u64::from(LARGE));
        let Some(large) = self.fill(load, None, most)? else {
            return Ok(());
        };
        let bytes = f64::from(LARGE) * BLOCK_BYTES as f64;
        self.findings.burst_bytes_per_second = rate(&large).map(|rate| rate * bytes);
        if self.findings.data_bands_per_cache_band.is_some() {
            return Ok(());
        }
        let large_blocks = t06_cache_size::infer(&large).map(|writes| writes * u64::from(LARGE));
        // If small writes took as much space as large ones, they met no limit of their own.
        let own = |blocks: u64| large_blocks.is_none_or(|all| blocks < all / 2);
        if t06_cache_size::infer(&map).is_some_and(own) {
            return self.limited(&map, large, room);
        }
        if !map.stalled {
            let tried = Size::at_least(map.writes, Bound::Test);
            self.findings.map_entries = Some(tried);
        }
        // A cache in parts is full when one part is. Smaller writes fill the parts more evenly: many for each part,
        // however small. If bands move, parts have many bands.
        let band = self.findings.middle_band().map(|bytes| bytes / BLOCK_BYTES);
        let moves = self.findings.mapping.map(|mapping| mapping.value) == Some(Mapping::Dynamic);
        let each = if moves { 128 } else { 1024 };
        let small = band.map_or(8, |band| (band / each).clamp(2, 64)) as u32;
        let load = Load::Bytes { blocks: small };
        let Some(filled) = self.fill(load, band, room / u64::from(small))? else {
            return Ok(());
        };
        let blocks = filled.writes * u64::from(small);
        if large.stalled && filled.stalled && own(blocks) {
            // The map has more entries than test 7 writes.
            let limits = Limits {
                map: Some(filled.writes),
                journal_ms: None,
            };
            self.findings.map_entries = Some(Size::exact(filled.writes));
            return self.cache_size(limits, large, room);
        }
        let bytes = blocks * BLOCK_BYTES;
        // If bands stay in place, the fullest cache band ended the fill, and the number of data bands that share one
        // is unknown.
        self.findings.cache_bytes = Some(match (filled.stalled, moves) {
            (true, true) => Size::exact(bytes),
            (true, false) => Size::at_least(bytes, Bound::Part),
            (false, _) => Size::at_least(bytes, Bound::Test),
        });
        Ok(())
    }

    /// Small writes met a limit of their own: finds out whether it is the map's, and how large the cache is then.
    fn limited(&mut self, map: &Filled, large: Filled, room: u64) -> Result<(), TargetError> {
        use t06_cache_size::{Limits, Load};
        (self.progress)("test 6, writes until cleaning");
        let Some(entries) = self.fill(Load::Entries, None, MOST_ENTRIES)? else {
            return Ok(());
        };
        let full = t06_cache_size::infer(&entries);
        self.findings.writes_until_full = full;
        if full.is_none() {
            let why = format!("a journal with room for more than {MOST_ENTRIES} single writes");
            self.findings.unknown.push(why);
        }
        let limits = Limits::new(map, &entries);
        self.findings.has_journal = limits.journal_ms.is_some();
        let doubtful = limits.may_be_journal(map);
        let fewer = if doubtful {
            self.fill(Load::Fewer, None, MOST_MAP)?
        } else {
            None
        };
        if doubtful && fewer.is_none() {
            return Ok(());
        }
        self.findings.map_entries = limits.map_size(map, fewer.as_ref());
        self.cache_size(limits, large, room)?;
        if let (Some(full), Some(_)) = (full, limits.journal_ms) {
            (self.progress)("tests 9 and 10, circular log");
            let until = self.until(0);
            // Figures need more writes at random places, which change nothing that is drawn later.
            let mut own = Random::new(self.random.below(1 << 53));
            let seen = if self.clean()? {
                t09_circular_log::workload(self.target, &mut own, (full, until))?
            } else {
                None
            };
            self.findings.circular_log = seen.as_ref().and_then(t09_circular_log::infer);
            if self.findings.circular_log.is_none() {
                let why = "whether the cache is a circular log: none was seen to come round";
                self.findings.unknown.push(why.into());
            }
            self.seen.circular_log = seen;
        }
        Ok(())
    }

    /// Size of the cache: by a fill with large writes, and by others of doubled size as long as the map ends it.
    fn cache_size(
        &mut self,
        limits: t06_cache_size::Limits,
        large: Filled,
        room: u64,
    ) -> Result<(), TargetError> {
        let (mut blocks, mut filled, mut smaller) = (LARGE, large, None);
        while let ControlFlow::Continue(bytes) =
            t06_cache_size::cache_size(&limits, (blocks, &filled), smaller)
        {
            smaller = Some(bytes);
            blocks *= 2;
            let load = t06_cache_size::Load::Bytes { blocks };
            let Some(more) = self.fill(load, None, room / u64::from(blocks))? else {
                return Ok(());
            };
            filled = more;
        }
        let found = t06_cache_size::cache_size(&limits, (blocks, &filled), smaller);
        self.findings.cache_bytes = found.break_value();
        Ok(())
    }

    /// Size of a cache whose bands are shared by data bands.
    fn shared_bands(&mut self) -> Result<(), TargetError> {
        let mapping = self.findings.mapping.map(|mapping| mapping.value);
        let Some(band) = self.band.filter(|_| mapping == Some(Mapping::Static)) else {
            return Ok(());
        };
        if !self.clean()? {
            return Ok(());
        }
        let all = self.target.blocks();
        if let Some(blocks) =
            t08_shared_bands::workload(self.target, band, all / 2, self.findings.band_cleaning_ms)?
        {
            self.findings.cache_bytes = Some(Size::exact(blocks * BLOCK_BYTES));
            self.findings.data_bands_per_cache_band = Some(all as f64 / blocks as f64);
        }
        Ok(())
    }

    /// How to make the drive clean a band. No cache has more than an eighth of the drive.
    fn force(&self, aggressive: bool) -> t11_band_size::Force {
        if aggressive {
            let band_ms = self.findings.band_cleaning_ms.unwrap_or(HICCUP_MS);
            t11_band_size::Force::Pause(Span::from_millis((band_ms / 2.0).max(LEAST_STEP_MS)))
        } else {
            t11_band_size::Force::Hammer(self.target.blocks() / 8 / 64)
        }
    }

    /// Tests 11 and 12: a band at the start, in the middle and at the end; one of them is read against its neighbour
    /// before it is cleaned and after.
    fn bands(&mut self, turn_ms: f64, aggressive: bool) -> Result<(), TargetError> {
        const SPAN: u64 = 100 * 40 * 256;
        let blocks = self.target.blocks();
        let span = SPAN.min(blocks / 8);
        let mut middle = None;
        let how = self.force(aggressive);
        for part in 0..3 {
            (self.progress)("test 11, band size");
            let first = (blocks - span - 131_072) / 2 * part;
            let mut search = None;
            // Tries elsewhere if the edges of the cleaned band are unclear.
            for attempt in 0..3 {
                let region = (first + attempt * 40_000, span);
                let random = &mut self.random;
                let new = t11_band_size::search(self.target, turn_ms, random, region, how)?;
                let fine = new.fine;
                let at = Lba((region.0 + span / 2) / 4 * 4);
                let coarse = new.seen.first();
                let mixed = coarse.is_some_and(|seen| t11_few_writes::mixed(seen, at));
                search = Some(new);
                if fine {
                    break;
                }
                // The drive cleans while it is written to: this shows in the grid, or in edges that no finer grid
                // confirms.
                if aggressive && (mixed || attempt == 2) {
                    let few = t11_few_writes::search;
                    search = Some(few(self.target, turn_ms, &mut self.random, at)?);
                    break;
                }
            }
            let Some(search) = search else { continue };
            self.seen.bands.push(search.seen);
            // An uncertain result is not reported.
            if part == 1 && search.fine {
                middle = search.edge.zip(search.band);
                self.band = middle.map(|(first, blocks)| Band { first, blocks });
            }
            let sure = search.band.filter(|_| search.fine);
            let bytes = sure.map(|blocks| blocks * BLOCK_BYTES);
            self.findings.band_bytes[part as usize] = bytes;
            let each = &mut self.findings.band_cleaning_ms;
            *each = each.or(search.waited_ms.filter(|_| search.fine));
        }
        let [start, mid, end] = self.findings.band_bytes;
        let all = start.zip(mid).zip(end);
        if let Some(several) =
            all.and_then(|((start, mid), end)| t11_band_size::several([start, mid, end]))
        {
            // Adjacent bands were cleaned together.
            self.findings.band_bytes[several] = None;
            self.band = self.band.filter(|_| several != 1);
            middle = middle.filter(|_| several != 1);
        }
        let missing = 3 - self.findings.bands().count();
        if missing > 0 {
            let most = (LARGEST_BAND * BLOCK_BYTES) >> 20;
            let hammer = match how {
                t11_band_size::Force::Pause(_) => String::new(),
                t11_band_size::Force::Hammer(writes) => format!(
                    ", or it did not clean in {} GiB of writes to one place",
                    (writes * 64 * BLOCK_BYTES) >> 30
                ),
            };
            let why = format!(
                "size of a band in {missing} of 3 places: no edges were seen, of up to {most} MiB{hammer}"
            );
            self.findings.unknown.push(why);
        }
        let one_ms = self.findings.band_cleaning_ms.filter(|_| aggressive);
        if let (Some(place), Some(one_ms)) = (middle, one_ms) {
            (self.progress)("cleaning time of a band");
            self.clean()?;
            let seen = t11_band_time::workload(self.target, turn_ms, place, one_ms)?;
            use t11_band_time::Observed::{CleanedBefore, NoRoom, NoneOrAll, Pauses};
            self.findings.cleans_while_written = match seen {
                NoRoom => None,
                CleanedBefore => Some(true),
                NoneOrAll | Pauses(_) => Some(false),
            };
            if let Pauses(pauses) = seen {
                self.findings.band_cleaning_many_ms = t11_band_time::infer(pauses);
            }
        }
        let Some(band) = self.findings.middle_band() else {
            let why = "block mapping: no edges of a band were seen in the middle of the drive";
            self.findings.unknown.push(why.into());
            return Ok(());
        };
        (self.progress)("test 12, block mapping");
        self.clean()?;
        let band = band / BLOCK_BYTES;
        let a = Lba(blocks / 8 * 4);
        let (mut before, mut after, mut cleaned) = (Vec::new(), Vec::new(), true);
        for n in 1..=t12_mapping::BANDS {
            let b = Lba((a.0 + 2 * n * band) / 4 * 4);
            before.extend(t12_mapping::read(self.target, a, b)?);
            t11_band_size::write_in(self.target, &mut self.random, how, b)?;
            cleaned &= t11_band_size::force(self.target, turn_ms, how, b)?.is_cleaned;
            after.extend(t12_mapping::read(self.target, a, b)?);
        }
        let seen = t12_mapping::Observed {
            turn_ms,
            before,
            after,
        };
        // Bands that have not been cleaned are where they were, whatever the mapping.
        self.findings.mapping = t12_mapping::infer(&seen).filter(|_| cleaned);
        if self.findings.mapping.is_none() {
            let why = if cleaned {
                "block mapping: something disturbs the angles between bands"
            } else {
                "block mapping: a band was not cleaned that was to be compared with itself"
            };
            self.findings.unknown.push(why.into());
        }
        self.seen.mapping = Some(seen);
        Ok(())
    }
}

/// Writes a second of a fill, before it cleaned.
fn rate(filled: &Filled) -> Option<f64> {
    (filled.before_ms > 0.0).then(|| 1e3 / filled.before_ms)
}
