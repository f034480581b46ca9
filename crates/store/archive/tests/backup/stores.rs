//! Stores on small drives, their histories, and what is in them.

use crate::carry_out::{add, everything};
use crate::common::geometry;
use crate::deal;
use crate::world::World;
use archive::{Error, PackOptions, Packed, Restored, Selection, Since, pack, restore};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use kv_log::KvLog;
use runtime::Runtime;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;
use store::{CollectionInfo, MkfsOptions, MountOptions, ObjectInfo, Store, Transaction};

pub type Device = Arc<dyn ZonedDevice>;

pub fn options() -> MountOptions {
    MountOptions {
        background: false,
        runtime: Runtime::seeded(0),
        ..MountOptions::new(KvLog)
    }
}

pub fn mkfs(device: &Device, uuid: u8) {
    let made = MkfsOptions {
        uuid: [uuid; 16],
        runtime: options().runtime,
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(device.clone(), &made).unwrap();
}

/// An empty store.
pub fn fresh(zones: u32, uuid: u8) -> (Device, Store) {
    let device: Device = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
    mkfs(&device, uuid);
    let store = Store::mount(device.clone(), options()).unwrap();
    (device, store)
}

pub fn commit(store: &Store, fill: impl FnOnce(&mut Transaction)) {
    let mut transaction = Transaction::new();
    fill(&mut transaction);
    store.commit(transaction).unwrap();
}

/// So many random transactions, with cleaning between them.
pub fn history(random: &mut Rng, store: &Store, world: &mut World, transactions: usize) {
    for _ in 0..transactions {
        if random.u8(..8) == 0 {
            store.seal_open_zones().unwrap();
            store.clean_one().unwrap();
        }
        let mut next = world.clone();
        let mut transaction = Transaction::new();
        let mut works = true;
        for call in deal::transaction(random, world, 6 << 20) {
            add(store, &mut transaction, &next, &call).unwrap();
            works = works && next.carry_out(&call).is_ok();
        }
        let done = store.commit(transaction);
        assert_eq!(done.is_ok(), works, "{done:?}");
        if works {
            *world = next;
        }
    }
}

/// Also what the model does not know: times, and where data is.
type All = Vec<(CollectionInfo, Vec<(ObjectInfo, Vec<Range<u64>>)>)>;

pub fn all(store: &Store) -> (World, All) {
    let ranges = |collection: &str, object: &ObjectInfo| {
        let reader = store.open(collection, &object.name).unwrap();
        reader.data_ranges(0..u64::MAX).unwrap()
    };
    let objects = |collection: &str| {
        let all = store.list(collection, "", "", usize::MAX).unwrap();
        let all = all.into_iter();
        all.map(|object| {
            let ranges = ranges(collection, &object);
            (object, ranges)
        })
        .collect()
    };
    let collections = store.collections().unwrap().into_iter();
    let details = collections.map(|c| {
        let objects = objects(&c.name);
        (c, objects)
    });
    (everything(store).unwrap(), details.collect())
}

pub const BACKUP: PackOptions = PackOptions {
    selection: Selection::Backup,
    now_micros: 7,
    skip_damaged: false,
    is_served: false,
};

pub fn try_backup(
    store: &Store,
    options: &PackOptions,
    since: Option<&[u8]>,
) -> Result<(Vec<u8>, Packed), Error> {
    let mut bytes = Vec::new();
    let mut since = since
        .map(|since| Since::open(Cursor::new(since)))
        .transpose()?;
    let packed = pack(store, &mut bytes, options, since.as_mut(), &mut |_| {})?;
    assert_eq!(packed.archive_bytes, bytes.len() as u64);
    Ok((bytes, packed))
}

pub fn backup(store: &Store, since: Option<&[u8]>) -> (Vec<u8>, Packed) {
    try_backup(store, &BACKUP, since).unwrap()
}

pub fn try_restore(store: &Store, archives: &[&[u8]]) -> (Restored, Result<(), Error>) {
    let mut restored = Restored::default();
    let done = restore(store, archives.to_vec(), &mut restored, &mut |_| {});
    (restored, done)
}

pub fn restored(archives: &[&[u8]]) -> Store {
    let (_, store) = fresh(64, 8);
    try_restore(&store, archives).1.unwrap();
    store
}
