//! Observing a file system from outside while it is mounted for writing: the zones, their content, and their live
//! bytes.

use crate::support;
use crate::support::{format, mount};
use bluefs::{BlueFs, Error, Observation, Role, ZoneContent, ZonePurpose};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zone::{Geometry, ZoneId};

fn geometry() -> Geometry {
    Geometry {
        zone_size: 4 << 20,
        zone_capacity: 3 << 20,
        ..support::geometry(64, 0, 12)
    }
}

fn drive() -> Arc<MemoryDrive> {
    let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
    format(&*drive, Role::Alone);
    drive
}

fn look(drive: &MemoryDrive) -> Observation {
    let zones = drive.geometry().zone_count;
    let report = drive.report(ZoneId(0), zones).unwrap();
    BlueFs::observe(drive, &report).unwrap()
}

fn with(seen: &Observation, content: ZoneContent) -> Vec<(ZoneId, u64, u64)> {
    let zones = seen.zones.iter().filter(|(_, z)| z.content == content);
    zones
        .map(|(id, z)| (*id, z.live_bytes, z.unnamed_bytes))
        .collect()
}

fn write(fs: &BlueFs, path: &str, bytes: usize) {
    let mut writer = fs.create(path).unwrap();
    writer.append(&vec![7; bytes]).unwrap();
    writer.sync().unwrap();
    writer.close().unwrap();
}

#[test]
fn an_observer_sees_what_each_zone_holds_while_it_is_written() {
    let drive = drive();
    let fs = mount(drive.clone()).unwrap();
    write(&fs, "/000001.sst", 20 << 10);
    write(&fs, "/000002.sst", 9 << 10);
    write(&fs, "/MANIFEST-000003", 700);
    write(&fs, "/000004.log", 700);
    let seen = look(&drive);
    assert!(seen.whole && !seen.is_shared());
    assert_eq!(seen.files, 4);
    let tables: u64 = [ZoneContent::Sst, ZoneContent::SharedSsts]
        .into_iter()
        .flat_map(|content| with(&seen, content))
        .map(|(_, live, _)| live)
        .sum();
    assert_eq!(tables, 29 << 10);
    for (content, bytes) in [(ZoneContent::Wal, 1024), (ZoneContent::Manifest, 1024)] {
        let found = with(&seen, content);
        assert_eq!(found.len(), 1, "{content:?}: {:?}", seen.zones);
        assert_eq!((found[0].1, found[0].2), (bytes, 0), "{content:?}");
    }
    // Observing finds the zones that the file system itself names, except those without live data.
    for (zone, purpose) in fs.zones() {
        let seen = seen.zones.get(&zone).map(|z| z.content);
        let right = match purpose {
            ZonePurpose::Superblock => seen == Some(ZoneContent::Superblock),
            ZonePurpose::Journal => seen == Some(ZoneContent::Journal),
            ZonePurpose::Log => {
                matches!(seen, Some(ZoneContent::Wal | ZoneContent::Manifest))
            }
            ZonePurpose::Data => {
                matches!(seen, Some(ZoneContent::Sst | ZoneContent::SharedSsts))
            }
            ZonePurpose::Spare | ZonePurpose::Freed => true,
        };
        assert!(right, "{zone}: {purpose:?}, seen as {seen:?}");
    }
    fs.unmount().unwrap();
}

#[test]
fn what_is_deleted_is_dead_and_what_is_being_written_is_neither() {
    let drive = drive();
    let fs = mount(drive.clone()).unwrap();
    write(&fs, "/000001.sst", 4 << 10);
    write(&fs, "/000002.sst", 4 << 10);
    fs.delete("/000001.sst").unwrap();
    fs.sync_metadata().unwrap();
    let seen = look(&drive);
    let live: u64 = seen.zones.values().map(|z| z.live_bytes).sum();
    let unnamed: u64 = seen.zones.values().map(|z| z.unnamed_bytes).sum();
    assert_eq!((seen.files, live, unnamed), (1, 4 << 10, 0));

    // More than a writer buffers, so that bytes are on the drive that the journal does not name yet.
    let mut writer = fs.create("/000003.sst").unwrap();
    writer.append(&vec![7; (1 << 20) + 512]).unwrap();
    let seen = look(&drive);
    let unnamed: u64 = seen.zones.values().map(|z| z.unnamed_bytes).sum();
    assert!(unnamed >= 1 << 20, "{unnamed}");
    writer.close().unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_journal_that_ends_too_early_is_told() {
    let drive = drive();
    let fs = mount(drive.clone()).unwrap();
    write(&fs, "/000001.sst", 512);
    let old = drive
        .report(ZoneId(0), drive.geometry().zone_count)
        .unwrap();
    let journal = fs.info().journal_zone;
    drop(fs);
    assert!(BlueFs::observe(&*drive, &old).unwrap().whole);
    let at = old[journal.index()].next_write();
    drive
        .write(drive.geometry().absolute(at), &[1; 512])
        .unwrap();
    assert!(!look(&drive).whole);
}

#[test]
fn a_drive_without_a_file_system_is_told() {
    let drive = MemoryDrive::new(geometry()).unwrap();
    let report = drive.report(ZoneId(0), 64).unwrap();
    let found = BlueFs::observe(&drive, &report);
    assert!(matches!(found, Err(Error::NotFormatted)));
}
