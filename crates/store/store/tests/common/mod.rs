//! Shared by the store's tests: small drives, options without threads or the host's clock, and helpers that write, read
//! and compare objects.

#![allow(dead_code)]

pub mod changed_database;

use bluefs::BlueFs;
use device::wrap::faults::Faults;
use device::{MemoryDrive, ZonedDevice};
use kv::{Database, Engine, Kv, MergeOperator, ReplayFilter};
use kv_log::KvLog;
use kv_rocksdb::RocksDb;
use runtime::{Runtime, SimulatedClock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MkfsOptions, MountOptions, Name, ObjectInfo, Store, Taken, Transaction};
use zone::{Geometry, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

/// Seed of random cases and histories, from `ZONESTORE_SEED`; 0 by default.
pub fn seed() -> u64 {
    let given = std::env::var("ZONESTORE_SEED").ok();
    given.map_or(0, |seed| seed.parse().unwrap())
}

/// Factor on the length of slow tests, from `ZONESTORE_ROUNDS`; 1 by default.
pub fn rounds() -> u64 {
    let given = std::env::var("ZONESTORE_ROUNDS").ok();
    given.map_or(1, |rounds| rounds.parse().unwrap())
}

/// A drive of `zones` zones of 1 MiB, the first four of them conventional.
pub fn geometry(zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: zones,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    }
}

/// Whether the tests run as part of `kv_log.rs`, with the small database instead of RocksDB.
pub fn is_small() -> bool {
    env!("CARGO_CRATE_NAME") == "kv_log"
}

/// Without background threads and the host's clock, so that a run can be replayed.
pub fn options() -> MountOptions {
    let defaults = if is_small() {
        MountOptions::new(KvLog)
    } else {
        MountOptions::new(RocksDb)
    };
    MountOptions {
        background: false,
        runtime: Runtime::seeded(0),
        block_cache_bytes: 1 << 20,
        // Tests that run with both databases have it with one of them.
        data_cache_bytes: if is_small() { 1 << 20 } else { 0 },
        ..defaults
    }
}

/// An engine that opens for writing only after pending compactions are done, or that long: SSTs stay as they are then, and
/// nobody else reads.
pub struct Settled(pub Arc<dyn Engine>, pub Duration);

impl Engine for Settled {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &kv::Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> kv::Result<Box<dyn Database>> {
        let database = self.0.open(fs, directory, options, filter)?;
        // A compaction fails if it meets a damaged SST, and is tried again and again.
        if !options.read_only {
            let _ = database.settle(self.1);
        }
        Ok(database)
    }
}

pub fn mkfs(device: &Arc<dyn ZonedDevice>) {
    mkfs_in_copies(device, None);
}

/// Formats with this number of copies of the metadata; `None` leaves the default.
pub fn mkfs_in_copies(device: &Arc<dyn ZonedDevice>, metadata_copies: Option<u32>) {
    let made = MkfsOptions {
        engine: options().engine,
        uuid: [7; 16],
        metadata_copies,
        runtime: options().runtime,
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
}

pub fn mount(device: &Arc<dyn ZonedDevice>) -> Store {
    Store::mount(device.clone(), options()).unwrap()
}

pub type FailingDrive = Arc<Faults<MemoryDrive>>;

/// A store with a collection on a drive that fails as its [`Faults`] plan says.
pub fn on_failing_drive(zones: u32) -> (FailingDrive, Store) {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(zones)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (drive, store)
}

/// Pseudo-random bytes, different for each seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = vec![0; length];
    for word in bytes.chunks_mut(8) {
        let length = word.len();
        word.copy_from_slice(&next().to_le_bytes()[..length]);
    }
    bytes
}

pub fn written(store: &Store, data: &[u8]) -> store::Result<store::Written> {
    let mut writer = store.writer(Some(data.len() as u64))?;
    writer.write(data)?;
    writer.finish()
}

pub fn put(store: &Store, name: &str, data: &[u8]) -> store::Result<()> {
    put_in(store, "c", name, data)
}

pub fn put_in(
    store: &Store,
    collection: &str,
    name: impl AsRef<[u8]>,
    data: &[u8],
) -> store::Result<()> {
    let writer = store.writer(Some(data.len() as u64))?;
    let mut writer = writer.replacing(collection, &name);
    writer.write(data)?;
    let mut tx = Transaction::new();
    tx.put(collection, name, writer.finish()?, Attributes::new());
    store.commit(tx)
}

/// An empty store of 96 zones with a collection, on a drive in memory and with a clock that only the test moves.
pub fn on_a_still_clock(options: MountOptions) -> (Store, Arc<SimulatedClock>) {
    let clock = Arc::new(SimulatedClock::default());
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    (store, clock)
}

pub fn create_collection(store: &Store) {
    let mut tx = Transaction::new();
    tx.create_collection("c", Attributes::new());
    store.commit(tx).unwrap();
}

pub fn read(store: &Store, name: &str) -> store::Result<Vec<u8>> {
    read_in(store, "c", name)
}

pub fn read_in(store: &Store, collection: &str, name: impl AsRef<[u8]>) -> store::Result<Vec<u8>> {
    let reader = store.open(collection, name)?;
    let mut data = vec![0; reader.info().size as usize];
    let got = reader.read_at(0, &mut data)?;
    assert_eq!(got, data.len());
    Ok(data)
}

/// All bytes of an object, read with `take`, which shares cached bytes.
pub fn taken_in(store: &Store, collection: &str, name: impl AsRef<[u8]>) -> store::Result<Vec<u8>> {
    let reader = store.open(collection, name)?;
    let mut taken = Vec::new();
    let mut buffer = vec![0; 70_000];
    loop {
        match reader.take(taken.len() as u64, &mut buffer)? {
            Taken::Read(0) => return Ok(taken),
            Taken::Read(n) => taken.extend_from_slice(&buffer[..n]),
            Taken::Shared(parts) => {
                let length: usize = parts.iter().map(|part| part.len()).sum();
                assert!((1..=buffer.len()).contains(&length));
                taken.extend(parts.concat());
            }
        }
    }
}

/// All objects of collection `c`, by name.
pub fn contents(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let objects = contents_of(store, "c").into_iter();
    objects.map(|(n, bytes)| (n.to_string(), bytes)).collect()
}

/// All objects of a collection, in its order.
pub fn contents_of(store: &Store, collection: &str) -> Vec<(Name, Vec<u8>)> {
    let objects = store.list(collection, "", "", usize::MAX).unwrap();
    let bytes = |o: ObjectInfo| (o.name.clone(), read_in(store, collection, &o.name).unwrap());
    objects.into_iter().map(bytes).collect()
}

pub fn assert_clean(store: &Store) {
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
}

/// The file system and database of a store that is not mounted.
pub fn database(device: &Arc<dyn ZonedDevice>) -> (BlueFs, Kv) {
    let geometry = device.geometry();
    let report = device.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs = BlueFs::mount(device.clone(), pool, bluefs::MountOptions::default()).unwrap();
    let options = kv::Options {
        merge: [b'Z', b'S'].map(|p| (p, MergeOperator::AddI64s)).to_vec(),
        ..kv::Options::default()
    };
    let kv = Kv::open(&*self::options().engine, &fs, "/db", &options, None).unwrap();
    (fs, kv)
}

/// Flips a bit in the block of `zone` with these bytes.
pub fn hit(device: &Arc<dyn ZonedDevice>, zone: ZoneId, wanted: &[u8]) {
    let start = device.geometry().start(zone);
    let end = device.report_zone(zone).unwrap().write_pointer;
    let mut bytes = vec![0; end as usize];
    device.read(start, &mut bytes).unwrap();
    let block = bytes.chunks(4096).position(|block| block == wanted);
    bytes[block.unwrap() * 4096 + 100] ^= 4;
    device.reset(zone).unwrap();
    device.write(start, &bytes).unwrap();
}

/// Sets the write pointer back to byte `to` of the zone.
pub fn set_back(drive: &MemoryDrive, zone: ZoneId, to: u64) {
    let mut bytes = vec![0; to as usize];
    let start = drive.geometry().start(zone);
    if to > 0 {
        drive.read(start, &mut bytes).unwrap();
    }
    drive.reset(zone).unwrap();
    if to > 0 {
        drive.write(start, &bytes).unwrap();
    }
    drive.power_cycle();
}
