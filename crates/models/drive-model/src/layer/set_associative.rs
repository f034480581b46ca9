//! The set-associative translation layer (main document, section 2.3.1). All writes to a data band go to one cache
//! band, found by a division; when that band is full, every data band with blocks in it is read, merged and
//! rewritten.

use super::direct::nearest;
use super::{Cleaning, Layer, Turnout};
use crate::disk::Disk;
use crate::queue::{Queue, Waiting};
use crate::request::{Pba, RequestKind};
use crate::time::{Span, Time};
use runtime::HashMap;
use serde::{Deserialize, Serialize};

/// Location of a persistent cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePlace {
    /// At the outer diameter.
    Outer,
    /// At the middle diameter.
    Middle,
    /// At the inner diameter.
    Inner,
    /// In flash memory next to the disk.
    Flash,
}

/// Parameters of the layer, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetAssociativeShape {
    /// Blocks of 4 KiB in a band, of data or of the cache.
    pub band_blocks: u32,
    /// Bands of the persistent cache.
    pub cache_bands: u32,
    /// Location of the cache.
    pub place: CachePlace,
    /// Microseconds of a read or a write of a block in flash; unused on a disk.
    pub flash_block_us: f64,
    /// Milliseconds without a request after which cleaning begins; `None` for cleaning only when a write has to wait
    /// for it.
    pub idle_before_cleaning_ms: Option<f64>,
}

/// The set-associative layer; see the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SetAssociative {
    band_blocks: u64,
    data_bands: u64,
    cache: Vec<CacheBand>,
    place: CachePlace,
    /// Physical block where the cache begins, and where the data after it continues.
    cache_first: u64,
    cache_blocks: u64,
    flash_block: Span,
    idle_before_cleaning: Option<Span>,
    /// The slot in its cache band of each newest copy in the cache.
    map: HashMap<u32, u32>,
    /// Number of blocks in the cache by data band: most have none, which makes reads fast.
    cached: Vec<u32>,
    last_request: Time,
    cleaning: Cleaning,
}

/// A band of the persistent cache: the block that each of its slots was written with.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct CacheBand {
    slots: Vec<u32>,
}

/// Logical blocks that are physically consecutive.
struct Run {
    cached_in: Option<u64>,
    pba: Pba,
    blocks: u64,
}

impl SetAssociative {
    /// A drive of `blocks` logical blocks, rounded down to whole bands. A cache on the disk takes space in addition.
    pub fn new(shape: &SetAssociativeShape, blocks: u64) -> Self {
        let band_blocks = u64::from(shape.band_blocks);
        let data_bands = blocks / band_blocks;
        let data = data_bands * band_blocks;
        let cache_first = match shape.place {
            CachePlace::Outer => 0,
            CachePlace::Middle => data_bands / 2 * band_blocks,
            CachePlace::Inner | CachePlace::Flash => data,
        };
        let on_disk = shape.place != CachePlace::Flash;
        let cache_blocks = u64::from(shape.cache_bands) * band_blocks;
        Self {
            band_blocks,
            data_bands,
            cache: vec![CacheBand::default(); shape.cache_bands as usize],
            place: shape.place,
            cache_first,
            cache_blocks: if on_disk { cache_blocks } else { 0 },
            flash_block: Span::from_micros(shape.flash_block_us),
            idle_before_cleaning: shape.idle_before_cleaning_ms.map(Span::from_millis),
            map: HashMap::default(),
            cached: vec![0; data_bands as usize],
            last_request: Time::START,
            cleaning: Cleaning::default(),
        }
    }

    /// Blocks on the disk for `blocks` logical ones, including a cache on the disk.
    pub fn physical_blocks(shape: &SetAssociativeShape, blocks: u64) -> u64 {
        let band_blocks = u64::from(shape.band_blocks);
        let data = blocks / band_blocks * band_blocks;
        match shape.place {
            CachePlace::Flash => data,
            _ => data + u64::from(shape.cache_bands) * band_blocks,
        }
    }

    fn native(&self, lba: u64) -> Pba {
        if lba < self.cache_first {
            Pba(lba)
        } else {
            Pba(lba + self.cache_blocks)
        }
    }

    fn cache_band(&self, data_band: u64) -> u64 {
        data_band % self.cache.len() as u64
    }

    fn in_cache(&self, cache_band: u64, slot: u64) -> Pba {
        Pba(self.cache_first + cache_band * self.band_blocks + slot)
    }

    /// The run of consecutive blocks from `lba` on, at most `blocks`.
    fn run(&self, lba: u64, blocks: u64) -> Run {
        let band = lba / self.band_blocks;
        let in_band = ((band + 1) * self.band_blocks - lba).min(blocks);
        let native = |blocks| Run {
            cached_in: None,
            pba: self.native(lba),
            blocks,
        };
        if self.cached[band as usize] == 0 {
            return native(in_band);
        }
        let slot = |lba: u64| self.map.get(&(lba as u32)).copied();
        match slot(lba) {
            None => native(
                (1..in_band)
                    .find(|n| slot(lba + n).is_some())
                    .unwrap_or(in_band),
            ),
            Some(first) => {
                let next = |n: &u64| slot(lba + n) != Some(first + *n as u32);
                let cache_band = self.cache_band(band);
                Run {
                    cached_in: Some(cache_band),
                    pba: self.in_cache(cache_band, u64::from(first)),
                    blocks: (1..in_band).find(next).unwrap_or(in_band),
                }
            }
        }
    }

    fn cache_access(&self, disk: &mut Disk, at: Time, pba: Pba, blocks: u64, writes: bool) -> Time {
        if self.place == CachePlace::Flash {
            return at + self.flash_block.times(blocks);
        }
        if writes {
            disk.write(at, pba, blocks)
        } else {
            disk.read(at, pba, blocks)
        }
    }

    fn read(&self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        let mut done = 0;
        while done < blocks {
            let run = self.run(lba + done, blocks - done);
            at = match run.cached_in {
                Some(_) => self.cache_access(disk, at, run.pba, run.blocks, false),
                None => disk.read(at, run.pba, run.blocks),
            };
            done += run.blocks;
        }
        at
    }

    fn write(&mut self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        let mut done = 0;
        while done < blocks {
            let next = lba + done;
            let band = next / self.band_blocks;
            let cache_band = self.cache_band(band);
            let mut used = self.cache[cache_band as usize].slots.len() as u64;
            if used == self.band_blocks {
                at = self.empty(disk, at, cache_band);
                used = 0;
            }
            let in_band = (band + 1) * self.band_blocks - next;
            let here = (blocks - done).min(in_band).min(self.band_blocks - used);
            at = self.cache_access(disk, at, self.in_cache(cache_band, used), here, true);
            for n in 0..here {
                let block = (next + n) as u32;
                self.cache[cache_band as usize].slots.push(block);
                if self.map.insert(block, (used + n) as u32).is_none() {
                    self.cached[band as usize] += 1;
                }
            }
            done += here;
        }
        at
    }

    /// The data bands with live blocks in a cache band.
    fn bands_in(&self, cache_band: u64) -> Vec<u64> {
        let band = &self.cache[cache_band as usize];
        let mut bands: Vec<u64> = (band.slots.iter().enumerate())
            .filter(|(slot, block)| self.map.get(block) == Some(&(*slot as u32)))
            .map(|(_, block)| u64::from(*block) / self.band_blocks)
            .collect();
        bands.sort_unstable();
        bands.dedup();
        bands
    }

    /// Empties a cache band, so that it can be written again, by cleaning every data band in it.
    fn empty(&mut self, disk: &mut Disk, now: Time, cache_band: u64) -> Time {
        let mut at = now;
        for band in self.bands_in(cache_band) {
            self.cleaning.urgent_bands += 1;
            at = self.clean(disk, at, band);
        }
        self.cache[cache_band as usize].slots.clear();
        at
    }

    /// Merges a data band with its blocks in the cache, and rewrites it.
    fn clean(&mut self, disk: &mut Disk, now: Time, band: u64) -> Time {
        let cache_band = self.cache_band(band);
        let first = band * self.band_blocks;
        let slots: Vec<u32> = (first..first + self.band_blocks)
            .filter_map(|block| self.map.remove(&(block as u32)))
            .collect();
        let from = u64::from(slots.iter().copied().min().unwrap_or(0));
        let to = slots
            .iter()
            .copied()
            .max()
            .map_or(0, |slot| u64::from(slot) + 1);
        let mut at = disk.fetch(now, self.native(first), self.band_blocks);
        // Reads cached blocks in one sweep if they are close together, otherwise one by one.
        let sparse = slots.len() as u64 * SWEEP_BLOCKS < to - from;
        if self.place == CachePlace::Flash {
            at += self.flash_block.times(slots.len() as u64);
        } else if sparse {
            let mut slots = slots;
            slots.sort_unstable();
            for slot in slots {
                at = disk.fetch(at, self.in_cache(cache_band, u64::from(slot)), 1);
            }
        } else {
            at = disk.fetch(at, self.in_cache(cache_band, from), to - from);
        }
        at = disk.write(at, self.native(first), self.band_blocks);
        self.cached[band as usize] = 0;
        self.cleaning.bands += 1;
        self.cleaning.nanos += at.since(now).nanos();
        at
    }
}

/// Blocks that pass under the head in about the time it takes to reach a single one.
const SWEEP_BLOCKS: u64 = 512;

/// The request to serve next. Writes are appended to the cache in any order, so they are served by age; reads by
/// positioning time.
pub(super) fn oldest_write_or_nearest_read(
    disk: &Disk,
    now: Time,
    queue: &Queue,
    place: impl Fn(u64) -> Pba,
) -> usize {
    let oldest = queue.oldest(now).unwrap_or(0);
    let writes = |index: usize| {
        let mut waiting = queue.iter();
        waiting
            .nth(index)
            .is_some_and(|w| w.request.operation.is_write())
    };
    if writes(oldest) {
        return oldest;
    }
    let reads = |waiting: &Waiting| !waiting.request.operation.is_write();
    nearest(disk, now, queue, place, reads).unwrap_or(oldest)
}

impl Layer for SetAssociative {
    fn blocks(&self) -> u64 {
        self.data_bands * self.band_blocks
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let index = oldest_write_or_nearest_read(disk, now, queue, |lba| self.run(lba, 1).pba);
        let waiting = queue.serve(index, now);
        let (lba, blocks) = (waiting.request.lba.0, u64::from(waiting.request.blocks));
        let at = match waiting.request.operation {
            RequestKind::Write | RequestKind::WriteThrough => self.write(disk, now, lba, blocks),
            _ => self.read(disk, now, lba, blocks),
        };
        self.last_request = at;
        Turnout::one(waiting, at, Ok(()))
    }

    fn idle(&mut self, disk: &mut Disk, from: Time, until: Time) -> Time {
        let Some(before) = self.idle_before_cleaning else {
            return from;
        };
        let mut at = from.max(self.last_request + before);
        let mut busy = from;
        while at < until {
            let fullest = (0..self.cache.len())
                .max_by_key(|band| (self.cache[*band].slots.len(), usize::MAX - band))
                .filter(|band| !self.cache[*band].slots.is_empty());
            let Some(cache_band) = fullest else { break };
            match self.bands_in(cache_band as u64).first() {
                Some(band) => at = self.clean(disk, at, *band),
                None => self.cache[cache_band].slots.clear(),
            }
            busy = at;
        }
        busy
    }

    fn cleaning(&self) -> Cleaning {
        self.cleaning
    }

    fn is_dirty(&self) -> bool {
        !self.map.is_empty()
    }
}
