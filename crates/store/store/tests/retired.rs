//! A zone that can be written and not be read: once empty, it is retired, whether the store's or BlueFS's.

use crate::common::*;
use device::ZonedDevice;
use device::wrap::faults::{Fault, Plan};
use std::io::ErrorKind;
use std::sync::Arc;
use store::{Store, Transaction};
use zone::{ZoneCommand, ZoneCondition};

/// Less than a checksum block, so one damaged place.
const OBJECT: usize = 60_000;

fn put_some(store: &Store, from: u64, count: u64) {
    for index in from..from + count {
        put(store, &format!("o{index}"), &pattern(index, OBJECT)).unwrap();
    }
}

fn remove_all(store: &Store) {
    let mut tx = Transaction::new();
    for object in store.list("c", "", "", usize::MAX).unwrap() {
        tx.remove("c", &object.name);
    }
    store.commit(tx).unwrap();
    while store.clean_one().unwrap() {}
}

#[test]
fn a_zone_that_cannot_be_read_in_many_places_is_used_no_more() {
    // Few unreadable places, many, and many that can be read again before the zone is empty.
    for (unreadable, recovers) in [(3, false), (10, false), (10, true)] {
        let is_retired = unreadable > 3 && !recovers;
        let (drive, store) = on_failing_drive(96);
        put_some(&store, 0, unreadable);
        let zone = store.zones()[0].zone;
        store.seal_open_zones().unwrap();
        let fault = Fault::Io(ErrorKind::Other);
        drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
        assert!(store.scrub(true, |_| true).unwrap());
        assert_eq!(store.health().unwrap().lost_objects, unreadable);
        let before = store.statfs();
        if recovers {
            drive.clear();
        }
        remove_all(&store);
        let written = drive.report_zone(zone).unwrap().write_pointer;
        assert_eq!(written > 0, is_retired);
        let check = |store: &Store| {
            let health = store.health().unwrap();
            assert_eq!(health.unusable_zones, u32::from(is_retired));
            assert_eq!(health.wear.zones_lost, u32::from(is_retired));
            assert_eq!((health.lost_objects, health.is_healthy()), (0, true));
            assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
            let lost = store.statfs().unusable_bytes - before.unusable_bytes;
            assert_eq!(lost, if is_retired { 1 << 20 } else { 0 });
            assert_clean(store);
        };
        check(&store);
        store.unmount().unwrap();
        let device: Arc<dyn ZonedDevice> = drive.clone();
        Store::repair(device.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap();
        // Also after a repair and a mount.
        let store = mount(&device);
        check(&store);
        if is_retired {
            let room = store.statfs().available_bytes / OBJECT as u64;
            put_some(&store, 100, room * 3 / 4);
            assert!(store.zones().iter().all(|used| used.zone != zone));
            remove_all(&store);
            check(&store);
        }
        store.unmount().unwrap();
    }
}

/// The objects are removed and the zone is not cleaned, so that the next mount resets it.
#[test]
fn a_zone_that_can_be_read_again_is_used_again_after_a_mount() {
    for recovers in [false, true] {
        let (drive, store) = on_failing_drive(96);
        put_some(&store, 0, 10);
        let zone = store.zones()[0].zone;
        store.seal_open_zones().unwrap();
        let fault = Fault::Io(ErrorKind::Other);
        drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
        assert!(store.scrub(true, |_| true).unwrap());
        assert_eq!(store.health().unwrap().lost_objects, 10);
        if recovers {
            drive.clear();
        }
        let mut tx = Transaction::new();
        for object in store.list("c", "", "", usize::MAX).unwrap() {
            tx.remove("c", &object.name);
        }
        store.commit(tx).unwrap();
        store.unmount().unwrap();
        drop(store);
        let device: Arc<dyn ZonedDevice> = drive.clone();
        let store = mount(&device);
        assert_eq!(drive.report_zone(zone).unwrap().write_pointer, 0);
        assert_eq!(store.health().unwrap().unusable_zones, u32::from(!recovers));
    }
}

#[test]
fn a_zone_of_the_journal_that_cannot_be_read_is_used_no_more() {
    let (drive, store) = on_failing_drive(96);
    put_some(&store, 0, 5);
    let zone = store.bluefs().info().journal_zone;
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    assert!(store.scrub(false, |_| true).unwrap());
    let health = store.health().unwrap();
    assert_eq!((health.unusable_zones, health.wear.zones_lost), (1, 1));
    assert!(health.is_healthy(), "{health:?}");
    let zones = store.bluefs().zones();
    assert!(zones.iter().all(|(used, _)| *used != zone));
    put_some(&store, 100, 30);
    remove_all(&store);
    assert_clean(&store);
}

/// It would hold one of the drive's active zones until the next mount.
#[test]
fn a_zone_out_of_use_that_could_not_be_finished_is_finished_later() {
    let (drive, store) = on_failing_drive(96);
    put_some(&store, 0, 10);
    let zone = store.zones()[0].zone;
    let fail = |command| {
        let fault = Fault::Io(ErrorKind::Other);
        drive.add(Plan::from(command, 1, fault).in_zone(zone));
    };
    fail(ZoneCommand::Finish);
    store.seal_open_zones().unwrap();
    fail(ZoneCommand::Read);
    assert!(store.scrub(true, |_| true).unwrap());
    remove_all(&store);
    assert_eq!(store.health().unwrap().unusable_zones, 1);
    let condition = || drive.report_zone(zone).unwrap().condition;
    assert!(condition().is_active());
    drive.clear();
    store.tend().unwrap();
    assert_eq!(condition(), ZoneCondition::Full);
}
