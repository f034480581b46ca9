//! The scrub: what it finds, what it writes anew, where it goes on, and that losses are told exactly.

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

/// Waits until the thread has come to something. Only a failing test waits for so long.
fn wait_for(store: &Store, is_so: impl Fn(&ScrubStatus) -> bool) -> ScrubStatus {
    for _ in 0..6000 {
        let status = store.scrub_status().unwrap();
        if is_so(&status) {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{:?}", store.scrub_status());
}

/// Mounted with a scrub that begins when it is asked for.
fn with_thread(device: &Arc<dyn ZonedDevice>, pace: Pace) -> Store {
    let never = ScrubPlan::NEVER;
    with_plan(device, ScrubPlan { pace, ..never })
}

/// Mounted with a scrub that begins when it is due.
fn with_plan(device: &Arc<dyn ZonedDevice>, scrub: ScrubPlan) -> Store {
    let how = MountOptions {
        background: true,
        scrub,
        ..MountOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mount(device.clone(), how).unwrap()
}

/// Rows of damage, whether anybody has these bytes or not.
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
