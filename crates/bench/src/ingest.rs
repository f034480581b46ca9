//! Compares the store with a plain drive: writes and reads objects through the store, and the same bytes straight to
//! a drive file, in alternating rounds.
//!
//! An object counts when it is durable. For reads, the host has nothing in its page cache and cannot predict the next
//! request. Between rounds, outside of the measured time, the objects are removed and their zones cleaned, so that
//! every round finds the drive as the first one did.

use crate::cold;
use crate::error::{Error, Result};
use crate::median::median;
use crate::memory;
use crate::paced::{Pace, Paced};
use crate::raw::RawDrive;
use crate::together::together;
use crate::watch::Watch;
use device::changed::Changed;
use device::stats::Stats;
use device::{Drive, ZonedDevice};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MountOptions, Store, Transaction};
use terminal::count;
use zone::Bytes;

/// Bytes of a large object.
pub const LARGE: u64 = 4 << 20;
/// Bytes of a medium object.
pub const MEDIUM: u64 = 1 << 20;
/// Bytes of a small object.
pub const SMALL: u64 = 64 << 10;
/// Bytes of a tiny object: one block. The plain drive is flushed after each of them.
pub const TINY: u64 = 4 << 10;
const COLLECTION: &str = "zonestore-bench";
/// An attribute that only the benchmark's own collection has.
const MARK: &str = "zonestore-bench";
const REMOVED_TOGETHER: u64 = 500;

/// The parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of an object, and of all objects of a round, for each size that is measured.
    pub sizes: Vec<(u64, u64)>,
    /// Objects written at the same time.
    pub concurrency: u32,
    /// Rounds of each kind, after one to warm up.
    pub rounds: u32,
    /// The most bytes that either drive reads and writes a second; `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

/// The pairs for [`Options::sizes`], from the bytes of a round of each size; 0 leaves a size out.
///
/// # Errors
/// A round is smaller than one object, or all sizes are left out.
pub fn sizes(large: u64, medium: u64, small: u64, tiny: u64) -> Result<Vec<(u64, u64)>> {
    let mut sizes = Vec::new();
    for (option, size, total) in [
        ("--large-total", LARGE, large),
        ("--medium-total", MEDIUM, medium),
        ("--small-total", SMALL, small),
        ("--tiny-total", TINY, tiny),
    ] {
        if total > 0 && total < size {
            return Err(Error::LessThanOne {
                option,
                total,
                size,
            });
        }
        if total > 0 {
            sizes.push((size, total));
        }
    }
    match sizes.is_empty() {
        true => Err(Error::Nothing),
        false => Ok(sizes),
    }
}

/// The results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Objects written at the same time.
    pub concurrency: u32,
    /// Rounds of each kind.
    pub rounds: u32,
    /// For each size of object.
    pub results: Vec<SizeResult>,
    /// Peak memory of this process in bytes; `None` where the kernel does not tell.
    pub peak_memory_bytes: Option<u64>,
}

impl Report {
    /// The conditions of the figures, for a line below the table.
    pub fn conditions(&self) -> String {
        let peak = self.peak_memory_bytes.map(|bytes| Bytes(bytes).to_string());
        format!(
            "{} at a time, each durable before it counts; medians of {}; peak memory {}",
            count(self.concurrency.into(), "object"),
            count(self.rounds.into(), "round"),
            peak.as_deref().unwrap_or("unknown")
        )
    }

    /// The reads as a table for people, its head first.
    pub fn read_rows(&self) -> Vec<Vec<String>> {
        let head = ["objects", "store, read", "device, read", "ratio"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.results.iter().map(|result| {
            vec![
                Bytes(result.object_bytes).to_string(),
                rate(result.store_read_bytes_per_second),
                rate(result.device_read_bytes_per_second),
                format!("{:.2}", result.ratio_read),
            ]
        }));
        rows
    }

    /// The writes as a table for people, its head first.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let head = ["objects", "store", "", "device, one flush", "ratio"];
        let group = ["device, flush every", "", "ratio"];
        let more = ["drive bytes/byte", "flushes/object"];
        let head = head.iter().chain(&group).chain(&more);
        let mut rows = vec![head.map(|word| (*word).to_owned()).collect()];
        rows.extend(self.results.iter().map(|result| {
            vec![
                Bytes(result.object_bytes).to_string(),
                rate(result.store_bytes_per_second),
                format!("{:.0}/s", result.store_objects_per_second),
                rate(result.device_one_flush_bytes_per_second),
                format!("{:.2}", result.ratio_one_flush),
                format!("{} objects", result.flush_every_objects),
                rate(result.device_group_flush_bytes_per_second),
                format!("{:.2}", result.ratio_group_flush),
                format!("{:.3}", result.drive_bytes_per_object_byte),
                format!("{:.2}", result.flushes_per_object),
            ]
        }));
        rows
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{:.0} MiB/s", bytes_per_second / f64::from(1 << 20))
}

/// The results for one size of object; rates are medians over the rounds.
#[derive(Debug, Serialize)]
pub struct SizeResult {
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Objects of a round.
    pub objects_per_round: u64,
    /// Bytes written through the store a second.
    pub store_bytes_per_second: f64,
    /// Objects written through the store a second.
    pub store_objects_per_second: f64,
    /// Bytes written straight to the plain drive a second, with one flush at the end.
    pub device_one_flush_bytes_per_second: f64,
    /// Bytes written straight to the plain drive a second, with a flush after every [`Self::flush_every_objects`].
    pub device_group_flush_bytes_per_second: f64,
    /// Objects between two flushes of the plain drive: as many as the store may acknowledge together, 1 for tiny
    /// ones.
    pub flush_every_objects: u64,
    /// Store ÷ plain drive with one flush.
    pub ratio_one_flush: f64,
    /// Store ÷ plain drive with regular flushes.
    pub ratio_group_flush: f64,
    /// Bytes read from the store a second, several objects at a time.
    pub store_read_bytes_per_second: f64,
    /// The same bytes read from the plain drive, as many at a time.
    pub device_read_bytes_per_second: f64,
    /// Store ÷ plain drive, for reads.
    pub ratio_read: f64,
    /// Bytes written to the store's drive for each byte of an object, compactions included.
    pub drive_bytes_per_object_byte: f64,
    /// Flushes of the store's drive for each object.
    pub flushes_per_object: f64,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct Round {
    store_seconds: f64,
    device_one_flush_seconds: f64,
    device_group_flush_seconds: f64,
    store_read_seconds: f64,
    device_read_seconds: f64,
}

/// Runs the benchmark in the store on `drive`, and on a drive file beside it.
///
/// # Errors
/// Among others, that there is no space for a round. Everything that was made is removed.
pub fn run(drive: Drive, options: &Options, watch: &dyn Watch) -> Result<Report> {
    let path = drive.path().to_owned();
    let (geometry, profile) = (drive.geometry().clone(), drive.profile_name().to_owned());
    let pace = Pace {
        bytes_per_second: options.bytes_per_second,
        ..Pace::default()
    };
    let change = Paced::new(pace);
    let device = Arc::new(Stats::new(Changed { drive, change }));
    let store = Store::mount(device.clone(), MountOptions::new(RocksDb))?;
    let measured = || -> Result<Report> {
        let largest = options.sizes.iter().map(|(_, total)| *total).max();
        check_space(&store, largest.unwrap_or(0))?;
        if let Some(there) = store.collection(COLLECTION)? {
            if !there.attributes.contains_key(MARK) {
                return Err(Error::Taken {
                    drive: path.clone(),
                    collection: COLLECTION,
                });
            }
            // This process has the drive locked: the benchmark that made the collection was killed.
            tracing::warn!("objects of a benchmark that was killed are removed");
            remove_collection(&store)?;
        }
        let raw = RawDrive::beside(&path, &geometry, &profile, pace)?;
        let bench = Bench {
            store: &store,
            device: &device,
            raw: &raw,
            options,
            path: &path,
            watch,
            clock: Runtime::system(),
        };
        let mark = Attributes::from([(MARK.to_owned(), Vec::new())]);
        let mut transaction = Transaction::new();
        transaction.create_collection(COLLECTION, mark);
        store.commit(transaction)?;
        watch.steps((u64::from(options.rounds) + 1) * 4 * options.sizes.len() as u64);
        let sizes = options.sizes.iter();
        let results: Result<Vec<_>> = sizes
            .map(|(size, total)| bench.size(*size, *total))
            .collect();
        // Removed after an error, too.
        let removed = remove_collection(&store);
        let results = results?;
        removed?;
        Ok(Report {
            concurrency: options.concurrency,
            rounds: options.rounds,
            results,
            peak_memory_bytes: memory::peak_bytes(),
        })
    };
    let report = measured();
    let stopped = store.unmount();
    let report = report?;
    stopped?;
    Ok(report)
}

/// Removes the benchmark's collection with all its objects.
fn remove_collection(store: &Store) -> Result<()> {
    loop {
        let page = store.list(COLLECTION, "", "", REMOVED_TOGETHER as usize)?;
        let mut transaction = Transaction::new();
        for object in &page {
            transaction.remove(COLLECTION, &object.name);
        }
        if page.is_empty() {
            transaction.remove_collection(COLLECTION);
        }
        store.commit(transaction)?;
        if page.is_empty() {
            return Ok(());
        }
    }
}

fn check_space(store: &Store, total: u64) -> Result<()> {
    let available = store.statfs().available_bytes;
    // Small objects take somewhat more than their bytes.
    if available / 5 * 4 >= total {
        return Ok(());
    }
    Err(Error::NoRoom {
        needed: total,
        available,
    })
}

struct Bench<'a> {
    store: &'a Store,
    device: &'a Stats<Changed<Drive, Paced>>,
    raw: &'a RawDrive,
    options: &'a Options,
    path: &'a Path,
    watch: &'a dyn Watch,
    clock: Runtime,
}

impl Bench<'_> {
    fn size(&self, size: u64, total: u64) -> Result<SizeResult> {
        let count = (total / size).max(1);
        let group = match size {
            TINY => 1,
            _ => u64::from(self.options.concurrency),
        };
        let piece = bytes_that_do_not_repeat(size);
        let mut rounds = Vec::new();
        let (mut bytes_written, mut flushes) = (0, 0);
        // Round 0 warms up: the host gives a new file its first blocks slowly.
        for round in 0..=self.options.rounds {
            self.watch
                .measures(format!("{} objects, round {round}", Bytes(size)));
            let one_flush = self.raw.write(&piece, count, None, self.watch)?;
            self.watch.step();
            let before = self.device.snapshot();
            let store = self.put_all(&piece, count)?;
            // Data that is in memory only has yet to be written: this belongs to the cost.
            self.store.flush()?;
            let done = self.device.snapshot().since(&before);
            self.watch.step();
            let group_flush = self.raw.write(&piece, count, Some(group), self.watch)?;
            self.watch.step();
            let read = self.get_all(size, count)?;
            let threads = self.options.concurrency;
            let device_read = self.raw.read(size, count, threads, self.watch)?;
            self.watch.step();
            self.remove_all(count)?;
            if round == 0 {
                continue;
            }
            bytes_written += done.bytes_written();
            flushes += done.flush.operations;
            rounds.push(Round {
                store_seconds: store.as_secs_f64(),
                device_one_flush_seconds: one_flush.as_secs_f64(),
                device_group_flush_seconds: group_flush.as_secs_f64(),
                store_read_seconds: read.as_secs_f64(),
                device_read_seconds: device_read.as_secs_f64(),
            });
        }
        let bytes = (count * size) as f64;
        let of = |value: fn(&Round, f64) -> f64| -> f64 {
            median(
                &rounds
                    .iter()
                    .map(|round| value(round, bytes))
                    .collect::<Vec<_>>(),
            )
        };
        Ok(SizeResult {
            object_bytes: size,
            objects_per_round: count,
            store_bytes_per_second: of(|r, bytes| bytes / r.store_seconds),
            store_objects_per_second: of(|r, bytes| bytes / r.store_seconds) / size as f64,
            device_one_flush_bytes_per_second: of(|r, bytes| bytes / r.device_one_flush_seconds),
            device_group_flush_bytes_per_second: of(|r, b| b / r.device_group_flush_seconds),
            flush_every_objects: group,
            ratio_one_flush: of(|r, _| r.device_one_flush_seconds / r.store_seconds),
            ratio_group_flush: of(|r, _| r.device_group_flush_seconds / r.store_seconds),
            store_read_bytes_per_second: of(|r, bytes| bytes / r.store_read_seconds),
            device_read_bytes_per_second: of(|r, bytes| bytes / r.device_read_seconds),
            ratio_read: of(|r, _| r.device_read_seconds / r.store_read_seconds),
            drive_bytes_per_object_byte: bytes_written as f64 / bytes / rounds.len() as f64,
            flushes_per_object: flushes as f64 / (count * rounds.len() as u64) as f64,
            rounds,
        })
    }

    /// Puts `count` objects, [`Options::concurrency`] at a time, each of which is durable before its thread begins
    /// the next. Returns the time taken.
    fn put_all(&self, piece: &[u8], count: u64) -> Result<Duration> {
        let start = self.clock.now();
        together(self.options.concurrency, count, self.watch, |number| {
            let mut writer = self.store.writer(Some(piece.len() as u64))?;
            writer.write(piece)?;
            let written = writer.finish()?;
            let mut transaction = Transaction::new();
            transaction.put(COLLECTION, name(number), written, Attributes::new());
            Ok(self.store.commit(transaction)?)
        })?;
        Ok(self.clock.now() - start)
    }

    /// Reads `count` objects in scattered order with an empty page cache, [`Options::concurrency`] at a time. Returns
    /// the time taken.
    fn get_all(&self, size: u64, count: u64) -> Result<Duration> {
        cold::forget(self.path)?;
        let start = self.clock.now();
        together(self.options.concurrency, count, self.watch, |number| {
            let number = cold::scattered(number, count);
            let reader = self.store.open(COLLECTION, name(number))?;
            let (mut piece, mut filled) = (vec![0; size as usize], 0);
            while filled < piece.len() {
                match reader.read_at(filled as u64, &mut piece[filled..])? {
                    0 => break,
                    n => filled += n,
                }
            }
            Ok(())
        })?;
        Ok(self.clock.now() - start)
    }

    fn remove_all(&self, count: u64) -> Result<()> {
        let mut number = 0;
        while number < count {
            let end = count.min(number + REMOVED_TOGETHER);
            let mut transaction = Transaction::new();
            for number in number..end {
                transaction.remove(COLLECTION, name(number));
            }
            self.store.commit(transaction)?;
            number = end;
        }
        self.store.seal_open_zones()?;
        while self.store.clean_one()? {}
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("object-{number:08}")
}

/// Pseudo-random bytes from a fixed seed (xorshift64*), which no layer below can compress or deduplicate.
fn bytes_that_do_not_repeat(length: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length as usize);
    while (bytes.len() as u64) < length {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_the_same_in_every_run() {
        let bytes = bytes_that_do_not_repeat(4099);
        assert_eq!(bytes.len(), 4099);
        assert_eq!(bytes, bytes_that_do_not_repeat(4099));
        assert_ne!(bytes[..1024], bytes[1024..2048]);
    }
}
