//! A scrub that meets a damaged row.

use super::*;
use crate::test_drive::{drive, mount, put};

#[test]
fn a_damaged_row_does_not_keep_the_other_zones_from_being_read() {
    let drive = drive();
    let store = mount(&drive);
    let mut zones = Vec::new();
    for name in ["first", "last"] {
        put(&store, name);
        store.seal_open_zones().unwrap();
        zones.push(store.zones().last().unwrap().zone);
    }
    assert!(zones[0] < zones[1]);
    drive.decay(ZoneAddress::new(zones[1], 0), 1, |bytes| bytes[0] ^= 1);
    let inner = &store.inner;
    let kv = inner.kv().unwrap();
    let row = kv.scan(&[key::EXTENT], None).next().unwrap();
    let (row, value) = row.unwrap();
    let write = |value: &[u8]| {
        let mut batch = Batch::default();
        batch.put(&row, value);
        kv.write(&batch, Durability::Synced).unwrap();
    };
    write(&[9]);
    let before = store.scrub_status().unwrap();
    assert_eq!((before.data_micros, before.damaged_places), (None, 0));
    for _ in 0..2 {
        assert!(store.scrub(true, |_| true).unwrap());
        let status = store.scrub_status().unwrap();
        assert_eq!((status.began_micros, status.damaged_places), (None, 1));
        assert!(status.data_micros.is_some() && status.metadata_lost > 0);
    }
    // What has been mended is forgotten by the next pass.
    write(&value);
    assert!(store.scrub(true, |_| true).unwrap());
    let status = store.scrub_status().unwrap();
    assert_eq!((status.damaged_places, status.metadata_lost), (1, 0));
}
