//! The drive in a file as its users see it: locking, reopening, space, and files that are no
//! drives. What its commands do is the conformance suite's matter.

#![allow(clippy::unwrap_used)]

use device::{FileDrive, FileDriveError, ZonedDevice};
use std::path::PathBuf;
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind};

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 3 << 18,
        zone_count: 12,
        conventional_zones: 2,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 6,
        max_append_bytes: 1 << 17,
    }
}

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zoned");
    Place {
        _directory: directory,
        path,
    }
}

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
