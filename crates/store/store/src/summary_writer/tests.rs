//! What is counted after a failure.

use super::*;
use crate::test_drive::{drive, mount, put};

#[test]
fn a_summary_that_is_not_entered_is_not_counted() {
    let store = mount(&drive());
    put(&store, "object");
    let zone = store.zones().last().unwrap().zone;
    let mut batch = Batch::default();
    batch.put(&key::summaries(zone), &[9]);
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    let before = store.inner.freelist.summary_bytes();
    store
        .inner
        .write_summaries(store.inner.data.of(0), Why::All);
    assert!(store.inner.summaries.waiting_rows() > 0);
    assert_eq!(store.inner.freelist.summary_bytes(), before);
}
