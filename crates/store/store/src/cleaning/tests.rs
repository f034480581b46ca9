//! Zones that are empty and cannot be given up.

use crate::Store;
use crate::format::key;
use crate::test_drive::{drive, mount, put, remove};
use kv::{Batch, Durability};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use zone::ZoneCondition;

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
        (0..1000).any(|_| {
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
