//! Zones that can be written but not read: once empty, they are never written again.
//!
//! They are recognized by what the scrub could not read in them (`D` rows). A reset removes these rows, and without a
//! record the next objects in the zone would be lost like the last ones. The zones are recorded in the database
//! (`Sretired`).

use crate::Result;
use crate::format::key;
use crate::format::retired::{decode, encode};
use crate::format::scrub::DamageRecord;
use crate::freelist::Freelist;
use crate::stream::finish;
use bluefs::{BlueFs, UNREADABLE_PLACES};
use device::ZonedDevice;
use kv::{Batch, Kv};
use runtime::sync::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use zone::{ZoneAddress, ZoneDescriptor, ZoneId};
use zone_alloc::ZonePool;

/// The zones that are out of use for good.
#[derive(Default)]
pub(crate) struct Retired(Mutex<BTreeSet<ZoneId>>);

/// Whether so many places of a zone could not be read that nothing should be written to it again.
pub(crate) fn is_worn_out<'a>(damage: impl Iterator<Item = &'a DamageRecord>) -> bool {
    let unreadable = damage.filter(|damage| !damage.is_mismatch);
    unreadable.take(UNREADABLE_PLACES).count() >= UNREADABLE_PLACES
}

/// Like [`is_worn_out`], for what still cannot be read: a read that failed while a connection was broken may succeed
/// later. After a reset, a read tells nothing.
pub(crate) fn is_worn_out_now(
    device: &dyn ZonedDevice,
    damage: &[(ZoneAddress, DamageRecord)],
) -> bool {
    let unreadable = damage.iter().filter(|(at, damage)| {
        // What can be read, but is wrong, does not count.
        !damage.is_mismatch && !can_be_read(device, *at, damage.length)
    });
    is_worn_out(unreadable.map(|(_, damage)| damage))
}

fn can_be_read(device: &dyn ZonedDevice, at: ZoneAddress, length: u32) -> bool {
    let geometry = device.geometry();
    let begin = at.offset - at.offset % u64::from(geometry.block_size);
    // At most 1 MiB is read, should a damaged row say more: no checksum covers as much.
    let end = geometry.round_up(at.offset.saturating_add(length.min(1 << 20).into()));
    let at = geometry.absolute(ZoneAddress::new(at.zone, begin));
    let mut bytes = vec![0; end.saturating_sub(begin) as usize];
    device.read(at, &mut bytes).is_ok()
}

impl Retired {
    /// Reads the record, and takes these zones out of use in the pool as far as they have no owner.
    pub fn load(kv: &Kv, fs: &BlueFs, pool: &ZonePool) -> Result<Self> {
        let value = kv.get(key::SUPER_RETIRED)?;
        // If the record is damaged, such a zone may be used once more.
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

    /// Finishes the zones of nobody that a power cut has left open or closed before their retirement was complete: they
    /// would hold active resources of the drive for good.
    pub fn finish_open(
        &self,
        device: &dyn ZonedDevice,
        report: &[ZoneDescriptor],
        pool: &ZonePool,
        freelist: &Freelist,
    ) {
        for zone in &*self.0.lock() {
            let told = report.get(zone.index());
            if told.is_some_and(|told| told.condition.is_active()) && pool.owner(*zone).is_none() {
                finish(device, freelist, *zone);
            }
        }
    }

    /// Adds zones that BlueFS found worn out, and has `write` write the record.
    ///
    /// # Errors
    /// That of `write`; the zones count as new at the next call.
    pub fn learn(
        &self,
        worn_out: Vec<ZoneId>,
        write: impl FnOnce(&Batch) -> Result<()>,
    ) -> Result<()> {
        let mut zones = self.0.lock();
        let unknown = worn_out.into_iter().filter(|zone| !zones.contains(zone));
        let new: Vec<ZoneId> = unknown.collect();
        if new.is_empty() {
            return Ok(());
        }
        zones.extend(&new);
        let mut batch = Batch::default();
        batch.put(key::SUPER_RETIRED, &encode(&zones));
        write(&batch).inspect_err(|_| zones.retain(|zone| !new.contains(zone)))
    }

    /// Has `write` write the record with `zone` in it.
    ///
    /// # Errors
    /// That of `write`; the zone is as it was before.
    pub fn add(
        &self,
        zone: ZoneId,
        batch: &mut Batch,
        write: impl FnOnce(&Batch) -> Result<()>,
    ) -> Result<()> {
        let mut zones = self.0.lock();
        let is_new = zones.insert(zone);
        batch.put(key::SUPER_RETIRED, &encode(&zones));
        write(batch).inspect_err(|_| _ = is_new && zones.remove(&zone))
    }

    /// Like [`Self::add`], for any number of zones.
    pub fn add_all(&self, new: &[ZoneId], batch: &mut Batch) -> MutexGuard<'_, BTreeSet<ZoneId>> {
        let mut zones = self.0.lock();
        if !new.is_empty() {
            zones.extend(new);
            batch.put(key::SUPER_RETIRED, &encode(&zones));
        }
        zones
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Error;
    use crate::test_drive::{change, drive, mount};
    use device::faults::{Fault, Faults, Plan};
    use kv::Change;
    use std::io::ErrorKind;
    use std::sync::Arc;
    use zone::{ZoneCommand, ZoneCondition};

    /// A zone that is in the list and not on the drive would be left out of the records that a scrub writes.
    #[test]
    fn a_retirement_that_was_not_written_is_in_no_later_record() {
        let retired = Retired::default();
        let (first, second) = (ZoneId(90), ZoneId(91));
        let fail = |zone| {
            let failed = retired.add(zone, &mut Batch::default(), |_| Err(Error::Incomplete));
            failed.unwrap_err();
        };
        let recorded = |zone| {
            let mut zones = None;
            let write = |batch: &Batch| {
                for change in batch.changes() {
                    if let Change::Put(_, value) = change {
                        zones = decode(value);
                    }
                }
                Ok(())
            };
            retired.add(zone, &mut Batch::default(), write).unwrap();
            zones.unwrap()
        };
        fail(first);
        assert_eq!(recorded(second), BTreeSet::from([second]));
        // What has been recorded stays.
        fail(second);
        assert_eq!(recorded(first), BTreeSet::from([first, second]));
    }

    /// The record is durable, and the power cut came before the zone was finished or reset.
    #[test]
    fn a_mount_goes_on_with_a_retirement_that_a_power_cut_interrupted() {
        for closes in [false, true] {
            let (drive, zone) = (drive(), ZoneId(90));
            let start = drive.geometry().start(zone);
            drive.write(start, &[1; 4096]).unwrap();
            if closes {
                drive.close(zone).unwrap();
            }
            change(&drive, |_, batch| {
                batch.put(key::SUPER_RETIRED, &encode(&BTreeSet::from([zone])));
            });
            let condition = || drive.report_zone(zone).unwrap().condition;
            assert!(condition().is_active());
            let store = mount(&drive);
            assert_eq!(condition(), ZoneCondition::Full);
            assert!(store.inner.pool.unusable().contains(&zone));
        }
    }

    #[test]
    fn a_retired_zone_that_a_mount_could_not_finish_is_finished_later() {
        let (memory, zone) = (drive(), ZoneId(90));
        let start = memory.geometry().start(zone);
        memory.write(start, &[1; 4096]).unwrap();
        change(&memory, |_, batch| {
            batch.put(key::SUPER_RETIRED, &encode(&BTreeSet::from([zone])));
        });
        let drive = Arc::new(Faults::new(memory));
        let fault = Fault::Io(ErrorKind::Other);
        drive.add(Plan::at(ZoneCommand::Finish, 1, fault).in_zone(zone));
        let store = mount(&drive);
        let condition = || drive.report_zone(zone).unwrap().condition;
        assert!(condition().is_active());
        store.tend().unwrap();
        assert_eq!(condition(), ZoneCondition::Full);
    }
}
