use super::*;

#[test]
fn content_and_write_pointers_survive_reopening_and_open_zones_are_closed() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "test-small").unwrap();
    let uuid = drive.uuid();
    drive.write(g.start(ZoneId(1)), &[7; 8192]).unwrap();
    drive.write(g.start(ZoneId(2)), &[1; 4096]).unwrap();
    assert_eq!(
        drive.append(ZoneId(2), &[2; 4096]).unwrap().0,
        g.start(ZoneId(2)).0 + 4096
    );
    drive.open(ZoneId(3)).unwrap();
    drive.finish(ZoneId(4)).unwrap();
    drive.flush().unwrap();
    drop(drive);

    let drive = FileDrive::open(&place.path).unwrap();
    assert_eq!(drive.uuid(), uuid);
    assert_eq!(drive.profile_name(), "test-small");
    assert_eq!(drive.path(), place.path);
    let zones = drive.report(ZoneId(0), 100).unwrap();
    let seen: Vec<_> = zones[1..5]
        .iter()
        .map(|z| (z.condition, z.write_pointer))
        .collect();
    assert_eq!(
        seen,
        [
            (ZoneCondition::NotWritePointer, 0),
            (ZoneCondition::Closed, 8192),
            (ZoneCondition::Empty, 0),
            (ZoneCondition::Full, g.zone_capacity),
        ]
    );
    let mut out = vec![9; 12288];
    drive.read(g.start(ZoneId(2)), &mut out).unwrap();
    assert_eq!(out, [vec![1; 4096], vec![2; 4096], vec![0; 4096]].concat());
    drive.read(g.start(ZoneId(1)), &mut out).unwrap();
    assert_eq!(out, [vec![7; 8192], vec![0; 4096]].concat());
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone_and_readers_share() {
    let place = place();
    let drive = FileDrive::create(&place.path, &geometry(), "p").unwrap();
    let refused = |r: Result<FileDrive, FileDriveError>| {
        assert!(matches!(r.unwrap_err(), FileDriveError::InUse { .. }));
    };
    refused(FileDrive::open(&place.path));
    refused(FileDrive::open_read_only(&place.path));
    drop(drive);
    let reader = FileDrive::open_read_only(&place.path).unwrap();
    let other = FileDrive::open_read_only(&place.path).unwrap();
    refused(FileDrive::open(&place.path));
    drop((reader, other));
    FileDrive::open(&place.path).unwrap();
}

#[test]
fn a_drive_opened_for_reading_reads_and_does_nothing_else() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    drive.write(g.start(ZoneId(2)), &[5; 4096]).unwrap();
    drop(drive);
    let before = std::fs::read(&place.path).unwrap();
    let drive = FileDrive::open_read_only(&place.path).unwrap();
    assert!(drive.is_read_only());
    let mut out = [0; 4096];
    drive.read(g.start(ZoneId(2)), &mut out).unwrap();
    assert_eq!(out, [5; 4096]);
    drive.flush().unwrap();
    let zone = ZoneId(2);
    for refused in [
        drive.write(g.start(ZoneId(3)), &out),
        drive.write(g.start(ZoneId(0)), &out),
        drive.append(zone, &out).map(drop),
        drive.open(zone),
        drive.close(zone),
        drive.finish(zone),
        drive.reset(zone),
        drive.set_condition(zone, ZoneCondition::Offline),
    ] {
        let error = refused.unwrap_err();
        let ZoneError::Io { source, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    assert!(std::fs::read(&place.path).unwrap() == before);
}

/// Who only looks keeps nobody out, is kept out by nobody, and changes nothing.
#[test]
fn an_observer_needs_no_lock_and_sees_what_was_written_so_far() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    let before = FileDrive::observe(&place.path).unwrap();
    drive.write(g.start(ZoneId(3)), &[7; 4096]).unwrap();
    let after = FileDrive::observe(&place.path).unwrap();
    let pointer = |drive: &FileDrive| drive.report_zone(ZoneId(3)).unwrap().write_pointer;
    assert_eq!((pointer(&before), pointer(&after)), (0, 4096));
    let mut block = [0; 4096];
    after.read(g.start(ZoneId(3)), &mut block).unwrap();
    assert_eq!(block, [7; 4096]);
    assert!(after.write(g.start(ZoneId(3)), &block).is_err());
    assert!(after.reset(ZoneId(3)).is_err());
    // Neither does one that is there keep a writer out.
    drop(drive);
    let drive = FileDrive::open(&place.path).unwrap();
    drop((before, after));
    assert!(matches!(
        FileDrive::open(&place.path),
        Err(FileDriveError::InUse { .. })
    ));
    drop(drive);
}
