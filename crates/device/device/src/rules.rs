//! The rule book of zoned drives: the effect of each command on a zone in each condition.
//!
//! A pure state machine over a zone table; it does no I/O. A drive asks it before it acts (`begin_*`,
//! `check_*`) and reports afterwards (`commit_write`, `reset`, …). Invariants: at most `max_open_zones` zones
//! are open and, apart from tables restored with more, at most `max_active_zones` are active; a write pointer
//! never passes the capacity; only one write at a time is in flight in a zone that has a write pointer.
//!
//! Where ZBC/ZAC and ZNS differ: closing an opened zone in which nothing was written makes it
//! empty (ZBC); closing an empty or full zone and opening a full one are invalid transitions
//! (ZNS); finishing an empty zone needs room under the active limit, and finishing a closed one
//! nothing, as it is active already. The limits are those of sequential-write-required zones:
//! for write-preferred ones the standard only advises, so nothing is refused there.

mod access;
mod transition;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zone::{
    ByteOffset, Geometry, GeometryError, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneKind, ZoneResult,
};

pub use access::{PlannedWrite, ReadSpan};

/// The state of one zone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ZoneState {
    condition: ZoneCondition,
    /// Bytes from the zone's start. Valid also in read-only and offline zones, where a report hides it; 0 in
    /// conventional zones.
    write_pointer: u64,
    /// Sequence number of the implicit opening: the key into `ZoneTable::implicit`.
    opening: u64,
    /// Whether a write is between `begin_write` and `commit_write`. The zone then counts as written, so that an
    /// implicit close makes it closed and not empty.
    writing: bool,
}

/// The state of a zone that survives a power cycle, after which no zone is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestedZone {
    /// Never implicitly or explicitly open.
    pub condition: ZoneCondition,
    /// Bytes from the zone's start, also for read-only and offline zones; 0 in conventional ones.
    pub write_pointer: u64,
}

/// Conditions and write pointers of all zones of one drive, and the limits between them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZoneTable {
    geometry: Geometry,
    zones: Vec<ZoneState>,
    /// Implicitly open zones, the oldest opening first: the order in which they are closed.
    implicit: BTreeMap<u64, ZoneId>,
    next_opening: u64,
    explicit_open: usize,
    closed: usize,
}

impl ZoneTable {
    /// The table of a new drive: every sequential zone is empty.
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        geometry.validate()?;
        let zones = geometry
            .zones()
            .map(|zone| ZoneState {
                condition: match geometry.kind(zone) {
                    ZoneKind::Conventional => ZoneCondition::NotWritePointer,
                    _ => ZoneCondition::Empty,
                },
                write_pointer: 0,
                opening: 0,
                writing: false,
            })
            .collect();
        Ok(Self {
            geometry,
            zones,
            implicit: BTreeMap::new(),
            next_opening: 0,
            explicit_open: 0,
            closed: 0,
        })
    }

    /// The drive's shape and limits.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Sets `zone` to a state read from a medium; returns false if that does not fit the zone's kind or
    /// capacity.
    #[must_use]
    pub fn restore(&mut self, zone: ZoneId, rested: RestedZone) -> bool {
        let capacity = self.geometry.capacity(zone);
        let pointer = rested.write_pointer;
        let conventional = self.geometry.kind(zone) == ZoneKind::Conventional;
        let aligned = pointer.is_multiple_of(u64::from(self.geometry.block_size));
        let fits = match rested.condition {
            ZoneCondition::NotWritePointer => conventional && pointer == 0,
            ZoneCondition::Empty => !conventional && pointer == 0,
            ZoneCondition::Closed => !conventional && aligned && (1..capacity).contains(&pointer),
            ZoneCondition::Full => !conventional && pointer == capacity,
            ZoneCondition::ReadOnly | ZoneCondition::Offline => {
                aligned && pointer <= if conventional { 0 } else { capacity }
            }
            ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen => false,
        };
        if fits && zone.index() < self.zones.len() {
            self.set(zone, rested.condition);
            self.zones[zone.index()].write_pointer = pointer;
            return true;
        }
        false
    }

    /// The state of `zone` that would survive a power cycle now.
    pub fn rested(&self, zone: ZoneId) -> RestedZone {
        let state = self.state(zone);
        Self::rest(state.condition, state.write_pointer)
    }

    const fn rest(condition: ZoneCondition, write_pointer: u64) -> RestedZone {
        let condition = match condition {
            ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen if write_pointer == 0 => {
                ZoneCondition::Empty
            }
            ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen => ZoneCondition::Closed,
            other => other,
        };
        RestedZone {
            condition,
            write_pointer,
        }
    }

    /// Simulates a power cycle: open zones are closed, or empty if nothing was written to them.
    pub fn power_cycle(&mut self) {
        for zone in self.geometry.zones() {
            let rested = self.rested(zone);
            self.zones[zone.index()].writing = false;
            self.set(zone, rested.condition);
        }
    }

    /// Reports at most `count` zones from `first` on; none after the last zone.
    pub fn report(&self, first: ZoneId, count: u32) -> Vec<ZoneDescriptor> {
        let end = first.0.saturating_add(count).min(self.geometry.zone_count);
        (first.0..end)
            .map(|zone| self.descriptor(ZoneId(zone)))
            .collect()
    }

    fn descriptor(&self, zone: ZoneId) -> ZoneDescriptor {
        let state = self.state(zone);
        let mut descriptor = ZoneDescriptor {
            id: zone,
            kind: self.geometry.kind(zone),
            condition: state.condition,
            size: self.geometry.zone_size,
            capacity: self.geometry.capacity(zone),
            write_pointer: state.write_pointer,
        };
        if !descriptor.write_pointer_valid() {
            descriptor.write_pointer = 0;
        }
        descriptor
    }

    /// Number of open zones.
    pub fn open_zones(&self) -> usize {
        self.implicit.len() + self.explicit_open
    }

    /// Number of open and closed zones.
    pub fn active_zones(&self) -> usize {
        self.open_zones() + self.closed
    }

    fn state(&self, zone: ZoneId) -> ZoneState {
        self.zones[zone.index()]
    }

    /// Changes a zone's condition and updates the counters.
    fn set(&mut self, zone: ZoneId, to: ZoneCondition) {
        let state = self.zones[zone.index()];
        if state.condition == to {
            return;
        }
        match state.condition {
            ZoneCondition::ImplicitOpen => drop(self.implicit.remove(&state.opening)),
            ZoneCondition::ExplicitOpen => self.explicit_open -= 1,
            ZoneCondition::Closed => self.closed -= 1,
            _ => {}
        }
        let state = &mut self.zones[zone.index()];
        state.condition = to;
        match to {
            ZoneCondition::ImplicitOpen => {
                state.opening = self.next_opening;
                self.implicit.insert(self.next_opening, zone);
                self.next_opening += 1;
            }
            ZoneCondition::ExplicitOpen => self.explicit_open += 1,
            ZoneCondition::Closed => self.closed += 1,
            _ => {}
        }
    }

    fn check_zone(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        if zone.0 < self.geometry.zone_count {
            return Ok(());
        }
        let at = ByteOffset(self.geometry.zone_size.saturating_mul(u64::from(zone.0)));
        Err(ZoneError::OutOfRange {
            command,
            at,
            length: 0,
        })
    }

    fn check_not_broken(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        match self.state(zone).condition {
            ZoneCondition::ReadOnly => Err(ZoneError::ReadOnly { command, zone }),
            ZoneCondition::Offline => Err(ZoneError::Offline { command, zone }),
            _ => Ok(()),
        }
    }
}
