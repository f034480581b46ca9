//! Zones that can be written and not be read: once empty they are left as they are, and nothing is put into them again.
//!
//! What the scrub could not read of a zone (`D` rows) tells; with the reset of the zone these rows would go, and the next
//! objects would be lost like the last ones. Which zones these are is in the database (`Sretired`).

use crate::Result;
use crate::format::key;
use crate::format::retired::{decode, encode};
use crate::format::scrub::DamageRecord;
use bluefs::{BlueFs, UNREADABLE_PLACES};
use kv::{Batch, Durability, Kv};
use runtime::sync::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use zone::ZoneId;
use zone_alloc::ZonePool;

/// Zones that are out of use for good.
#[derive(Default)]
pub(crate) struct Retired(Mutex<BTreeSet<ZoneId>>);

/// Whether so much of a zone could not be read that nothing should be put there again.
pub(crate) fn is_worn_out<'a>(damage: impl Iterator<Item = &'a DamageRecord>) -> bool {
    damage.filter(|damage| !damage.is_mismatch).count() >= UNREADABLE_PLACES
}

impl Retired {
    /// Takes the zones that nobody has and that are out of use from the pool.
    pub fn load(kv: &Kv, fs: &BlueFs, pool: &ZonePool) -> Result<Self> {
        let value = kv.get(key::SUPER_RETIRED)?;
        // Damaged: a zone may be tried once more.
        let zones = value.and_then(|value| decode(&value)).unwrap_or_default();
        let here = |zone: &&ZoneId| zone.0 < pool.geometry().zone_count;
        for zone in zones.iter().filter(here) {
            if pool.owner(*zone).is_none() {
                pool.retire(*zone);
            }
        }
        fs.keep_out_of(zones.iter().copied())?;
        Ok(Self(Mutex::new(zones)))
    }

    /// Adds zones that the metadata is not put into any more.
    pub fn learn(&self, kv: &Kv, worn_out: Vec<ZoneId>) -> Result<()> {
        let known = self.0.lock().clone();
        let new: Vec<ZoneId> = worn_out
            .into_iter()
            .filter(|zone| !known.contains(zone))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        let _until_written = self.add_all(&new, &mut batch);
        Ok(kv.write(&batch, Durability::Synced)?)
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
