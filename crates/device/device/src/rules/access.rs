//! Commands that transfer data: checks reads, writes and appends, and applies their effect on zones.

use super::{RestedZone, ZoneState, ZoneTable};
use std::ops::Range;
use zone::{
    ByteOffset, ZoneAddress, ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneKind, ZoneResult,
};

/// An allowed write in progress. It has to end in [`ZoneTable::commit_write`] or [`ZoneTable::abort_write`].
#[derive(Debug)]
#[must_use]
pub struct PlannedWrite {
    at: ZoneAddress,
    /// The write pointer before and after; `None` if the write changes only data.
    pointer: Option<(u64, u64)>,
    capacity: u64,
}

/// An allowed read: its first `written` bytes come from the medium, the others are zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadSpan {
    /// Address of the first byte.
    pub at: ZoneAddress,
    /// Number of its bytes that are below a write pointer.
    pub written: u64,
}

impl PlannedWrite {
    /// Address of the first byte to write.
    pub const fn at(&self) -> ZoneAddress {
        self.at
    }

    /// The range from the old write pointer to the write, as offsets in the zone, which has to read as zeros
    /// from now on. Only in sequential-write-preferred zones.
    pub fn gap(&self) -> Option<Range<u64>> {
        let (before, _) = self.pointer?;
        (before < self.at.offset).then_some(before..self.at.offset)
    }

    /// The state of the zone that survives a power cycle after the write; `None` if the write does not change
    /// it.
    pub fn rested_after(&self) -> Option<RestedZone> {
        let (before, after) = self.pointer?;
        let condition = if after == self.capacity {
            ZoneCondition::Full
        } else {
            ZoneCondition::Closed
        };
        (before != after).then_some(RestedZone {
            condition,
            write_pointer: after,
        })
    }
}

impl ZoneTable {
    /// Checks a read of `length` bytes at `at`; returns how many of them are written.
    pub fn check_read(&self, at: ByteOffset, length: u64) -> ZoneResult<ReadSpan> {
        let command = ZoneCommand::Read;
        let start = self.locate(command, at, length)?;
        let zone_size = self.geometry.zone_size;
        let last = ZoneId(((at.0 + length - 1) / zone_size) as u32);
        if last != start.zone && self.geometry.kind(last) != ZoneKind::Conventional {
            // Conventional zones come first, so if `last` is one, all zones of the range are.
            return Err(ZoneError::ZoneBoundary {
                command,
                zone: start.zone,
                at,
                length,
            });
        }
        for zone in (start.zone.0..=last.0).map(ZoneId) {
            if self.state(zone).condition == ZoneCondition::Offline {
                return Err(ZoneError::Offline { command, zone });
            }
        }
        let written = match self.geometry.kind(start.zone) {
            ZoneKind::Conventional => length,
            _ => self
                .state(start.zone)
                .write_pointer
                .saturating_sub(start.offset)
                .min(length),
        };
        Ok(ReadSpan { at: start, written })
    }

    /// Checks a write of `length` bytes at `at`. If it is allowed, the zone is open from now on.
    pub fn begin_write(&mut self, at: ByteOffset, length: u64) -> ZoneResult<PlannedWrite> {
        let command = ZoneCommand::Write;
        let start = self.locate(command, at, length)?;
        let zone = start.zone;
        self.check_not_broken(command, zone)?;
        let state = self.state(zone);
        if self.geometry.kind(zone) == ZoneKind::SequentialWriteRequired {
            if state.condition == ZoneCondition::Full {
                return Err(ZoneError::ZoneFull { command, zone });
            }
            if start.offset != state.write_pointer {
                let write_pointer = self
                    .geometry
                    .absolute(ZoneAddress::new(zone, state.write_pointer));
                return Err(ZoneError::NotAtWritePointer {
                    zone,
                    at,
                    write_pointer,
                });
            }
        }
        self.begin(command, start, length)
    }

    /// Checks an append of `length` bytes to `zone`. If it is allowed, the zone is open from now on.
    pub fn begin_append(&mut self, zone: ZoneId, length: u64) -> ZoneResult<PlannedWrite> {
        let command = ZoneCommand::Append;
        self.check_zone(command, zone)?;
        let state = self.state(zone);
        let start = ZoneAddress::new(zone, state.write_pointer);
        self.check_aligned(command, self.geometry.absolute(start), length)?;
        if length > u64::from(self.geometry.max_append_bytes) {
            return Err(ZoneError::Unsupported { command, length });
        }
        self.check_not_broken(command, zone)?;
        if self.geometry.kind(zone) == ZoneKind::Conventional {
            return Err(self.invalid(command, zone));
        }
        if state.condition == ZoneCondition::Full {
            return Err(ZoneError::ZoneFull { command, zone });
        }
        self.begin(command, start, length)
    }

    fn begin(
        &mut self,
        command: ZoneCommand,
        start: ZoneAddress,
        length: u64,
    ) -> ZoneResult<PlannedWrite> {
        let zone = start.zone;
        let capacity = self.geometry.capacity(zone);
        let end = start.offset + length;
        if end > capacity {
            let at = self.geometry.absolute(start);
            return Err(ZoneError::ZoneBoundary {
                command,
                zone,
                at,
                length,
            });
        }
        let ZoneState {
            condition,
            write_pointer,
            ..
        } = self.state(zone);
        let conventional = self.geometry.kind(zone) == ZoneKind::Conventional;
        // A full write-preferred zone stays full on every write.
        let pointer = (!conventional && condition != ZoneCondition::Full)
            .then_some((write_pointer, end.max(write_pointer)));
        if pointer.is_some() {
            self.acquire_open(command, zone)?;
            if !condition.is_open() {
                self.set(zone, ZoneCondition::ImplicitOpen);
            }
            let state = &mut self.zones[zone.index()];
            assert!(!state.writing, "two writes at once in zone {zone}");
            state.writing = true;
        }
        Ok(PlannedWrite {
            at: start,
            pointer,
            capacity,
        })
    }

    /// Records that the bytes of `write` are on the medium, and advances the write pointer.
    pub fn commit_write(&mut self, write: PlannedWrite) {
        let Some((_, after)) = write.pointer else {
            return;
        };
        let zone = write.at.zone;
        let state = &mut self.zones[zone.index()];
        state.writing = false;
        state.write_pointer = after;
        if after == write.capacity {
            self.set(zone, ZoneCondition::Full);
        }
    }

    /// Records that `write` failed: the write pointer stays.
    pub fn abort_write(&mut self, write: PlannedWrite) {
        if write.pointer.is_none() {
            return;
        }
        let zone = write.at.zone;
        let state = &mut self.zones[zone.index()];
        state.writing = false;
        if state.condition == ZoneCondition::Closed && state.write_pointer == 0 {
            self.set(zone, ZoneCondition::Empty);
        }
    }

    /// Checks alignment and range; returns the address of the range's start.
    fn locate(&self, command: ZoneCommand, at: ByteOffset, length: u64) -> ZoneResult<ZoneAddress> {
        self.check_aligned(command, at, length)?;
        let out_of_range = ZoneError::OutOfRange {
            command,
            at,
            length,
        };
        let end =
            at.0.checked_add(length)
                .filter(|end| *end <= self.geometry.size_bytes());
        if end.is_none() {
            return Err(out_of_range);
        }
        self.geometry.address(at).ok_or(out_of_range)
    }

    fn check_aligned(&self, command: ZoneCommand, at: ByteOffset, length: u64) -> ZoneResult<()> {
        let block_size = self.geometry.block_size;
        let block = u64::from(block_size);
        if length == 0 || !length.is_multiple_of(block) || !at.0.is_multiple_of(block) {
            return Err(ZoneError::Unaligned {
                command,
                at,
                length,
                block_size,
            });
        }
        Ok(())
    }
}
