//! The model of the WD ZN540 against what was measured of it (yardsticks).
#![allow(clippy::unwrap_used)]

mod common;

use common::Random;
use drive_model::{
    Failure, FlashDrive, FlashProfile, Lba, Model, Operation, Refusal, Request, Span, Time,
};
use zone::{ZoneCondition, ZoneId};

const ZONE: u64 = 2048 << 8;
const CAPACITY: u32 = 1077 << 8;

fn drive() -> FlashDrive {
    FlashProfile::named("zns-zn540").unwrap().drive().unwrap()
}

const fn start(zone: u64) -> Lba {
    Lba(zone * ZONE)
}

fn on_zone(drive: &mut FlashDrive, operation: Operation, zone: u64, now: Time) -> (f64, Time) {
    let done = drive.submit(Request::on_zone(operation, start(zone)), now);
    done.result.unwrap();
    (done.latency().millis(), done.at)
}

/// Writes so many blocks into a zone, from its start, and then lets the drive come to rest.
fn write(drive: &mut FlashDrive, zone: u64, blocks: u32, now: Time) -> Time {
    let mut now = now;
    let mut next = 0;
    while next < blocks {
        let here = 32.min(blocks - next);
        let request = Request::write(start(zone).plus(next.into()), here);
        let done = drive.submit(request, now);
        done.result.unwrap();
        now = done.at;
        next += here;
    }
    now + Span::from_seconds(1.0)
}

fn compare(what: &str, found: f64, measured: f64, off: f64) {
    let by = found / measured - 1.0;
    println!(
        "{what:44} {found:9.3} measured {measured:9.3} {:+.1} %",
        by * 100.0
    );
    assert!(by.abs() < off, "{what}: {found}, measured {measured}");
}

/// What was written before, as blocks, and how long finishing and resetting took, in milliseconds.
const FRACTIONS: [(&str, u32, f64, f64); 7] = [
    ("nothing", 0, 0.013, 1.62),
    ("one page", 1, 907.4, 1.70),
    ("1/16", CAPACITY / 16, 848.0, 5.16),
    ("1/8", CAPACITY / 8, 792.0, 6.05),
    ("1/4", CAPACITY / 4, 681.0, 7.88),
    ("1/2", CAPACITY / 2, 457.0, 11.3),
    ("all but one page", CAPACITY - 1, 2.57, f64::NAN),
];

#[test]
fn finishing_takes_as_long_as_filling_up() {
    let mut drive = drive();
    let mut now = Time::START;
    for (zone, (what, blocks, measured, _)) in (0..).zip(FRACTIONS) {
        now = write(&mut drive, zone, blocks, now);
        let (took, at) = on_zone(&mut drive, Operation::FinishZone, zone, now);
        compare(&format!("finish, {what} written, ms"), took, measured, 0.05);
        now = at;
    }
}

#[test]
fn resetting_takes_as_long_as_what_is_forgotten() {
    let mut drive = drive();
    let mut now = Time::START;
    for (zone, (what, blocks, _, measured)) in (0..).zip(FRACTIONS).take(6) {
        now = write(&mut drive, zone, blocks, now);
        if blocks == 0 {
            now = on_zone(&mut drive, Operation::OpenZone, zone, now).1;
        }
        let (took, at) = on_zone(&mut drive, Operation::ResetZone, zone, now);
        compare(&format!("reset, {what} written, ms"), took, measured, 0.05);
        now = at;
    }
    now = write(&mut drive, 20, CAPACITY, now);
    let (took, _) = on_zone(&mut drive, Operation::ResetZone, 20, now);
    compare("reset, all written, ms", took, 15.8, 0.05);
    for (zone, sixteenths) in (30..).zip([0, 1, 2, 4, 8, 16]) {
        let blocks = CAPACITY / 16 * sixteenths;
        now = write(&mut drive, zone, blocks, now);
        if blocks < CAPACITY {
            now = on_zone(&mut drive, Operation::FinishZone, zone, now).1;
        }
        let (took, at) = on_zone(&mut drive, Operation::ResetZone, zone, now);
        let measured = 1.58 + 13.8 * f64::from(sixteenths) / 16.0;
        let what = format!("reset, finished behind {sixteenths}/16, ms");
        compare(&what, took, measured, 0.05);
        now = at;
    }
}

/// Requests with `depth` of them under way: how many a second.
fn rate(
    drive: &mut FlashDrive,
    depth: usize,
    count: u64,
    mut request: impl FnMut(u64) -> Request,
) -> f64 {
    let begin = Time::from_nanos(100_000_000_000);
    let mut next = 0;
    let mut enqueue = |drive: &mut FlashDrive, now| {
        if next < count {
            drive.enqueue(request(next), now);
            next += 1;
        }
    };
    for _ in 0..depth {
        enqueue(drive, begin);
    }
    let mut end = begin;
    while let Some(done) = drive.next_completion() {
        done.result.unwrap();
        end = done.at;
        enqueue(drive, end);
    }
    count as f64 / end.since(begin).seconds()
}

#[test]
fn writes_and_appends_come_as_fast_as_measured() {
    let small = |n| Request::write(Lba(n), 1);
    compare(
        "4 KiB writes, QD1, kIOPS",
        rate(&mut drive(), 1, 50_000, small) / 1e3,
        85.1,
        0.05,
    );
    let large = |n| Request::write(Lba(n * 32), 32);
    let mebibytes = rate(&mut drive(), 4, 8_000, large) / 8.0;
    compare(
        "128 KiB writes, QD4, one zone, MiB/s",
        mebibytes,
        1146.0,
        0.05,
    );
    let append = |_| Request::append(start(3), 1);
    for (depth, measured) in [(1, 65.7), (4, 132.0), (16, 132.0)] {
        let found = rate(&mut drive(), depth, 50_000, append) / 1e3;
        compare(
            &format!("4 KiB appends, QD{depth}, kIOPS"),
            found,
            measured,
            0.05,
        );
    }
}

/// The queue depths are ours; measured was the first point, and the data sheet has the last.
#[test]
fn random_reads_take_as_long_as_measured() {
    let mut drive = drive();
    for zone in 0..4 {
        write(&mut drive, zone, CAPACITY, Time::START);
    }
    let mut random = Random(11);
    let mut read = |_| {
        let zone = random.below(4);
        Request::read(Lba(zone * ZONE + random.below(CAPACITY.into())), 1)
    };
    let alone = rate(&mut drive.clone(), 1, 20_000, &mut read);
    compare("4 KiB random reads, QD1, us", 1e6 / alone, 74.0, 0.10);
    let mut before = alone;
    for depth in [2, 4, 8, 16, 32, 64, 128] {
        let mut drive = drive.clone();
        let found = rate(&mut drive, depth, 40_000, &mut read);
        println!("4 KiB random reads, QD{depth}: {:.1} kIOPS", found / 1e3);
        assert!(found > before && found < alone * depth as f64 * 1.01);
        before = found;
    }
    assert!(before < 490e3, "{before}");
}

#[test]
fn zones_are_as_strict_as_the_rule_book() {
    let mut drive = drive();
    let refused = |drive: &mut FlashDrive, request| match drive
        .submit(request, Time::START)
        .result
        .unwrap_err()
    {
        Failure::Refused(refusal) => refusal,
        other => panic!("{other}"),
    };
    let at = Time::START;
    let behind = refused(&mut drive, Request::write(Lba(1), 1));
    assert_eq!(behind, Refusal::NotAtWritePointer);
    let appended = drive.submit(Request::append(start(2), 3), at);
    assert_eq!(appended.lba, start(2));
    let appended = drive.submit(Request::append(start(2), 1), at);
    assert_eq!(appended.lba, start(2).plus(3));
    let too_long = refused(&mut drive, Request::append(start(2), 33));
    assert_eq!(too_long, Refusal::InvalidField);
    on_zone(&mut drive, Operation::FinishZone, 2, at);
    let full = refused(&mut drive, Request::append(start(2), 1));
    assert_eq!(full, Refusal::ZoneFull);
    let inside = Request::on_zone(Operation::ResetZone, start(2).plus(1));
    assert_eq!(refused(&mut drive, inside), Refusal::InvalidField);
    let closed = Request::on_zone(Operation::CloseZone, start(2));
    assert_eq!(refused(&mut drive, closed), Refusal::InvalidTransition);
    on_zone(&mut drive, Operation::ResetZone, 2, at);
    for zone in 0..14 {
        on_zone(&mut drive, Operation::OpenZone, zone, at);
    }
    let more = refused(&mut drive, Request::write(start(14), 1));
    assert_eq!(more, Refusal::TooManyActiveZones);
    let trim = drive.submit(Request::trim(start(0), 1), at);
    assert_eq!(trim.result, Err(Failure::Unsupported));
    let report = drive.zones().unwrap().report(ZoneId(2), 1)[0];
    assert_eq!(report.condition, ZoneCondition::ExplicitOpen);
    assert_eq!(report.write_pointer, 0);
}

/// Filling a zone up goes behind what others write, and they hardly notice.
#[test]
fn writes_do_not_wait_for_a_zone_that_is_being_finished() {
    let mut drive = drive();
    let now = write(&mut drive, 0, 1, Time::START);
    drive.enqueue(Request::on_zone(Operation::FinishZone, start(0)), now);
    let mut at = now;
    for n in 0..2_000 {
        at = drive
            .submit(Request::write(start(1).plus(n * 32), 32), at)
            .at;
    }
    let mebibytes = 2_000.0 / 8.0 / at.since(now).seconds();
    assert!(mebibytes > 900.0, "{mebibytes}");
}

#[test]
fn only_finishing_programs_more_than_was_written() {
    let mut drive = drive();
    let now = write(&mut drive, 0, CAPACITY, Time::START);
    let (_, now) = on_zone(&mut drive, Operation::ResetZone, 0, now);
    assert_eq!(drive.statistics().write_amplification(), 1.0);
    let now = write(&mut drive, 0, CAPACITY / 2, now);
    on_zone(&mut drive, Operation::FinishZone, 0, now);
    let flash = drive.statistics().flash;
    assert_eq!(flash.padded_blocks, u64::from(CAPACITY / 2));
    assert_eq!(flash.programmed_blocks, 2 * u64::from(CAPACITY));
    assert_eq!((flash.erases, flash.moved_blocks), (1, 0));
}

/// What a reset zone had in the write buffer is given back, and what a finished one had is programmed.
#[test]
fn the_write_buffer_is_given_back() {
    let mut drive = drive();
    let mut now = Time::START;
    // A program unit less a block each time: twice what the buffer has room for.
    for n in 0..400 {
        now = drive.submit(Request::write(start(1), 23), now).at;
        if n % 2 == 0 {
            now = on_zone(&mut drive, Operation::FinishZone, 1, now).1;
        }
        now = on_zone(&mut drive, Operation::ResetZone, 1, now).1;
    }
    let begin = now;
    for n in 0..8_000 {
        drive.enqueue(Request::write(Lba(n * 32), 32), begin);
    }
    let end = std::iter::from_fn(|| drive.next_completion()).last();
    let mebibytes = 1_000.0 / end.unwrap().at.since(begin).seconds();
    compare("128 KiB writes afterwards, MiB/s", mebibytes, 1146.0, 0.05);
}

#[test]
fn a_power_cut_takes_nothing_that_was_answered() {
    let mut drive = drive();
    let answered = drive.submit(Request::append(start(3), 5), Time::START);
    let waiting = drive.enqueue(Request::append(start(3), 5), answered.at);
    let lost = drive.power_cut(answered.at);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].tag, waiting);
    assert_eq!(lost[0].result, Err(Failure::PowerLost));
    assert_eq!(drive.next_completion(), None);
    let report = drive.zones().unwrap().report(ZoneId(3), 1)[0];
    assert_eq!(report.condition, ZoneCondition::Closed);
    assert!(report.write_pointer >= 5 * 4096);
}
