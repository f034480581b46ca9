//! Sequential reads with several requests under way.

use crate::common::end;
use drive_model::profile::names;
use drive_model::{DiskDrive, Lba, Profile, Random, Request, Time, answers};

fn disk(name: &str) -> DiskDrive {
    Profile::named(name).unwrap().drive(1).unwrap()
}

const READS: u64 = 2_000;
const BLOCKS: u32 = 32;

/// Seconds of reads of 128 KiB from `first` on.
fn seconds(name: &str, first: u64, depth: usize) -> f64 {
    let mut drive = disk(name);
    let reads = (0..READS).map(|n| Request::read(Lba(first + n * u64::from(BLOCKS)), BLOCKS));
    let done = answers(&mut drive, Time::START, depth, reads);
    end(&done).since(Time::START).seconds()
}

/// What was read ahead, or is about to be, is served before anything that needs the arm: a queue must
/// not make a sequential reader slower.
#[test]
fn a_queue_makes_sequential_reads_no_slower() {
    for name in names() {
        // Nothing can be read of a new one.
        if name == "caveat-scriptor" {
            continue;
        }
        for first in [0, disk(name).blocks() / 3] {
            let mib = READS as f64 / 8.0;
            let alone = seconds(name, first, 1);
            for depth in [2, 4, 32] {
                let queued = seconds(name, first, depth);
                let rates = (mib / alone, mib / queued);
                println!("{name} at {first}: {rates:.1?} MiB/s alone and with {depth}");
                // Where it begins, the second request may lie nearer than the first: that costs a turn.
                assert!(queued < alone + 0.02, "{name}: {rates:?} with {depth}");
            }
        }
    }
}

/// Others are served all the same.
#[test]
fn a_sequential_reader_starves_nobody() {
    let mut drive = disk("seagate-cmr");
    let blocks = drive.blocks();
    let mut random = Random::new(5);
    let reads = (0..20_000u64).map(|n| match n % 50 {
        0 => Request::read(Lba(random.below(blocks - 1)), 1),
        _ => Request::read(Lba(n * u64::from(BLOCKS)), BLOCKS),
    });
    let done = answers(&mut drive, Time::START, 8, reads);
    let longest = done.iter().map(|done| done.latency()).max().unwrap();
    println!("longest {longest}");
    assert!(longest.seconds() < 5.0, "{longest}");
}
