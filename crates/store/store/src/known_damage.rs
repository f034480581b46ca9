//! Damage to bytes of objects that is known: rows `D` of the database.
//!
//! A row stays until its zone is reset or out of use, for it tells whether the zone can be used again. What no object has any
//! more is no loss: only rows at bytes that are live count.

use crate::Result;
use crate::blob_reader::fragment_range;
use crate::format::key;
use crate::format::scrub::DamageRecord;
use crate::found::Found;
use crate::inner::Inner;
use crate::losses::Places;
use crate::retired::is_worn_out;
use crate::scrub::DamageFound;
use kv::{Batch, Durability};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{ZoneAddress, ZoneId};

/// The key of a row, and what it says.
pub(crate) type DamageRow = (Vec<u8>, Option<(ZoneAddress, DamageRecord)>);

impl Inner {
    /// A read of a fragment with this byte has failed.
    pub(crate) fn note_damage(&self, at: ZoneAddress) {
        if !self.read_only && self.met.add(at) {
            self.scrubber.wake();
        }
    }

    /// Writes down what reads have run into, once it has been looked at again: which of it cannot be read, and whose it is.
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
            // It may have moved or gone meanwhile, and stays where it is from here on.
            let reading = self.gate.enter();
            let Some(blob) = Found::look_up(&*self.kv()?, name)? else {
                continue;
            };
            let blob = blob.blob();
            let here = blob.fragments.iter().position(|f| f.at == Some(at));
            let Some(index) = here else { continue };
            // Bytes beside it may be under the same checksum.
            reading.only_in(blob.fragments.iter().filter_map(|f| f.at.map(|at| at.zone)));
            self.find_damage((at, name), blob, fragment_range(blob, index), &mut found)?;
        }
        self.write_damage(zone, &found, false)
    }

    /// Writes down that what objects had in these zones from these places on is lost, where nothing is known of it.
    pub(crate) fn remember_lost(&self, lost: &[ZoneAddress]) -> Result<()> {
        let mut batch = Batch::default();
        for at in lost {
            let rest = self.device.geometry().capacity(at.zone) - at.offset;
            let damage = DamageRecord {
                length: u32::try_from(rest).unwrap_or(u32::MAX),
                is_mismatch: false,
                found_micros: self.runtime.unix_micros(),
            };
            batch.put(&key::damage(*at), &damage.encode());
        }
        match lost.is_empty() {
            true => Ok(()),
            false => Ok(self.kv()?.write(&batch, Durability::Synced)?),
        }
    }

    /// The damage that was found in a zone, or in all, with the keys of its rows; `None` of a row that makes no sense.
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

    /// The same as bytes of zones.
    pub(crate) fn damaged_places(&self) -> Result<Places> {
        let mut places = Places::new();
        let rows = self.damage_rows(None)?.into_iter();
        for (at, damage) in rows.filter_map(|(_, damage)| damage) {
            let bytes = at.offset..at.offset.saturating_add(damage.length.into());
            places.entry(at.zone).or_default().push(bytes);
        }
        Ok(places)
    }

    /// How many of the rows are at bytes that objects have.
    pub(crate) fn live_damage(&self) -> Result<u64> {
        let mut count = 0;
        for (zone, places) in self.damaged_places()? {
            let live = self.live_fragments(zone, &places)?;
            let is_live = |place: &&Range<u64>| {
                let touches = |f: &Range<u64>| f.start < place.end && place.start < f.end;
                live.iter().any(touches)
            };
            count += places.iter().filter(is_live).count() as u64;
        }
        Ok(count)
    }

    /// The bytes of fragments that have any of these bytes of a zone.
    fn live_fragments(&self, zone: ZoneId, places: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        let kv = self.kv()?;
        let mut live = Vec::new();
        for (offset, name) in self.placed_in(zone, places)? {
            let at = ZoneAddress::new(zone, offset);
            let found = Found::look_up(&kv, name)?;
            let fragments = found.iter().flat_map(|found| &found.blob().fragments);
            let here = fragments.filter(|fragment| fragment.at == Some(at));
            live.extend(here.map(|f| offset..offset.saturating_add(f.length.into())));
        }
        Ok(live)
    }

    /// Rows of zones that are not the store's any more go, before anything new can lie there: a kill in front of a reset, and
    /// a zone that cannot be reset, leave them behind. What they tell of a worn-out zone is kept.
    pub(crate) fn forget_damage_elsewhere(&self) -> Result<()> {
        let ours = self.freelist.ours().into_iter().map(|(zone, ..)| zone);
        let ours: BTreeSet<ZoneId> = ours.collect();
        let mut gone: BTreeMap<ZoneId, Vec<DamageRecord>> = BTreeMap::new();
        let mut batch = Batch::default();
        for (key, row) in self.damage_rows(None)? {
            // One without sense is for a repair.
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
            .filter(|zone| self.pool.owner(*zone).is_none())
            .collect();
        for zone in &worn {
            self.pool.retire(*zone);
        }
        let _list = self.retired.add_all(&worn, &mut batch);
        Ok(self.kv()?.write(&batch, Durability::Synced)?)
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::test_drive::{drive, mount, put, remove};

    /// Between a look at bytes and the row about them their object may go, and its zone be reset and written again.
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
}
