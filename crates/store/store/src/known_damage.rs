//! Known damage to bytes of objects: `D` rows of the database.
//!
//! A row stays until its zone is reset or out of use, because it counts for the decision whether the zone is used
//! again. Only rows at live bytes are a loss: others belong to no object any more.

use crate::Result;
use crate::blob_reader::fragment_range;
use crate::format::key;
use crate::format::scrub::DamageRecord;
use crate::found::Found;
use crate::inner::Inner;
use crate::losses::{Places, touches};
use crate::retired::{Retired, is_worn_out, is_worn_out_now};
use crate::scrub::DamageFound;
use bluefs::BlueFs;
use device::ZonedDevice;
use kv::{Batch, Durability, Kv};
use object::ChecksumKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{ZoneAddress, ZoneId};

/// Key of a `D` row, and its decoded contents; `None` if they cannot be decoded.
pub(crate) type DamageRow = (Vec<u8>, Option<(ZoneAddress, DamageRecord)>);

/// Zones among these that are not worn out as far as their damaged places can be read now. The others are retired, and the
/// rows of damage in these zones removed, before the caller resets all of them, if the log takes that: a mount after a
/// power cut behind the resets could not tell them apart.
pub(crate) fn readable_again(
    kv: &Kv,
    fs: &BlueFs,
    device: &dyn ZonedDevice,
    (retired, zones): (&Retired, &[ZoneId]),
) -> Result<BTreeSet<ZoneId>> {
    let (mut readable, mut batch) = (BTreeSet::new(), Batch::default());
    let mut worn = Vec::new();
    for zone in zones {
        let at = |offset| key::damage(ZoneAddress::new(*zone, offset));
        let mut damage = Vec::new();
        for row in kv.scan(&at(0), Some(&at(u64::MAX))) {
            let (key, value) = row?;
            damage.extend(key::parse_damage(&key).zip(DamageRecord::decode(&value)));
        }
        match is_worn_out_now(device, &damage) {
            true => worn.push(*zone),
            false => _ = readable.insert(*zone),
        }
        for (at, _) in damage {
            batch.delete(&key::damage(at));
        }
    }
    let _list = retired.add_all(&worn, &mut batch);
    if batch.changes().next().is_some() {
        // If not, at the end of the mount.
        write_if_possible(kv, fs, &batch)?;
    }
    Ok(readable)
}

/// Writes the batch unless there is no space for it: then the caller leaves it to the next mount.
fn write_if_possible(kv: &Kv, fs: &BlueFs, batch: &Batch) -> Result<()> {
    if !fs.takes_log(batch.as_bytes().len() as u64) {
        return Ok(());
    }
    match kv.write(batch, Durability::Synced) {
        Err(kv::Error::Busy { .. }) => Ok(()),
        done => Ok(done?),
    }
}

impl Inner {
    /// Records that objects have lost their bytes in these zones from these places on.
    pub(crate) fn remember_lost(&self, lost: &[ZoneAddress]) -> Result<()> {
        let mut batch = Batch::default();
        for at in lost {
            let rest = self.device.geometry().capacity(at.zone) - at.offset;
            let damage = DamageRecord {
                length: u32::try_from(rest).unwrap_or(u32::MAX),
                // The zone may still be read. It is not worn out, and a scrub cannot refute it without a checksum.
                is_mismatch: true,
                found_micros: self.runtime.unix_micros(),
            };
            batch.put(&key::damage(*at), &damage.encode());
        }
        match lost.is_empty() {
            true => Ok(()),
            false => self.write_rows(&batch, Durability::Synced),
        }
    }

    /// Notes that a read of a fragment with this byte has failed, to be recorded later.
    pub(crate) fn note_damage(&self, at: ZoneAddress) {
        if !self.read_only && self.met.add(at) {
            self.scrubber.wake();
        }
    }

    /// Records the damage that reads have noted, after reading it again to find out which bytes are damaged, and whose.
    pub(crate) fn write_down_met(&self) {
        let mut places = Places::new();
        for at in self.met.take() {
            let byte = at.offset..at.offset.saturating_add(1);
            places.entry(at.zone).or_default().push(byte);
        }
        for (zone, bytes) in places {
            let written = self
                .check_writable()
                .and_then(|()| self.write_down(zone, &bytes));
            if let Err(error) = written {
                tracing::error!(%error, %zone, "what a read has found damaged is not written down; a deep scrub finds it");
            }
        }
    }

    fn write_down(&self, zone: ZoneId, bytes: &[Range<u64>]) -> Result<()> {
        let mut found = DamageFound::new();
        for (offset, name) in self.placed_in(zone, bytes)? {
            let at = ZoneAddress::new(zone, offset);
            // The fragment may have moved or gone meanwhile; from here on it stays.
            let reading = self.gate.enter();
            let Some(blob) = Found::look_up(&*self.kv()?, name)? else {
                continue;
            };
            let blob = blob.blob();
            let here = blob.fragments.iter().position(|f| f.at == Some(at));
            let Some(index) = here else { continue };
            // Bytes beside it in other zones may be under the same checksum.
            reading.only_in(blob.fragments.iter().filter_map(|f| f.at.map(|at| at.zone)));
            self.find_damage((at, name), blob, fragment_range(blob, index), &mut found)?;
        }
        self.write_damage(zone, &found, false)
    }

    /// The damage recorded in a zone, or in all, with the keys of the rows.
    pub(crate) fn damage_rows(&self, zone: Option<ZoneId>) -> Result<Vec<DamageRow>> {
        let at = |zone: ZoneId, offset| key::damage(ZoneAddress::new(zone, offset));
        let (lower, upper) = match zone {
            Some(zone) => (at(zone, 0), at(zone, u64::MAX)),
            None => (vec![key::DAMAGE], vec![key::DAMAGE + 1]),
        };
        let kv = self.kv()?;
        let rows = kv.scan(&lower, Some(&upper)).map(|row| {
            let (key, value) = row?;
            let damage = key::parse_damage(&key).zip(DamageRecord::decode(&value));
            Ok((key, damage))
        });
        rows.collect()
    }

    /// All recorded damage as byte ranges of zones.
    pub(crate) fn damaged_places(&self) -> Result<Places> {
        let mut places = Places::new();
        let rows = self.damage_rows(None)?.into_iter();
        for (at, damage) in rows.filter_map(|(_, damage)| damage) {
            places.entry(at.zone).or_default().push(damage.bytes(at));
        }
        Ok(places)
    }

    /// Number of rows at bytes that objects still have.
    pub(crate) fn live_damage(&self) -> Result<u64> {
        let mut count = 0;
        for (zone, places) in self.damaged_places()? {
            let live = self.live_fragments(zone, &places)?;
            let live: Vec<_> = live.into_iter().map(|(fragment, _)| fragment).collect();
            let is_live = |place: &&Range<u64>| touches(&live, place);
            count += places.iter().filter(is_live).count() as u64;
        }
        Ok(count)
    }

    /// The fragments without a checksum that overlap these bytes of a zone, in order: no read can show them to be right.
    pub(crate) fn unchecked(&self, zone: ZoneId, places: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let live = self.live_fragments(zone, places)?.into_iter();
        let unchecked = live.filter(|(_, checksum)| *checksum == ChecksumKind::None);
        Ok(unchecked.map(|(fragment, _)| fragment).collect())
    }

    /// The bytes that `zone` has lost, or that did not match their checksum.
    pub(crate) fn mismatches(&self, zone: ZoneId) -> Result<Vec<Range<u64>>> {
        let rows = self.damage_rows(Some(zone))?.into_iter();
        let rows = rows.filter_map(|(_, row)| row.filter(|(_, damage)| damage.is_mismatch));
        Ok(rows.map(|(at, damage)| damage.bytes(at)).collect())
    }

    /// The fragments that overlap these bytes of a zone, in order: their ranges, and the kind of their checksums.
    fn live_fragments(
        &self,
        zone: ZoneId,
        places: &[Range<u64>],
    ) -> Result<Vec<(Range<u64>, ChecksumKind)>> {
        let kv = self.kv()?;
        let mut live = Vec::new();
        for (offset, name) in self.placed_in(zone, places)? {
            let at = ZoneAddress::new(zone, offset);
            let found = Found::look_up(&kv, name)?;
            let Some(blob) = found.as_ref().map(Found::blob) else {
                continue;
            };
            let here = blob.fragments.iter().filter(|f| f.at == Some(at));
            let ranges = here.map(|f| offset..offset.saturating_add(f.length.into()));
            live.extend(ranges.map(|range| (range, blob.checksum_kind)));
        }
        Ok(live)
    }

    /// Removes rows of zones that are not the store's any more, before new data can lie there: a kill before a reset,
    /// and a zone that cannot be reset, leave such rows. Zones that these show to be worn out are retired, but for those
    /// that are `readable` again. If the log has no room, the next mount does that; until then a scrub refutes such rows.
    pub(crate) fn forget_damage_elsewhere(&self, readable: &BTreeSet<ZoneId>) -> Result<()> {
        let ours = self.freelist.ours().into_iter().map(|(zone, ..)| zone);
        let ours: BTreeSet<ZoneId> = ours.collect();
        let mut gone: BTreeMap<ZoneId, Vec<DamageRecord>> = BTreeMap::new();
        let mut batch = Batch::default();
        for (key, row) in self.damage_rows(None)? {
            // Rows that cannot be decoded are left to a repair.
            if let Some((at, damage)) = row.filter(|(at, _)| !ours.contains(&at.zone)) {
                gone.entry(at.zone).or_default().push(damage);
                batch.delete(&key);
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        let is_there = |zone: &ZoneId| zone.0 < self.device.geometry().zone_count;
        let worn = gone.iter().filter(|(_, damage)| is_worn_out(damage.iter()));
        let worn = worn.map(|(zone, _)| *zone).filter(is_there);
        let worn: Vec<ZoneId> = worn
            .filter(|zone| self.pool.owner(*zone).is_none() && !readable.contains(zone))
            .collect();
        for zone in &worn {
            self.pool.retire(*zone);
        }
        let _list = self.retired.add_all(&worn, &mut batch);
        write_if_possible(&*self.kv()?, &self.fs, &batch)
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::test_drive::{change, changed, drive, mount, options, put, remove};
    use crate::{MountOptions, Store};
    use device::MemoryDrive;
    use device::changed::Change;
    use std::sync::atomic::{AtomicU32, Ordering};
    use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneResult};

    /// After damage was found and before it is recorded, its object may be removed, and the zone be reset and written
    /// again.
    #[test]
    fn what_is_gone_since_it_was_found_is_not_written_down() {
        let store = mount(&drive());
        put(&store, "first");
        let zone = store.zones()[0].zone;
        let inner = &store.inner;
        let found = || -> DamageFound {
            let all = 0..u64::MAX;
            let placed = inner.placed_in(zone, std::slice::from_ref(&all)).unwrap();
            let damage = |(offset, name)| {
                let (at, length) = (ZoneAddress::new(zone, offset), 4096);
                let (is_mismatch, found_micros) = (true, 1);
                let record = DamageRecord {
                    length,
                    is_mismatch,
                    found_micros,
                };
                (at, (record, at, name))
            };
            placed.into_iter().map(damage).collect()
        };
        let (before, rows) = (found(), || inner.damage_rows(None).unwrap().len());
        assert!(!before.is_empty());
        remove(&store, "first");
        inner.write_damage(zone, &before, false).unwrap();
        assert_eq!(rows(), 0);
        put(&store, "second");
        let now = found();
        inner.write_damage(zone, &now, false).unwrap();
        assert!(!now.is_empty() && rows() == now.len());
    }

    /// Counts and fails reads in a zone.
    #[derive(Default)]
    struct Unread {
        zone: AtomicU32,
        reads: AtomicU32,
    }

    impl Change<MemoryDrive> for Unread {
        fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
            let (zone, geometry) = (self.zone.load(Ordering::Relaxed), drive.geometry());
            if zone == 0
                || at < geometry.start(ZoneId(zone))
                || at >= geometry.start(ZoneId(zone + 1))
            {
                return drive.read(at, buffer);
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: std::sync::Arc::new(std::io::ErrorKind::Other.into()),
            })
        }
    }

    #[test]
    fn a_mount_reads_no_more_places_than_show_that_a_zone_is_worn_out() {
        let (device, store) = changed(Unread::default());
        put(&store, "object");
        let zone = store.zones()[0].zone;
        let inner = &store.inner;
        let kv = inner.kv().unwrap();
        let mut batch = Batch::default();
        for place in 0..100 {
            let damage = DamageRecord {
                length: 4096,
                is_mismatch: place < 50,
                found_micros: 1,
            };
            let at = ZoneAddress::new(zone, place * 4096);
            batch.put(&key::damage(at), &damage.encode());
        }
        kv.write(&batch, Durability::Synced).unwrap();
        device.change.zone.store(zone.0, Ordering::Relaxed);
        let readable =
            readable_again(&kv, &inner.fs, &*inner.device, (&inner.retired, &[zone])).unwrap();
        assert!(readable.is_empty());
        let reads = device.change.reads.load(Ordering::Relaxed);
        assert_eq!(reads as usize, bluefs::UNREADABLE_PLACES);
        // A mount after a power cut takes the empty zone for what it was.
        assert!(kv.get(key::SUPER_RETIRED).unwrap().is_some());
        assert!(inner.damage_rows(Some(zone)).unwrap().is_empty());
    }

    #[test]
    fn ranges_touch_if_they_share_a_byte() {
        let ranges = [2..4, 4..6, 8..9];
        let shared = |from: u64, to: u64| ranges.iter().any(|r| r.start < to && from < r.end);
        for (from, to) in (0..11).flat_map(|from| (from + 1..12).map(move |to| (from, to))) {
            assert_eq!(
                touches(&ranges, &(from..to)),
                shared(from, to),
                "{from}..{to}"
            );
        }
    }

    /// A mount that may write removes the row.
    #[test]
    fn damage_in_a_zone_that_the_drive_does_not_have_ends_no_report() {
        let drive = drive();
        let damage = DamageRecord {
            length: 4096,
            is_mismatch: true,
            found_micros: 1,
        };
        let key = key::damage(ZoneAddress::new(ZoneId(9999), 0));
        change(&drive, |_, batch| batch.put(&key, &damage.encode()));
        let options = MountOptions {
            read_only: true,
            ..options()
        };
        let store = Store::mount(drive, options).unwrap();
        assert_eq!(store.health().unwrap().lost_objects, 0);
    }
}
