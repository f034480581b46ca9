//! What a bucket's removal costs all who wait for it.

use super::*;
use crate::test_bucket::{BUCKET, bucket_on, geometry};
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
