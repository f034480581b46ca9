//! Sequential reads with several requests under way.

use crate::common::end;
use drive_model::profile::names;
use drive_model::{
    DiskDrive, Failure, Lba, Profile, Random, Refusal, Request, Span, Time, answers,
};

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

/// Less than the fourth part of a turn of any of these disks.
const AT_ONCE: Span = Span::from_nanos(2_000_000);

/// What was read ahead is gone after a power cut, and the interface is idle.
#[test]
fn a_power_cut_empties_the_buffer() {
    let mut drive = disk("seagate-cmr");
    let read = Request::read(Lba(0), 64);
    let now = drive.submit(read, Time::START).at;
    let again = drive.submit(read, now);
    assert!(again.latency() < AT_ONCE, "{}", again.latency());
    drive.power_cut(again.at);
    let again = drive.submit(read, again.at);
    assert!(again.latency() > AT_ONCE, "{}", again.latency());
    // A transfer of tens of milliseconds ends with the power.
    drive.enqueue(Request::write(Lba(0), 4_096), again.at);
    drive.power_cut(again.at);
    let write = drive.submit(Request::write(Lba(0), 1), again.at);
    assert!(write.latency() < AT_ONCE, "{}", write.latency());
}

/// The buffer holds no more than its size: the oldest blocks leave it, whether the host read them or the drive.
#[test]
fn the_oldest_blocks_leave_the_buffer() {
    let first = Request::read(Lba(0), 1);
    let mut drive = disk("wd5000ys");
    let now = drive.submit(Request::read(Lba(0), 8_192), Time::START).at;
    let again = drive.submit(first, now);
    assert!(again.latency() > AT_ONCE, "{}", again.latency());
    let mut drive = disk("wd5000ys");
    let now = drive.submit(first, Time::START).at + Span::from_seconds(10.0);
    let now = drive.submit(Request::write(Lba(1 << 20), 1), now).at;
    let now = drive.submit(Request::flush(), now).at;
    let last = drive.submit(Request::read(Lba(100), 1), now);
    assert!(last.latency() < AT_ONCE, "{}", last.latency());
    let again = drive.submit(first, last.at);
    assert!(again.latency() > AT_ONCE, "{}", again.latency());
}

/// A command that goes on with a drive sets its switches.
#[test]
fn a_switch_that_stays_where_it_is_empties_no_buffer() {
    let mut drive = disk("seagate-cmr");
    let read = Request::read(Lba(0), 64);
    let now = drive.submit(read, Time::START).at;
    drive.set_look_ahead(true);
    let again = drive.submit(read, now);
    assert!(again.latency() < AT_ONCE, "{}", again.latency());
    drive.set_look_ahead(false);
    drive.set_look_ahead(true);
    let again = drive.submit(read, again.at);
    assert!(again.latency() > AT_ONCE, "{}", again.latency());
}

#[test]
fn requests_for_no_blocks_are_refused() {
    for name in ["seagate-cmr", "st5000as0011"] {
        let mut drive = disk(name);
        drive.set_volatile_cache(false);
        let mut now = Time::START;
        for request in [Request::write(Lba(7), 0), Request::read(Lba(7), 0)] {
            let done = drive.submit(request, now);
            assert_eq!(done.result, Err(Failure::Refused(Refusal::InvalidField)));
            now = done.at;
        }
        let done = drive.submit(Request::write(Lba(7), 1), now);
        assert_eq!(done.result, Ok(()), "{name}");
    }
}
