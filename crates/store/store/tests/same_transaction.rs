//! A transaction that writes data and punches part of it out again: if a power cut keeps the log record and loses the
//! data, the mount drops the whole transaction.

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
