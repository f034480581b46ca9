//! A full drive.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use kv::{Batch, Durability, Error};
use std::time::{Duration, Instant};
use support::*;

fn incompressible(number: u32) -> Batch {
    let mut state = u64::from(number) + 1;
    let value: Vec<u8> = (0..100_000)
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

#[test]
fn a_full_drive_is_said_nothing_is_lost_and_it_goes_on_once_there_is_space() {
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
        match kv.write(&incompressible(written), Durability::Synced) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 10_000, "a drive of 128 MiB never became full");
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    let found = |kv: &kv::Kv| kv.scan(b"k", Some(b"l")).map(Result::unwrap).count() as u32;
    assert_eq!(found(&kv), written);

    fs.delete("/filler").unwrap();
    fs.sync_metadata().unwrap();
    // RocksDB notices by itself, in its own time.
    let begin = Instant::now();
    while let Err(error) = kv.write(&incompressible(written), Durability::Synced) {
        assert!(begin.elapsed() < Duration::from_secs(30), "{error}");
        std::thread::yield_now();
    }
    let image = killed(&drive);
    kv.close().unwrap();
    fs.unmount().unwrap();
    for drive in [&drive, &image] {
        let fs = mount(drive);
        assert_eq!(found(&open(&fs)), written + 1);
    }
}
