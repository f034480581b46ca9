//! Zones on flash: each zone is a superblock, so that no data is ever moved.
//!
//! The rule book (`device::rules`) decides which commands are allowed; this file has their cost. The newest blocks of
//! a zone are in the write buffer until they fill a program unit.

use super::array::Array;
use super::buffer::WriteBuffer;
use super::server::Class;
use crate::request::{BLOCK_BYTES, Failure, Lba};
use crate::time::{Span, Time};
use crate::zones::{Emptied, Zones};
use serde::{Deserialize, Serialize};
use zone::{Geometry, GeometryError, ZoneCondition, ZoneId, ZoneKind};

/// Zones of a flash drive, as in a profile. The capacity of a zone is that of a superblock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonesShape {
    /// Number of zones.
    pub zones: u32,
    /// Bytes from one zone start to the next.
    pub zone_size_bytes: u64,
    /// Most zones open at once; 0 for no limit.
    pub max_open_zones: u32,
    /// Most zones active at once; 0 for no limit.
    pub max_active_zones: u32,
    /// Most bytes of a zone append.
    pub max_append_bytes: u32,
    /// Milliseconds to give up the open erase blocks of a zone that is reset before it is full.
    pub close_ms: f64,
    /// Milliseconds to reset a zone in which nothing is written.
    pub reset_ms: f64,
    /// Milliseconds that a reset takes longer if the whole zone is written; less in proportion otherwise.
    pub unmap_ms: f64,
}

/// The zones of a flash drive, and the cost of their commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Zoned {
    zones: Zones,
    /// Number of blocks that the host wrote to each zone; a finished zone may have few.
    written: Vec<u32>,
    close: Span,
    reset: Span,
    unmap: Span,
}

impl Zoned {
    /// A drive without data, on an array of as many superblocks as zones.
    pub(super) fn new(shape: &ZonesShape, array: &Array) -> Result<Self, GeometryError> {
        let geometry = Geometry {
            block_size: BLOCK_BYTES as u32,
            zone_size: shape.zone_size_bytes,
            zone_capacity: u64::from(array.superblock_blocks()) * BLOCK_BYTES,
            zone_count: shape.zones,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: shape.max_open_zones,
            max_active_zones: shape.max_active_zones,
            max_append_bytes: shape.max_append_bytes,
        };
        Ok(Self {
            zones: Zones::new(geometry)?,
            written: vec![0; shape.zones as usize],
            close: Span::from_millis(shape.close_ms),
            reset: Span::from_millis(shape.reset_ms),
            unmap: Span::from_millis(shape.unmap_ms),
        })
    }

    /// Its zones.
    pub const fn zones(&self) -> &Zones {
        &self.zones
    }

    /// Applies the effect of a power cycle to the zones.
    pub(super) fn power_cycle(&mut self) {
        self.zones.power_cycle();
    }

    const fn slot(array: &Array, zone: ZoneId, block: u32) -> u64 {
        zone.0 as u64 * array.superblock_blocks() as u64 + block as u64
    }

    /// Reads blocks; those that were never written or are in the buffer take no time.
    pub(super) fn read(
        &self,
        array: &mut Array,
        now: Time,
        lba: Lba,
        blocks: u32,
    ) -> Result<Time, Failure> {
        let span = self.zones.check_read(lba, blocks)?;
        let zone = span.at.zone;
        let first = (span.at.offset / BLOCK_BYTES) as u32;
        let written = self.written[zone.index()];
        let unit = array.unit_blocks();
        let is_full = self.zones.table().rested(zone).condition == ZoneCondition::Full;
        let programmed = match written % unit {
            0 => written,
            // A finish pads the last unit and programs it.
            buffered if is_full => written - buffered + unit,
            buffered => written - buffered,
        };
        let on_flash = programmed.saturating_sub(first).min(blocks);
        if on_flash == 0 {
            return Ok(now);
        }
        Ok(array.read(now, Self::slot(array, zone, first), u64::from(on_flash)))
    }

    /// Checks a write or, with `append`, a zone append; returns the block where it goes.
    pub(super) fn plan(&mut self, lba: Lba, blocks: u32, append: bool) -> Result<Lba, Failure> {
        self.zones.write(lba, blocks, append)
    }

    /// Carries out a planned write whose data arrived at `at`; returns the time when all of it is in the buffer.
    pub(super) fn write(
        &mut self,
        array: &mut Array,
        buffer: &mut WriteBuffer,
        at: Time,
        lba: Lba,
        blocks: u32,
    ) -> Time {
        let zone = self.zones.zone_of(lba);
        let unit = array.unit_blocks();
        let written = &mut self.written[zone.index()];
        let (mut left, mut taken) = (blocks, at);
        while left > 0 {
            let here = left.min(unit - *written % unit);
            taken = buffer.take(taken, u64::from(here));
            *written += here;
            left -= here;
            if written.is_multiple_of(unit) {
                let slot = Self::slot(array, zone, *written - unit);
                let end = array.program(Class::Normal, taken, slot);
                buffer.leave(end, unit);
            }
        }
        taken
    }

    /// Opens or closes the zone at `lba`, which costs only the command.
    pub(super) fn set_open(&mut self, lba: Lba, open: bool) -> Result<(), Failure> {
        let zone = self.zones.beginning_at(lba)?;
        self.zones.set_open(zone, open)
    }

    /// Finishes the zone at `lba`: pads the rest of it, unless nothing is written in it.
    pub(super) fn finish(
        &mut self,
        array: &mut Array,
        buffer: &mut WriteBuffer,
        now: Time,
        lba: Lba,
    ) -> Result<Time, Failure> {
        let zone = self.zones.beginning_at(lba)?;
        let changes = self.zones.finish(zone)?;
        let (written, unit) = (self.written[zone.index()], array.unit_blocks());
        if !changes || written == 0 {
            return Ok(now);
        }
        let mut end = now;
        let mut buffered = written % unit;
        for next in (written - buffered..array.superblock_blocks()).step_by(unit as usize) {
            let slot = Self::slot(array, zone, next);
            let programmed = array.program(Class::Background, now, slot);
            buffer.leave(programmed, std::mem::take(&mut buffered));
            end = end.max(programmed);
        }
        array.counts.padded_blocks += u64::from(array.superblock_blocks() - written);
        Ok(end)
    }

    /// Resets the zone at `lba`. The completion does not wait for the erase.
    pub(super) fn reset(
        &mut self,
        array: &mut Array,
        buffer: &mut WriteBuffer,
        now: Time,
        lba: Lba,
    ) -> Result<Time, Failure> {
        let zone = self.zones.beginning_at(lba)?;
        let before = self.zones.reset(zone)?;
        let written = std::mem::take(&mut self.written[zone.index()]);
        let full = before == Emptied::Full;
        let open = before == Emptied::Active && written >= array.unit_blocks();
        let part = f64::from(written) / f64::from(array.superblock_blocks());
        let mut end = now + self.reset + Span::from_seconds(self.unmap.seconds() * part);
        if open {
            end += self.close;
        }
        if !full {
            buffer.leave(now, written % array.unit_blocks());
        }
        if open || (full && written > 0) {
            array.erase(end, zone.0);
        }
        Ok(end)
    }
}
