//! What a bucket's removal costs all who wait for it.

use super::*;
use crate::plain;
use crate::test_bucket::{BUCKET, bucket_on, geometry, with_damaged_records};
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use zone::ZoneResult;

#[derive(Default)]
struct Flushes(AtomicU32);

impl Change<MemoryDrive> for Flushes {
    fn flush(&self, drive: &MemoryDrive) -> ZoneResult<()> {
        self.0.fetch_add(1, SeqCst);
        drive.flush()
    }
}

#[test]
fn a_bucket_goes_with_many_uploads_by_few_flushes() {
    let drive = Arc::new(Changed {
        drive: MemoryDrive::new(geometry()).unwrap(),
        change: Flushes::default(),
    });
    let (store, locks) = bucket_on(drive.clone(), Runtime::seeded(1));
    let uploads = uploads_of(BUCKET);
    let mut transaction = Transaction::new();
    for id in 0..1000 {
        for name in ["00001", "00002", "meta"] {
            transaction.touch(&uploads, format!("{id:032x}/{name}"));
        }
    }
    // A part whose upload is gone, and what no upload is called.
    transaction
        .touch(&uploads, "ff/00001")
        .touch(&uploads, b"\xff");
    store.commit(transaction).unwrap();
    let before = drive.change.0.load(SeqCst);
    remove(&store, &locks, BUCKET).unwrap();
    let flushes = drive.change.0.load(SeqCst) - before;
    assert!((1..20).contains(&flushes), "{flushes}");
    for collection in [BUCKET, &uploads] {
        assert!(store.collection(collection).unwrap().is_none());
    }
}

/// A repair moves it elsewhere; until then nothing removes it.
#[test]
fn an_object_with_damaged_metadata_is_named_and_keeps_no_other() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::system());
    let mut transaction = Transaction::new();
    for name in ["a", "m-damaged", "z", "z-damaged"] {
        transaction.touch(BUCKET, name);
    }
    store.commit(transaction).unwrap();
    let store = with_damaged_records(store, &drive, "damaged");
    assert_eq!(plain::total(&store, BUCKET, b"").unwrap(), (4, 0));
    assert!(
        plain::first_locked(&store, BUCKET, b"", 0)
            .unwrap()
            .is_none()
    );
    let removed = plain::remove(&store, BUCKET, b"", &mut |_| ()).unwrap();
    let said: Vec<String> = removed.damaged.iter().map(ToString::to_string).collect();
    assert_eq!((removed.objects, said.len()), (2, 2));
    assert!(
        said[0].contains("bucket/m-damaged") && said[1].contains("bucket/z-damaged"),
        "{said:?}"
    );
    assert!(store.stat(BUCKET, "z").unwrap().is_none());
    let refused = remove(&store, &locks, BUCKET).unwrap_err();
    assert_eq!(refused.code().as_str(), "BucketNotEmpty");
    let said = refused.message().unwrap_or_default();
    assert!(
        said.contains("bucket/m-damaged") && said.contains("fsck --repair"),
        "{said}"
    );
}

#[test]
fn an_upload_with_damaged_metadata_is_named_and_keeps_no_other() {
    for damaged in ["2/damaged", "2/meta"] {
        let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
        let (store, locks) = bucket_on(drive.clone(), Runtime::system());
        let uploads = uploads_of(BUCKET);
        let mut transaction = Transaction::new();
        for name in ["1/00001", "2/00001", damaged, "3/00001"] {
            transaction.touch(&uploads, name);
        }
        store.commit(transaction).unwrap();
        let store = with_damaged_records(store, &drive, damaged);
        let named = format!("bucket/{damaged}");
        let refused = remove(&store, &locks, BUCKET).unwrap_err();
        let said = refused.message().unwrap_or_default();
        assert!(said.contains(&named), "{said}");
        let left = store.list_damaged(&uploads, "", "", 9).unwrap();
        assert_eq!(left.len(), 1, "{damaged}");
        let refused = plain::remove_bucket(&store, BUCKET)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(&named), "{refused}");
        assert!(store.collection(BUCKET).unwrap().is_some());
    }
}
