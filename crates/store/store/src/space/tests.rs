//! Space for metadata while the cleaner has none for itself.

use super::*;
use crate::test_drive::{drive, mount, put, remove};
use zone_alloc::Purpose;

#[test]
fn a_cleaner_without_a_zone_keeps_no_removed_rows_from_being_compacted() {
    let store = mount(&drive());
    (0..8).for_each(|n| put(&store, &n.to_string()));
    store.seal_open_zones().unwrap();
    (0..4).for_each(|n| remove(&store, &n.to_string()));
    let inner = &store.inner;
    while inner.pool.take(Purpose::Cleaning).is_some() {}
    inner.garbage.store(1000, Ordering::Relaxed);
    let admitted = inner.admit_metadata(0);
    assert!(
        matches!(admitted, Err(Error::NoMetadataSpace { .. })),
        "{admitted:?}"
    );
    assert_eq!(inner.garbage.load(Ordering::Relaxed), 0);
}
