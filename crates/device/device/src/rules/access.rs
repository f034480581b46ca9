//! Commands that move bytes: which reads, writes and appends are allowed, and what they change.

use super::{RestedZone, ZoneState, ZoneTable};
use std::ops::Range;
use zone::{
    ByteOffset, ZoneAddress, ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneKind, ZoneResult,
};

/// An allowed write that is under way. It ends in [`ZoneTable::commit_write`] or
/// [`ZoneTable::abort_write`].
#[derive(Debug)]
#[must_use]
pub struct PlannedWrite {
    at: ZoneAddress,
    /// The write pointer before and after; `None` where nothing but bytes changes.
    pointer: Option<(u64, u64)>,
    capacity: u64,
}

/// An allowed read: the first `written` bytes come from the medium, the others are zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadSpan {
    /// Where it begins.
    pub at: ZoneAddress,
    /// How many of its bytes lie below a write pointer.
    pub written: u64,
}

impl PlannedWrite {
    /// Where the bytes go.
    pub const fn at(&self) -> ZoneAddress {
        self.at
    }

    /// The bytes from the old write pointer to the write, which have to read as zeros from now
    /// on: only in sequential-write-preferred zones. Offsets in the zone.
    pub fn gap(&self) -> Option<Range<u64>> {
        let (before, _) = self.pointer?;
        (before < self.at.offset).then_some(before..self.at.offset)
    }

    /// What of the zone would survive a power cycle after the write; `None` if that does not
    /// change.
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
    /// Whether `length` bytes may be read at `at`, and how many of them are written.
    pub fn check_read(&self, at: ByteOffset, length: u64) -> ZoneResult<ReadSpan> {
        let command = ZoneCommand::Read;
        let start = self.locate(command, at, length)?;
        let zone_size = self.geometry.zone_size;
        let last = ZoneId(((at.0 + length - 1) / zone_size) as u32);
        if last != start.zone && self.geometry.kind(last) != ZoneKind::Conventional {
            // Conventional zones come first, so all others up to `last` are conventional.
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

    /// Whether `length` bytes may be written at `at`. If so the zone is open from now on.
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

    /// Whether `length` bytes may be appended to `zone`. If so the zone is open from now on.
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
        // A full write-preferred zone stays full whatever is written into it.
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

    /// The bytes of `write` are on the medium.
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

    /// The medium did not take `write`: the write pointer stays.
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

    /// Checks alignment and range; answers where the range begins.
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
