//! The zones of a model: the rule book of emulated drives (`device::rules`), for requests of models.

use crate::pending::ZonePart;
use crate::request::{BLOCK_BYTES, Failure, Lba, Refusal};
use device::rules::{ReadSpan, RestedZone, ZoneTable};
use serde::{Deserialize, Serialize};
use zone::{ByteOffset, Geometry, GeometryError, ZoneCondition, ZoneError, ZoneId, ZoneKind};

/// Limit on zones: a model keeps some tens of bytes for each.
pub(crate) const MOST_ZONES: u64 = 1 << 22;

/// Conditions and write pointers of all zones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Zones {
    table: ZoneTable,
}

/// The condition that a zone had before its reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Emptied {
    /// The zone was empty already.
    Already,
    /// The zone was full.
    Full,
    /// The zone was open or closed.
    Active,
}

const fn bytes(lba: Lba) -> ByteOffset {
    ByteOffset(lba.0 * BLOCK_BYTES)
}

/// Translates a rule-book error to a failure of a request.
fn refused(error: ZoneError) -> Failure {
    let refusal = match error {
        ZoneError::OutOfRange { .. } => return Failure::OutOfRange,
        ZoneError::ZoneBoundary { .. } => Refusal::ZoneBoundary,
        ZoneError::NotAtWritePointer { .. } => Refusal::NotAtWritePointer,
        ZoneError::ZoneFull { .. } => Refusal::ZoneFull,
        ZoneError::TooManyOpenZones { .. } => Refusal::TooManyOpenZones,
        ZoneError::TooManyActiveZones { .. } => Refusal::TooManyActiveZones,
        ZoneError::InvalidTransition { .. } => Refusal::InvalidTransition,
        _ => Refusal::InvalidField,
    };
    Failure::Refused(refusal)
}

impl Zones {
    /// The zones of a new drive, with a model's block size.
    pub(crate) fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        if u64::from(geometry.block_size) != BLOCK_BYTES {
            return Err(GeometryError::BlockSize(geometry.block_size));
        }
        Ok(Self {
            table: ZoneTable::new(geometry)?,
        })
    }

    /// Conditions, write pointers, shape and limits.
    pub const fn table(&self) -> &ZoneTable {
        &self.table
    }

    /// Number of logical blocks, including the gaps after zone capacities.
    pub const fn blocks(&self) -> u64 {
        self.table.geometry().size_bytes() / BLOCK_BYTES
    }

    const fn zone_blocks(&self) -> u64 {
        self.table.geometry().zone_size / BLOCK_BYTES
    }

    /// The zone that contains a block.
    pub(crate) const fn zone_of(&self, lba: Lba) -> ZoneId {
        ZoneId((lba.0 / self.zone_blocks()) as u32)
    }

    /// The zone that begins at `lba`; an error if none does.
    pub(crate) const fn beginning_at(&self, lba: Lba) -> Result<ZoneId, Failure> {
        if lba.0.is_multiple_of(self.zone_blocks()) {
            Ok(self.zone_of(lba))
        } else {
            Err(Failure::Refused(Refusal::InvalidField))
        }
    }

    /// Splits a request into parts for the rule book. Zones with preferred order get a part each, because requests
    /// may cross their boundaries (ZBC: boundary violations are of required ones).
    pub(crate) fn pieces(&self, lba: Lba, blocks: u32) -> Vec<(Lba, u32)> {
        if self.table.geometry().sequential_kind == ZoneKind::SequentialWriteRequired {
            return vec![(lba, blocks)];
        }
        let (mut next, mut left, mut pieces) = (lba, blocks, Vec::with_capacity(1));
        while left > 0 {
            let in_zone = self.zone_blocks() - next.0 % self.zone_blocks();
            let here = u64::from(left).min(in_zone) as u32;
            pieces.push((next, here));
            next = next.plus(here.into());
            left -= here;
        }
        pieces
    }

    /// Checks a read, and tells how many of its blocks are written.
    pub(crate) fn check_read(&self, lba: Lba, blocks: u32) -> Result<ReadSpan, Failure> {
        let length = u64::from(blocks) * BLOCK_BYTES;
        self.table.check_read(bytes(lba), length).map_err(refused)
    }

    /// Moves the write pointer for a write or, with `append`, a zone append; returns the first block.
    pub(crate) fn write(&mut self, lba: Lba, blocks: u32, append: bool) -> Result<Lba, Failure> {
        let length = u64::from(blocks) * BLOCK_BYTES;
        let planned = if append {
            let zone = self.beginning_at(lba)?;
            self.table.begin_append(zone, length)
        } else {
            self.table.begin_write(bytes(lba), length)
        };
        let planned = planned.map_err(refused)?;
        let at = self.table.geometry().absolute(planned.at());
        self.table.commit_write(planned);
        Ok(Lba(at.0 / BLOCK_BYTES))
    }

    /// Opens a zone, or closes it.
    pub(crate) fn set_open(&mut self, zone: ZoneId, open: bool) -> Result<(), Failure> {
        let done = if open {
            self.table.open(zone)
        } else {
            self.table.close(zone)
        };
        done.map_err(refused)
    }

    /// Finishes a zone; `false` if it was full already.
    pub(crate) fn finish(&mut self, zone: ZoneId) -> Result<bool, Failure> {
        let changes = self.table.check_finish(zone).map_err(refused)?;
        if changes {
            self.table.finish(zone);
        }
        Ok(changes)
    }

    /// Resets a zone; returns its previous condition.
    pub(crate) fn reset(&mut self, zone: ZoneId) -> Result<Emptied, Failure> {
        if !self.table.check_reset(zone).map_err(refused)? {
            return Ok(Emptied::Already);
        }
        let full = self.table.rested(zone).condition == ZoneCondition::Full;
        self.table.reset(zone);
        Ok(if full { Emptied::Full } else { Emptied::Active })
    }

    /// Applies a power cycle: no zone is open afterwards.
    pub(crate) fn power_cycle(&mut self) {
        self.table.power_cycle();
    }

    /// The write pointer of a zone, in blocks from its start.
    pub(crate) fn pointer(&self, zone: ZoneId) -> u64 {
        self.table.rested(zone).write_pointer / BLOCK_BYTES
    }

    /// The parts of a write in zones that prefer sequential writes. The blocks have to exist.
    pub(crate) fn preferred_parts(&self, lba: Lba, blocks: u32) -> Vec<ZonePart> {
        let geometry = self.table.geometry();
        if geometry.sequential_kind != ZoneKind::SequentialWritePreferred {
            return Vec::new();
        }
        let part = |(first, blocks): (Lba, u32)| ZonePart {
            zone: self.zone_of(first),
            first: first.0 % self.zone_blocks(),
            blocks: blocks.into(),
            skipped: first.0 - lba.0,
        };
        let parts = self.pieces(lba, blocks).into_iter().map(part);
        let preferred = |part: &ZonePart| geometry.kind(part.zone) != ZoneKind::Conventional;
        parts.filter(preferred).collect()
    }

    /// Notes the loss of a write: in a zone that requires sequential writes, everything from `lba` on is lost with it.
    pub(crate) fn cut_back(&mut self, lba: Lba) {
        let zone = self.zone_of(lba);
        if self.table.geometry().kind(zone) == ZoneKind::SequentialWriteRequired {
            self.set_back(zone, lba.0 % self.zone_blocks());
        }
    }

    /// Moves the write pointer of a zone back to a block, counted from its start; does nothing if it is not after that
    /// block.
    pub(crate) fn set_back(&mut self, zone: ZoneId, block: u64) {
        let write_pointer = block * BLOCK_BYTES;
        if write_pointer >= self.table.rested(zone).write_pointer {
            return;
        }
        let condition = if write_pointer == 0 {
            ZoneCondition::Empty
        } else {
            ZoneCondition::Closed
        };
        let fits = self.table.restore(
            zone,
            RestedZone {
                condition,
                write_pointer,
            },
        );
        debug_assert!(fits, "zone {zone} to {write_pointer}");
    }
}
