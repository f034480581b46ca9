//! The recorded damage of object data: it is kept as long as it is true, through mounts and scrubs, and is forgotten
//! with the zone or the objects that it is about.

use super::{all, damage_rows, fresh, wait_for, with_thread};
use crate::common::{self, assert_clean, mount, options, pattern, put};
use device::ZonedDevice;
use std::sync::Arc;
use store::{MountOptions, Pace, Store, Transaction};
use zone::{ZoneAddress, ZoneCondition};

#[test]
fn damage_is_forgotten_with_what_it_describes_and_not_before() {
    let (drive, device, mut store) = fresh();
    let mut hit = Vec::new();
    for name in ["gone", "stays"] {
        put(&store, name, &pattern(hit.len() as u64, 700_000)).unwrap();
        store.seal_open_zones().unwrap();
        let zones = store.zones().into_iter().map(|zone| zone.zone);
        let zone = zones.max().unwrap();
        let at = ZoneAddress::new(zone, 8192);
        drive.decay(at, 1, |bytes| bytes[0] ^= 1);
        hit.push(at);
    }
    assert_ne!(hit[0].zone, hit[1].zone);
    let places = |store: &Store| store.scrub_status().unwrap().damaged_places;
    let rows = damage_rows;
    all(&store);
    assert_eq!(places(&store), 2);
    let mut tx = Transaction::new();
    tx.remove("c", "gone");
    store.commit(tx).unwrap();
    // No object refers to these bytes any more, so they are no loss; the row about the zone stays until the reset.
    assert_eq!(places(&store), 1);
    assert_eq!(rows(&store), 2);
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    // The reset removes the row, without a scrub. The other row is still true, also after a mount and a scrub.
    assert_eq!((places(&store), rows(&store)), (1, 1));
    store.unmount().unwrap();
    store = mount(&device);
    assert_eq!(places(&store), 1);
    all(&store);
    assert_eq!(places(&store), 1);
    let health = store.health().unwrap();
    let [loss] = &health.losses[..] else {
        panic!("{:?}", health.losses);
    };
    assert_eq!(loss.object, "c/stays");
    // The row was about bytes before the reset, so it does not apply to new data in the zone.
    for number in 0..60 {
        put(&store, &format!("new {number}"), &pattern(number, 300_000)).unwrap();
    }
    assert!(store.zones().iter().any(|zone| zone.zone == hit[0].zone));
    assert_eq!(store.health().unwrap().lost_objects, 1);
    // The drive returns the right byte again; only a scrub notices that.
    drive.decay(hit[1], 1, |bytes| bytes[0] ^= 1);
    assert_eq!(places(&store), 1);
    all(&store);
    assert_eq!(places(&store), 0);
    assert_clean(&store);
}

/// An offline zone is never reset. Once no object refers to it, damage found there is no loss any more.
#[test]
fn damage_in_an_offline_zone_is_forgotten_with_its_objects() {
    let (drive, device, store) = fresh();
    for number in 0..6 {
        put(&store, &format!("o{number}"), &pattern(number, 100_000)).unwrap();
    }
    let zone = store.zones()[0].zone;
    store.seal_open_zones().unwrap();
    drive.set_condition(zone, ZoneCondition::Offline).unwrap();
    all(&store);
    let status = store.scrub_status().unwrap();
    assert!(status.damaged_places >= 6, "{status:?}");
    let lost = store.health().unwrap().losses;
    for loss in &lost {
        let mut tx = Transaction::new();
        tx.remove("c", loss.object.strip_prefix("c/").unwrap());
        store.commit(tx).unwrap();
    }
    let is_over = |store: &Store| {
        assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
        let health = store.health().unwrap();
        assert_eq!(health.lost_objects, 0, "{health:?}");
        assert!(!health.lines().join(" ").contains("damaged run"));
    };
    is_over(&store);
    // Killed before the store does anything with the empty zone.
    drop(store);
    let store = mount(&device);
    is_over(&store);
    assert_eq!(damage_rows(&store), 0);
    all(&store);
    is_over(&store);
    assert!(store.health().unwrap().is_healthy());
    store.unmount().unwrap();
}

/// A zone that is reset at mount: the damage recorded before the reset does not apply to new objects in it.
#[test]
fn damage_in_front_of_a_reset_is_not_said_of_what_comes_behind_it() {
    let (drive, device, store) = fresh();
    put(&store, "old", &pattern(1, 700_000)).unwrap();
    let zone = store.zones()[0].zone;
    drive.decay(ZoneAddress::new(zone, 8192), 1, |bytes| bytes[0] ^= 1);
    all(&store);
    assert_eq!(damage_rows(&store), 1);
    let mut tx = Transaction::new();
    tx.remove("c", "old");
    store.commit(tx).unwrap();
    drop(store);
    let store = mount(&device);
    for number in 0..100 {
        put(&store, &format!("new {number}"), &pattern(number, 300_000)).unwrap();
    }
    while store.clean_one().unwrap() {}
    let health = store.health().unwrap();
    assert_eq!(health.lost_objects, 0, "{health:?}");
    assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
}

/// A read that meets damaged bytes records them if the store is mounted for writing, also without a scrub, and also if
/// the whole zone is offline.
#[test]
fn what_a_read_meets_is_known_at_the_next_mount() {
    for background in [false, true] {
        for is_offline in [false, true] {
            let (drive, device, store) = fresh();
            for number in 0..6 {
                put(&store, &format!("o{number}"), &pattern(number, 300_000)).unwrap();
            }
            let mut tx = Transaction::new();
            tx.clone_object(("c", "o3"), ("c", "clone"));
            store.commit(tx).unwrap();
            store.unmount().unwrap();
            let store = match background {
                true => with_thread(&device, Pace::Full),
                false => mount(&device),
            };
            let zone = store.zones()[0].zone;
            match is_offline {
                true => drive.set_condition(zone, ZoneCondition::Offline).unwrap(),
                false => {
                    let at = ZoneAddress::new(zone, 8192);
                    drive.decay(at, 1, |bytes| bytes[0] ^= 1);
                }
            }
            let mut met = Vec::new();
            for object in store.list("c", "", "", usize::MAX).unwrap() {
                let name = object.name.to_string();
                if common::read(&store, &name).is_err() {
                    met.push(format!("c/{name}"));
                }
            }
            assert!(!met.is_empty());
            // The record also survives a kill of the server.
            let killed: Arc<dyn ZonedDevice> = match background {
                false => device.clone(),
                true => {
                    wait_for(&store, |status| status.damaged_places >= met.len() as u64);
                    Arc::new(drive.snapshot())
                }
            };
            store.unmount().unwrap();
            let options = MountOptions {
                read_only: true,
                ..options()
            };
            let store = Store::mount(killed, options).unwrap();
            let health = store.health().unwrap();
            let told: Vec<&String> = health.losses.iter().map(|loss| &loss.object).collect();
            assert_eq!(told, met.iter().collect::<Vec<_>>(), "{health:?}");
            assert!(damage_rows(&store) > 0);
            store.unmount().unwrap();
            // A scrub finds the same losses, and drops no row about them.
            let store = mount(&device);
            let before = damage_rows(&store);
            all(&store);
            assert_eq!(store.health().unwrap().losses, health.losses);
            assert!(damage_rows(&store) >= before);
            store.unmount().unwrap();
        }
    }
}

#[test]
fn a_damaged_summary_is_written_anew() {
    let (drive, device, store) = fresh();
    for number in 0..300 {
        put(&store, &format!("object {number}"), &pattern(number, 5000)).unwrap();
    }
    store.unmount().unwrap();
    let store = mount(&device);
    let mut hit = 0;
    for zone in store.zones() {
        for offset in (0..zone.written_bytes).step_by(4096) {
            let at = ZoneAddress::new(zone.zone, offset);
            let mut block = vec![0; 4096];
            device
                .read(device.geometry().absolute(at), &mut block)
                .unwrap();
            if block.starts_with(b"ZSSEGSUM") {
                drive.decay(at, 100, |bytes| bytes[90] ^= 1);
                hit += 1;
                break;
            }
        }
    }
    assert!(hit > 0, "a summary was found");
    let before = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(before.summaries_unreadable > 0 && before.rows_without_copy > 0);
    all(&store);
    let after = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(after.is_clean(), "{:?}", after.details);
    assert_eq!(
        (after.summaries_unreadable, after.rows_without_copy),
        (0, 0)
    );
    assert!(store.scrub_status().unwrap().rows_copied > 0);
}
