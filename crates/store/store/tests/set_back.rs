//! Zones with objects whose write pointer has gone back, to zero or to the middle of live data. All other objects stay
//! readable, new objects never share places with lost ones, and the loss is reported until the lost objects are
//! removed.

use crate::common;
use crate::common::{create_collection, geometry, mkfs, mount, pattern, put, read, set_back};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{MountOptions, Store, Transaction};
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
