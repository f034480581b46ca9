//! Zones from the pool and back to it: alone, or in pairs where there are two copies of everything.

use crate::mirror::Mirror;
use crate::shared::Shared;
use zone::ZoneId;
use zone_alloc::{Purpose, ZonePool};

/// A zone of the pool, with its twin if there are two copies; it goes by its own number.
pub(crate) fn take_zone(
    pool: &ZonePool,
    device: &dyn Mirror,
    copies: u32,
    purpose: Purpose,
) -> Option<ZoneId> {
    if copies == 1 {
        return pool.take(purpose);
    }
    let [zone, twin] = pool.take_pair(purpose)?;
    let is_pair = device.pair(zone, twin);
    debug_assert!(is_pair, "the pool pairs zones of one kind");
    Some(zone)
}

impl Shared {
    pub fn take_zone(&self, purpose: Purpose) -> Option<ZoneId> {
        take_zone(&self.pool, &*self.device, self.copies, purpose)
    }

    /// Zones that could be taken.
    pub fn free_zones(&self) -> u32 {
        if self.copies > 1 {
            return self.pool.free_pairs();
        }
        let counts = self.pool.counts();
        counts.free_sequential + counts.free_conventional
    }

    pub fn give_back(&self, zone: ZoneId) {
        for zone in self.device.part(zone) {
            self.pool.give_back(zone);
        }
    }

    /// A zone is out of use. Of a pair both are: what is left of it is empty, and free at the next mount.
    pub fn retire(&self, zone: ZoneId) {
        for zone in self.device.part(zone) {
            self.pool.retire(zone);
        }
    }
}
