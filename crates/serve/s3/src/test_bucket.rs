//! A bucket of a store in memory, for tests of what is in buckets.

use crate::collections::bucket_maker;
use crate::versions::Locks;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice, profile};
use kv::{Batch, Durability, Kv, MergeOperator};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use store::{MkfsOptions, MountOptions, Store};
use zone::{Geometry, ZoneId};
use zone_alloc::ZonePool;

pub const BUCKET: &str = "bucket";

/// A store with the bucket, and who changes it; versions get numbers for random ones, and nothing has a date.
pub fn bucket(runtime: Runtime) -> (Store, Locks) {
    bucket_on(Arc::new(MemoryDrive::new(geometry()).unwrap()), runtime)
}

pub fn geometry() -> Geometry {
    let geometry = profile::by_name("test-small").unwrap();
    geometry.geometry(256 << 20, None).unwrap()
}

/// The same on a drive of this geometry. No thread of the store makes anything durable.
pub fn bucket_on(drive: Arc<dyn ZonedDevice>, runtime: Runtime) -> (Store, Locks) {
    Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
    let options = MountOptions {
        runtime,
        background: false,
        ..MountOptions::new(RocksDb)
    };
    let store = Store::mount(drive, options).unwrap();
    store
        .commit(bucket_maker(&store, BUCKET, None).unwrap())
        .unwrap();
    let random = AtomicU64::new(0);
    let random = move |bytes: &mut [u8]| {
        let number = random.fetch_add(1, SeqCst).to_be_bytes();
        bytes.copy_from_slice(&number[..bytes.len()]);
    };
    (store, Locks::new(Arc::new(random), Arc::new(|| 0)))
}

/// The same store, in which data that more than one object has shown has no reference to its first byte: an object that
/// shows it cannot be removed.
pub fn damaged(store: Store, drive: &Arc<dyn ZonedDevice>, runtime: Runtime) -> Store {
    changed(store, drive, runtime, |kv, batch| {
        for row in kv.scan(b"B", Some(b"C")) {
            let (key, mut value) = row.unwrap();
            // Behind the version, the map and the number of steps: where the first references begin.
            value[16] += 1;
            batch.put(&key, &value);
        }
    })
}

/// The same store, in which no row that says where bytes of objects are can be decoded.
pub fn with_damaged_extents(store: Store, drive: &Arc<dyn ZonedDevice>) -> Store {
    changed(store, drive, Runtime::system(), |kv, batch| {
        for row in kv.scan(b"X", Some(b"Y")) {
            batch.put(&row.unwrap().0, b"?");
        }
    })
}

/// The same store, in which the records of objects whose names end so cannot be decoded.
pub fn with_damaged_records(store: Store, drive: &Arc<dyn ZonedDevice>, end: &str) -> Store {
    changed(store, drive, Runtime::system(), |kv, batch| {
        for row in kv.scan(b"O", Some(b"P")) {
            let (key, _) = row.unwrap();
            if key.ends_with(end.as_bytes()) {
                batch.put(&key, b"?");
            }
        }
    })
}

/// The same store with other rows.
fn changed(
    store: Store,
    drive: &Arc<dyn ZonedDevice>,
    runtime: Runtime,
    change: impl FnOnce(&Kv, &mut Batch),
) -> Store {
    store.unmount().unwrap();
    drop(store);
    let geometry = drive.geometry();
    let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs = BlueFs::mount(drive.clone(), pool, bluefs::MountOptions::default()).unwrap();
    let options = kv::Options {
        merge: [b'Z', b'S'].map(|p| (p, MergeOperator::AddI64s)).to_vec(),
        ..kv::Options::default()
    };
    let kv = Kv::open(&RocksDb, &fs, "/db", &options, None).unwrap();
    let mut batch = Batch::default();
    change(&kv, &mut batch);
    assert!(!batch.is_empty());
    kv.write(&batch, Durability::Synced).unwrap();
    kv.flush().unwrap();
    drop((kv, fs));
    let options = MountOptions {
        runtime,
        ..MountOptions::new(RocksDb)
    };
    Store::mount(drive.clone(), options).unwrap()
}

/// Bytes for an object of it.
pub fn written(store: &Store, bytes: &[u8]) -> store::Written {
    let mut writer = store.writer(None).unwrap();
    writer.write(bytes).unwrap();
    writer.finish().unwrap()
}
