//! Host-managed and host-aware disks.
#![allow(clippy::unwrap_used)]

mod common;

use drive_model::{Failure, Lba, Model, Operation, Profile, Refusal, Request, Time, ZonedDisk};
use zone::{ZoneCondition, ZoneId};

const ZONE: u64 = 256 << 8;

fn disk(name: &str) -> ZonedDisk {
    let mut disk = Profile::named(name).unwrap().zoned(1).unwrap();
    disk.set_volatile_cache(false);
    disk
}

fn start(zone: u64) -> Lba {
    Lba(zone * ZONE)
}

/// Requests with `depth` of them under way: MiB a second.
fn rate(
    depth: usize,
    disk: &mut ZonedDisk,
    begin: Time,
    requests: impl Iterator<Item = Request>,
) -> (f64, Time) {
    let mut requests = requests.peekable();
    let mut blocks = 0;
    let mut enqueue = |disk: &mut ZonedDisk, now| {
        if let Some(request) = requests.next() {
            blocks += u64::from(request.blocks);
            disk.enqueue(request, now);
        }
    };
    (0..depth).for_each(|_| enqueue(disk, begin));
    let mut end = begin;
    while let Some(done) = disk.next_completion() {
        assert_eq!(done.result, Ok(()));
        end = done.at;
        enqueue(disk, end);
    }
    (blocks as f64 / 256.0 / end.since(begin).seconds(), end)
}

fn pieces(from: Lba, zones: u64) -> impl Iterator<Item = (Lba, u32)> {
    (0..zones * ZONE / 256).map(move |n| (from.plus(n * 256), 256))
}

/// Table 5.1, of the first 125 GiB behind the conventional zones: a part of it is as good as all.
#[test]
fn the_outside_runs_at_the_printed_rate() {
    let mut disk = disk("hm-smr-14tb");
    let first = start(522);
    let (written, now) = rate(
        4,
        &mut disk,
        Time::START,
        pieces(first, 40).map(|(lba, blocks)| Request::write(lba, blocks)),
    );
    let (read, now) = rate(
        1,
        &mut disk,
        now,
        pieces(first, 40).map(|(lba, blocks)| Request::read(lba, blocks)),
    );
    let last = start(52_156 - 40);
    let (inside, now) = rate(
        4,
        &mut disk,
        now,
        pieces(last, 40).map(|(lba, blocks)| Request::write(lba, blocks)),
    );
    let (conventional, _) = rate(
        4,
        &mut disk,
        now,
        pieces(start(0), 40).map(|(lba, blocks)| Request::write(lba, blocks)),
    );
    println!(
        "MiB/s: {written:.1} written, {read:.1} read outside (220), {inside:.1} inside, {conventional:.1} conventional"
    );
    assert!((written / 220.0 - 1.0).abs() < 0.02, "{written}");
    assert!((read / 220.0 - 1.0).abs() < 0.02, "{read}");
    assert!((inside / written - 0.5).abs() < 0.02, "{inside}");
    // Half of the blocks, not half of the way: between the mean of both ends and the outer one.
    assert!(
        conventional > 0.7 * written && conventional < 0.9 * written,
        "{conventional}"
    );
}

#[test]
fn conventional_zones_lie_in_the_middle() {
    let mut disk = disk("hm-smr-14tb");
    let cylinder = |disk: &mut ZonedDisk, lba| {
        disk.submit(Request::write(lba, 1), Time::from_nanos(lba.0))
            .result
            .unwrap();
        f64::from(disk.drive().arm().cylinder) / 552_500.0
    };
    let conventional = cylinder(&mut disk, Lba(5));
    let outer = cylinder(&mut disk, start(522));
    let inner = cylinder(&mut disk, start(52_155));
    assert!((0.35..0.55).contains(&conventional), "{conventional}");
    assert!(outer < 0.001, "{outer}");
    assert!(inner > 0.99, "{inner}");
}

#[test]
fn a_host_managed_disk_is_strict() {
    let mut disk = disk("hm-smr-14tb");
    let mut fails = |request, now| disk.submit(request, Time::from_nanos(now)).result;
    let refused = |refusal| Err(Failure::Refused(refusal));
    let zone = start(600);
    assert_eq!(
        fails(Request::write(zone.plus(1), 1), 0),
        refused(Refusal::NotAtWritePointer)
    );
    assert_eq!(fails(Request::write(zone, 8), 0), Ok(()));
    assert_eq!(
        fails(Request::write(zone, 8), 0),
        refused(Refusal::NotAtWritePointer)
    );
    assert_eq!(fails(Request::write(Lba(77), 8), 0), Ok(()));
    assert_eq!(
        fails(Request::append(zone, 1), 0),
        refused(Refusal::InvalidField)
    );
    assert_eq!(fails(Request::trim(zone, 1), 0), Err(Failure::Unsupported));
    let behind = Request::read(start(52_156), 1);
    assert_eq!(fails(behind, 0), Err(Failure::OutOfRange));
    assert_eq!(
        fails(Request::on_zone(Operation::FinishZone, zone), 0),
        Ok(())
    );
    assert_eq!(
        fails(Request::write(zone.plus(8), 1), 0),
        refused(Refusal::ZoneFull)
    );
    assert_eq!(
        fails(Request::on_zone(Operation::ResetZone, zone), 0),
        Ok(())
    );
    assert_eq!(fails(Request::write(zone, 1), 0), Ok(()));
    for open in 0..127 {
        assert_eq!(
            fails(Request::on_zone(Operation::OpenZone, start(1000 + open)), 0),
            Ok(())
        );
    }
    // The one that was opened by a write is closed for the last one.
    assert_eq!(
        fails(Request::on_zone(Operation::OpenZone, start(2000)), 0),
        Ok(())
    );
    let more = Request::on_zone(Operation::OpenZone, start(2001));
    assert_eq!(fails(more, 0), refused(Refusal::TooManyOpenZones));
    let report = disk.zones().unwrap().report(ZoneId(600), 1)[0];
    assert_eq!(
        (report.condition, report.write_pointer),
        (ZoneCondition::Closed, 4096)
    );
}

/// Writes at write pointers go to their bands; others are allowed, and go through the cache.
#[test]
fn a_host_aware_disk_takes_all_writes_and_likes_some() {
    let mut disk = disk("ha-smr-8tb");
    disk.set_volatile_cache(true);
    let zone = start(1_000);
    let stream = pieces(zone, 4).map(|(lba, blocks)| Request::write(lba, blocks));
    let (streamed, now) = rate(4, &mut disk, Time::START, stream);
    let now = disk.submit(Request::flush(), now).at;
    let report = disk.zones().unwrap().report(ZoneId(1_000), 5);
    let conditions: Vec<ZoneCondition> = report.iter().map(|zone| zone.condition).collect();
    assert_eq!(conditions[..4], [ZoneCondition::Full; 4]);
    assert_eq!(conditions[4], ZoneCondition::Empty);
    assert!(streamed > 100.0, "{streamed}");
    disk.set_volatile_cache(false);
    let over = disk.submit(Request::write(zone.plus(777), 1), now);
    assert_eq!(over.result, Ok(()));
    // An entry of the journal, as on the drive-managed disk.
    assert!(over.latency().millis() > 10.0, "{}", over.latency());
}

/// The zones of a host-aware disk are advice: requests may cross their boundaries.
#[test]
fn a_host_aware_disk_takes_requests_over_boundaries() {
    let mut aware = disk("ha-smr-8tb");
    let over = start(1_001).0 - 5;
    for zones in [1, 2] {
        let done = aware.submit(
            Request::write(Lba(over), 10 + (zones - 1) * ZONE as u32),
            Time::START,
        );
        assert_eq!(done.result, Ok(()));
        let report = aware.zones().unwrap().report(ZoneId(1_000 + zones), 1)[0];
        assert_eq!(report.write_pointer, 5 * 4096);
        let done = aware.submit(Request::read(Lba(over), 10), done.at);
        assert_eq!(done.result, Ok(()));
    }
    let mut managed = disk("hm-smr-14tb");
    let zone = start(1_001);
    let whole = Request::write(zone, ZONE as u32 - 5);
    let now = managed.submit(whole, Time::START).at;
    let over = Request::write(zone.plus(ZONE - 5), 10);
    assert_eq!(
        managed.submit(over, now).result,
        Err(Failure::Refused(Refusal::ZoneBoundary))
    );
}

/// What was flushed stays, what was in the volatile cache is gone from some write on.
#[test]
fn a_power_cut_takes_write_pointers_back() {
    let mut disk = disk("hm-smr-14tb");
    disk.set_volatile_cache(true);
    let zone = start(700);
    let mut now = disk.submit(Request::write(zone, 256), Time::START).at;
    now = disk.submit(Request::flush(), now).at;
    disk.submit(Request::on_zone(Operation::OpenZone, start(701)), now);
    for n in 1..40 {
        let done = disk.submit(Request::write(zone.plus(n * 256), 256), now);
        assert_eq!(done.result, Ok(()));
        now = done.at;
    }
    let waiting = disk.enqueue(Request::read(start(9_000), 1), now);
    let lost = disk.power_cut(now);
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (lost[0].tag, lost[0].result),
        (waiting, Err(Failure::PowerLost))
    );
    let report = disk.zones().unwrap().report(ZoneId(700), 2);
    let pointer = report[0].write_pointer / 4096;
    assert_eq!(report[0].condition, ZoneCondition::Closed);
    assert_eq!(report[1].condition, ZoneCondition::Empty);
    assert!((256..40 * 256).contains(&pointer), "{pointer}");
    let next = disk.submit(Request::write(zone.plus(pointer), 8), now);
    assert_eq!(next.result, Ok(()));
}

/// A write that is being served is torn at the block that the head had reached, wherever the power is
/// cut: the blocks in front of the write pointer are those that a shorter write would have put on the
/// medium by then.
#[test]
fn a_power_cut_tears_the_write_that_is_being_served() {
    const BLOCKS: u32 = 3_000;
    let zone = start(700);
    let fresh = disk("hm-smr-14tb");
    let whole = |blocks| {
        let mut disk = fresh.clone();
        disk.submit(Request::write(zone, blocks), Time::START).at
    };
    let (first, last) = (whole(1).nanos(), whole(BLOCKS).nanos());
    let (mut torn, mut before) = (0, 0);
    for n in 0..=40 {
        let cut = Time::from_nanos(first / 2 + (last - first / 2) * n / 40);
        let mut disk = fresh.clone();
        let tag = disk.enqueue(Request::write(zone, BLOCKS), Time::START);
        let lost = disk.power_cut(cut);
        let report = disk.zones().unwrap().report(ZoneId(700), 1)[0];
        let pointer = (report.write_pointer / 4096) as u32;
        if cut.nanos() < last {
            assert_eq!(lost.len(), 1);
            assert_eq!(
                (lost[0].tag, lost[0].result),
                (tag, Err(Failure::PowerLost))
            );
            assert!(pointer < BLOCKS);
            assert!(whole(pointer + 1) > cut, "{pointer} at {cut:?}");
            assert!(
                pointer == 0 || whole(pointer) <= cut,
                "{pointer} at {cut:?}"
            );
        } else {
            assert_eq!((lost.len(), pointer), (0, BLOCKS));
        }
        assert!(pointer >= before, "{pointer} after {before}");
        before = pointer;
        torn += u32::from(pointer > 0 && pointer < BLOCKS);
        let next = Request::write(zone.plus(pointer.into()), 8);
        assert_eq!(disk.submit(next, cut).result, Ok(()));
    }
    assert!(torn > 20, "{torn}");
}

/// The same of writes that the volatile cache had taken: one of them is cut in two.
#[test]
fn a_write_out_of_the_volatile_cache_is_torn_too() {
    let zone = start(700);
    let mut torn = 0;
    for n in 0..20 {
        let mut disk = disk("hm-smr-14tb");
        disk.set_volatile_cache(true);
        let mut now = Time::START;
        for n in 0..20 {
            let write = Request::write(zone.plus(n * 256), 256);
            now = now.max(disk.submit(write, now).at);
        }
        let cut = Time::from_nanos(now.nanos() + 1_300_000 * n);
        assert_eq!(disk.power_cut(cut), []);
        let report = disk.zones().unwrap().report(ZoneId(700), 1)[0];
        torn += u32::from(!report.write_pointer.is_multiple_of(256 * 4096));
    }
    assert!(torn > 5, "{torn}");
}
