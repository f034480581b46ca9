//! Zones that can be written and not be read: once empty they are left as they are, and nothing is put into them again.
//!
//! What the scrub could not read of a zone (`D` rows) tells; with the reset of the zone these rows would go, and the next
//! objects would be lost like the last ones. Which zones these are is in the database (`Sretired`).

use crate::Result;
use crate::format::key;
use crate::format::retired::{decode, encode};
use crate::format::scrub::DamageRecord;
use kv::{Batch, Kv};
use runtime::sync::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use zone::ZoneId;
use zone_alloc::ZonePool;

/// Places of a zone that cannot be read. Fewer may be sectors that the drive puts elsewhere when they are written again.
const UNREADABLE: usize = 4;

/// Zones that are out of use for good.
#[derive(Default)]
pub(crate) struct Retired(Mutex<BTreeSet<ZoneId>>);

/// Whether so much of a zone could not be read that nothing should be put there again.
pub(crate) fn is_worn_out<'a>(damage: impl Iterator<Item = &'a DamageRecord>) -> bool {
    damage.filter(|damage| !damage.is_mismatch).count() >= UNREADABLE
}

impl Retired {
    /// Takes the zones that nobody has and that are out of use from the pool.
    pub fn load(kv: &Kv, pool: &ZonePool) -> Result<Self> {
        let value = kv.get(key::SUPER_RETIRED)?;
        // Damaged: a zone may be tried once more.
        let zones = value.and_then(|value| decode(&value)).unwrap_or_default();
        let here = |zone: &&ZoneId| zone.0 < pool.geometry().zone_count;
        for zone in zones.iter().filter(here) {
            if pool.owner(*zone).is_none() {
                pool.retire(*zone);
            }
        }
        Ok(Self(Mutex::new(zones)))
    }

    /// Adds a zone to the row; to be held until the batch is written.
    pub fn add(&self, zone: ZoneId, batch: &mut Batch) -> MutexGuard<'_, BTreeSet<ZoneId>> {
        self.add_all(&[zone], batch)
    }

    /// The same of several, or of none.
    pub fn add_all(&self, new: &[ZoneId], batch: &mut Batch) -> MutexGuard<'_, BTreeSet<ZoneId>> {
        let mut zones = self.0.lock();
        if !new.is_empty() {
            zones.extend(new);
            batch.put(key::SUPER_RETIRED, &encode(&zones));
        }
        zones
    }
}
