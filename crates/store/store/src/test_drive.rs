//! Shared by the store's unit tests: a small drive, and a store on it without background threads.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use crate::opened::Opened;
use crate::{Attributes, MkfsOptions, MountOptions, Store, Transaction};
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use kv_log::KvLog;
use runtime::Runtime;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

#[path = "../tests/common/changed_database.rs"]
pub(crate) mod changed_database;

/// A geometry of `zones` zones of 1 MiB, `conventional` of them conventional.
pub(crate) fn geometry(zones: u32, conventional: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: zones,
        conventional_zones: conventional,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

/// A drive with an empty store that has a collection `c`.
pub(crate) fn drive() -> Arc<MemoryDrive> {
    let drive = Arc::new(MemoryDrive::new(geometry(96, 4)).unwrap());
    Store::mkfs(drive.clone(), &MkfsOptions::new(KvLog)).unwrap();
    let store = mount(&drive);
    let mut tx = Transaction::new();
    tx.create_collection("c", Attributes::new());
    store.commit(tx).unwrap();
    store.unmount().unwrap();
    drive
}

/// Without background threads.
pub(crate) fn options() -> MountOptions {
    MountOptions {
        background: false,
        runtime: Runtime::seeded(0),
        ..MountOptions::new(KvLog)
    }
}

/// The same, with a database whose calls `calls` replaces.
pub(crate) fn options_with(calls: &Arc<impl changed_database::Calls>) -> MountOptions {
    MountOptions {
        engine: Arc::new(changed_database::Changed(calls.clone())),
        ..options()
    }
}

pub(crate) fn mount(drive: &Arc<impl ZonedDevice + 'static>) -> Store {
    Store::mount(drive.clone(), options()).unwrap()
}

/// Changes rows of a store that is not mounted.
pub(crate) fn change(drive: &Arc<MemoryDrive>, rows: impl FnOnce(&Opened, &mut Batch)) {
    let opened = Opened::open(drive.clone(), &options()).unwrap();
    let mut batch = Batch::default();
    rows(&opened, &mut batch);
    opened.kv.write(&batch, Durability::Synced).unwrap();
    opened.close().unwrap();
}

/// A store on a drive whose commands `change` replaces.
pub(crate) fn changed<C: Change<MemoryDrive> + 'static>(
    change: C,
) -> (Arc<Changed<MemoryDrive, C>>, Store) {
    let drive = Arc::new(Changed {
        drive: drive().snapshot(),
        change,
    });
    let store = mount(&drive);
    (drive, store)
}

/// Puts an object of 100,000 bytes into `c`.
pub(crate) fn put(store: &Store, name: &str) {
    let mut writer = store.writer(None).unwrap();
    writer.write(&[7; 100_000]).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", name, writer.finish().unwrap(), Attributes::new());
    store.commit(tx).unwrap();
}

/// Removes an object of `c`.
pub(crate) fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}
