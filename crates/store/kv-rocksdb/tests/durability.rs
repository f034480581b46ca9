//! The cost of a durable write on the drive: one write and one flush, shared by writers that wait at once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use kv::{Batch, Durability};
use std::sync::Barrier;
use support::*;

#[test]
fn a_synced_write_is_one_write_and_one_flush() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    for number in 0..10 {
        kv.write(&numbered(number, 400), Durability::Synced)
            .unwrap();
    }
    for number in 10..30 {
        let before = drive.snapshot();
        kv.write(&numbered(number, 400), Durability::Synced)
            .unwrap();
        let cost = drive.snapshot().since(&before);
        let writes = cost.write.operations + cost.append.operations;
        assert_eq!((writes, cost.flush.operations), (1, 1), "{cost:?}");
        assert_eq!(cost.bytes_written(), 4096, "{cost:?}");
    }
    let before = drive.snapshot();
    kv.write(&numbered(30, 400), Durability::Buffered).unwrap();
    assert_eq!(drive.snapshot().since(&before).flush.operations, 0);
}

#[test]
fn writers_that_wait_at_once_share_flushes() {
    const THREADS: u32 = 8;
    const EACH: u32 = 100;
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    kv.write(&numbered(0, 10), Durability::Synced).unwrap();
    let before = drive.snapshot();
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (kv, start) = (&kv, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..EACH {
                    let mut batch = Batch::default();
                    batch.put(
                        &key(thread * EACH + number),
                        &[(thread * EACH + number) as u8; 100],
                    );
                    kv.write(&batch, Durability::Synced).unwrap();
                }
            });
        }
    });
    let flushes = drive.snapshot().since(&before).flush.operations;
    assert!(
        flushes < u64::from(THREADS * EACH),
        "{flushes} flushes for {} writes",
        THREADS * EACH
    );
    let image = killed(&drive);
    drop(kv);
    let fs = mount(&image);
    assert_eq!(numbers(&open(&fs)), (0..THREADS * EACH).collect::<Vec<_>>());
}
