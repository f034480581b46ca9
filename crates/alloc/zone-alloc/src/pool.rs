//! The table of zone owners, one byte a zone.
//!
//! Life of a zone: free → taken by an owner → given back after its reset. At mount every non-empty sequential
//! zone starts as *unclaimed*: its owner claims it from its own metadata. A zone that no owner claims holds
//! nothing that was acknowledged and may be reset.
//!
//! Invariant: a zone has one owner; reserves are honoured before the lowest free zone is given out.

use crate::ladder::{Ladder, Tenant};
use runtime::sync::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// Zones of BlueFS's reserve that it may need while a zone is cleaned: for a log, the manifest, an SST and the
/// journal.
const KEPT_FROM_CLEANER: u32 = 4;

/// Free zones that only the cleaner may take: one that it fills and one to change to.
pub const KEPT_FOR_CLEANER: u32 = 2;

/// Positions of the store's tenants on the ladder.
const CLEANER: usize = 1;
const DATA: usize = 3;

/// Who may own a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// BlueFS: superblocks, journal, write-ahead logs, SSTs.
    BlueFs,
    /// The store: object data.
    Store,
}

/// The use that a zone is taken for; it decides how many free zones have to be left to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// BlueFS's journal: conventional zones first, for they take no active resource.
    Journal,
    /// BlueFS's files: sequential zones first, because data in a conventional zone costs a flush of its own
    /// before the journal may refer to it. Beside a store, only the zones reserved for BlueFS are sequential.
    Files,
    /// New object data: leaves the reserves of BlueFS and of the cleaner untouched.
    Data,
    /// Object data that the cleaner moves: leaves BlueFS a few zones of its reserve. The cleaner gives back more
    /// zones than it takes, and has to be able to start even if the reserve exceeds the free zones.
    Cleaning,
}

/// Why a zone cannot be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ClaimError {
    /// Another owner has claimed it.
    #[error("zone {zone} is claimed by {by:?} and owned by {owner:?}")]
    Owned {
        /// The zone.
        zone: ZoneId,
        /// The owner in the table.
        owner: Owner,
        /// The owner that claims it as well.
        by: Owner,
    },
    /// The drive has no such zone.
    #[error("zone {0} is behind the end of the drive")]
    NoSuchZone(ZoneId),
}

/// How many zones are in which state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct PoolCounts {
    /// Free conventional zones.
    pub free_conventional: u32,
    /// Free sequential zones.
    pub free_sequential: u32,
    /// Zones of BlueFS, conventional ones.
    pub bluefs_conventional: u32,
    /// Zones of BlueFS, sequential ones.
    pub bluefs_sequential: u32,
    /// Zones of the store.
    pub store: u32,
    /// Non-empty zones that no owner has claimed.
    pub unclaimed: u32,
    /// Read-only, offline or retired.
    pub unusable: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Unclaimed,
    Unusable,
    Owned(Owner),
}

struct Table {
    states: Vec<State>,
    counts: PoolCounts,
    /// Free parts of each conventional zone of the drive.
    free_parts: Vec<u32>,
    bluefs_reserve: u32,
    /// Whether no store uses the drive.
    bluefs_is_alone: bool,
    /// The owners that get zones when their present owners give them back ([`ZonePool::claim_next`]).
    heirs: BTreeMap<ZoneId, Owner>,
}

/// The zones of one drive and their owners; shared by everything that allocates on the drive.
pub struct ZonePool {
    geometry: Geometry,
    table: Mutex<Table>,
}

impl ZonePool {
    /// A pool over a full report of the drive.
    pub fn new(geometry: Geometry, report: &[ZoneDescriptor]) -> Self {
        let mut states = vec![State::Unusable; geometry.zone_count as usize];
        for zone in report {
            if let Some(state) = states.get_mut(zone.id.index()) {
                *state = match zone.condition {
                    ZoneCondition::NotWritePointer | ZoneCondition::Empty => State::Free,
                    ZoneCondition::ReadOnly | ZoneCondition::Offline => State::Unusable,
                    _ if zone.write_pointer == 0 => State::Free,
                    _ => State::Unclaimed,
                };
            }
        }
        let mut table = Table {
            states,
            counts: PoolCounts::default(),
            free_parts: vec![0; geometry.conventional_zones as usize],
            bluefs_reserve: 0,
            bluefs_is_alone: false,
            heirs: BTreeMap::new(),
        };
        for zone in geometry.zones() {
            let state = table.states[zone.index()];
            *table.count(geometry.kind(zone), state) += 1;
            if let Some(free) = table.free_parts(&geometry, zone) {
                *free += u32::from(state == State::Free);
            }
        }
        Self {
            geometry,
            table: Mutex::new(table),
        }
    }

    /// The drive's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Keeps sequential zones back for BlueFS, so that it can always grow to `zones` sequential zones in all.
    pub fn reserve(&self, zones: u32) {
        self.table.lock().bluefs_reserve = zones;
    }

    /// Declares that no store will take zones of this drive.
    pub fn set_bluefs_alone(&self) {
        self.table.lock().bluefs_is_alone = true;
    }

    /// Whether BlueFS's files take conventional zones first, because sequential ones are for object data.
    pub fn prefers_conventional(&self) -> bool {
        self.table.lock().prefers() == ZoneKind::Conventional
    }

    /// Whether BlueFS holds more sequential zones than are reserved for it while conventional zones are free,
    /// on a drive that a store uses.
    pub fn bluefs_is_in_the_way(&self) -> bool {
        let table = self.table.lock();
        let counts = &table.counts;
        let is_beyond = counts.bluefs_sequential > table.bluefs_reserve;
        !table.bluefs_is_alone && is_beyond && counts.free_conventional > 0
    }

    /// Records at mount that `zone` belongs to `owner`. Claiming twice is harmless. A read-only zone may be
    /// claimed (it can be read), and counts as its owner's.
    pub fn claim(&self, zone: ZoneId, owner: Owner) -> Result<(), ClaimError> {
        let mut table = self.table.lock();
        match table.states.get(zone.index()).copied() {
            None => Err(ClaimError::NoSuchZone(zone)),
            Some(State::Owned(other)) if other != owner => Err(ClaimError::Owned {
                zone,
                owner: other,
                by: owner,
            }),
            Some(_) => {
                table.set(&self.geometry, zone, State::Owned(owner));
                Ok(())
            }
        }
    }

    /// Takes the lowest free zone that `purpose` may have; on a hard disk low zones lie on the outer tracks,
    /// which are fastest. `None` if none is left above the reserves of others.
    pub fn take(&self, purpose: Purpose) -> Option<ZoneId> {
        let mut table = self.table.lock();
        let (owner, kept_back) = match purpose {
            Purpose::Journal | Purpose::Files => (Owner::BlueFs, 0),
            Purpose::Cleaning => (Owner::Store, table.ladder().kept_from(CLEANER)),
            Purpose::Data => (Owner::Store, table.ladder().kept_from(DATA)),
        };
        let free = |from: u32, to: u32| {
            let states = &table.states[from as usize..to as usize];
            let position = states.iter().position(|state| *state == State::Free)?;
            Some(ZoneId(from + position as u32))
        };
        let g = &self.geometry;
        let (first_sequential, end) = (g.conventional_zones, g.drive_zones());
        let conventional = free(0, first_sequential).or_else(|| free(end, g.zone_count));
        let sequential = (table.counts.free_sequential > kept_back)
            .then(|| free(first_sequential, end))
            .flatten();
        let zone = match purpose {
            Purpose::Data | Purpose::Cleaning => sequential,
            Purpose::Files if table.prefers() != ZoneKind::Conventional => {
                sequential.or(conventional)
            }
            Purpose::Journal | Purpose::Files => conventional.or(sequential),
        }?;
        table.set(&self.geometry, zone, State::Owned(owner));
        Some(zone)
    }

    /// Makes `owner` the next owner of `zone` when its present owner gives it back; until then no other may
    /// take it. `None` withdraws the claim.
    pub fn claim_next(&self, zone: ZoneId, owner: Option<Owner>) {
        let heirs = &mut self.table.lock().heirs;
        match owner {
            Some(owner) => heirs.insert(zone, owner),
            None => heirs.remove(&zone),
        };
    }

    /// Gives back a zone that is empty after a reset (or conventional and unused).
    pub fn give_back(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        let heir = table.heirs.remove(&zone);
        let state = heir.map_or(State::Free, State::Owned);
        table.set(&self.geometry, zone, state);
    }

    /// Takes a zone out of use for good, after it has become read-only or offline or has failed.
    pub fn retire(&self, zone: ZoneId) {
        self.table.lock().set(&self.geometry, zone, State::Unusable);
    }

    /// Non-empty zones that no owner has claimed, lowest first.
    pub fn unclaimed(&self) -> Vec<ZoneId> {
        self.in_state(State::Unclaimed)
    }

    /// Zones that are out of use, lowest first.
    pub fn unusable(&self) -> Vec<ZoneId> {
        self.in_state(State::Unusable)
    }

    fn in_state(&self, state: State) -> Vec<ZoneId> {
        let table = self.table.lock();
        let zones = self.geometry.zones();
        zones
            .filter(|zone| table.states[zone.index()] == state)
            .collect()
    }

    /// The owner of `zone`, or `None` if it has none.
    pub fn owner(&self, zone: ZoneId) -> Option<Owner> {
        match self.table.lock().states.get(zone.index())? {
            State::Owned(owner) => Some(*owner),
            _ => None,
        }
    }

    /// How many zones are in which state.
    pub fn counts(&self) -> PoolCounts {
        self.table.lock().counts
    }

    /// Free zones that new object data may still take.
    pub fn free_for_data(&self) -> u32 {
        let table = self.table.lock();
        let kept_back = table.ladder().kept_from(DATA);
        table.counts.free_sequential.saturating_sub(kept_back)
    }

    /// Most sequential zones that object data may fill, used or free: all usable ones except those that BlueFS
    /// holds or has reserved and the cleaner's reserve.
    pub fn data_zones(&self) -> u32 {
        let table = self.table.lock();
        let c = &table.counts;
        (c.free_sequential + c.store + c.unclaimed).saturating_sub(table.ladder().kept_from(DATA))
    }

    /// Sequential zones that BlueFS and object data share, used or free: all usable ones except those for the
    /// cleaner alone.
    pub fn shared_zones(&self) -> u32 {
        let c = self.counts();
        let all = c.free_sequential + c.store + c.unclaimed + c.bluefs_sequential;
        all.saturating_sub(KEPT_FOR_CLEANER)
    }

    /// Number of zones that the store may keep open for its streams. On a drive of few zones, open zones (never
    /// full) cost more than placing data by its lifetime gains under a uniform load.
    pub const fn store_streams(&self) -> u32 {
        const FEW_ZONES: u32 = 256;
        match self.geometry.max_active_zones {
            0 | 14.. if self.geometry.zone_count > FEW_ZONES => 4,
            _ => 2,
        }
    }

    /// Most zones that `owner` may keep active at once, derived from the drive's limit; `None` without a limit.
    ///
    /// The store needs a zone for each stream, and one while it changes from a full zone to the next; BlueFS
    /// gets the rest, which is all of it where there is no store.
    pub fn active_quota(&self, owner: Owner) -> Option<u32> {
        let limit = self.geometry.max_active_zones;
        let store = match limit {
            _ if self.table.lock().bluefs_is_alone => 0,
            0..10 => 2,
            _ => self.store_streams() + 1,
        };
        let with_quota = |active_quota| Tenant {
            active_quota,
            ..Tenant::new(0, 0)
        };
        let ladder = Ladder([with_quota(None), with_quota(Some(store))]);
        match (limit, owner) {
            (0, _) => None,
            (_, Owner::Store) => Some(ladder.active_quota(1, limit)),
            (_, Owner::BlueFs) => Some(ladder.active_quota(0, limit).max(1)),
        }
    }
}

impl Table {
    /// The tenants that free zones are kept for. The part of BlueFS's reserve that it does not hold yet is
    /// split in two: the cleaner leaves it the first part only.
    fn ladder(&self) -> Ladder<4> {
        let bluefs = self.bluefs_reserve;
        let missing = bluefs.saturating_sub(self.counts.bluefs_sequential);
        let first = missing.min(KEPT_FROM_CLEANER);
        let tenant = |priority: usize, guaranteed| Tenant::new(guaranteed, priority as u8);
        Ladder([
            tenant(0, first),
            tenant(CLEANER, KEPT_FOR_CLEANER),
            tenant(2, missing - first),
            tenant(DATA, 0),
        ])
    }

    /// The kind of zone that BlueFS's files take first: sequential if BlueFS may have one more without taking
    /// it from object data.
    fn prefers(&self) -> ZoneKind {
        if self.bluefs_is_alone || self.counts.bluefs_sequential < self.bluefs_reserve {
            ZoneKind::SequentialWriteRequired
        } else {
            ZoneKind::Conventional
        }
    }

    fn count(&mut self, kind: ZoneKind, state: State) -> &mut u32 {
        let c = &mut self.counts;
        match (state, kind == ZoneKind::Conventional) {
            (State::Free, true) => &mut c.free_conventional,
            (State::Free, false) => &mut c.free_sequential,
            (State::Owned(Owner::BlueFs), true) => &mut c.bluefs_conventional,
            (State::Owned(Owner::BlueFs), false) => &mut c.bluefs_sequential,
            (State::Owned(Owner::Store), _) => &mut c.store,
            (State::Unclaimed, _) => &mut c.unclaimed,
            (State::Unusable, _) => &mut c.unusable,
        }
    }

    fn set(&mut self, geometry: &Geometry, zone: ZoneId, state: State) {
        let kind = geometry.kind(zone);
        let before = self.states[zone.index()];
        *self.count(kind, before) -= 1;
        *self.count(kind, state) += 1;
        if let Some(free) = self.free_parts(geometry, zone) {
            *free = *free + u32::from(state == State::Free) - u32::from(before == State::Free);
        }
        self.states[zone.index()] = state;
    }
}

mod pairs;
#[cfg(test)]
mod tests;
