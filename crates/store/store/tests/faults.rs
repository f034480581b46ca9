//! Zones that cannot be read, written or reset any more: the objects in them are reported as lost, and all other
//! operations succeed.

use crate::common::*;
use device::ZonedDevice;
use device::wrap::faults::{Fault, Plan};
use std::io;
use store::{Store, Transaction};
use zone::{ZoneCommand, ZoneCondition, ZoneId};

fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

const OBJECT: usize = 300_000;

/// Fills the drive and removes every other object, so that each zone is worth cleaning and none is free. Returns the
/// numbers of the objects that were kept.
fn half_dead(store: &Store) -> Vec<u64> {
    let objects = store.statfs().available_bytes / OBJECT as u64 * 15 / 16;
    for i in 0..objects {
        put(store, &i.to_string(), &pattern(i, OBJECT)).unwrap();
    }
    for i in (0..objects).step_by(2) {
        remove(store, &i.to_string());
    }
    (1..objects).step_by(2).collect()
}

/// Overwrites eight objects until `bytes` bytes have been written.
fn write_on(store: &Store, bytes: u64) {
    let mut written = 0;
    for i in 0.. {
        if written >= bytes {
            return;
        }
        put(store, &format!("on{}", i % 8), &pattern(i, OBJECT)).unwrap();
        written += OBJECT as u64;
    }
}

/// The zone that the cleaner will choose next: the full one with the fewest live bytes.
fn next_victim(store: &Store) -> ZoneId {
    let zones = store.zones().into_iter();
    let full = zones.filter(|z| z.live_bytes > 0 && z.written_bytes == 1 << 20);
    full.min_by_key(|z| z.live_bytes).unwrap().zone
}

#[test]
fn a_zone_that_cannot_be_read_stops_nothing_else() {
    for fault in [
        Fault::Io(io::ErrorKind::Other),
        Fault::Break(ZoneCondition::Offline),
    ] {
        let (drive, store) = on_failing_drive(96);
        let kept = half_dead(&store);
        let bad = next_victim(&store);
        drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(bad));
        let capacity = store.statfs().capacity_bytes;
        // These puts need every zone to be cleaned.
        let more = store.statfs().available_bytes / OBJECT as u64 * 5 / 8;
        for i in 0..more {
            put(&store, &format!("more{i}"), &pattern(i, OBJECT)).unwrap();
        }
        write_on(&store, capacity / 2);
        let space = store.statfs();
        assert!(space.set_aside_bytes > 0, "{space:?}");
        assert!(space.capacity_bytes < capacity);
        let lost = kept
            .iter()
            .filter(|i| read(&store, &i.to_string()).is_err());
        let lost: Vec<_> = lost.collect();
        assert!(!lost.is_empty() && lost.len() < kept.len(), "{lost:?}");
        // Once the lost objects are removed, the zone is not set aside any more.
        for i in lost {
            remove(&store, &i.to_string());
        }
        while store.clean_one().unwrap() {}
        assert_eq!(store.statfs().set_aside_bytes, 0);
    }
}

#[test]
fn an_upload_is_refused_when_a_zone_with_a_part_of_it_is_lost() {
    let (drive, store) = on_failing_drive(48);
    put(&store, "before", &pattern(0, OBJECT)).unwrap();
    let mut upload = store.writer(None).unwrap();
    upload.write(&pattern(1, 1 << 20)).unwrap();
    let zones = store.zones().into_iter();
    let open = zones.min_by_key(|z| z.written_bytes);
    let zone = open.unwrap().zone;
    drive.break_zone(zone, ZoneCondition::Offline);
    // The store notices the offline zone at its next write to it.
    upload.write(&pattern(2, 1 << 20)).unwrap();
    let mut tx = Transaction::new();
    tx.put(
        "c",
        "lost",
        upload.finish().unwrap(),
        store::Attributes::new(),
    );
    let refused = store.commit(tx);
    let is_lost = matches!(refused, Err(store::Error::WrittenLost { zone: lost }) if lost == zone);
    assert!(is_lost, "{refused:?}");
    put(&store, "again", &pattern(3, OBJECT)).unwrap();
}

/// What is written to a zone after that would be lost with it.
#[test]
fn a_zone_that_cannot_be_read_is_written_no_more() {
    let (drive, store) = on_failing_drive(48);
    put(&store, "before", &pattern(0, OBJECT)).unwrap();
    let zone = store.zones()[0].zone;
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    read(&store, "before").unwrap_err();
    put(&store, "behind", &pattern(1, OBJECT)).unwrap();
    assert!(read(&store, "behind").unwrap() == pattern(1, OBJECT));
}

/// The cleaner reads again, as it does for users, before it gives a zone up.
#[test]
fn a_read_that_fails_once_costs_the_cleaner_no_zone() {
    let (drive, store) = on_failing_drive(96);
    half_dead(&store);
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Read, 1, fault).in_zone(next_victim(&store)));
    assert!(store.clean_one().unwrap());
    assert_eq!(store.clean_status().set_aside_zones, 0);
    assert_eq!(store.health().unwrap().wear.reads_repeated, 1);
}

#[test]
fn a_drive_that_reads_nothing_loses_no_zone() {
    let (drive, store) = on_failing_drive(96);
    let kept = half_dead(&store);
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault));
    store.clean_one().unwrap_err();
    read(&store, &kept[0].to_string()).unwrap_err();
    drive.clear();
    assert_eq!(store.clean_status().set_aside_zones, 0);
    assert!(store.clean_one().unwrap());
}

/// The next mount, which does not know of it, would go on writing into it.
#[test]
fn an_unmount_leaves_a_zone_in_which_a_read_failed() {
    // So small that it has no place for a summary, for which the stream would leave the zone, too.
    let (drive, store) = on_failing_drive(32);
    put(&store, "0", &pattern(0, OBJECT)).unwrap();
    let zone = store.zones()[0].zone;
    drive.add(Plan::from(ZoneCommand::Read, 1, Fault::Io(io::ErrorKind::Other)).in_zone(zone));
    assert!(read(&store, "0").is_err());
    drive.clear();
    let is_full = || drive.report_zone(zone).unwrap().condition == ZoneCondition::Full;
    assert!(!is_full());
    store.unmount().unwrap();
    assert!(is_full());
}
