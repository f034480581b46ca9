//! A store with a history: the state of its drive in the middle and at the end, and the objects that it has to
//! return.

use crate::error::Result;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{
    Attributes, Compression, CompressionMode, MkfsOptions, MountOptions, Store, Transaction,
};
use zone::{Geometry, ZoneId, ZoneKind};

pub const COLLECTION: &str = "damage";
/// Operations of a history, and operations between two mounts.
const STEPS: (usize, usize) = (400, 90);

/// The expected content of an object.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object {
    pub data: Vec<u8>,
    pub attribute: String,
    pub omap: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A store with a history.
pub struct World {
    pub earlier: MemoryDrive,
    pub now: MemoryDrive,
    pub objects: BTreeMap<String, Object>,
    /// Zones of the metadata, empty ones included.
    pub metadata: BTreeSet<ZoneId>,
}

pub fn mount_options(compressed: bool) -> MountOptions {
    let mut options = MountOptions {
        background: false,
        block_cache_bytes: 1 << 20,
        runtime: Runtime::seeded(7),
        ..MountOptions::new(RocksDb)
    };
    if compressed {
        options.data.compression = Compression {
            mode: CompressionMode::Force,
            ..Compression::default()
        };
    }
    options
}

fn geometry(conventional_zones: u32) -> Geometry {
    Geometry {
        zone_count: 160 + conventional_zones,
        zone_size: 4 << 20,
        zone_capacity: 4 << 20,
        conventional_zones,
        conventional_parts: 1,
        max_open_zones: 0,
        max_active_zones: 0,
        block_size: 4096,
        max_append_bytes: 0,
        sequential_kind: ZoneKind::SequentialWriteRequired,
    }
}

impl World {
    /// Number of different worlds.
    pub const COUNT: u64 = 8;

    pub fn new(seed: u64, number: u64) -> Result<Self> {
        let mut random = fastrand::Rng::with_seed(seed ^ (number << 40));
        let (conventional, compressed) = (number.is_multiple_of(2), number % 4 >= 2);
        let is_clean = number < Self::COUNT / 2;
        let geometry = geometry(if conventional { 48 } else { 0 });
        let drive = Arc::new(MemoryDrive::new(geometry)?);
        let made = MkfsOptions {
            uuid: [9; 16],
            metadata_copies: Some(2),
            runtime: Runtime::seeded(7),
            ..MkfsOptions::new(RocksDb)
        };
        Store::mkfs(drive.clone(), &made)?;
        let mount = || Store::mount(drive.clone(), mount_options(compressed));
        let mut store = mount()?;
        let mut tx = Transaction::new();
        tx.create_collection(COLLECTION, Attributes::new());
        store.commit(tx)?;
        let mut earlier = drive.snapshot();
        let mut objects = BTreeMap::new();
        for step in 0..STEPS.0 {
            if step == STEPS.0 / 2 {
                earlier = drive.snapshot();
            }
            if step % STEPS.1 == STEPS.1 - 1 {
                store.unmount()?;
                store = mount()?;
            }
            change(&store, &mut objects, step, &mut random)?;
        }
        if is_clean {
            store.unmount()?;
        } else {
            // If the last commit before a kill is damaged, it cannot be told from one that was never acknowledged. So
            // the last one has no data.
            let mut tx = Transaction::new();
            tx.set_collection_attributes(COLLECTION, Attributes::new());
            store.commit(tx)?;
        }
        let now = drive.snapshot();
        drop(store);
        let metadata = metadata_of(&now)?;
        Ok(Self {
            earlier,
            now,
            objects,
            metadata,
        })
    }

    /// Bytes of a zone that may have been written: all of a conventional zone, else those below the write pointer.
    pub fn written(&self, zone: ZoneId) -> u64 {
        let geometry = self.now.geometry();
        match geometry.kind(zone) {
            ZoneKind::Conventional => geometry.capacity(zone),
            _ => {
                let told = self.now.report_zone(zone);
                told.map_or(0, |told| told.write_pointer)
            }
        }
    }
}

fn change(
    store: &Store,
    objects: &mut BTreeMap<String, Object>,
    step: usize,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let name = |random: &mut fastrand::Rng| format!("object-{}", random.u32(..120));
    let (one, other) = (name(random), name(random));
    let mut tx = Transaction::new();
    match random.u32(..10) {
        0 if objects.contains_key(&one) => {
            tx.remove(COLLECTION, &one);
            objects.remove(&one);
        }
        1 if one != other && objects.contains_key(&one) => {
            tx.clone_object((COLLECTION, &one), (COLLECTION, &other));
            let copy = objects[&one].clone();
            objects.insert(other, copy);
        }
        2 if objects.contains_key(&one) => {
            let key = vec![b'k', random.u8(..9)];
            let value = vec![random.u8(..); random.usize(..200)];
            tx.omap_set(COLLECTION, &one, [(key.clone(), value.clone())].into());
            let object = objects.entry(one).or_default();
            object.omap.insert(key, value);
        }
        _ => {
            let magnitude = random.u32(4..18);
            let size = random.usize(1..1 << magnitude);
            let mut data = vec![0; size];
            random.fill(&mut data);
            if random.bool() {
                // Half of it can be compressed.
                data[size / 2..].fill(step as u8);
            }
            let mut writer = store.writer(Some(size as u64))?;
            writer.write(&data)?;
            let attribute = step.to_string();
            let attributes =
                Attributes::from([("step".to_owned(), attribute.clone().into_bytes())]);
            tx.put(COLLECTION, &one, writer.finish()?, attributes);
            // A put replaces the whole object, its omap included.
            let object = Object {
                data,
                attribute,
                omap: BTreeMap::new(),
            };
            objects.insert(one, object);
        }
    }
    Ok(store.commit(tx)?)
}

fn metadata_of(drive: &MemoryDrive) -> Result<BTreeSet<ZoneId>> {
    let drive: Arc<dyn ZonedDevice> = Arc::new(drive.snapshot());
    let count = drive.geometry().zone_count;
    let report = drive.report(ZoneId(0), count)?;
    let seen = BlueFs::observe(&*drive, &report)?;
    Ok(seen.zones.into_keys().collect())
}
