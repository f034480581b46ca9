//! Deletions of many objects, one of which is damaged.

use super::*;
use crate::test_bucket::{BUCKET, bucket_on, damaged, geometry, with_damaged_extents, written};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use store::{Attributes, Transaction};

#[test]
fn one_that_is_damaged_keeps_no_other() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::seeded(1));
    for key in ["1", "3"] {
        let data = written(&store, &[1; 50_000]);
        let mut put = Transaction::new();
        put.put(BUCKET, key, data, Attributes::new());
        store.commit(put).unwrap();
    }
    let mut clone = Transaction::new();
    clone
        .clone_object((BUCKET, "1"), (BUCKET, "2"))
        .remove(BUCKET, "1")
        .touch(BUCKET, "1");
    store.commit(clone).unwrap();
    let store = damaged(store, &drive, Runtime::seeded(1));
    let objects = ["1", "2", "3"].map(|key| ObjectIdentifier {
        key: key.to_owned(),
        ..Default::default()
    });
    let done = delete_all(&store, &locks, BUCKET, false, objects.into()).unwrap();
    let codes = done.into_iter().map(|(object, outcome)| {
        let failed = outcome.err().map(|error| error.code().clone());
        (object.key, failed)
    });
    let expected = [
        ("1".to_owned(), None),
        ("2".to_owned(), Some(S3ErrorCode::InternalError)),
        ("3".to_owned(), None),
    ];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
    let left = store.list(BUCKET, "", "", 9).unwrap();
    assert_eq!(left.len(), 1);
}

#[test]
fn objects_whose_bytes_are_nowhere_are_put_again_and_deleted() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::seeded(1));
    let put = |store: &Store, key: &str| {
        let data = written(store, &[1; 50_000]);
        let mut put = Transaction::new();
        put.put(BUCKET, key, data, Attributes::new());
        store.commit(put).unwrap();
    };
    for key in ["1", "2"] {
        put(&store, key);
    }
    let store = with_damaged_extents(store, &drive);
    put(&store, "2");
    let objects = ["1", "2"].map(|key| ObjectIdentifier {
        key: key.to_owned(),
        ..Default::default()
    });
    let done = delete_all(&store, &locks, BUCKET, false, objects.into()).unwrap();
    let failed = done.into_iter().filter(|(_, outcome)| outcome.is_err());
    assert_eq!(failed.count(), 0);
    assert!(store.list(BUCKET, "", "", 9).unwrap().is_empty());
}
