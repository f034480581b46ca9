//! A full drive: writes are refused without loss, and succeed again when there is space.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use kv::{Batch, Durability, Error};
use std::time::{Duration, Instant};
use support::*;

fn incompressible(number: u32, size: usize) -> Batch {
    let mut state = u64::from(number) + 1;
    let value: Vec<u8> = (0..size)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let mut batch = Batch::default();
    batch.put(&key(number), &value);
    batch
}

/// Batches of two sizes: memtables that hold many batches, and some that are empty when the log fails. RocksDB, left to
/// recover by itself, used to continue with the log that had failed, and its assertion ended the process.
#[test]
fn a_full_drive_is_said_loses_nothing_and_goes_on_when_there_is_space() {
    for size in [100_000, 700_000] {
        fill(size);
    }
}

fn fill(size: usize) {
    let drive = formatted();
    let fs = mount(&drive);
    let mut filler = fs.create("/filler").unwrap();
    for _ in 0..64 {
        filler.append(&vec![1; 1 << 20]).unwrap();
    }
    filler.sync().unwrap();
    filler.close().unwrap();
    drop(filler);
    let kv = open(&fs);
    let mut written = 0;
    let error = loop {
        match kv.write(&incompressible(written, size), Durability::Synced) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 10_000, "a drive of 128 MiB never became full");
    };
    let mut is_known = is_refused(&error);
    let found = |kv: &kv::Kv| kv.scan(b"k", Some(b"l")).map(Result::unwrap).count() as u32;
    assert_eq!(found(&kv), written);

    fs.delete("/filler").unwrap();
    fs.sync_metadata().unwrap();
    // If a flush found no space, RocksDB continues by itself, which it tries once a second. If the log found none, it
    // stays stopped until it is opened again.
    let batch = incompressible(written, size);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(2500) {
        match kv.write(&batch, Durability::Synced) {
            Ok(()) => {
                written += 1;
                break;
            }
            Err(error) => {
                is_known &= is_refused(&error);
                std::thread::yield_now();
            }
        }
    }
    assert_eq!(found(&kv), written);
    let image = killed(&drive);
    drop(kv);
    let kv = open(&fs);
    // A batch for which the log had no space may be in it: as after a crash, it is there as a whole or not.
    let recovered = found(&kv);
    let most = written + u32::from(!is_known);
    assert!(
        (written..=most).contains(&recovered),
        "{written} {recovered}"
    );
    kv.write(&incompressible(written + 1, size), Durability::Synced)
        .unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let [whole, cut] = [&drive, &image].map(|drive| found(&open(&mount(drive))));
    assert_eq!(whole, recovered + 1);
    assert!((written..=most).contains(&cut), "{written} {cut}");
}

/// Whether a batch was certainly not written: RocksDB was busy, for a memtable could not be flushed. After `NoSpace`,
/// the batch may be in the log.
fn is_refused(error: &Error) -> bool {
    assert!(
        matches!(error, Error::NoSpace { .. } | Error::Busy { .. }),
        "{error}"
    );
    matches!(error, Error::Busy { .. })
}
