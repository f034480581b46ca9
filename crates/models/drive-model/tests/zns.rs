//! The zones of the model of the WD ZN540; how fast they are is an experiment.

use drive_model::workload::{Order, Requests, Workload};
use drive_model::{
    Failure, FlashDrive, FlashProfile, Lba, Model, Refusal, Request, RequestKind, Span, Time,
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

fn on_zone(drive: &mut FlashDrive, operation: RequestKind, zone: u64, now: Time) -> (f64, Time) {
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
    on_zone(&mut drive, RequestKind::FinishZone, 2, at);
    let full = refused(&mut drive, Request::append(start(2), 1));
    assert_eq!(full, Refusal::ZoneFull);
    let inside = Request::on_zone(RequestKind::ResetZone, start(2).plus(1));
    assert_eq!(refused(&mut drive, inside), Refusal::InvalidField);
    let closed = Request::on_zone(RequestKind::CloseZone, start(2));
    assert_eq!(refused(&mut drive, closed), Refusal::InvalidTransition);
    on_zone(&mut drive, RequestKind::ResetZone, 2, at);
    for zone in 0..14 {
        on_zone(&mut drive, RequestKind::OpenZone, zone, at);
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
    drive.enqueue(Request::on_zone(RequestKind::FinishZone, start(0)), now);
    let mut at = now;
    for n in 0..2_000 {
        at = drive
            .submit(Request::write(start(1).plus(n * 32), 32), at)
            .at;
    }
    let mebibytes = 2_000.0 / 8.0 / at.since(now).seconds();
    assert!(mebibytes > 900.0, "{mebibytes}");
}

/// Of two zones that are finished at once, the second one's block is programmed behind all of the first zone. Until
/// then it takes its own room in the write buffer, and no other.
#[test]
fn a_block_that_is_programmed_late_holds_back_no_others() {
    let mut drive = drive();
    let now = write(&mut drive, 0, 1, Time::START);
    let now = write(&mut drive, 1, 1, now);
    for zone in [0, 1] {
        drive.enqueue(Request::on_zone(RequestKind::FinishZone, start(zone)), now);
    }
    let mut at = now;
    // Twice what the buffer has room for.
    for n in 0..256 {
        let request = Request::write(start(2).plus(n * 32), 32);
        at = drive.submit(request, at).at;
    }
    let took = at.since(now).millis();
    assert!(took < 100.0, "{took}");
}

#[test]
fn only_finishing_programs_more_than_was_written() {
    let mut drive = drive();
    let now = write(&mut drive, 0, CAPACITY, Time::START);
    let (_, now) = on_zone(&mut drive, RequestKind::ResetZone, 0, now);
    assert_eq!(drive.statistics().write_amplification(), 1.0);
    let now = write(&mut drive, 0, CAPACITY / 2, now);
    on_zone(&mut drive, RequestKind::FinishZone, 0, now);
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
            now = on_zone(&mut drive, RequestKind::FinishZone, 1, now).1;
        }
        now = on_zone(&mut drive, RequestKind::ResetZone, 1, now).1;
    }
    let begin = now;
    for n in 0..8_000 {
        drive.enqueue(Request::write(Lba(n * 32), 32), begin);
    }
    let end = std::iter::from_fn(|| drive.next_completion()).last();
    let mebibytes = 1_000.0 / end.unwrap().at.since(begin).seconds();
    // As many as without, within 5 %.
    assert!((mebibytes / 1146.0 - 1.0).abs() < 0.05, "{mebibytes}");
}

/// A finish pads what was in the write buffer to a program unit: from then on, it is read from the flash.
#[test]
fn what_a_finished_zone_had_in_the_buffer_is_on_flash() {
    let mut drive = drive();
    let senses = |drive: &mut FlashDrive, now| {
        let before = drive.array().counts().senses;
        let done = drive.submit(Request::read(start(1), 1), now);
        assert_eq!(done.result, Ok(()));
        drive.array().counts().senses - before
    };
    let now = drive.submit(Request::write(start(1), 1), Time::START).at;
    assert_eq!(senses(&mut drive, now), 0);
    let (_, now) = on_zone(&mut drive, RequestKind::FinishZone, 1, now);
    assert_eq!(senses(&mut drive, now), 1);
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

/// 1,077 MiB are no multiple of 2 MiB. Zones that stay open would be too many after 14.
#[test]
fn a_workload_fills_each_zone_before_it_writes_to_the_next() {
    let mut drive = drive();
    let asked = Workload {
        order: Order::Write,
        request_bytes: 2 << 20,
        size_bytes: None,
        seed: 1,
    };
    let requests: Vec<Request> = Requests::new(&asked, &drive, Time::START)
        .unwrap()
        .take_while(|request| request.lba < start(2))
        .collect();
    assert_eq!(requests.len(), 2 * 539);
    let blocks: u32 = requests.iter().map(|request| request.blocks).sum();
    assert_eq!(blocks, 2 * CAPACITY);
    let mut now = Time::START;
    for request in requests {
        let done = drive.submit(request, now);
        assert_eq!(done.result, Ok(()));
        now = done.at;
    }
    let report = drive.zones().unwrap().report(ZoneId(0), 2);
    assert!(
        report
            .iter()
            .all(|zone| zone.condition == ZoneCondition::Full)
    );
    // A size ends with whole requests.
    let sized = Workload {
        size_bytes: Some(5 << 20),
        ..asked
    };
    let sized = Requests::new(&sized, &self::drive(), Time::START).unwrap();
    assert_eq!(
        sized.map(|request| request.blocks).collect::<Vec<_>>(),
        [512; 2]
    );
}
