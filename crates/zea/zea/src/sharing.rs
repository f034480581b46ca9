//! Shares the zones of a drive among the consumers of instances: who may take a free zone, and who holds which.
//! Pure: the caller formats, finishes and resets zones.

use runtime::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};
use zone_alloc::Ladder;

/// The sequential zones of one drive, shared by `N` tenants of a [`Ladder`]: guarantees limit who takes free
/// zones, quotas who keeps zones active.
#[derive(Debug)]
pub struct Sharing<const N: usize> {
    ladder: Ladder<N>,
    /// Most zones active at once; 0 for no limit.
    limit: u32,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    free: BTreeSet<ZoneId>,
    held: BTreeMap<ZoneId, Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    tenant: usize,
    is_active: bool,
}

impl<const N: usize> Sharing<N> {
    /// Starts from a full report of the drive: empty sequential zones are free, and the others have no owner
    /// until a tenant [claims](Self::claim) them. Broken zones cannot be taken.
    pub fn new(ladder: Ladder<N>, g: &Geometry, report: &[ZoneDescriptor]) -> Self {
        let is_free = |zone: &&ZoneDescriptor| {
            g.kind(zone.id) != ZoneKind::Conventional && zone.condition == ZoneCondition::Empty
        };
        let free = report.iter().filter(is_free).map(|zone| zone.id);
        Self {
            ladder,
            limit: g.max_active_zones,
            table: Mutex::new(Table {
                free: free.collect(),
                held: BTreeMap::new(),
            }),
        }
    }

    /// Records that a zone that is not empty belongs to the tenant.
    pub fn claim(&self, tenant: usize, zone: ZoneId, is_active: bool) {
        let mut table = self.table.lock();
        table.free.remove(&zone);
        table.held.insert(zone, Held { tenant, is_active });
    }

    /// Takes the lowest free zone, which counts as active from now on. `None` if all that are free are
    /// guaranteed to others, or the limit of the drive or of the tenant for active zones is reached.
    pub fn take(&self, tenant: usize) -> Option<ZoneId> {
        let mut table = self.table.lock();
        let free = u32::try_from(table.free.len()).unwrap_or(u32::MAX);
        if !self.ladder.may_take(tenant, free) || !self.may_be_active(&table, tenant) {
            return None;
        }
        let zone = table.free.pop_first()?;
        let is_active = true;
        table.held.insert(zone, Held { tenant, is_active });
        Some(zone)
    }

    fn may_be_active(&self, table: &Table, tenant: usize) -> bool {
        if self.limit == 0 {
            return true;
        }
        let active = |of: Option<usize>| {
            let held = table.held.values().filter(|held| held.is_active);
            held.filter(|held| of.is_none_or(|of| held.tenant == of))
                .count()
        };
        (active(None) as u32) < self.limit
            && (active(Some(tenant)) as u32) < self.ladder.active_quota(tenant, self.limit)
    }

    /// Records that a zone is full or finished.
    pub fn no_longer_active(&self, zone: ZoneId) {
        if let Some(held) = self.table.lock().held.get_mut(&zone) {
            held.is_active = false;
        }
    }

    /// Records that a zone has been reset, which makes it free.
    pub fn give_back(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        if table.held.remove(&zone).is_some() {
            table.free.insert(zone);
        }
    }

    /// Takes a broken zone out of use for good.
    pub fn retire(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        table.free.remove(&zone);
        table.held.remove(&zone);
    }

    /// Number of free zones, for any tenant.
    pub fn free(&self) -> u32 {
        u32::try_from(self.table.lock().free.len()).unwrap_or(u32::MAX)
    }

    /// Number of free zones that this tenant may take.
    pub fn free_for(&self, tenant: usize) -> u32 {
        self.free().saturating_sub(self.ladder.kept_from(tenant))
    }

    /// The zones that a tenant holds, lowest first.
    pub fn held_by(&self, tenant: usize) -> Vec<ZoneId> {
        let table = self.table.lock();
        let held = table.held.iter().filter(|(_, held)| held.tenant == tenant);
        held.map(|(zone, _)| *zone).collect()
    }
}
