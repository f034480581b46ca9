use super::*;

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
        fails(Request::on_zone(RequestKind::FinishZone, zone), 0),
        Ok(())
    );
    assert_eq!(
        fails(Request::write(zone.plus(8), 1), 0),
        refused(Refusal::ZoneFull)
    );
    assert_eq!(
        fails(Request::on_zone(RequestKind::ResetZone, zone), 0),
        Ok(())
    );
    assert_eq!(fails(Request::write(zone, 1), 0), Ok(()));
    for open in 0..127 {
        assert_eq!(
            fails(
                Request::on_zone(RequestKind::OpenZone, start(1000 + open)),
                0
            ),
            Ok(())
        );
    }
    // The one that was opened by a write is closed for the last one.
    assert_eq!(
        fails(Request::on_zone(RequestKind::OpenZone, start(2000)), 0),
        Ok(())
    );
    let more = Request::on_zone(RequestKind::OpenZone, start(2001));
    assert_eq!(fails(more, 0), refused(Refusal::TooManyOpenZones));
    let report = disk.zones().unwrap().report(ZoneId(600), 1)[0];
    assert_eq!(
        (report.condition, report.write_pointer),
        (ZoneCondition::Closed, 4096)
    );
}
