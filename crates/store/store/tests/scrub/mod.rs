//! The scrub: the damage it finds and repairs, where an interrupted pass resumes, and that losses are reported exactly.

mod damage;
mod losses;
mod metadata;
mod passes;

use crate::common::{create_collection, geometry, mkfs, mount};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{MountOptions, Pace, ScrubPlan, ScrubStatus, Store};

fn fresh() -> (Arc<MemoryDrive>, Arc<dyn ZonedDevice>, Store) {
    let drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (drive, device, store)
}

fn all(store: &Store) {
    assert!(store.scrub(true, |_| true).unwrap());
}

/// Waits until `is_so` holds; only a failing test waits for ten minutes.
fn wait_for(store: &Store, is_so: impl Fn(&ScrubStatus) -> bool) -> ScrubStatus {
    for _ in 0..60_000 {
        let status = store.scrub_status().unwrap();
        if is_so(&status) {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{:?}", store.scrub_status());
}

/// Mounts with a scrub thread that runs only on request.
fn with_thread(device: &Arc<dyn ZonedDevice>, pace: Pace) -> Store {
    let never = ScrubPlan::NEVER;
    with_plan(device, ScrubPlan { pace, ..never })
}

/// Mounts with a scrub thread that runs as `scrub` plans.
fn with_plan(device: &Arc<dyn ZonedDevice>, scrub: ScrubPlan) -> Store {
    let how = MountOptions {
        background: true,
        scrub,
        ..MountOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mount(device.clone(), how).unwrap()
}

/// Number of rows about damage, also of bytes that no object has any more.
fn damage_rows(store: &Store) -> usize {
    let mut rows = 0;
    let which = store::Dump {
        kinds: vec![store::RecordKind::Damage],
        ..store::Dump::default()
    };
    store
        .dump(&which, &mut |_| {
            rows += 1;
            Ok::<_, store::Error>(())
        })
        .unwrap();
    rows
}
