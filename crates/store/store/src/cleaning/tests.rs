//! Zones that are empty and cannot be given up, and those of the metadata that could not be finished.

use crate::format::key;
use crate::test_drive::changed_database::Unread;
use crate::test_drive::{drive, geometry, mount, options_with, put, remove};
use crate::{Attributes, MkfsOptions, Store, Transaction};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use kv_log::KvLog;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use zone::{ZoneAddress, ZoneCommand, ZoneCondition, ZoneId};

/// A store with two read-only ones: the rows that say where their summaries are are damaged.
fn worn() -> Store {
    let drive = drive();
    let store = mount(&drive);
    let mut batch = Batch::default();
    for name in ["first", "second"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
        let zone = store.zones().last().unwrap().zone;
        drive.set_condition(zone, ZoneCondition::ReadOnly).unwrap();
        batch.put(&key::summaries(zone), &[9]);
    }
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    assert_eq!(store.inner.worn_zones().len(), 2);
    store
}

#[test]
fn a_round_of_the_cleaner_tries_each_once() {
    let store = worn();
    for _ in 0..2 {
        let mut pieces = 0;
        let tended = store.tend_with(&mut |_| {
            pieces += 1;
            assert!(pieces < 100, "no end");
        });
        assert!(!tended.unwrap() && pieces > 0);
        assert_eq!(store.clean_status().set_aside_zones, 0);
    }
}

#[test]
fn a_thread_in_need_waits_for_no_more_than_one() {
    let store = worn();
    let looks = AtomicU32::new(0);
    let is_needed = || looks.fetch_add(1, SeqCst) == 0;
    let wait_for = |number| {
        (0..60_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            looks.load(SeqCst) >= number
        })
    };
    let mut zones = Vec::new();
    std::thread::scope(|threads| {
        let tended = store.tend_with(&mut |_| {
            let zone = store.clean_status().in_hand.unwrap().zone;
            if zones.contains(&zone) {
                return;
            }
            zones.push(zone);
            match zones.len() {
                1 => {
                    threads.spawn(|| assert!(store.inner.cleaner.turn(is_needed).is_none()));
                    assert!(wait_for(1));
                }
                _ => assert!(wait_for(2), "the turn has not ended"),
            }
        });
        assert!(!tended.unwrap());
    });
    assert_eq!(zones.len(), 2);
}

/// One that is writable keeps no other dead zone from being reset.
#[test]
fn a_dead_zone_that_cannot_be_reset_is_set_aside() {
    let store = mount(&drive());
    for name in ["first", "second"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
    }
    let zones = store.zones().into_iter();
    let zones = zones.filter(|zone| zone.live_bytes > 0);
    let zones: Vec<_> = zones.map(|zone| zone.zone).collect();
    ["first", "second"]
        .iter()
        .for_each(|name| remove(&store, name));
    let mut batch = Batch::default();
    batch.put(&key::summaries(zones[0]), &[9]);
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    store.clean_start().unwrap();
    store.tend().unwrap();
    let left: Vec<_> = store.zones().iter().map(|zone| zone.zone).collect();
    assert!(left.contains(&zones[0]) && !left.contains(&zones[1]));
}

/// What moves out of such a zone takes space, and gives none back before the reader has left.
#[test]
fn a_zone_that_a_reader_stays_in_is_cleaned_after_others_and_not_emptied_before() {
    let store = mount(&drive());
    let mut zones = Vec::new();
    for name in ["first", "second"] {
        put(&store, name);
        put(&store, &format!("{name} live"));
        store.seal_open_zones().unwrap();
        zones.push(store.zones().last().unwrap().zone);
        remove(&store, name);
    }
    let has = |zone| store.zones().iter().any(|left| left.zone == zone);
    let reading = store.inner.gate.enter();
    reading.stay_in([zones[0]]);
    let live = store.inner.freelist.wanted_in(zones[0]);
    while store.clean_one().unwrap() {}
    assert!(has(zones[0]) && !has(zones[1]));
    assert_eq!(store.inner.freelist.wanted_in(zones[0]), live);
    drop(reading);
    while store.clean_one().unwrap() {}
    assert!(!has(zones[0]));
}

/// The upload may be given up while a zone is cleaned, whose end counts what died with it.
#[test]
fn cleaning_goes_on_behind_an_upload_that_was_given_up() {
    let store = mount(&drive());
    let mut writer = store.writer(None).unwrap();
    writer.write(&vec![7; 3 << 20]).unwrap();
    store.seal_open_zones().unwrap();
    let dead = store.inner.freelist.totals().dead();
    (0..20).for_each(|_| store.inner.cleaner.count_cleaned(0, dead));
    assert!(!store.clean_one().unwrap());
    // A writer that has placed nothing.
    let mut refused = store.inner.hold();
    store.inner.admit_data(4096).unwrap();
    refused.add_reserved(4096);
    drop(refused);
    assert!(!store.clean_one().unwrap());
    drop(writer);
    store
        .inner
        .cleaner
        .count_cleaned(0, store.inner.freelist.totals().dead());
    assert!(store.clean_one().unwrap());
}

/// A block of the database that the drive does not read may have rows of any zone.
#[test]
fn rows_that_the_drive_does_not_read_keep_no_other_zone_from_being_cleaned() {
    let rows = Arc::<Unread>::default();
    let store = Store::mount(drive(), options_with(&rows)).unwrap();
    let mut zones = Vec::new();
    for zone in ["dead", "also dead", "live", "also live"] {
        put(&store, zone);
        put(&store, &format!("{zone} or not"));
        store.seal_open_zones().unwrap();
        zones.push(store.zones().last().unwrap().zone);
    }
    for (number, zone) in ["dead", "also dead", "live", "also live"]
        .iter()
        .enumerate()
    {
        remove(&store, zone);
        if number < 2 {
            remove(&store, &format!("{zone} or not"));
        }
    }
    let first_place = key::cleaning(ZoneAddress::new(zones[2], 0));
    *rows.0.lock() = vec![key::summaries(zones[0]), first_place];
    while store.clean_one().unwrap() {}
    let left: Vec<_> = store.zones().iter().map(|zone| zone.zone).collect();
    // What was moved may lie in the other dead zone now.
    assert!(left.contains(&zones[0]) && left.contains(&zones[2]) && !left.contains(&zones[3]));
    // Of those with live data.
    assert_eq!(store.clean_status().set_aside_zones, 1);
    for name in ["live or not", "also live or not"] {
        assert!(store.open("c", name).is_ok());
    }
}

/// A store without threads has nobody else for it.
#[test]
fn a_round_of_the_cleaner_finishes_zones_of_the_metadata_too() {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(96, 0)).unwrap()));
    Store::mkfs(drive.clone(), &MkfsOptions::new(KvLog)).unwrap();
    let store = mount(&drive);
    let mut tx = Transaction::new();
    tx.create_collection("c", Attributes::new());
    store.commit(tx).unwrap();
    let active = || {
        let zones = drive.report(ZoneId(0), 96).unwrap();
        let active = zones.iter().filter(|zone| zone.condition.is_active());
        active.count()
    };
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Finish, 1, fault));
    assert!(store.inner.fs.close_sequential_zones().unwrap());
    drive.clear();
    let before = active();
    store.tend().unwrap();
    assert!(active() < before);
}
