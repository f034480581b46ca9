//! Space of deleted rows: tombstones are compacted when space is needed, and at once if the rows are listed.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use bluefs::BlueFs;
use kv::{Batch, Durability, Kv, Options};
use kv_rocksdb::RocksDb;
use std::time::{Duration, Instant};
use support::{Drive, formatted, key, mount, numbered, options};

const ROWS: u32 = 20_000;
const ROW_BYTES: usize = 1000;
const LARGE_ROWS: u32 = 50;
/// Timeout; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(600);

fn open(fs: &BlueFs, listed: &[u8]) -> Kv {
    let options = Options {
        listed: listed.to_vec(),
        ..options()
    };
    Kv::open(&RocksDb, fs, "/db", &options, None).unwrap()
}

fn filled(fs: &BlueFs, listed: &[u8]) -> Kv {
    let kv = open(fs, listed);
    for number in 0..ROWS {
        kv.write(&numbered(number, ROW_BYTES), Durability::Buffered)
            .unwrap();
    }
    kv.compact().unwrap();
    kv
}

/// Deletes every `step`-th row and waits for the compactions that RocksDB begins by itself. Returns the bytes written
/// to the drive.
fn delete(drive: &Drive, kv: &Kv, step: usize) -> u64 {
    let before = drive.snapshot();
    let mut batch = Batch::default();
    for number in (0..ROWS).step_by(step) {
        batch.delete(&key(number));
    }
    kv.write(&batch, Durability::Synced).unwrap();
    kv.flush().unwrap();
    let end = Instant::now() + PATIENCE;
    while kv.is_compacting() {
        assert!(Instant::now() < end, "never done");
        std::thread::yield_now();
    }
    drive.snapshot().since(&before).bytes_written()
}

#[test]
fn a_few_tombstones_have_little_written_again_until_space_is_wanted() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = filled(&fs, b"");
    let stored = kv.stored_bytes();
    let written = delete(&drive, &kv, 20);
    assert!(written < stored / 8, "{written} of {stored}");
    assert!(kv.stored_bytes() >= stored);
    // The database opened again still counts the tombstones.
    kv.close().unwrap();
    let kv = open(&fs, b"");
    assert!(kv.settle(PATIENCE).unwrap());
    let gone = u64::from(ROWS) / 20 * ROW_BYTES as u64;
    let left = kv.stored_bytes();
    assert!(left < stored - gone * 9 / 10, "{left} of {stored}");
}

/// Tombstones of large rows, beside many new small rows, so that tombstones are a small share of the entries.
#[test]
fn tombstones_of_large_rows_are_compacted_when_space_is_wanted() {
    let fs = mount(&formatted());
    let kv = open(&fs, b"");
    for number in 0..LARGE_ROWS {
        let large = numbered(number, 200 * ROW_BYTES);
        kv.write(&large, Durability::Buffered).unwrap();
    }
    kv.compact().unwrap();
    let stored = kv.stored_bytes();
    let mut batch = Batch::default();
    for number in 0..LARGE_ROWS {
        batch.delete(&key(number));
        for beside in 0..20 {
            batch.put(&key(ROWS + 20 * number + beside), b"small");
        }
    }
    kv.write(&batch, Durability::Synced).unwrap();
    assert!(kv.settle(PATIENCE).unwrap());
    let left = kv.stored_bytes();
    assert!(left < stored / 10, "{left} of {stored}");
}

#[test]
fn tombstones_of_listed_rows_are_compacted_at_once() {
    let drive = formatted();
    let kv = filled(&mount(&drive), b"k");
    let stored = kv.stored_bytes();
    delete(&drive, &kv, 2);
    // The compaction begins a moment after the flush that calls for it.
    let end = Instant::now() + PATIENCE;
    while kv.stored_bytes() >= stored * 3 / 4 {
        assert!(Instant::now() < end, "{} of {stored}", kv.stored_bytes());
        std::thread::yield_now();
    }
}
