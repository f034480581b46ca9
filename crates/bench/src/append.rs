//! Compares puts by several writers on a drive with zone append and on one without.
//!
//! Both drives are in memory, and each write, append and flush takes a given time. So the figures depend on how many
//! commands the store keeps under way, not on the cost of a lock.

use crate::error::Result;
use crate::median::median;
use crate::paced::{Pace, Paced};
use crate::together::together;
use crate::watch::Watch;
use device::changed::Changed;
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MkfsOptions, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneKind};

const COLLECTION: &str = "append";
/// Limit of one zone append in bytes: the lowest that a drive may have.
const MAX_APPEND_BYTES: u32 = 128 << 10;

/// The parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of writers at the same time; each is measured.
    pub writers: Vec<u32>,
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Objects of a round.
    pub objects: u64,
    /// Rounds of each kind; the figures are medians.
    pub rounds: u32,
    /// How long a write, an append or a flush takes.
    pub latency: Duration,
}

/// The rates of a number of writers.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Writers at the same time.
    pub writers: u32,
    /// Objects a second without zone append: a lock keeps the writes to a zone in order.
    pub locked_objects_per_second: f64,
    /// Objects a second with zone append.
    pub append_objects_per_second: f64,
    /// Append ÷ locked.
    pub ratio: f64,
}

/// A table for people, its head first.
pub fn rows(figures: &[Figures]) -> Vec<Vec<String>> {
    let head = ["writers", "writes in order", "zone append", "ratio"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(figures.iter().map(|f| {
        vec![
            f.writers.to_string(),
            format!("{:.0}/s", f.locked_objects_per_second),
            format!("{:.0}/s", f.append_objects_per_second),
            format!("{:.2}", f.ratio),
        ]
    }));
    rows
}

/// Runs the benchmark, on a fresh drive for each round.
///
/// # Errors
/// The store fails, or the watch has stopped the benchmark.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Vec<Figures>> {
    watch.steps(2 * u64::from(options.rounds) * options.writers.len() as u64);
    let figures = |&writers: &u32| {
        watch.measures(format!("{writers} writers"));
        let (mut locked, mut append, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let [one, other] = [0, MAX_APPEND_BYTES].map(|max_append_bytes| {
                let rate = objects_per_second(options, writers, max_append_bytes, watch);
                watch.step();
                rate
            });
            let (one, other) = (one?, other?);
            locked.push(one);
            append.push(other);
            ratios.push(other / one);
        }
        Ok(Figures {
            writers,
            locked_objects_per_second: median(&locked),
            append_objects_per_second: median(&append),
            ratio: median(&ratios),
        })
    };
    options.writers.iter().map(figures).collect()
}

fn objects_per_second(
    options: &Options,
    writers: u32,
    max_append_bytes: u32,
    watch: &dyn Watch,
) -> Result<f64> {
    let zone = 64 << 20;
    let zones = options.object_bytes * options.objects / zone + 64;
    let drive = MemoryDrive::new(Geometry {
        block_size: 4096,
        zone_size: zone,
        zone_capacity: zone,
        zone_count: zones as u32,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes,
    })?;
    let clock = Runtime::system();
    let change = Paced::new(Pace {
        command: options.latency,
        bytes_per_second: None,
    });
    let device: Arc<dyn ZonedDevice> = Arc::new(Changed { drive, change });
    Store::mkfs(device.clone(), &MkfsOptions::new(RocksDb))?;
    let store = Store::mount(device, MountOptions::new(RocksDb))?;
    let mut transaction = Transaction::new();
    transaction.create_collection(COLLECTION, Attributes::new());
    store.commit(transaction)?;
    // Zeros take no memory.
    let object = vec![0; options.object_bytes as usize];
    let start = clock.now();
    together(writers, options.objects, watch, |number| {
        let mut writer = store.writer(Some(options.object_bytes))?;
        writer.write(&object)?;
        let data = writer.finish()?;
        let mut transaction = Transaction::new();
        transaction.put(COLLECTION, number.to_string(), data, Attributes::new());
        Ok(store.commit(transaction)?)
    })?;
    Ok(options.objects as f64 / (clock.now() - start).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Nobody;

    #[test]
    fn both_ways_store_all_objects() {
        let options = Options {
            writers: vec![1, 4],
            object_bytes: 64 << 10,
            objects: 20,
            rounds: 1,
            latency: Duration::from_micros(100),
        };
        let figures = run(&options, &Nobody).unwrap();
        assert_eq!(figures.len(), 2);
        assert!(figures.iter().all(|f| f.ratio > 0.0));
        assert_eq!(rows(&figures)[2][0], "4");
    }
}
