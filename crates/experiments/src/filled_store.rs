//! A store without threads, on a drive in memory or on a model, that is filled and overwritten: after each object it
//! does what the cleaner's thread would do then, so that a seed gives one figure.

use crate::experiment::{Run, Stopped};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use drive_model::Random;
use kv_log::KvLog;
use runtime::Runtime;
use std::sync::Arc;
use store::{Attributes, MkfsOptions, MountOptions, ObjectReader, Statfs, Store, Transaction};
use zone::Geometry;

const COLLECTION: &str = "overwritten";

/// A store, and its drive, which counts the bytes written to it.
pub struct FilledStore {
    drive: Arc<Stats<Arc<dyn ZonedDevice>>>,
    pub store: Store,
    object_bytes: u64,
    pub objects: u64,
}

impl FilledStore {
    /// An empty store on a drive in memory, for objects of `object_bytes` bytes.
    pub fn new(geometry: Geometry, object_bytes: u64, seed: u64) -> Result<Self, Stopped> {
        let memory = MemoryDrive::new(geometry).map_err(Stopped::store)?;
        Self::on(Arc::new(memory), object_bytes, Runtime::seeded(seed))
    }

    /// An empty store on a drive that nothing else uses.
    pub fn on(
        drive: Arc<dyn ZonedDevice>,
        object_bytes: u64,
        runtime: Runtime,
    ) -> Result<Self, Stopped> {
        let drive = Arc::new(Stats::new(drive));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        let made = MkfsOptions {
            runtime: runtime.clone(),
            ..MkfsOptions::new(KvLog)
        };
        Store::mkfs(device.clone(), &made)?;
        let options = MountOptions {
            background: false,
            runtime,
            ..MountOptions::new(KvLog)
        };
        let store = Store::mount(device, options)?;
        let mut transaction = Transaction::new();
        transaction.create_collection(COLLECTION, Attributes::new());
        store.commit(transaction)?;
        Ok(Self {
            drive,
            store,
            object_bytes,
            objects: 0,
        })
    }

    /// Adds or removes objects until the share `utilization` of the declared capacity is live. The space that
    /// metadata needs, and so the rest for data, depends on the objects and on their history.
    pub fn level(&mut self, utilization: f64) -> Result<(), Stopped> {
        while self.live_share() < utilization {
            self.add()?;
        }
        while self.live_share() > utilization + 0.001 {
            self.objects -= 1;
            let mut transaction = Transaction::new();
            transaction.remove(COLLECTION, self.objects.to_string());
            self.store.commit(transaction)?;
        }
        Ok(())
    }

    /// Puts one more object.
    pub fn add(&mut self) -> Result<(), Stopped> {
        self.add_with(Attributes::new())
    }

    /// Puts one more object, with attributes.
    pub fn add_with(&mut self, attributes: Attributes) -> Result<(), Stopped> {
        self.put(self.objects, attributes)?;
        self.objects += 1;
        Ok(())
    }

    /// Opens an object.
    pub fn open(&self, object: u64) -> Result<ObjectReader, Stopped> {
        Ok(self.store.open(COLLECTION, object.to_string())?)
    }

    pub fn space(&self) -> Statfs {
        self.store.statfs()
    }

    fn live_share(&self) -> f64 {
        let space = self.space();
        space.live_bytes as f64 / space.capacity_bytes as f64
    }

    fn put(&self, object: u64, attributes: Attributes) -> Result<(), Stopped> {
        let name = object.to_string();
        let mut writer = self
            .store
            .writer(Some(self.object_bytes))?
            .replacing(COLLECTION, &name);
        // Drives in memory take no room for zeros.
        writer.write(&vec![0; self.object_bytes as usize])?;
        let data = writer.finish()?;
        let mut transaction = Transaction::new();
        transaction.put(COLLECTION, &name, data, attributes);
        self.store.commit(transaction)?;
        while self.store.tend()? {}
        Ok(())
    }

    /// Overwrites `count` objects, drawn at random. If a share `hot` of the objects is hot, these get 1 − `hot` of
    /// the writes.
    pub fn overwrite(
        &self,
        run: &Run<'_>,
        count: u64,
        hot: Option<f64>,
        random: &mut Random,
    ) -> Result<(), Stopped> {
        for _ in 0..count {
            if run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            let few = (self.objects as f64 * hot.unwrap_or(1.0)) as u64;
            let is_hot = hot.is_none_or(|hot| random.below(1_000) as f64 >= hot * 1_000.0);
            let object = if is_hot {
                random.below(few)
            } else {
                few + random.below(self.objects - few)
            };
            self.put(object, Attributes::new())?;
        }
        Ok(())
    }

    /// Bytes of data written to the drive.
    pub fn data_written(&self) -> u64 {
        self.written() - self.store.bluefs().statistics().bytes_written()
    }

    /// Bytes of data and metadata written to the drive.
    pub fn written(&self) -> u64 {
        self.drive.snapshot().bytes_written()
    }
}
