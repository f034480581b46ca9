//! Regression tests for bugs of other zoned-storage software that no other test of the store covers. docs/testing.md
//! has the whole list with the test of each bug.

use crate::common::*;
use device::trace::{Event, Trace};
use device::wrap::faults::{Fault, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Omap, Store, Transaction};
use zone::{Geometry, ZoneCommand};

const OBJECT: usize = 256 << 10;

fn remove(store: &Store, name: u64) {
    let mut tx = Transaction::new();
    tx.remove("c", name.to_string());
    store.commit(tx).unwrap();
}

/// Puts `count` objects of a quarter of a zone each.
fn filled(store: &Store, count: u64) {
    for name in 0..count {
        put(store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
}

#[test]
fn an_open_zone_is_no_victim() {
    let (_, store) = on_failing_drive(64);
    filled(&store, 2);
    remove(&store, 0);
    assert!(!store.clean_one().unwrap());
    put(&store, "goes on behind", &pattern(9, OBJECT)).unwrap();
    assert_eq!(store.zones().len(), 1);
    store.seal_open_zones().unwrap();
    assert!(store.clean_one().unwrap());
    assert!(read(&store, "1").unwrap() == pattern(1, OBJECT));
}

#[test]
fn a_zone_is_cleaned_by_one_worker() {
    let (_, store) = on_failing_drive(96);
    filled(&store, 120);
    (0..120).step_by(2).for_each(|name| remove(&store, name));
    store.seal_open_zones().unwrap();
    let live = store.statfs().live_bytes;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| while store.clean_one().unwrap() {});
        }
    });
    assert_eq!(store.clean_status().bytes_moved, live);
    assert_clean(&store);
}

#[test]
fn what_was_all_deleted_leaves_all_of_the_space() {
    let (_, store) = on_failing_drive(64);
    let count = store.statfs().available_bytes / OBJECT as u64 * 7 / 8;
    for _ in 0..3 {
        filled(&store, count);
        (0..count).for_each(|name| remove(&store, name));
    }
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    let space = store.statfs();
    assert_eq!(space.live_bytes, 0);
    // One zone may remain for segment summaries with copies of the last rows.
    assert!(store.zones().len() <= 1, "{space:?}");
}

/// Number of zone report commands of a mount and twenty puts on a drive of `zones` zones.
fn reports(zones: u32) -> usize {
    let small = Geometry {
        zone_size: 64 << 10,
        zone_capacity: 64 << 10,
        ..geometry(zones)
    };
    let reports = Arc::new(AtomicUsize::new(0));
    let seen = reports.clone();
    let count = move |event: &Event| {
        let is_report = event.command == ZoneCommand::Report;
        seen.fetch_add(usize::from(is_report), Ordering::Relaxed);
    };
    let drive = Trace::new(MemoryDrive::new(small).unwrap(), Arc::new(count));
    let device: Arc<dyn ZonedDevice> = Arc::new(drive);
    mkfs(&device);
    reports.store(0, Ordering::Relaxed);
    let store = mount(&device);
    create_collection(&store);
    filled(&store, 20);
    reports.load(Ordering::Relaxed)
}

#[test]
fn more_zones_are_no_more_reports() {
    let [few, many] = [512, 8192].map(reports);
    assert!(many <= few + 2, "{few} and {many}");
}

#[test]
fn reports_that_fail_make_no_drive_read_only() {
    let (drive, store) = on_failing_drive(64);
    filled(&store, 8);
    drive.add(Plan::from(
        ZoneCommand::Report,
        1,
        Fault::Io(io::ErrorKind::TimedOut),
    ));
    (0..8).step_by(2).for_each(|name| remove(&store, name));
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    filled(&store, 40);
    assert_eq!(store.failure(), None);
}

#[test]
fn metadata_larger_than_a_zone_is_mounted_again() {
    let small = Geometry {
        zone_size: 64 << 10,
        zone_capacity: 64 << 10,
        conventional_zones: 0,
        ..geometry(256)
    };
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(small).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let rows: Omap = (0u16..300)
        .map(|n| (n.to_be_bytes().to_vec(), vec![7; 1000]))
        .collect();
    let mut tx = Transaction::new();
    tx.touch("c", "o").omap_set("c", "o", rows.clone());
    store.commit(tx).unwrap();
    store.flush().unwrap();
    drop(store);
    // The first mount follows a stop without an unmount, the second a clean unmount.
    for _ in 0..2 {
        let store = mount(&device);
        let found = store.omap("c", "o", &[], usize::MAX).unwrap();
        assert_eq!(found.into_iter().collect::<Omap>(), rows);
        store.unmount().unwrap();
    }
}
