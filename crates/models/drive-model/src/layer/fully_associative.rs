//! The fully-associative translation layer (main document, section 2.3.1, after S-blocks). The disk is divided into
//! zones, each with a few free bands. Writes go to free bands, one after another. Cleaning takes the oldest block
//! that is still in such a band and merges the whole of its data band into a free band, which replaces the old one:
//! the mapping is dynamic.

mod map;

use super::set_associative::oldest_write_or_nearest_read;
use super::{Cleaning, Layer, Turnout};
use crate::disk::Disk;
use crate::queue::{Queue, Served, Waiting};
use crate::request::{Pba, RequestKind};
use crate::time::{Span, Time};
use map::{Map, Slot};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of the layer, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullyAssociativeShape {
    /// Blocks of 4 KiB in a band.
    pub band_blocks: u32,
    /// Bands of data in a zone.
    pub zone_data_bands: u32,
    /// Cache bands of a zone, which take new blocks in turn.
    pub zone_cache_bands: u32,
    /// Free bands of a zone to merge and stream into, at least 2.
    pub zone_free_bands: u32,
    /// A write from the start of a band with at least this many blocks is streamed into a free band; 0 for never.
    pub stream_min_blocks: u32,
    /// Milliseconds without a request after which cleaning begins; `None` for cleaning only when a write has to wait
    /// for it.
    pub idle_before_cleaning_ms: Option<f64>,
    /// One band is cleaned with every so many writes, however much space is free; `None` for never.
    pub clean_every_writes: Option<u32>,
    /// Limit on extents of the map, in all zones: while the map is full, a write waits for a band to be cleaned.
    /// `None` for no limit.
    pub map_extents: Option<u32>,
    /// Whether waiting writes to one zone are written together, zone after zone inwards and then from the outermost
    /// again; otherwise in order of arrival.
    #[serde(default)]
    pub writes_by_zone: bool,
}

/// The fully-associative layer; see the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FullyAssociative {
    shape: FullyAssociativeShape,
    zones: Vec<Zone>,
    /// Positions of newest copies that are in cache bands.
    map: Map,
    /// Zone of the last writes.
    last_zone: usize,
    stream: Option<Stream>,
    writes_since_cleaning: u32,
    last_request: Time,
    cleaning: Cleaning,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Zone {
    /// Physical band of each data band.
    place: Vec<u32>,
    /// Number of blocks of each data band in the cache.
    cached: Vec<u32>,
    free: VecDeque<u32>,
    /// Cache bands, the oldest first.
    log: VecDeque<CacheBand>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct CacheBand {
    band: u32,
    /// The block that each slot was written with.
    blocks: Vec<u32>,
    live: u32,
}

impl Zone {
    /// Marks the copies in these slots as dead; consecutive slots are usually in one band.
    fn let_go(&mut self, slots: &[Slot]) {
        for row in slots.chunk_by(|a, b| a.band == b.band) {
            if let Some(band) = self.log.iter_mut().find(|band| band.band == row[0].band) {
                band.live -= row.len() as u32;
            }
        }
    }
}

/// Number of bands cleaned with each write while the last cache band fills up.
const PACE: usize = 4;

/// A data band that is being written from its start into a free band.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Stream {
    zone: usize,
    /// Index of the data band in the zone.
    data_band: usize,
    into: u32,
    blocks: u64,
}

impl FullyAssociative {
    /// A drive of `blocks` logical blocks, rounded down to whole zones.
    pub fn new(shape: &FullyAssociativeShape, blocks: u64) -> Self {
        let zone_blocks = u64::from(shape.band_blocks) * u64::from(shape.zone_data_bands);
        let data = shape.zone_data_bands;
        let all = data + shape.zone_cache_bands + shape.zone_free_bands;
        let zone = Zone {
            place: (0..data).collect(),
            cached: vec![0; data as usize],
            free: (data..all).collect(),
            log: VecDeque::new(),
        };
        Self {
            shape: shape.clone(),
            zones: vec![zone; (blocks / zone_blocks) as usize],
            map: Map::new(shape.map_extents.is_some()),
            last_zone: 0,
            stream: None,
            writes_since_cleaning: 0,
            last_request: Time::START,
            cleaning: Cleaning::default(),
        }
    }

    /// Physical blocks needed for `blocks` logical ones.
    pub fn physical_blocks(shape: &FullyAssociativeShape, blocks: u64) -> u64 {
        let data = u64::from(shape.zone_data_bands);
        let spare = u64::from(shape.zone_cache_bands) + u64::from(shape.zone_free_bands);
        let zones = blocks / (u64::from(shape.band_blocks) * data);
        (zones * u64::from(shape.band_blocks)).saturating_mul(data + spare)
    }

    fn band_blocks(&self) -> u64 {
        u64::from(self.shape.band_blocks)
    }

    fn zone_bands(&self) -> u64 {
        let s = &self.shape;
        u64::from(s.zone_data_bands + s.zone_cache_bands + s.zone_free_bands)
    }

    /// The zone of a block, the data band in the zone, and the block in the band.
    fn address(&self, lba: u64) -> (usize, usize, u64) {
        let band = lba / self.band_blocks();
        let data = u64::from(self.shape.zone_data_bands);
        (
            (band / data) as usize,
            (band % data) as usize,
            lba % self.band_blocks(),
        )
    }

    fn pba(&self, zone: usize, band: u32, index: u64) -> Pba {
        Pba((zone as u64 * self.zone_bands() + u64::from(band)) * self.band_blocks() + index)
    }

    /// Position of the newest copy of a block.
    fn find(&self, lba: u64) -> Pba {
        let (zone, data_band, index) = self.address(lba);
        if let Some(stream) = self.stream
            && (stream.zone, stream.data_band) == (zone, data_band)
            && index < stream.blocks
        {
            return self.pba(zone, stream.into, index);
        }
        let z = &self.zones[zone];
        if z.cached[data_band] > 0
            && let Some(slot) = self.map.get(lba)
        {
            return self.pba(zone, slot.band, u64::from(slot.index));
        }
        self.pba(zone, z.place[data_band], index)
    }

    fn read(&self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        let mut done = 0;
        while done < blocks {
            let first = self.find(lba + done);
            let mut run = 1;
            while done + run < blocks && self.find(lba + done + run) == first.plus(run) {
                run += 1;
            }
            at = disk.read(at, first, run);
            done += run;
        }
        at
    }

    fn write(&mut self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        let mut done = 0;
        while done < blocks {
            let next = lba + done;
            let (zone, data_band, index) = self.address(next);
            let here = (blocks - done).min(self.band_blocks() - index);
            at = self.end_other_stream(disk, at, (zone, data_band, index));
            at = if self.streams((zone, data_band, index), here) {
                self.write_streamed(disk, at, here)
            } else {
                self.write_cached(disk, at, next, here)
            };
            done += here;
        }
        at
    }

    /// Ends a stream that a write to this address does not continue.
    fn end_other_stream(
        &mut self,
        disk: &mut Disk,
        now: Time,
        (zone, data_band, index): (usize, usize, u64),
    ) -> Time {
        match &self.stream {
            Some(s) if (s.zone, s.data_band, s.blocks) != (zone, data_band, index) => {
                self.end_stream(disk, now)
            }
            _ => now,
        }
    }

    /// Whether a write belongs to a stream; begins one if the write qualifies.
    fn streams(&mut self, (zone, data_band, index): (usize, usize, u64), blocks: u64) -> bool {
        let least = u64::from(self.shape.stream_min_blocks);
        if self.stream.is_none() && index == 0 && least > 0 && blocks >= least {
            let into = self.zones[zone].free.pop_front();
            self.stream = into.map(|into| Stream {
                zone,
                data_band,
                into,
                blocks: 0,
            });
        }
        self.stream.is_some()
    }

    fn write_streamed(&mut self, disk: &mut Disk, now: Time, blocks: u64) -> Time {
        let Some(mut stream) = self.stream else {
            return now;
        };
        let at = disk.write(
            now,
            self.pba(stream.zone, stream.into, stream.blocks),
            blocks,
        );
        stream.blocks += blocks;
        self.stream = Some(stream);
        if stream.blocks == self.band_blocks() {
            self.cleaning.streamed_bands += 1;
            return self.end_stream(disk, at);
        }
        at
    }

    /// Copies the rest of the stream's data band, and puts the new band in the place of the old one.
    fn end_stream(&mut self, disk: &mut Disk, now: Time) -> Time {
        let Some(stream) = self.stream else {
            return now;
        };
        let rest = self.band_blocks() - stream.blocks;
        let mut at = now;
        if rest > 0 {
            let data = u64::from(self.shape.zone_data_bands);
            let band = stream.zone as u64 * data + stream.data_band as u64;
            let first = band * self.band_blocks() + stream.blocks;
            at = self.read(disk, at, first, rest);
            at = disk.write(at, self.pba(stream.zone, stream.into, stream.blocks), rest);
        }
        self.stream = None;
        self.replace(stream.zone, stream.data_band, stream.into);
        at
    }

    /// Puts band `into`, which holds all of the data band, in the data band's place.
    fn replace(&mut self, zone: usize, data_band: usize, into: u32) {
        self.forget(zone, data_band);
        let z = &mut self.zones[zone];
        let old = std::mem::replace(&mut z.place[data_band], into);
        z.free.push_back(old);
    }

    /// Drops all blocks of the data band from the cache; returns the slots that they were in.
    fn forget(&mut self, zone: usize, data_band: usize) -> Vec<Slot> {
        let data = u64::from(self.shape.zone_data_bands);
        let first = (zone as u64 * data + data_band as u64) * self.band_blocks();
        let slots = if self.zones[zone].cached[data_band] > 0 {
            self.map.remove(first, self.band_blocks())
        } else {
            Vec::new()
        };
        let z = &mut self.zones[zone];
        z.cached[data_band] = 0;
        z.let_go(&slots);
        slots
    }

    fn write_cached(&mut self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let (zone, data_band, _) = self.address(lba);
        let mut at = now;
        let mut done = 0;
        self.writes_since_cleaning += 1;
        if let Some(every) = self.shape.clean_every_writes
            && self.writes_since_cleaning >= every
        {
            at = self.clean_one(disk, at, zone);
        }
        while done < blocks {
            at = self.make_room(disk, at, zone);
            let band_blocks = self.band_blocks();
            let z = &mut self.zones[zone];
            let Some(band) = z.log.back_mut() else { break };
            let used = band.blocks.len() as u64;
            let here = (blocks - done).min(band_blocks - used);
            let into = band.band;
            let first = lba + done;
            (band.blocks).extend((first..first + here).map(|block| block as u32));
            band.live += here as u32;
            let slot = Slot {
                band: into,
                index: used as u32,
            };
            let older = self.map.insert(first, here, slot);
            z.cached[data_band] += here as u32 - older.len() as u32;
            z.let_go(&older);
            at = disk.write(at, self.pba(zone, into, used), here);
            done += here;
        }
        at
    }

    /// Makes sure that the map has room and the newest cache band a free slot. In the last quarter of the last cache
    /// band, the oldest one is cleaned gradually, so that no write waits for all of it.
    fn make_room(&mut self, disk: &mut Disk, now: Time, zone: usize) -> Time {
        let mut at = now;
        let all = self.shape.zone_cache_bands as usize;
        let band_blocks = self.band_blocks() as usize;
        while self.shape.map_extents.is_some() && self.map.extents() >= self.shape.map_extents {
            // Cleans near the arm if possible.
            let Some(dirty) = self.dirty_zone(zone) else {
                break;
            };
            self.cleaning.urgent_bands += 1;
            at = self.clean_one(disk, at, dirty);
        }
        loop {
            self.drop_empty(zone);
            let z = &self.zones[zone];
            let left = z
                .log
                .back()
                .map_or(0, |band| band_blocks - band.blocks.len());
            let waits = z.log.len() == all && {
                let oldest = z.log.front().map_or(0, |band| band.live as usize);
                all > 1 && oldest > PACE * left || left == 0
            };
            if waits {
                self.cleaning.urgent_bands += 1;
                at = self.clean_one(disk, at, zone);
                continue;
            }
            if left > 0 {
                return at;
            }
            let z = &mut self.zones[zone];
            let Some(band) = z.free.pop_front() else {
                return at;
            };
            z.log.push_back(CacheBand {
                band,
                blocks: Vec::new(),
                live: 0,
            });
        }
    }

    /// The first zone with anything to clean, searched from `from` inwards and then from the outermost.
    fn dirty_zone(&self, from: usize) -> Option<usize> {
        let dirty = |zone: &usize| self.zones[*zone].log.iter().any(|band| band.live > 0);
        (from..self.zones.len()).chain(0..from).find(dirty)
    }

    /// Frees cache bands without a live block; the one that is being filled only when it is full.
    fn drop_empty(&mut self, zone: usize) {
        let band_blocks = self.band_blocks() as usize;
        let z = &mut self.zones[zone];
        while let Some(band) = z.log.front()
            && band.live == 0
            && (z.log.len() > 1 || band.blocks.len() == band_blocks)
        {
            z.free.push_back(band.band);
            z.log.pop_front();
        }
    }

    /// Serves the writes that wait for one zone, in order of arrival.
    fn write_next_zone(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let writes: Vec<(u64, usize)> = (queue.choice(now))
            .filter(|(_, w)| w.request.operation.is_write())
            .map(|(_, w)| (w.tag.0, self.address(w.request.lba.0).0))
            .collect();
        let zones = writes.iter().map(|(_, zone)| *zone);
        let next = zones.min_by_key(|zone| (*zone <= self.last_zone, *zone));
        self.last_zone = next.unwrap_or(self.last_zone);
        let mut at = now;
        let mut served = Vec::new();
        for (tag, zone) in writes {
            let index = queue.iter().position(|w| w.tag.0 == tag);
            let Some(index) = index.filter(|_| zone == self.last_zone) else {
                continue;
            };
            let waiting = queue.serve(index, now);
            let (lba, blocks) = (waiting.request.lba.0, u64::from(waiting.request.blocks));
            at = self.write(disk, at, lba, blocks);
            served.push(Served {
                waiting,
                at,
                result: Ok(()),
            });
        }
        self.last_request = at;
        Turnout::Served(served, at)
    }

    /// Merges the data band of the oldest live block into a free band.
    fn clean_one(&mut self, disk: &mut Disk, now: Time, zone: usize) -> Time {
        self.writes_since_cleaning = 0;
        let oldest = self.zones[zone].log.iter().find_map(|band| {
            let live = |(index, block): (usize, &u32)| {
                let slot = Slot {
                    band: band.band,
                    index: index as u32,
                };
                (self.map.get(u64::from(*block)) == Some(slot)).then_some(*block)
            };
            band.blocks.iter().enumerate().find_map(live)
        });
        let Some(block) = oldest else { return now };
        let (_, data_band, _) = self.address(u64::from(block));
        let Some(into) = self.zones[zone].free.pop_front() else {
            return now;
        };
        let from = self.zones[zone].place[data_band];
        let mut at = disk.fetch(now, self.pba(zone, from, 0), self.band_blocks());
        let mut slots = self.forget(zone, data_band);
        slots.sort_unstable_by_key(|slot| (slot.band, slot.index));
        let mut next = 0;
        while next < slots.len() {
            let first = slots[next];
            let follows = |(n, slot): (usize, &Slot)| {
                slot.band == first.band && slot.index == first.index + n as u32
            };
            let run = slots[next..]
                .iter()
                .enumerate()
                .take_while(|s| follows(*s))
                .count();
            let pba = self.pba(zone, first.band, u64::from(first.index));
            at = disk.fetch(at, pba, run as u64);
            next += run;
        }
        at = disk.write(at, self.pba(zone, into, 0), self.band_blocks());
        let z = &mut self.zones[zone];
        let old = std::mem::replace(&mut z.place[data_band], into);
        z.free.push_back(old);
        self.drop_empty(zone);
        self.cleaning.bands += 1;
        self.cleaning.nanos += at.since(now).nanos();
        at
    }
}

impl Layer for FullyAssociative {
    fn blocks(&self) -> u64 {
        let zone = u64::from(self.shape.zone_data_bands) * self.band_blocks();
        self.zones.len() as u64 * zone
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let index = oldest_write_or_nearest_read(disk, now, queue, |lba| self.find(lba));
        let writes = |w: &Waiting| w.request.operation.is_write();
        if self.shape.writes_by_zone && queue.iter().nth(index).is_some_and(writes) {
            return self.write_next_zone(disk, now, queue);
        }
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
        let Some(before) = self.shape.idle_before_cleaning_ms.map(Span::from_millis) else {
            return from;
        };
        let mut at = from.max(self.last_request + before);
        let mut busy = from;
        while at < until && self.is_dirty() {
            if self.stream.is_some() {
                at = self.end_stream(disk, at);
            } else {
                let Some(zone) = self.dirty_zone(0) else {
                    break;
                };
                at = self.clean_one(disk, at, zone);
            }
            busy = at;
        }
        busy
    }

    fn cleaning(&self) -> Cleaning {
        self.cleaning
    }

    fn is_dirty(&self) -> bool {
        self.stream.is_some() || !self.map.is_empty()
    }
}
