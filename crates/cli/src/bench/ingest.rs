//! `bench ingest`: objects through the store, and the same bytes straight to a device, in rounds
//! that alternate.
//!
//! An object counts when it is durable. Between rounds, outside of the measured time, the objects
//! are removed and their zones cleaned, so that every round finds the drive as the first one did.

use super::raw::RawDrive;
use super::{median, memory};
use crate::args::BenchIngest;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size::human;
use device::stats::{Stats, StatsSnapshot};
use device::{Drive, ZonedDevice};
use kv_rocksdb::RocksDb;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Attributes, MountOptions, Store, Transaction};

const LARGE: u64 = 4 << 20;
const SMALL: u64 = 64 << 10;
const COLLECTION: &str = "zonestore-bench";
/// An attribute that only the benchmark's own collection has.
const MARK: &str = "zonestore-bench";
const REMOVED_TOGETHER: u64 = 500;

/// All that is printed.
#[derive(Serialize)]
struct Report {
    concurrency: u32,
    rounds: u32,
    results: Vec<SizeResult>,
    peak_memory_bytes: Option<u64>,
}

/// What was measured for one size of object; rates are medians over the rounds.
#[derive(Serialize)]
struct SizeResult {
    object_bytes: u64,
    objects_per_round: u64,
    store_bytes_per_second: f64,
    store_objects_per_second: f64,
    device_one_flush_bytes_per_second: f64,
    device_group_flush_bytes_per_second: f64,
    flush_every_objects: u64,
    ratio_one_flush: f64,
    ratio_group_flush: f64,
    drive_bytes_per_object_byte: f64,
    flushes_per_object: f64,
    rounds: Vec<Round>,
}

#[derive(Serialize)]
struct Round {
    store_seconds: f64,
    device_one_flush_seconds: f64,
    device_group_flush_seconds: f64,
}

/// Runs the benchmark.
pub fn run(arguments: &BenchIngest, interrupt: &Interrupt, out: &mut Output) -> CommandResult {
    let sizes = sizes(arguments)?;
    let drive = drive_file::open(&arguments.drive)?;
    let (geometry, profile) = (drive.geometry().clone(), drive.profile_name().to_owned());
    let device = Arc::new(Stats::new(drive));
    let store = Store::mount(device.clone(), MountOptions::new(RocksDb))?;
    let measured = || -> CommandResult<Report> {
        check_space(
            &store,
            sizes.iter().map(|(_, total)| *total).max().unwrap_or(0),
        )?;
        if let Some(there) = store.collection(COLLECTION)? {
            if there.attributes.contains_key(MARK) {
                // Nobody else has this drive open, so whoever made it is dead.
                tracing::warn!("objects of a benchmark that was killed are removed");
                remove_collection(&store)?;
            } else {
                return Err(CommandError::new(
                    Exit::Refused,
                    format_args!("the store holds a collection {COLLECTION:?} already"),
                )
                .hint(format_args!(
                    "zonestore store rm -r --yes {} {COLLECTION}",
                    arguments.drive.display()
                )));
            }
        }
        let raw = RawDrive::beside(&arguments.drive, &geometry, &profile)?;
        let bench = Bench {
            store: &store,
            device: &device,
            raw: &raw,
            arguments,
            interrupt,
        };
        let mark = Attributes::from([(MARK.to_owned(), Vec::new())]);
        let mut transaction = Transaction::new();
        transaction.create_collection(COLLECTION, mark);
        store.commit(transaction)?;
        let progress = Progress::steps(
            "measuring",
            Some((u64::from(arguments.rounds) + 1) * 3 * sizes.len() as u64),
        );
        let results: CommandResult<Vec<_>> = sizes
            .iter()
            .map(|(size, total)| bench.size(*size, *total, &progress))
            .collect();
        drop(progress);
        // Whether it went well or not.
        let removed = remove_collection(&store);
        let results = results?;
        removed?;
        Ok(Report {
            concurrency: arguments.concurrency,
            rounds: arguments.rounds,
            results,
            peak_memory_bytes: memory::peak_bytes(),
        })
    };
    let report = measured();
    let stopped = store.unmount();
    let report = report?;
    stopped?;
    print(&report, out)
}

/// What is measured: sizes of objects, and how many bytes a round.
fn sizes(arguments: &BenchIngest) -> CommandResult<Vec<(u64, u64)>> {
    let mut sizes = Vec::new();
    for (option, size, total) in [
        ("--large-total", LARGE, arguments.large_total.0),
        ("--small-total", SMALL, arguments.small_total.0),
    ] {
        match total {
            0 => {}
            total if total < size => {
                return Err(CommandError::new(
                    Exit::Usage,
                    format_args!(
                        "{option} {}: less than one object of {}",
                        human(total),
                        human(size)
                    ),
                )
                .hint("0 leaves objects of this size out"));
            }
            total => sizes.push((size, total)),
        }
    }
    if sizes.is_empty() {
        return Err(CommandError::new(
            Exit::Usage,
            "--large-total and --small-total are both 0: there is nothing to measure",
        ));
    }
    Ok(sizes)
}

/// Removes the benchmark's collection with all its objects.
fn remove_collection(store: &Store) -> CommandResult {
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

fn check_space(store: &Store, total: u64) -> CommandResult {
    let available = store.statfs().available_bytes;
    // Small objects take somewhat more than their bytes.
    if available / 5 * 4 >= total {
        return Ok(());
    }
    Err(CommandError::new(
        Exit::NoSpace,
        format_args!(
            "a round writes {}, the store can take {}",
            human(total),
            human(available)
        ),
    )
    .hint("take a larger drive, or fewer bytes: --large-total 512MiB --small-total 128MiB"))
}

struct Bench<'a> {
    store: &'a Store,
    device: &'a Stats<Drive>,
    raw: &'a RawDrive,
    arguments: &'a BenchIngest,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    fn size(&self, size: u64, total: u64, progress: &Progress) -> CommandResult<SizeResult> {
        let count = (total / size).max(1);
        let group = u64::from(self.arguments.concurrency);
        let piece = bytes_that_do_not_repeat(size);
        let mut rounds = Vec::new();
        let mut done = StatsSnapshot::default();
        // Round 0 warms up: the host gives a new file its first blocks slowly.
        for round in 0..=self.arguments.rounds {
            progress.message(format!("{} objects, round {round}", human(size)));
            let one_flush = self.raw.write(&piece, count, None, self.interrupt)?;
            progress.advance(1);
            let before = self.device.snapshot();
            let store = self.put_all(&piece, count)?;
            done = self.device.snapshot().since(&before);
            progress.advance(1);
            let group_flush = self.raw.write(&piece, count, Some(group), self.interrupt)?;
            progress.advance(1);
            self.remove_all(count)?;
            if round == 0 {
                continue;
            }
            rounds.push(Round {
                store_seconds: store.as_secs_f64(),
                device_one_flush_seconds: one_flush.as_secs_f64(),
                device_group_flush_seconds: group_flush.as_secs_f64(),
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
            drive_bytes_per_object_byte: done.bytes_written() as f64 / bytes,
            flushes_per_object: done.flush.operations as f64 / count as f64,
            rounds,
        })
    }

    /// Puts `count` objects, so many at a time as asked for, each durable before the next one of
    /// its thread.
    fn put_all(&self, piece: &[u8], count: u64) -> CommandResult<Duration> {
        let next = AtomicU64::new(0);
        let put = || -> CommandResult {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                self.interrupt.check()?;
                let mut writer = self.store.writer(Some(piece.len() as u64))?;
                writer.write(piece)?;
                let written = writer.finish()?;
                let mut transaction = Transaction::new();
                transaction.put(COLLECTION, &name(number), written, Attributes::new());
                self.store.commit(transaction)?;
            }
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.arguments.concurrency)
                .map(|_| scope.spawn(put))
                .collect();
            for thread in threads {
                match thread.join() {
                    Ok(result) => result?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(start.elapsed())
        })
    }

    fn remove_all(&self, count: u64) -> CommandResult {
        let mut number = 0;
        while number < count {
            let end = count.min(number + REMOVED_TOGETHER);
            let mut transaction = Transaction::new();
            for number in number..end {
                transaction.remove(COLLECTION, &name(number));
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

/// Bytes from a fixed seed (xorshift64*) that no layer below could compress or recognise.
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

fn print(report: &Report, out: &mut Output) -> CommandResult {
    let rate = |bytes: f64| format!("{:.0} MiB/s", bytes / f64::from(1 << 20));
    let group = format!("flush every {}", report.concurrency);
    let head = ["objects", "store", "", "device, one flush", "ratio"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows[0].extend([format!("device, {group}"), "ratio".to_owned()]);
    rows[0].extend(["drive bytes/byte", "flushes/object"].map(str::to_owned));
    for result in &report.results {
        rows.push(vec![
            human(result.object_bytes),
            rate(result.store_bytes_per_second),
            format!("{:.0}/s", result.store_objects_per_second),
            rate(result.device_one_flush_bytes_per_second),
            format!("{:.2}", result.ratio_one_flush),
            rate(result.device_group_flush_bytes_per_second),
            format!("{:.2}", result.ratio_group_flush),
            format!("{:.3}", result.drive_bytes_per_object_byte),
            format!("{:.2}", result.flushes_per_object),
        ]);
    }
    out.table(&[0], &rows)?;
    let peak = report
        .peak_memory_bytes
        .map_or_else(|| "unknown".to_owned(), human);
    out.line(format_args!(
        "{} objects at a time, each durable before it counts; medians of {} rounds; \
         peak memory {peak}",
        report.concurrency, report.rounds
    ))?;
    out.value(report)
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
