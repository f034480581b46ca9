//! Measures the cost of a put, a look-up and a mount while the number of objects in a store grows.
//!
//! The drive is in memory, where zeros take no room, and large objects are zeros: so the data of millions of objects
//! fits, and the program's work is measured, not a disk's. All costs of operations are counts: CPU time of the
//! process (compactions included), bytes and reads of the drive. Each stage ends with the memtable written out and
//! the compactions done.
//!
//! Writes and flushes take `COMMAND`. If they took no time, no put would share another's flush: each would fill
//! blocks of the log alone, and the number of bytes would depend on chance.

use crate::cpu;
use crate::error::Result;
use crate::paced::{Pace, Paced};
use crate::together::together;
use crate::watch::Watch;
use device::changed::Changed;
use device::stats::{Stats, StatsSnapshot};
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MkfsOptions, MountOptions, Store, Transaction};
use zone::Bytes;

const PROFILE: &str = "hm-smr-14tb";
const SIZE: u64 = 14 << 40;
const COLLECTION: &str = "scale";
/// How long a write or a flush takes: as on fast flash, where puts share the fewest flushes.
const COMMAND: Duration = Duration::from_micros(100);
/// The longest time that compactions may take at the end of a stage.
const PATIENCE: Duration = Duration::from_secs(600);
/// Compactions are over when the drive has had no command for this long.
const QUIET: Duration = Duration::from_millis(300);
/// Look-ups of a stage, and the least number of overwrites.
const PROBES: u64 = 100_000;
/// At least one in this many objects is overwritten. With so many, compactions have their long-term share of the
/// cost, and not one that depends on the puts before.
const OVERWRITTEN: u64 = 5;

/// The parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of objects at which costs are measured, from 1 on.
    pub stages: Vec<u64>,
    /// Bytes of an object; each size is measured on a store of its own.
    pub object_bytes: Vec<u64>,
    /// Objects written at the same time.
    pub concurrency: u32,
}

/// The costs in a store with a number of objects of one size.
#[derive(Debug, Serialize)]
pub struct Stage {
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Whether names come in order; else they are random.
    pub ordered: bool,
    /// Objects in the store.
    pub objects: u64,
    /// Puts of the objects that were added in this stage.
    pub puts: Cost,
    /// Puts that replace an object.
    pub overwrites: Cost,
    /// Reads of a whole object.
    pub gets: Cost,
    /// Look-ups of an object that does not exist.
    pub misses: Cost,
    /// Seconds of a mount after an unmount.
    pub mount_clean_seconds: f64,
    /// Seconds of a mount after a kill.
    pub mount_killed_seconds: f64,
}

/// The mean cost of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// CPU time of the process, in microseconds.
    pub cpu_micros: f64,
    /// Bytes written to the drive.
    pub bytes_written: f64,
    /// Reads of the drive.
    pub reads: f64,
    /// Bytes that these read.
    pub bytes_read: f64,
}

/// A table for people, its head first.
pub fn rows(stages: &[Stage]) -> Vec<Vec<String>> {
    let head = [
        "objects of",
        "names",
        "objects",
        "put: µs CPU",
        "bytes",
        "overwrite: µs CPU",
        "bytes",
        "reads",
        "get: µs CPU",
        "reads",
        "miss: reads",
        "mount: s",
        "killed",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(stages.iter().map(|stage| {
        let (put, over) = (&stage.puts, &stage.overwrites);
        vec![
            Bytes(stage.object_bytes).to_string(),
            if stage.ordered { "ordered" } else { "random" }.to_owned(),
            stage.objects.to_string(),
            format!("{:.1}", put.cpu_micros),
            format!("{:.0}", put.bytes_written),
            format!("{:.1}", over.cpu_micros),
            format!("{:.0}", over.bytes_written),
            format!("{:.2}", over.reads),
            format!("{:.1}", stage.gets.cpu_micros),
            format!("{:.2}", stage.gets.reads),
            format!("{:.3}", stage.misses.reads),
            format!("{:.2}", stage.mount_clean_seconds),
            format!("{:.2}", stage.mount_killed_seconds),
        ]
    }));
    rows
}

/// Runs the benchmark.
///
/// # Errors
/// The store fails, or the watch has stopped the benchmark.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Vec<Stage>> {
    let mut done = Vec::new();
    let stages: BTreeSet<u64> = options.stages.iter().copied().collect();
    watch.steps((options.object_bytes.len() * 2 * stages.len()) as u64);
    for object_bytes in &options.object_bytes {
        for ordered in [true, false] {
            let mut scale = Scale::new(options, *object_bytes, ordered, watch)?;
            for objects in &stages {
                done.push(scale.stage(*objects)?);
                watch.step();
            }
        }
    }
    Ok(done)
}

/// A store that grows from stage to stage.
struct Scale<'a> {
    options: &'a Options,
    watch: &'a dyn Watch,
    drive: Arc<Stats<MemoryDrive>>,
    store: Option<Store>,
    object: Vec<u8>,
    ordered: bool,
    objects: u64,
}

impl<'a> Scale<'a> {
    fn new(options: &'a Options, bytes: u64, ordered: bool, watch: &'a dyn Watch) -> Result<Self> {
        let mut collection = Transaction::new();
        collection.create_collection(COLLECTION, Attributes::new());
        let geometry = profile::by_name(PROFILE)?.geometry(SIZE, None)?;
        let drive = Arc::new(Stats::new(MemoryDrive::new(geometry)?));
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb))?;
        let store = mount(&drive)?;
        store.commit(collection)?;
        Ok(Self {
            options,
            watch,
            drive,
            store: Some(store),
            object: object(bytes),
            ordered,
            objects: 0,
        })
    }

    fn store(&self) -> &Store {
        // It is `None` only during a mount.
        self.store.as_ref().unwrap_or_else(|| unreachable!())
    }

    fn stage(&mut self, objects: u64) -> Result<Stage> {
        let what = Bytes(self.object.len() as u64);
        self.watch.measures(format!("{objects} objects of {what}"));
        let (before, probes) = (self.objects, objects.min(PROBES));
        let puts = self.cost(objects - before, |number| self.put(before + number))?;
        let any = |number: u64| mixed(number) % objects;
        let overwritten = probes.max(objects / OVERWRITTEN);
        let overwrites = self.cost(overwritten, |number| self.put(any(number)))?;
        let gets = self.cost(probes, |number| self.get(any(number)))?;
        let misses = self.cost(probes, |number| {
            let there = self.store().stat(COLLECTION, self.name(objects + number))?;
            debug_assert!(there.is_none());
            Ok(())
        })?;
        self.objects = objects;
        let store = self.store.take();
        store.as_ref().map_or(Ok(()), Store::unmount)?;
        drop(store);
        let mount_clean_seconds = self.mount()?;
        // Leaves log records for the next mount to replay.
        let (threads, logged) = (self.options.concurrency, probes.min(objects / 10));
        together(threads, logged, self.watch, |number| self.put(any(number)))?;
        // Dropped without an unmount, as when the process is killed.
        self.store = None;
        let mount_killed_seconds = self.mount()?;
        Ok(Stage {
            object_bytes: self.object.len() as u64,
            ordered: self.ordered,
            objects,
            puts,
            overwrites,
            gets,
            misses,
            mount_clean_seconds,
            mount_killed_seconds,
        })
    }

    fn mount(&mut self) -> Result<f64> {
        let clock = Runtime::system();
        let start = clock.now();
        self.store = Some(mount(&self.drive)?);
        Ok((clock.now() - start).as_secs_f64())
    }

    fn name(&self, number: u64) -> String {
        match self.ordered {
            true => format!("object-{number:012}"),
            false => format!("object-{:016x}", mixed(number)),
        }
    }

    fn put(&self, number: u64) -> Result<()> {
        let mut writer = self.store().writer(Some(self.object.len() as u64))?;
        writer.write(&self.object)?;
        let data = writer.finish()?;
        let mut transaction = Transaction::new();
        transaction.put(COLLECTION, self.name(number), data, Attributes::new());
        Ok(self.store().commit(transaction)?)
    }

    fn get(&self, number: u64) -> Result<()> {
        let reader = self.store().open(COLLECTION, self.name(number))?;
        reader.read_at(0, &mut vec![0; self.object.len()])?;
        Ok(())
    }

    /// Does `count` operations, waits until the compactions that follow from them are done, and returns the mean cost
    /// of one.
    fn cost(&self, count: u64, operation: impl Fn(u64) -> Result<()> + Sync) -> Result<Cost> {
        let (drive, cpu) = (self.drive.snapshot(), cpu::seconds());
        together(self.options.concurrency, count, self.watch, operation)?;
        self.store().flush()?;
        self.settle();
        let done = self.drive.snapshot().since(&drive);
        let each = |sum: f64| sum / count as f64;
        Ok(Cost {
            cpu_micros: each((cpu::seconds() - cpu) * 1e6),
            bytes_written: each(done.bytes_written() as f64),
            reads: each(done.read.operations as f64),
            bytes_read: each(done.read.bytes as f64),
        })
    }

    /// Waits until the drive has had no command for [`QUIET`], or [`PATIENCE`] is over.
    fn settle(&self) {
        let clock = Runtime::system();
        let mut before = StatsSnapshot::default();
        for _ in 0..PATIENCE.as_millis() / QUIET.as_millis() {
            let now = self.drive.snapshot();
            if now == before {
                return;
            }
            before = now;
            clock.wait_until(clock.now() + QUIET);
        }
    }
}

fn mount(drive: &Arc<Stats<MemoryDrive>>) -> Result<Store> {
    let change = Paced::new(Pace {
        command: COMMAND,
        ..Pace::default()
    });
    let drive = drive.clone();
    let device: Arc<dyn ZonedDevice> = Arc::new(Changed { drive, change });
    Ok(Store::mount(device, MountOptions::new(RocksDb))?)
}

/// Bytes that cannot be compressed for sizes that may be kept in the metadata, and zeros for larger ones.
fn object(bytes: u64) -> Vec<u8> {
    let random = |number| (mixed(number) >> 56) as u8;
    match bytes {
        ..=2048 => (0..bytes).map(random).collect(),
        _ => vec![0; bytes as usize],
    }
}

/// A different number for each number, in an order that looks random (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
