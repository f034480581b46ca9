//! Scrubs that meet damaged rows.

use super::*;
use crate::rows::corrupt;
use crate::test_drive::changed_database::{Calls, Unread};
use crate::test_drive::{drive, mount, options, options_with, put};
use crate::{DataOptions, MountOptions, Store};
use kv::{Database, Scan};
use object::ChecksumKind;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_damaged_row_does_not_keep_the_other_zones_from_being_read() {
    let drive = drive();
    let store = mount(&drive);
    let mut zones = Vec::new();
    for name in ["first", "last"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
        zones.push(store.zones().last().unwrap().zone);
    }
    assert!(zones[0] < zones[1]);
    drive.decay(ZoneAddress::new(zones[1], 0), 1, |bytes| bytes[0] ^= 1);
    let inner = &store.inner;
    let kv = inner.kv().unwrap();
    let row = kv.scan(&[key::EXTENT], None).next().unwrap();
    let (row, value) = row.unwrap();
    let write = |value: &[u8]| {
        let mut batch = Batch::default();
        batch.put(&row, value);
        kv.write(&batch, Durability::Synced).unwrap();
    };
    write(&[9]);
    let before = store.scrub_status().unwrap();
    assert_eq!((before.data_micros, before.damaged_places), (None, 0));
    for _ in 0..2 {
        assert!(store.scrub(true, |_| true).unwrap());
        let status = store.scrub_status().unwrap();
        assert_eq!((status.began_micros, status.damaged_places), (None, 1));
        assert!(status.data_micros.is_some() && status.metadata_lost > 0);
    }
    // What has been mended is forgotten by the next pass.
    write(&value);
    assert!(store.scrub(true, |_| true).unwrap());
    let status = store.scrub_status().unwrap();
    assert_eq!((status.damaged_places, status.metadata_lost), (1, 0));
}

#[test]
fn a_row_that_the_drive_does_not_read_does_not_keep_the_other_zones_from_being_read() {
    let (drive, unread) = (drive(), Arc::<Unread>::default());
    let store = Store::mount(drive.clone(), options_with(&unread)).unwrap();
    for name in ["first", "last"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
    }
    let last = store.zones().last().unwrap().zone;
    drive.decay(ZoneAddress::new(last, 0), 1, |bytes| bytes[0] ^= 1);
    let kv = store.inner.kv().unwrap();
    let (row, _) = kv.scan(&[key::EXTENT], None).next().unwrap().unwrap();
    drop(kv);
    let (map, _) = key::parse_extent(&row).unwrap();
    unread.0.lock().push(key::map(map));
    assert!(store.scrub(true, |_| true).unwrap());
    let status = store.scrub_status().unwrap();
    assert_eq!(status.damaged_places, 1);
    assert!(status.metadata_lost > 0);
}

/// A store with an object in each of two zones.
fn two_zones() -> (Store, Vec<ZoneId>) {
    let store = mount(&drive());
    for name in ["first", "last"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
    }
    let zones = store.zones().into_iter();
    let zones = zones.filter(|zone| zone.live_bytes > 0);
    let zones: Vec<_> = zones.map(|zone| zone.zone).collect();
    assert_eq!(zones.len(), 2);
    (store, zones)
}

/// The keys of the cleaning index for a zone.
fn places(store: &Store, zone: ZoneId) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let see = &mut |at, _| {
        keys.push(key::cleaning(at));
        true
    };
    store.inner.each_place(zone, see).unwrap();
    keys
}

fn write_row(store: &Store, key: &[u8], value: &[u8]) {
    let mut batch = Batch::default();
    batch.put(key, value);
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
}

/// Scrubs up to `zone`, as if the store were unmounted then.
fn scrub_until(store: &Store, zone: ZoneId) {
    let goes = |_| store.inner.scrubber.status().zone != Some(zone);
    assert!(!store.scrub(true, goes).unwrap());
    let record = store.inner.scrub_record().unwrap();
    assert_eq!(record.next_zone, zone.0);
}

fn metadata_lost(store: &Store) -> u64 {
    store.scrub_status().unwrap().metadata_lost
}

#[test]
fn a_pass_that_was_interrupted_forgets_what_has_been_mended() {
    let (store, zones) = two_zones();
    let inner = &store.inner;
    let error = corrupt(b"row", "no row", 0);
    inner.remember_damage(&error);
    inner.set_aside_unreadable(zones[0], &error);
    scrub_until(&store, zones[1]);
    assert_eq!(metadata_lost(&store), 1);
    assert!(store.scrub(true, |_| true).unwrap());
    assert_eq!(metadata_lost(&store), 0);
    assert!(!inner.freelist.is_set_aside(zones[0]));
}

/// Also if a pass before had found it.
#[test]
fn a_pass_that_was_interrupted_remembers_what_its_first_part_has_found() {
    let (store, zones) = two_zones();
    let place = &places(&store, zones[0])[0];
    let value = store.inner.kv().unwrap().get(place).unwrap().unwrap();
    write_row(&store, place, &[9]);
    assert!(store.scrub(true, |_| true).unwrap());
    scrub_until(&store, zones[1]);
    write_row(&store, place, &value);
    assert!(store.scrub(true, |_| true).unwrap());
    assert_eq!(metadata_lost(&store), 1);
    assert!(store.scrub(true, |_| true).unwrap());
    assert_eq!(metadata_lost(&store), 0);
}

#[test]
fn what_was_found_in_front_of_a_damaged_row_is_written_down() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "first");
    put(&store, "last");
    store.seal_open_zones().unwrap();
    let zone = store.zones().last().unwrap().zone;
    let places = places(&store, zone);
    let at = key::parse_cleaning(&places[0]).unwrap();
    drive.decay(at, 1, |bytes| bytes[0] ^= 1);
    write_row(&store, &places[1], &[9]);
    assert!(store.scrub(true, |_| true).unwrap());
    assert_eq!(metadata_lost(&store), 1);
    assert_eq!(store.inner.damage_rows(Some(zone)).unwrap().len(), 1);
}

/// Counts scans of the cleaning index.
#[derive(Default)]
struct Scans(AtomicU32);

impl Calls for Scans {
    fn scan<'a>(
        &'a self,
        database: &'a dyn Database,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Scan<'a> {
        if lower.first() == Some(&key::CLEANING) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        database.scan(lower, upper)
    }
}

/// A store with a zone of two objects without checksums, and rows that tell of losses in it.
fn with_losses(losses: u64) -> (Arc<Scans>, Store, ZoneId) {
    let counting = Arc::<Scans>::default();
    let options = MountOptions {
        data: DataOptions {
            checksum: ChecksumKind::None,
            ..options().data
        },
        ..options_with(&counting)
    };
    let store = Store::mount(drive(), options).unwrap();
    put(&store, "first");
    put(&store, "last");
    store.seal_open_zones().unwrap();
    let zone = store.zones().last().unwrap().zone;
    let first = key::parse_cleaning(&places(&store, zone)[0]).unwrap();
    for place in 0..losses {
        let damage = DamageRecord {
            length: 512,
            is_mismatch: true,
            found_micros: 1,
        };
        let at = ZoneAddress::new(zone, first.offset + place * 512);
        write_row(&store, &key::damage(at), &damage.encode());
    }
    (counting, store, zone)
}

/// All commits wait meanwhile.
#[test]
fn however_many_losses_are_recorded_a_zone_is_looked_through_once() {
    let scans = |losses| {
        let (counting, store, zone) = with_losses(losses);
        let before = counting.0.load(Ordering::Relaxed);
        let inner = &store.inner;
        inner.write_damage(zone, &DamageFound::new(), true).unwrap();
        let rows = inner.damage_rows(Some(zone)).unwrap().len() as u64;
        assert_eq!(rows, losses);
        counting.0.load(Ordering::Relaxed) - before
    };
    assert_eq!([0, 1, 100].map(scans), [0, 1, 1]);
}

/// Whether the bytes of the recorded loss have a checksum is not known then.
#[test]
fn a_damaged_row_keeps_no_new_damage_from_being_recorded() {
    let (_, store, zone) = with_losses(1);
    let inner = &store.inner;
    let places = places(&store, zone);
    let (at, name) = (key::parse_cleaning(&places[1]).unwrap(), {
        let value = inner.kv().unwrap().get(&places[1]).unwrap();
        crate::format::record::decode_name(&value.unwrap()).unwrap()
    });
    write_row(&store, &places[0], &[9]);
    let damage = DamageRecord {
        length: 4096,
        is_mismatch: false,
        found_micros: 1,
    };
    let found = DamageFound::from([(at, (damage, at, name))]);
    inner.write_damage(zone, &found, true).unwrap();
    assert_eq!(inner.damage_rows(Some(zone)).unwrap().len(), 2);
}
