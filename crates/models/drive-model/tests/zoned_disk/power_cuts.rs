use super::*;

/// What was flushed stays, what was in the volatile cache is gone from some write on.
#[test]
fn a_power_cut_takes_write_pointers_back() {
    let mut disk = disk("hm-smr-14tb");
    disk.set_volatile_cache(true);
    let zone = start(700);
    let mut now = disk.submit(Request::write(zone, 256), Time::START).at;
    now = disk.submit(Request::flush(), now).at;
    disk.submit(Request::on_zone(RequestKind::OpenZone, start(701)), now);
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
