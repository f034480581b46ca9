//! A full drive.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use kv::{Batch, Durability, Error};
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
fn a_full_drive_is_said_nothing_is_lost_and_it_goes_on_when_opened_again() {
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
    // It stays stopped, and readable, until it is opened again.
    for _ in 0..3 {
        let error = kv
            .write(&incompressible(written), Durability::Synced)
            .unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    }
    assert_eq!(found(&kv), written);
    let image = killed(&drive);
    drop(kv);
    let kv = open(&fs);
    // The batch that failed may be in the log: as after a crash, it is there as a whole or not.
    let recovered = found(&kv);
    assert!(
        (written..=written + 1).contains(&recovered),
        "{written} {recovered}"
    );
    kv.write(&incompressible(written + 1), Durability::Synced)
        .unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let [whole, cut] = [&drive, &image].map(|drive| found(&open(&mount(drive))));
    assert_eq!(whole, recovered + 1);
    assert!((written..=written + 1).contains(&cut), "{written} {cut}");
}
