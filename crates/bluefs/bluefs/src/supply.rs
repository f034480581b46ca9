//! Takes zones from the pool and gives them back: single ones, or pairs where there are two copies.

use crate::mirror::Mirror;
use crate::shared::Shared;
use zone::ZoneId;
use zone_alloc::{Purpose, ZonePool};

/// Takes a zone from the pool, or a pair if there are two copies; the result is the zone's or the pair's number.
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

    /// Zones, or pairs, that can be taken.
    pub fn free_zones(&self) -> u32 {
        if self.copies > 1 {
            return self.pool.free_pairs();
        }
        let counts = self.pool.counts();
        counts.free_sequential + counts.free_conventional
    }

    /// Whether a zone, or one of a pair, is worn out, so that nothing may be written to it again.
    pub fn is_worn_out(&self, zone: ZoneId) -> bool {
        let twin = self.device.twin(zone);
        self.worn_out.any_of([zone].into_iter().chain(twin))
    }

    pub fn give_back(&self, zone: ZoneId) {
        for zone in self.device.part(zone) {
            match self.worn_out.contains(zone) {
                true => self.pool.retire(zone),
                false => self.pool.give_back(zone),
            }
        }
    }

    /// The zones of a pair, or the one zone, that the drive reports as read-only or offline.
    pub fn broken_of(&self, zone: ZoneId) -> Vec<ZoneId> {
        let broken = self.device.broken_of(zone).into_iter();
        broken.map(|zone| zone.id).collect()
    }

    /// Takes a zone out of use. Of a pair, only the zones that have failed are retired from the pool: `broken`, as
    /// [`Self::broken_of`] returned them, and worn-out ones.
    pub fn retire(&self, zone: ZoneId, mut broken: Vec<ZoneId>) {
        let pair = [zone].into_iter().chain(self.device.twin(zone));
        broken.extend(pair.filter(|zone| self.worn_out.contains(*zone)));
        // A sound twin remains the file system's, unused, until the next mount: the frame that gives it away may not be
        // durable yet.
        let is_sound = |zone: &ZoneId| !broken.is_empty() && !broken.contains(zone);
        let unfinished = self.device.unfinished();
        let is_unfinished = unfinished.contains(zone);
        for zone in self.device.part(zone) {
            if !is_sound(&zone) {
                self.pool.retire(zone);
            }
            if is_unfinished {
                // From now on each is finished by itself.
                unfinished.add(zone);
            }
        }
    }
}
