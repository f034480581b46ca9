//! Zones that the drive makes read-only are drained while they can be read.

use crate::common::{
    assert_clean, contents, create_collection, geometry, mkfs, mount, pattern, put,
};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{CleanerChange, CleaningReport, Store};
use zone::{ZoneCondition, ZoneId};

const OBJECT: usize = 200_000;

fn filled(objects: u64) -> (Arc<MemoryDrive>, Store) {
    let drive = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for number in 0..objects {
        put(&store, &number.to_string(), &pattern(number, OBJECT)).unwrap();
    }
    (drive, store)
}

/// Makes the zone with the most live bytes read-only, and returns it.
fn wear_out(drive: &MemoryDrive, store: &Store) -> ZoneId {
    let zones = store.zones().into_iter();
    let worn = zones.max_by_key(|zone| zone.live_bytes).unwrap();
    assert!(worn.live_bytes > OBJECT as u64);
    drive
        .set_condition(worn.zone, ZoneCondition::ReadOnly)
        .unwrap();
    worn.zone
}

/// Whether the drive is mounted then or later, and also while the cleaner wants more free zones than there can be.
#[test]
fn a_zone_that_can_only_be_read_is_emptied() {
    for (is_mounted, free_zones) in [(true, "1..2"), (false, "1..2"), (true, "60..61")] {
        let (drive, store) = filled(40);
        let mut store = store;
        let all = contents(&store);
        store.seal_open_zones().unwrap();
        wear_out(&drive, &store);
        let device: Arc<dyn ZonedDevice> = drive;
        if !is_mounted {
            store.unmount().unwrap();
            store = mount(&device);
        }
        store.clean_change(CleanerChange {
            free_zones: Some(free_zones.parse().unwrap()),
            ..CleanerChange::default()
        });
        let before = store.statfs();
        let health = store.health().unwrap();
        assert_eq!((health.zones.len(), health.lost_objects), (1, 0));
        while store.tend().unwrap() {}
        let health = store.health().unwrap();
        assert!(health.is_healthy(), "{health:?}");
        assert_eq!(health.unusable_zones, 1);
        assert_eq!(health.wear.lines(), ["1 zone of 64 lost or at risk"]);
        assert!(store.statfs().capacity_bytes <= before.capacity_bytes);
        assert_eq!(store.statfs().live_bytes, before.live_bytes);
        assert!(contents(&store) == all);
        assert!(!store.tend().unwrap(), "nothing is left to do");
        assert_clean(&store);
        drop(store);
        assert!(contents(&mount(&device)) == all);
    }
}

#[test]
fn a_zone_that_was_being_written_to_is_emptied_too() {
    let (drive, store) = filled(1);
    let zone = store.zones()[0].zone;
    drive.set_condition(zone, ZoneCondition::ReadOnly).unwrap();
    assert_eq!(store.health().unwrap().zones.len(), 1);
    while store.tend().unwrap() {}
    assert!(store.health().unwrap().is_healthy());
    assert_eq!(contents(&store)["0"], pattern(0, OBJECT));
}

/// The scrub of the metadata, which a server does each day, finds it too.
#[test]
fn a_scrub_finds_a_zone_that_can_only_be_read() {
    let (drive, store) = filled(40);
    store.seal_open_zones().unwrap();
    wear_out(&drive, &store);
    assert!(store.scrub(false, |_| true).unwrap());
    assert_eq!(store.clean_status().set_aside_zones, 1);
    assert!(store.tend().unwrap());
    assert_eq!(store.clean_status().set_aside_zones, 0);
}

/// A zone that cannot be emptied does not keep another from it.
#[test]
fn a_zone_that_turns_out_unreadable_keeps_no_other_waiting() {
    let (drive, store) = filled(40);
    store.seal_open_zones().unwrap();
    let first = wear_out(&drive, &store);
    let at = drive.geometry().start(first);
    let zones = store.zones().into_iter();
    let mut others = zones.filter(|zone| zone.zone > first && zone.live_bytes > 0);
    let second = others.next().unwrap().zone;
    drive
        .set_condition(second, ZoneCondition::ReadOnly)
        .unwrap();
    drive.decay(drive.geometry().address(at).unwrap(), 1, |bytes| {
        bytes[0] ^= 1
    });
    assert_eq!(store.health().unwrap().zones.len(), 2);
    assert!(store.tend().unwrap());
    let zones = store.health().unwrap().zones;
    assert_eq!((zones.len(), zones[0].zone), (1, first));
}

#[test]
fn a_full_drive_leaves_it_as_it_is() {
    let (drive, store) = filled(1);
    let mut number = 1;
    while put(&store, &number.to_string(), &pattern(number, OBJECT)).is_ok() {
        number += 1;
    }
    let all = contents(&store);
    wear_out(&drive, &store);
    store.unmount().unwrap();
    let device: Arc<dyn ZonedDevice> = drive;
    let store = mount(&device);
    for _ in 0..3 {
        store.tend().unwrap();
    }
    assert!(contents(&store) == all);
    assert_eq!(store.health().unwrap().zones.len(), 1);
    // Once there is space, the zone is drained.
    for gone in 0..number / 3 {
        let mut tx = store::Transaction::new();
        tx.remove("c", gone.to_string());
        store.commit(tx).unwrap();
    }
    while store.tend().unwrap() {}
    assert_eq!(store.health().unwrap().zones.len(), 0);
    assert!(
        contents(&store)
            .iter()
            .all(|(name, data)| all[name] == *data)
    );
    assert_clean(&store);
}

/// `store clean --all`, without the threads of a server: read-only zones are drained too, after which the job ends.
#[test]
fn cleaning_all_empties_zones_that_can_only_be_read() {
    let (drive, store) = filled(60);
    for gone in (0..60).step_by(2) {
        let mut tx = store::Transaction::new();
        tx.remove("c", gone.to_string());
        store.commit(tx).unwrap();
    }
    let worn = store.zones().into_iter().max_by_key(|z| z.live_bytes);
    let worn = worn.unwrap().zone;
    drive.set_condition(worn, ZoneCondition::ReadOnly).unwrap();
    store.unmount().unwrap();
    let device: Arc<dyn ZonedDevice> = drive;
    let store = mount(&device);
    store.seal_open_zones().unwrap();
    let all = contents(&store);
    let job = store.clean_status().job;
    let mut report = CleaningReport::default();
    while report.add(store.clean_step(job).unwrap()) {
        assert!(report.zones.len() < 64, "no end");
    }
    assert!(report.did.zones_cleaned > 3 && report.zones.last() == Some(&worn));
    assert!(store.health().unwrap().is_healthy());
    let status = store.clean_status();
    assert_eq!((status.dirty_zones, status.set_aside_zones), (0, 0));
    assert!(contents(&store) == all);
    assert_clean(&store);
}

/// An offline and a read-only zone whose objects are stored again count as unusable from then on, in all reports,
/// before and after the cleaner has run.
#[test]
fn emptied_zones_that_take_nothing_are_out_of_use_for_everybody() {
    let (drive, store) = filled(40);
    store.seal_open_zones().unwrap();
    let zones = store.zones().into_iter().filter(|z| z.live_bytes > 0);
    let zones: Vec<_> = zones.map(|zone| zone.zone).collect();
    store.unmount().unwrap();
    for (zone, condition) in zones
        .iter()
        .zip([ZoneCondition::Offline, ZoneCondition::ReadOnly])
    {
        drive.set_condition(*zone, condition).unwrap();
    }
    let device: Arc<dyn ZonedDevice> = drive;
    let store = mount(&device);
    let at_risk = store.health().unwrap();
    assert_eq!((at_risk.zones.len(), at_risk.unusable_zones), (2, 0));
    for number in 0..40 {
        put(&store, &number.to_string(), &pattern(number, OBJECT)).unwrap();
    }
    let check = |store: &Store, when: &str| {
        let (health, space) = (store.health().unwrap(), store.statfs());
        assert!(health.is_healthy(), "{when}: {health:?}");
        assert_eq!(health.wear.zones_lost, 2, "{when}");
        assert_eq!(health.unusable_zones, 2, "{when}");
        assert_eq!(space.unusable_bytes, 2 << 20, "{when}");
        assert_eq!(space.set_aside_bytes, 0, "{when}");
        assert_eq!(health.set_aside_bytes, 0, "{when}");
        assert_eq!(store.clean_status().set_aside_zones, 0, "{when}");
        space.capacity_bytes
    };
    let capacity = check(&store, "stored again");
    while store.tend().unwrap() {}
    assert_eq!(check(&store, "cleaned"), capacity);
    store.unmount().unwrap();
    let store = mount(&device);
    assert_eq!(check(&store, "mounted again"), capacity);
    assert_clean(&store);
}

/// A zone with segment summaries only is unusable as soon as it is offline, for no reset is awaited.
#[test]
fn a_zone_with_nothing_but_summaries_is_out_of_use_as_well() {
    let (drive, store) = filled(0);
    // The scrub writes a summary with the row of the collection.
    assert!(store.scrub(true, |_| true).unwrap());
    store.seal_open_zones().unwrap();
    let zone = store.zones()[0];
    assert_eq!((store.zones().len(), zone.live_bytes), (1, 0));
    put(&store, "o", &pattern(1, OBJECT)).unwrap();
    store.unmount().unwrap();
    let offline = ZoneCondition::Offline;
    drive.set_condition(zone.zone, offline).unwrap();
    let device: Arc<dyn ZonedDevice> = drive;
    let store = mount(&device);
    let (health, space) = (store.health().unwrap(), store.statfs());
    assert_eq!((health.unusable_zones, health.wear.zones_lost), (1, 1));
    assert_eq!((space.unusable_bytes, space.set_aside_bytes), (1 << 20, 0));
}

/// Whatever finds it offline: no reset is tried, and nothing waits for one.
#[test]
fn a_zone_that_a_read_finds_offline_is_out_of_use_with_its_last_object() {
    let (drive, store) = filled(40);
    store.seal_open_zones().unwrap();
    let zones = store.zones().into_iter();
    let worn = zones.max_by_key(|zone| zone.live_bytes).unwrap();
    let offline = ZoneCondition::Offline;
    drive.set_condition(worn.zone, offline).unwrap();
    for number in 0..40 {
        if crate::common::read(&store, &number.to_string()).is_err() {
            let mut tx = store::Transaction::new();
            tx.remove("c", number.to_string());
            store.commit(tx).unwrap();
        }
    }
    let space = store.statfs();
    assert_eq!((space.unusable_bytes, space.set_aside_bytes), (1 << 20, 0));
}
