//! Zones with objects whose write pointer has gone back, to zero or to the middle of live data. All other objects stay
//! readable, new objects never share places with lost ones, and the loss is reported until the lost objects are
//! removed.

use crate::common;
use crate::common::{
    create_collection, database, geometry, mkfs, mount, options, pattern, put, read, set_back,
};
use device::power_cut::PowerCut;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::Arc;
use store::{ChecksumKind, DataOptions, MountOptions, Store, Transaction};
use zone::ZoneId;

const OBJECTS: u64 = 12;

fn size(number: u64) -> usize {
    90_000 + number as usize * 11_000
}

/// A drive with an unmounted store, and the store's zones with the bytes written to each.
fn filled() -> (Arc<MemoryDrive>, Vec<(ZoneId, u64)>) {
    let drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for number in 0..OBJECTS {
        let mut data = pattern(number, size(number));
        // Zeros after the first 20,000 bytes, for a zone reads as zeros after its write pointer.
        data[20_000..].fill(0);
        put(&store, &number.to_string(), &data).unwrap();
    }
    let zones = store.zones().into_iter();
    let zones = zones.map(|z| (z.zone, z.written_bytes)).collect();
    store.unmount().unwrap();
    (drive, zones)
}

/// Numbers of the objects that can be read; asserts that their bytes are right.
fn whole(store: &Store) -> Vec<u64> {
    let is_whole = |number: &u64| match read(store, &number.to_string()) {
        Ok(data) => {
            let mut expected = pattern(*number, size(*number));
            expected[20_000..].fill(0);
            assert!(data == expected, "{number}");
            true
        }
        Err(_) => false,
    };
    (0..OBJECTS).filter(is_whole).collect()
}

#[test]
fn a_zone_that_went_back_costs_what_was_in_it_and_no_more() {
    let (whole_drive, zones) = filled();
    let all = OBJECTS as usize;
    let mut hit = 0;
    for (zone, written) in zones {
        for to in [
            0,
            4096,
            written / 2 / 4096 * 4096,
            written.saturating_sub(4096),
        ] {
            let drive = Arc::new(whole_drive.snapshot());
            set_back(&drive, zone, to);
            let device: Arc<dyn ZonedDevice> = drive;
            // A read-only mount, which cannot record the loss, reports it too.
            let reads = MountOptions {
                read_only: true,
                ..common::options()
            };
            let store = Store::mount(device.clone(), reads).unwrap();
            let (found, health) = (whole(&store), store.health().unwrap());
            // An object may be readable in spite of a loss if the lost bytes were zeros.
            let is_told = |number: &u64| {
                let name = format!("c/{number}");
                health.losses.iter().any(|loss| loss.object == name)
            };
            let mut lost = (0..OBJECTS).filter(|number| !found.contains(number));
            assert!(
                lost.all(|number| is_told(&number)),
                "zone {zone} to {to}: {health:?}"
            );
            store.unmount().unwrap();
            let mut left: Option<Vec<u64>> = None;
            for round in 0..3 {
                let what = format!("zone {zone} of {written} bytes, back to {to}, mount {round}");
                let store = mount(&device);
                // Puts after the loss damage no object that could be read before.
                let found = whole(&store);
                assert!(left.is_none_or(|left| left == found), "{what}: {found:?}");
                let health = store.health().unwrap();
                assert_eq!(health.is_healthy(), health.lost_objects == 0, "{what}");
                assert!(
                    found.len() == all || health.lost_objects > 0,
                    "{what}: {health:?}"
                );
                hit += u32::from(found.len() < all);
                for number in 0..4 {
                    let data = pattern(1000 + number, 150_000);
                    put(&store, &format!("new {round} {number}"), &data).unwrap();
                    assert!(read(&store, &format!("new {round} {number}")).unwrap() == data);
                }
                assert_eq!(whole(&store), found, "{what}");
                left = Some(found);
                store.unmount().unwrap();
            }
            // Once all lost objects are removed, the store is healthy.
            let store = mount(&device);
            for number in 0..OBJECTS {
                let mut tx = Transaction::new();
                tx.remove("c", number.to_string());
                store.commit(tx).unwrap();
            }
            while store.clean_one().unwrap() {}
            let health = store.health().unwrap();
            assert!(health.is_healthy(), "zone {zone} to {to}: {health:?}");
            assert!(store.scrub(true, |_| true).unwrap());
            let report = store.fsck(true, &mut |_, _| {}).unwrap();
            assert!(report.is_clean(), "{:?}", report.details);
            assert!(read(&store, "new 2 3").unwrap() == pattern(1003, 150_000));
        }
    }
    assert!(hit > 5, "{hit}");
}

/// A drive with an unmounted store of four objects without checksums, and the store's first zone, half of it lost.
fn without_checksums() -> Arc<MemoryDrive> {
    let drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount_unchecked(&device);
    create_collection(&store);
    for number in 0..4 {
        put(&store, &number.to_string(), &pattern(number, 200_000)).unwrap();
    }
    let zones = store.zones();
    store.unmount().unwrap();
    set_back(
        &drive,
        zones[0].zone,
        zones[0].written_bytes / 2 / 4096 * 4096,
    );
    drive
}

fn mount_unchecked(device: &Arc<dyn ZonedDevice>) -> Store {
    let data = DataOptions {
        checksum: ChecksumKind::None,
        ..options().data
    };
    let options = MountOptions { data, ..options() };
    Store::mount(device.clone(), options).unwrap()
}

/// Once the zone is finished, only the record tells of the loss.
#[test]
fn a_mount_that_fails_has_recorded_what_a_zone_lost() {
    let device: Arc<dyn ZonedDevice> = without_checksums();
    let plant = |value: &[u8]| {
        let (fs, kv) = database(&device);
        let before = kv.get(b"Snext_number").unwrap().unwrap();
        let mut batch = Batch::default();
        batch.put(b"Snext_number", value);
        kv.write(&batch, Durability::Synced).unwrap();
        kv.close().unwrap();
        fs.unmount().unwrap();
        before
    };
    let number = plant(b"?");
    assert!(Store::mount(device.clone(), options()).is_err());
    plant(&number);
    for _ in 0..2 {
        let store = mount(&device);
        assert!(store.health().unwrap().lost_objects > 0);
        store.unmount().unwrap();
    }
}

#[test]
fn a_power_cut_of_a_mount_hides_no_loss() {
    let whole = without_checksums();
    let drive = PowerCut::new(geometry(128)).unwrap();
    let geometry = whole.geometry().clone();
    for zone in geometry.zones() {
        let report = whole.report_zone(zone).unwrap();
        let written = match report.write_pointer_valid() {
            true => report.write_pointer,
            false => report.capacity,
        };
        if written > 0 {
            let mut bytes = vec![0; written as usize];
            whole.read(geometry.start(zone), &mut bytes).unwrap();
            drive.write(geometry.start(zone), &bytes).unwrap();
        }
    }
    drive.flush().unwrap();
    let state = drive.random_crash_state(0);
    for cut in 0.. {
        let killed = Arc::new(drive.restart(&state));
        killed.cut_after(cut);
        let mounted = Store::mount(killed.clone(), options());
        let is_over = mounted.is_ok() && !killed.is_cut();
        drop(mounted);
        let device: Arc<dyn ZonedDevice> =
            Arc::new(killed.restart(&killed.random_crash_state(cut)));
        let store = mount(&device);
        assert!(store.health().unwrap().lost_objects > 0, "cut {cut}");
        if is_over {
            assert!(cut > 3, "{cut}");
            break;
        }
    }
}

/// The zone reads as zeros behind its write pointer, and no checksum tells.
#[test]
fn a_scrub_does_not_forget_a_loss_of_bytes_without_checksums() {
    let device: Arc<dyn ZonedDevice> = without_checksums();
    let store = mount_unchecked(&device);
    let lost = |store: &Store| store.health().unwrap().lost_objects;
    let before = lost(&store);
    assert!(before > 0);
    for _ in 0..2 {
        assert!(store.scrub(true, |_| true).unwrap());
        assert_eq!(lost(&store), before);
    }
    store.unmount().unwrap();
    let store = mount_unchecked(&device);
    assert_eq!(lost(&store), before);
    for number in 0..4 {
        let mut tx = Transaction::new();
        tx.remove("c", number.to_string());
        store.commit(tx).unwrap();
    }
    while store.clean_one().unwrap() {}
    assert!(store.scrub(true, |_| true).unwrap());
    assert!(store.health().unwrap().is_healthy());
}

/// In later mounts only the record tells of the loss, and the zone looks like any other.
#[test]
fn cleaning_moves_no_lost_bytes_without_checksums() {
    let device: Arc<dyn ZonedDevice> = without_checksums();
    mount_unchecked(&device).unmount().unwrap();
    let store = mount_unchecked(&device);
    let lost = store.health().unwrap().lost_objects;
    assert!(lost > 0);
    let mut tx = Transaction::new();
    tx.remove("c", "0");
    store.commit(tx).unwrap();
    while store.clean_one().unwrap() {}
    let health = store.health().unwrap();
    assert_eq!(health.lost_objects, lost, "{health:?}");
    assert!(!health.is_healthy());
    let [zone] = &health.zones[..] else {
        panic!("{health:?}")
    };
    assert!(
        zone.error.ends_with("bytes without a checksum are lost"),
        "{}",
        zone.error
    );
    // What lies in front of the loss is moved.
    assert!(health.objects == Some(lost), "{health:?}");
    assert!(read(&store, "1").unwrap() == pattern(1, 200_000));
    // The zone is free once nothing in it is lost.
    for number in 1..4 {
        let mut tx = Transaction::new();
        tx.remove("c", number.to_string());
        store.commit(tx).unwrap();
    }
    while store.clean_one().unwrap() {}
    let health = store.health().unwrap();
    assert!(health.is_healthy(), "{health:?}");
    assert!(store.zones().iter().all(|zone| zone.live_bytes == 0));
}
