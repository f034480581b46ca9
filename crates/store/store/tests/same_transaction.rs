//! A transaction that writes data of which it, or a later one before any flush, punches a part out again: if a power cut
//! keeps the log records and loses the data, the mount drops all that the transaction changed.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Attributes, Transaction};

#[test]
fn what_is_left_of_a_cut_piece_is_looked_for_too() {
    let memory = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let data = written(&store, &pattern(1, 150_000)).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "o", data, Attributes::new())
        .punch("c", "o", 0, 75_000);
    store.commit(tx).unwrap();
    let lost = memory.snapshot();
    for zone in store.zones() {
        lost.reset(zone.zone).unwrap();
    }
    drop(store);
    let store = mount(&(Arc::new(lost) as Arc<dyn ZonedDevice>));
    assert!(contents(&store).is_empty());
    assert_clean(&store);
}

#[test]
fn what_a_later_transaction_left_of_a_piece_is_looked_for_too() {
    let memory = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let old = pattern(1, 150_000);
    put(&store, "o", &old).unwrap();
    store.seal_open_zones().unwrap();
    let before: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    let data = written(&store, &pattern(2, 150_000)).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "o", data, Attributes::new());
    let _pending = store.commit_readable(tx).unwrap();
    let mut tx = Transaction::new();
    tx.punch("c", "o", 0, 75_000);
    store.commit(tx).unwrap();
    let lost = memory.snapshot();
    let mut zones = store.zones().into_iter();
    let zone = zones.find(|used| !before.contains(&used.zone)).unwrap();
    lost.reset(zone.zone).unwrap();
    drop(store);
    let store = mount(&(Arc::new(lost) as Arc<dyn ZonedDevice>));
    assert!(read(&store, "o").unwrap() == old);
    assert_clean(&store);
}
