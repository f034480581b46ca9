//! Bands: the zones that hold data. Which are free, which are written to, and appending to them.

use crate::layout::Layout;
use crate::map::Place;
use appender::{Left, Zones};
use device::ZonedDevice;
use std::collections::BTreeSet;
use std::sync::Arc;
use zone::{ByteOffset, ZoneCondition, ZoneError, ZoneId, ZoneResult};

/// Whose data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// What users write.
    User,
    /// What the cleaner moves: it has lived longer, and will live longer.
    Moved,
}

#[derive(Clone, Copy, Default, Debug)]
struct Band {
    /// Blocks below the write pointer.
    written: u32,
    /// It fails, and is used for nothing more.
    is_retired: bool,
    /// When it was left, counted in zones.
    filled_at: u64,
}

/// See the head of this file.
pub struct Bands {
    device: Arc<dyn ZonedDevice>,
    first: u32,
    block: u64,
    zone_blocks: u32,
    bands: Vec<Band>,
    /// Empty ones.
    free: BTreeSet<u32>,
    /// Neither empty nor full, and not open.
    partial: BTreeSet<u32>,
    open: [Option<u32>; 2],
    /// Zones that were left.
    filled: u64,
    /// Something was written behind the last flush.
    pub is_unflushed: bool,
    /// Bytes written, padding and moved ones too.
    pub bytes_written: u64,
}

impl Bands {
    /// As the drive reports them.
    pub fn new(device: Arc<dyn ZonedDevice>, layout: &Layout, block_size: u32) -> ZoneResult<Self> {
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
                // A block that is only begun is no longer written to.
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

    /// Blocks of a zone.
    pub const fn zone_blocks(&self) -> u32 {
        self.zone_blocks
    }

    /// Zones that are not retired.
    pub fn usable(&self) -> u64 {
        let usable = |band: &&Band| !band.is_retired;
        self.bands.iter().filter(usable).count() as u64
    }

    /// Empty zones.
    pub fn free(&self) -> u64 {
        self.free.len() as u64
    }

    /// Blocks that users' data may take now, with so many free zones left alone.
    pub fn room(&self, reserved_zones: u64) -> u64 {
        let zones = self.free().saturating_sub(reserved_zones);
        let open = self.open[Stream::User as usize].map_or(0, |zone| self.room_of(zone));
        let partial: u64 = self
            .partial
            .iter()
            .map(|z| u64::from(self.room_of(*z)))
            .sum();
        zones * u64::from(self.zone_blocks) + u64::from(open) + partial
    }

    /// Whether pieces of these sizes, each in one zone, find room in this order with so many zones left alone.
    pub fn fits(&self, sizes: impl Iterator<Item = u64>, reserved_zones: u64) -> bool {
        let mut free = self.free().saturating_sub(reserved_zones);
        let mut open = self.open[Stream::User as usize].map_or(0, |z| u64::from(self.room_of(z)));
        let mut partial: Vec<u64> = self
            .partial
            .iter()
            .map(|z| u64::from(self.room_of(*z)))
            .collect();
        for size in sizes {
            if size <= open {
                open -= size;
                continue;
            }
            match partial.iter().position(|room| size <= *room) {
                Some(at) => open = partial.remove(at) - size,
                None if free > 0 && size <= u64::from(self.zone_blocks) => {
                    free -= 1;
                    open = u64::from(self.zone_blocks) - size;
                }
                None => return false,
            }
        }
        true
    }

    /// Zones that could be cleaned: blocks written, and when they were left.
    pub fn cleanable(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let zones = self.bands.iter().enumerate();
        zones.filter_map(|(index, band)| {
            let zone = self.first + index as u32;
            let is_closed = !self.open.contains(&Some(zone)) && !band.is_retired;
            (is_closed && band.written > 0).then_some((zone, band.written, band.filled_at))
        })
    }

    /// The present on the clock of [`Self::cleanable`].
    pub const fn now(&self) -> u64 {
        self.filled
    }

    /// Blocks below the write pointer of a zone, or all of one that was finished.
    pub fn written(&self, zone: u32) -> u32 {
        zone.checked_sub(self.first)
            .and_then(|index| self.bands.get(index as usize))
            .map_or(0, |band| band.written)
    }

    /// Whether a zone is used for nothing more.
    pub fn is_retired(&self, zone: u32) -> bool {
        self.band(zone).is_retired
    }

    /// Where a block of a zone is.
    pub fn at(&self, zone: u32, block: u32) -> ByteOffset {
        ByteOffset(self.device.geometry().start(ZoneId(zone)).0 + u64::from(block) * self.block)
    }

    /// Resets those of `zones` that are not open: nothing in them is live. Those that do not reset are retired.
    pub fn reset(&mut self, zones: &[u32]) -> ZoneResult<()> {
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

    /// Appends whole blocks; where they lie, in order. With `together`, in one place; at most a zone of them then.
    pub fn append(
        &mut self,
        stream: Stream,
        data: &[u8],
        together: bool,
    ) -> Result<Vec<Place>, Unplaced> {
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

    /// The zone is written to no more.
    fn close(&mut self, stream: Stream) {
        if let Some(zone) = self.open[stream as usize].take() {
            self.filled += 1;
            let filled = self.filled;
            let band = self.band_mut(zone);
            band.filled_at = filled;
            if band.written < self.zone_blocks {
                self.partial.insert(zone);
            }
        }
    }

    /// Gives back the active resource of a zone that would have room.
    fn finish(&mut self, zone: u32) {
        appender::finish(&*self.device, ZoneId(zone));
        self.partial.remove(&zone);
        self.band_mut(zone).written = self.zone_blocks;
    }

    /// At most so many zones are neither empty nor full, beside the two that are open.
    fn limit_partial(&mut self) {
        let limit = match self.device.geometry().max_active_zones {
            0 => 8,
            // Two for metadata, two that are open.
            active => active.saturating_sub(5).min(8) as usize,
        };
        while self.partial.len() > limit {
            let least = self.partial.iter().min_by_key(|zone| self.room_of(**zone));
            let Some(zone) = least.copied() else { return };
            self.finish(zone);
        }
    }
}

/// Why data was not appended.
#[derive(Debug)]
pub enum Unplaced {
    /// No zone has room.
    NoZone,
    /// The drive failed, in several zones.
    Drive(ZoneError),
}

impl From<ZoneError> for Unplaced {
    fn from(error: ZoneError) -> Self {
        Self::Drive(error)
    }
}

struct Appending<'a> {
    bands: &'a mut Bands,
    stream: Stream,
    /// Blocks that have to lie together.
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
