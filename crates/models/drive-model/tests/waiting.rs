//! What is served next of the requests that wait, many of which a volatile cache may hold.

use crate::common;
use crate::common::{end, random_writes};
use drive_model::{DiskDrive, Lba, Profile, Random, Request, Time, answers};

const MIB: u64 = 1 << 20;

/// Random writes a second, once the volatile cache is full.
fn writes_a_second(volatile_cache_bytes: u64) -> f64 {
    let mut profile = Profile::named("wd5000ys").unwrap();
    profile.electronics.volatile_cache_bytes = volatile_cache_bytes;
    let mut drive = profile.drive(1).unwrap();
    let blocks = drive.blocks();
    let mut random = Random::new(7);
    let fills = random_writes(&mut random, blocks, volatile_cache_bytes / 4096);
    let full = end(&answers(&mut drive, Time::START, 31, fills));
    let writes = random_writes(&mut random, blocks, 10_000);
    let count = writes.len() as f64;
    let done = answers(&mut drive, full, 31, writes);
    count / end(&done).since(full).seconds()
}

/// A drive that counted how many requests had come since the oldest one served a cache of more than 2,048
/// writes in the order in which they came: 77 a second with the disk's 8 MiB, 215 with 7.
#[test]
fn a_larger_volatile_cache_is_no_slower() {
    let small = writes_a_second(MIB);
    for mib in [7, 8, 64] {
        let rate = writes_a_second(mib * MIB);
        println!("{small:.1} writes a second with 1 MiB, {rate:.1} with {mib}");
        assert!(rate > small * 0.97, "{rate} with {mib} MiB, {small} with 1");
    }
}

/// Reads, one behind the other, that were answered while another request waited.
fn answered_meanwhile(drive: &mut DiskDrive, other: Request) -> usize {
    const PLACE: usize = 40;
    let near = |n: u64| Request::read(Lba(n * 8), 8);
    let all = (0..6_000).map(|n| if n == PLACE as u64 { other } else { near(n) });
    let done = answers(drive, Time::START, 8, all);
    let waited = (done[PLACE].submitted, done[PLACE].at);
    let between = |at: Time| waited.0 < at && at < waited.1;
    done.iter().filter(|done| between(done.at)).count()
}

/// What was read ahead is served before anything that needs the arm, but not for ever.
#[test]
fn every_layer_serves_what_is_far_away_in_the_end() {
    for name in [
        "seagate-cmr",
        "emulated-smr-1",
        "emulated-smr-3",
        "st5000as0011",
    ] {
        for write in [false, true] {
            let mut drive = common::drive(name);
            drive.set_look_ahead(true);
            let far = Lba(drive.blocks() / 2);
            let other = [Request::read(far, 1), Request::write(far, 1)][usize::from(write)];
            let before = answered_meanwhile(&mut drive, other);
            println!("{name}, write {write}: {before} reads answered before it");
            assert!(before < 2_200, "{name}, write {write}: {before}");
        }
    }
}
