//! Bands, the zones that hold data: which of them are free, open, partly filled or retired, and appending to them. An
//! extent below a write pointer is never overwritten; a band is reset only when no file has data in it.

use crate::layout::Layout;
use crate::map::Place;
use crate::options::Policy;
use crate::packing::Packing;
use crate::placement::{BandSpace, Free, Placement, Stream, Unplaced, Usage, Victim};
use crate::state::{Freed, State};
use appender::{Left, Zones};
use device::ZonedDevice;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use zone::{ByteOffset, ZoneCondition, ZoneError, ZoneId, ZoneResult};
use zone_alloc::{Candidate, CleaningPolicy, Greedy, Pressure, ZoneView};

#[derive(Clone, Copy, Default, Debug)]
struct Band {
    /// Blocks below the write pointer; all blocks if the zone is full or finished.
    written: u32,
    /// The zone fails, and is neither written to nor reset any more.
    is_retired: bool,
    /// [`Bands::filled`] at the time when the zone was closed: the clock of cleaning policies.
    filled_at: u64,
}

/// Number of bands that may be cleaned together to gain one, in a file system of whole files.
const MOST_FOR_ONE: usize = 32;

/// Allocator of the bands of a zoned drive.
pub struct Bands {
    device: Arc<dyn ZonedDevice>,
    first: u32,
    block: u64,
    zone_blocks: u32,
    bands: Vec<Band>,
    /// Empty zones.
    free: BTreeSet<u32>,
    /// Zones that are neither empty nor full nor open.
    partial: BTreeSet<u32>,
    open: [Option<u32>; 2],
    /// Number of zones closed so far.
    filled: u64,
    /// Number of free zones that only the cleaner may take.
    reserved: u64,
    is_whole: bool,
    /// With whole files: zones to be cleaned, the next one last. All of them together gain one empty zone.
    chosen: Vec<u32>,
    is_unflushed: bool,
    bytes_written: u64,
}

impl Bands {
    /// Takes write pointers and conditions from the drive's zone report.
    pub fn new(
        device: Arc<dyn ZonedDevice>,
        layout: &Layout,
        block_size: u32,
        whole_files: bool,
    ) -> ZoneResult<Self> {
        let geometry = device.geometry().clone();
        let block = u64::from(block_size);
        let zone_blocks = (geometry.zone_capacity / block) as u32;
        let mut this = Self {
            first: layout.first_zone,
            block,
            zone_blocks,
            bands: vec![Band::default(); layout.zones as usize],
            free: BTreeSet::new(),
            partial: BTreeSet::new(),
            open: [None, None],
            filled: 0,
            reserved: if whole_files { 3 } else { 2 },
            is_whole: whole_files,
            chosen: Vec::new(),
            is_unflushed: false,
            bytes_written: 0,
            device,
        };
        let mut zone = layout.first_zone;
        let end = layout.first_zone + layout.zones;
        while zone < end {
            let reports = this.device.report(ZoneId(zone), (end - zone).min(4096))?;
            if reports.is_empty() {
                break;
            }
            for report in reports {
                let band = &mut this.bands[(report.id.0 - layout.first_zone) as usize];
                zone = report.id.0 + 1;
                if !report.write_pointer_valid() {
                    let is_full = report.condition == ZoneCondition::ReadOnly;
                    band.written = if is_full { zone_blocks } else { 0 };
                    band.is_retired = true;
                    continue;
                }
                // Nothing can be appended after a partly written block, so the zone counts as full.
                let whole = report.write_pointer.is_multiple_of(block);
                let is_full = report.condition == ZoneCondition::Full || !whole;
                band.written = if is_full {
                    zone_blocks
                } else {
                    (report.write_pointer / block) as u32
                };
                if band.written == 0 {
                    this.free.insert(report.id.0);
                } else if band.written < zone_blocks {
                    this.partial.insert(report.id.0);
                }
            }
        }
        Ok(this)
    }

    fn band(&self, zone: u32) -> &Band {
        &self.bands[(zone - self.first) as usize]
    }

    fn band_mut(&mut self, zone: u32) -> &mut Band {
        &mut self.bands[(zone - self.first) as usize]
    }

    fn room_of(&self, zone: u32) -> u32 {
        self.zone_blocks - self.band(zone).written
    }

    /// Number of zones that are not retired.
    fn usable(&self) -> u64 {
        let usable = |band: &&Band| !band.is_retired;
        self.bands.iter().filter(usable).count() as u64
    }

    fn free(&self) -> u64 {
        self.free.len() as u64
    }

    fn zones(&self) -> Range<u32> {
        self.first..self.first + self.bands.len() as u32
    }

    /// Describes data of a file that lies at or after the zone's write pointer; `None` if all is below it.
    fn missing(&self, state: &State, zone: u32) -> Option<String> {
        let (offset, owner) = state.holding(zone)?.owners.last_key_value()?;
        let (end, written) = (offset + owner.blocks, self.written(zone));
        (end > written).then(|| {
            format!(
                "inode {} has data in zone {zone} up to block {end}, of which {written} are written",
                owner.ino
            )
        })
    }

    /// Blocks that users' data may take without cleaning.
    fn room(&self) -> u64 {
        let zones = self.free().saturating_sub(self.reserved);
        let open = self.open[Stream::User as usize].map_or(0, |zone| self.room_of(zone));
        let partial: u64 = self
            .partial
            .iter()
            .map(|z| u64::from(self.room_of(*z)))
            .sum();
        zones * u64::from(self.zone_blocks) + u64::from(open) + partial
    }

    /// Zones that may be cleaned: number, blocks written, and [`Band::filled_at`].
    fn cleanable(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let zones = self.bands.iter().enumerate();
        zones.filter_map(|(index, band)| {
            let zone = self.first + index as u32;
            let is_closed = !self.open.contains(&Some(zone)) && !band.is_retired;
            (is_closed && band.written > 0).then_some((zone, band.written, band.filled_at))
        })
    }

    /// Blocks below the write pointer of a zone, or all blocks of a finished one.
    fn written(&self, zone: u32) -> u32 {
        zone.checked_sub(self.first)
            .and_then(|index| self.bands.get(index as usize))
            .map_or(0, |band| band.written)
    }

    /// Resets those of `zones` that are not open; no data in them is live. Zones that fail to reset are retired.
    fn reset(&mut self, zones: &[u32]) -> ZoneResult<()> {
        let zones = zones.iter().filter(|zone| {
            !self.open.contains(&Some(**zone))
                && !self.band(**zone).is_retired
                && !self.free.contains(*zone)
        });
        let zones: Vec<ZoneId> = zones.map(|zone| ZoneId(*zone)).collect();
        let resets = appender::reset_or_retire(&zones, |zone| self.device.reset(zone))?;
        for zone in resets.empty {
            self.partial.remove(&zone.0);
            *self.band_mut(zone.0) = Band::default();
            self.free.insert(zone.0);
        }
        for zone in resets.broken {
            self.partial.remove(&zone.0);
            self.band_mut(zone.0).is_retired = true;
        }
        Ok(())
    }

    fn write(
        &mut self,
        zone: u32,
        data: &[u8],
        done: u32,
        blocks: u32,
        need: u32,
    ) -> Result<Option<Place>, Unplaced> {
        if blocks < need {
            return Ok(None);
        }
        let offset = self.band(zone).written;
        let bytes = |count: u32| (u64::from(count) * self.block) as usize;
        let part = &data[bytes(done)..bytes(done + blocks)];
        self.is_unflushed = true;
        self.device.write(self.at(zone, offset), part)?;
        self.bytes_written += part.len() as u64;
        self.band_mut(zone).written += blocks;
        Ok(Some(Place {
            zone,
            offset,
            blocks,
        }))
    }

    /// Closes the stream's open zone. If it has room, it becomes a partial one. If what is left of it holds no block, it
    /// is finished, for it would stay active.
    fn close(&mut self, stream: Stream) {
        if let Some(zone) = self.open[stream as usize].take() {
            self.filled += 1;
            let filled = self.filled;
            self.band_mut(zone).filled_at = filled;
            if self.room_of(zone) > 0 {
                self.partial.insert(zone);
            } else if !self
                .device
                .geometry()
                .zone_capacity
                .is_multiple_of(self.block)
            {
                self.finish(zone);
            }
        }
    }

    /// Finishes a partial zone, so that the drive has its active resource back; the rest of the zone is unused until
    /// a reset.
    fn finish(&mut self, zone: u32) {
        appender::finish(&*self.device, ZoneId(zone));
        self.partial.remove(&zone);
        self.band_mut(zone).written = self.zone_blocks;
    }

    /// Limit on zones that are neither empty nor full, in addition to the two that are open.
    fn most_partial(&self) -> usize {
        match self.device.geometry().max_active_zones {
            0 => 8,
            // Two for metadata, two that are open, and one to open next.
            active => active.saturating_sub(5).min(8) as usize,
        }
    }

    fn limit_partial(&mut self) {
        while self.partial.len() > self.most_partial() {
            let least = self.partial.iter().min_by_key(|zone| self.room_of(**zone));
            let Some(zone) = least.copied() else { return };
            self.finish(zone);
        }
    }
}

/// Blocks of each file in a zone, in order of the files' positions.
fn files(state: &State, zone: u32) -> Vec<u32> {
    let mut files: Vec<(u64, u32)> = Vec::new();
    for owner in state.holding(zone).iter().flat_map(|h| h.owners.values()) {
        match files.last_mut() {
            Some((ino, blocks)) if *ino == owner.ino => *blocks += owner.blocks,
            _ => files.push((owner.ino, owner.blocks)),
        }
    }
    files.into_iter().map(|(_, blocks)| blocks).collect()
}

impl Bands {
    /// The zone that `policy` chooses. With whole files, all zones that have to be cleaned to gain an empty one, the
    /// first one last.
    fn choose(
        &self,
        state: &State,
        zones: &[Candidate],
        policy: &dyn CleaningPolicy,
        pressure: Pressure,
    ) -> Option<Vec<u32>> {
        let choose = |zones: &[Candidate]| {
            // [`Band::filled_at`] counts closed zones, so the present is their number.
            let now = self.filled;
            policy.choose(ZoneView { zones, now }, pressure)
        };
        if !self.is_whole {
            return Some(vec![choose(zones)?.zone.0]);
        }
        let room = |zone: &u32| (*zone, self.room_of(*zone));
        let mut packing = Packing {
            free: self.free.clone(),
            open: self.open[Stream::Moved as usize].as_ref().map(room),
            partial: self.partial.iter().map(room).collect(),
            most_partial: self.most_partial(),
            band_blocks: self.zone_blocks,
        };
        let (mut zones, mut chosen) = (zones.to_vec(), Vec::new());
        for _ in 0..MOST_FOR_ONE {
            let zone = choose(&zones)?.zone;
            chosen.insert(0, zone.0);
            if !packing.clean(zone.0, files(state, zone.0)) {
                return None;
            }
            if packing.free.len() > self.free.len() {
                return Some(chosen);
            }
            zones.retain(|candidate| candidate.zone != zone);
        }
        None
    }
}

impl Placement for Bands {
    /// A zone whose write pointer lies below data of its files has lost that data. It is retired, so that nothing is
    /// written where the data was.
    fn load(&mut self, state: &State) -> ZoneResult<()> {
        for zone in self.zones() {
            if self.missing(state, zone).is_some() {
                self.leave(zone, 0..self.zone_blocks);
            }
        }
        Ok(())
    }

    /// Retires the zone as a whole.
    fn leave(&mut self, zone: u32, _blocks: Range<u32>) {
        self.free.remove(&zone);
        self.partial.remove(&zone);
        self.band_mut(zone).is_retired = true;
    }

    fn free_dead(&mut self, state: &State) -> ZoneResult<u64> {
        let is_dead = |zone: &u32| {
            state
                .holding(*zone)
                .is_some_and(|holding| holding.live == 0)
        };
        let zones = self.cleanable().map(|(zone, ..)| zone);
        let dead: Vec<u32> = zones.filter(is_dead).collect();
        let before = self.free();
        self.reset(&dead)?;
        Ok(self.free().saturating_sub(before))
    }

    fn append(
        &mut self,
        stream: Stream,
        data: &[u8],
        together: bool,
    ) -> Result<Vec<Place>, Unplaced> {
        // Preallocated blocks are appended like all others.
        let stream = match stream {
            Stream::Preallocated => Stream::User,
            stream => stream,
        };
        let blocks = (data.len() as u64 / self.block) as u32;
        let mut places = Vec::new();
        let mut done = 0;
        while done < blocks {
            let rest = blocks - done;
            let mut appending = Appending {
                bands: self,
                stream,
                need: if together { rest } else { 1 },
            };
            let place = appender::append(&mut appending, |appending, zone| {
                appending.bands.write(
                    *zone,
                    data,
                    done,
                    rest.min(appending.bands.room_of(*zone)),
                    appending.need,
                )
            })?;
            done += place.blocks;
            places.push(place);
        }
        Ok(places)
    }

    fn append_some(
        &mut self,
        stream: Stream,
        data: &[u8],
        lengths: &[u64],
    ) -> Result<(usize, Vec<Place>), Unplaced> {
        // An append goes to one band after the other whatever the pieces, so all of them go at once.
        Ok((lengths.len(), self.append(stream, data, false)?))
    }

    fn at(&self, zone: u32, block: u32) -> ByteOffset {
        ByteOffset(self.device.geometry().start(ZoneId(zone)).0 + u64::from(block) * self.block)
    }

    fn most_together(&self) -> u32 {
        self.zone_blocks
    }

    /// A twentieth of the usable zones, and four at least (five with whole files), is left for cleaning.
    fn capacity(&self) -> u64 {
        let zones = self.usable();
        let spare = (zones / 20).max(self.reserved + 2);
        zones.saturating_sub(spare) * u64::from(self.zone_blocks)
    }

    fn admits(&mut self, blocks: u64, preallocated: u64) -> bool {
        self.room() >= blocks + preallocated
    }

    /// All that files have together is below [`Self::capacity`], so cleaning makes room whenever it is needed.
    fn set_aside(&mut self, _blocks: u64, _beside: u64) -> bool {
        true
    }

    fn admits_whole(&mut self, sizes: &[u64]) -> bool {
        let mut free = self.free().saturating_sub(self.reserved);
        let mut open = self.open[Stream::User as usize].map_or(0, |z| u64::from(self.room_of(z)));
        let mut partial: Vec<u64> = self
            .partial
            .iter()
            .map(|z| u64::from(self.room_of(*z)))
            .collect();
        for size in sizes {
            if *size <= open {
                open -= size;
                continue;
            }
            match partial.iter().position(|room| size <= room) {
                Some(at) => open = partial.remove(at) - size,
                None if free > 0 && *size <= u64::from(self.zone_blocks) => {
                    free -= 1;
                    open = u64::from(self.zone_blocks) - size;
                }
                None => return false,
            }
        }
        true
    }

    fn reclaim(&mut self, freed: &Freed) -> ZoneResult<()> {
        // A full zone takes no more. One with room stays open, and is left to [`Self::free_dead`] if it is dead.
        for stream in [Stream::User, Stream::Moved] {
            if self.open[stream as usize].is_some_and(|zone| self.room_of(zone) == 0) {
                self.close(stream);
            }
        }
        self.reset(&freed.zones)
    }

    fn victim(&mut self, state: &State, policy: Policy, pressure: Pressure) -> Option<Victim> {
        let zones: Vec<Candidate> = self
            .cleanable()
            .filter_map(|(zone, written, filled_at)| {
                let live = state.holding(zone)?.live;
                (live > 0).then_some(Candidate {
                    zone: ZoneId(zone),
                    live: live * self.block,
                    written: u64::from(written) * self.block,
                    filled_at,
                })
            })
            .collect();
        let is_there = |zone: &u32| zones.iter().any(|candidate| candidate.zone.0 == *zone);
        self.chosen.retain(is_there);
        if self.chosen.is_empty() {
            // If a write waits for space, age does not count.
            let greedy = || match pressure {
                Pressure::Any => self.choose(state, &zones, &Greedy, pressure),
                _ => None,
            };
            let chosen = self.choose(state, &zones, policy.get(), pressure);
            self.chosen = chosen.or_else(greedy).unwrap_or_default();
        }
        self.chosen.pop().map(|zone| Victim {
            zone,
            blocks: 0..self.zone_blocks,
        })
    }

    /// Finishes the victim if it is a partial zone: data that moves out of it must not be appended to it.
    fn begin_cleaning(&mut self, victim: &Victim) {
        if self.partial.contains(&victim.zone) {
            self.finish(victim.zone);
        }
    }

    fn cleaned(&mut self, _victim: &Victim, _has_moved: bool) -> bool {
        true
    }

    fn tries(&self) -> u64 {
        2 * self.usable() + 8
    }

    fn pressure(&self) -> Option<Pressure> {
        let (free, zones) = (self.free(), self.usable());
        if free <= self.reserved + 1 {
            Some(Pressure::Urgent)
        } else if free <= self.reserved + 1 + zones / 16 {
            Some(Pressure::Ahead)
        } else {
            None
        }
    }

    /// The first extent that lies above its zone's write pointer.
    fn misplaced(&self, state: &State) -> Option<String> {
        self.zones().find_map(|zone| self.missing(state, zone))
    }

    fn is_unflushed(&self) -> bool {
        self.is_unflushed
    }

    fn flushed(&mut self) {
        self.is_unflushed = false;
    }

    fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn usage(&self, state: &State) -> Usage {
        let dead = |(zone, written, _): (u32, u32, u64)| {
            let live = state.holding(zone).map_or(0, |holding| holding.live);
            u64::from(written).saturating_sub(live)
        };
        Usage {
            dead: self.cleanable().map(dead).sum(),
            unusable: 0,
            room: None,
            free: Free::Bands(BandSpace {
                free_bands: self.free(),
                bands: self.usable(),
                band_bytes: u64::from(self.zone_blocks) * self.block,
            }),
        }
    }
}

struct Appending<'a> {
    bands: &'a mut Bands,
    stream: Stream,
    /// Number of blocks that have to lie in one zone.
    need: u32,
}

impl Zones for Appending<'_> {
    type Open = u32;
    type Error = Unplaced;
    const MAX_FAILED: u32 = 3;

    fn open(&mut self) -> Result<u32, Unplaced> {
        let (bands, stream) = (&mut *self.bands, self.stream);
        if let Some(zone) = bands.open[stream as usize] {
            if bands.room_of(zone) >= self.need {
                return Ok(zone);
            }
            bands.close(stream);
        }
        let has_room = |zone: &&u32| bands.room_of(**zone) >= self.need;
        let zone = bands.partial.iter().find(has_room).copied();
        let zone = zone.or_else(|| bands.free.first().copied());
        let zone = zone.ok_or(Unplaced::NoZone)?;
        if !bands.partial.remove(&zone) {
            bands.free.remove(&zone);
            bands.limit_partial();
        }
        bands.open[stream as usize] = Some(zone);
        Ok(zone)
    }

    fn leave(&mut self, _zone: u32, why: Left<'_>) -> Result<(), Unplaced> {
        let zone = self.bands.open[self.stream as usize];
        self.bands.close(self.stream);
        if let (Left::Failed(_), Some(zone)) = (why, zone) {
            self.bands.finish(zone);
        }
        Ok(())
    }

    fn drive_error(error: &Unplaced) -> Option<&ZoneError> {
        match error {
            Unplaced::Drive(error) => Some(error),
            Unplaced::NoZone => None,
        }
    }
}
