//! Zones that become read-only or offline: live data is moved out or reported as lost, and everything else stays
//! readable and writable.

use crate::support;
use crate::support::{assert_clean, format, geometry, mount, read, write};
use bluefs::{BlueFs, DamagedFile, Error, FormatOptions, MountOptions, Role};
use device::faults::{Fault, Faults, Plan};
use device::zone_damage::ZoneDamage;
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zone::{ZoneCommand, ZoneCondition, ZoneError, ZoneId};

type Drive = Faults<MemoryDrive>;

fn formatted(conventional: u32, active: u32) -> Arc<Drive> {
    let drive = MemoryDrive::new(geometry(60, conventional, active)).unwrap();
    format(&drive, Role::Alone);
    Arc::new(Faults::new(drive))
}

fn zones_of(fs: &BlueFs, path: &str) -> Vec<ZoneId> {
    let mut zones: Vec<_> = fs.extents(path).unwrap();
    zones.dedup_by_key(|e| e.at.zone);
    zones.iter().map(|e| e.at.zone).collect()
}

/// Two SSTs, which share a zone, and a log of more than a zone.
fn some_files(fs: &BlueFs) {
    write(fs, "/a.sst", &[1; 40_000]).unwrap();
    write(fs, "/b.sst", &[2; 40_000]).unwrap();
    write(fs, "/000001.log", &[3; 60_000]).unwrap();
}

#[track_caller]
fn all_there(fs: &BlueFs) {
    assert!(read(fs, "/a.sst").unwrap() == [1; 40_000]);
    assert!(read(fs, "/b.sst").unwrap() == [2; 40_000]);
    assert!(read(fs, "/000001.log").unwrap() == [3; 60_000]);
    assert_clean(fs);
}

fn is_out_of_use(fs: &BlueFs, zone: ZoneId) -> bool {
    fs.pool().owner(zone).is_none() && fs.zones().iter().all(|(z, _)| *z != zone)
}

#[test]
fn files_in_a_zone_that_can_only_be_read_are_moved_and_the_zone_is_not_used_again() {
    for (conventional, active) in [(0, 0), (0, 6), (4, 0)] {
        for at_mount in [true, false] {
            let device = formatted(conventional, active);
            let mut fs = mount(device.clone()).unwrap();
            some_files(&fs);
            let zone = zones_of(&fs, "/a.sst")[1];
            assert!(zones_of(&fs, "/b.sst").contains(&zone), "they share it");
            device.break_zone(zone, ZoneCondition::ReadOnly);
            if at_mount {
                fs.unmount().unwrap();
                fs = mount(device.clone()).unwrap();
            } else {
                assert_eq!(fs.damaged_files().unwrap(), []);
            }
            all_there(&fs);
            assert!(fs.clean_ahead().unwrap());
            all_there(&fs);
            assert!(is_out_of_use(&fs, zone), "{:?}", fs.zones());
            for path in ["/a.sst", "/b.sst"] {
                assert!(!zones_of(&fs, path).contains(&zone));
            }
            // The emptied zone may go offline now.
            device.break_zone(zone, ZoneCondition::Offline);
            write(&fs, "/c.sst", &[4; 300_000]).unwrap();
            drop(fs);
            let fs = mount(device).unwrap();
            all_there(&fs);
            assert_eq!(fs.damaged_files().unwrap(), []);
        }
    }
}

#[test]
fn a_zone_that_goes_read_only_while_it_is_written_loses_nothing_and_is_emptied() {
    for kth in 1..12 {
        let device = formatted(0, 0);
        let fs = mount(device.clone()).unwrap();
        let broken = Fault::Break(ZoneCondition::ReadOnly);
        device.add(Plan::at(ZoneCommand::Write, kth, broken));
        some_files(&fs);
        all_there(&fs);
        let report = device.report(ZoneId(0), 60).unwrap();
        let zone = report
            .iter()
            .find(|z| z.condition == ZoneCondition::ReadOnly);
        let zone = zone.unwrap().id;
        let had_files = fs.zones().contains(&(zone, bluefs::ZonePurpose::Data));
        while fs.clean_ahead().unwrap() {}
        if had_files {
            assert!(is_out_of_use(&fs, zone), "{kth} {:?}", fs.zones());
        }
        all_there(&fs);
        drop(fs);
        all_there(&mount(device).unwrap());
    }
}

#[test]
fn what_cannot_be_read_keeps_nothing_else_in_a_zone_that_may_be_lost() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    write(&fs, "/a.sst", &[1; 5000]).unwrap();
    write(&fs, "/b.sst", &[2; 5000]).unwrap();
    // The rest of the zone.
    write(&fs, "/c.sst", &[3; 30_000]).unwrap();
    let zone = zones_of(&fs, "/a.sst")[0];
    assert_eq!(zones_of(&fs, "/b.sst"), [zone]);
    device.break_zone(zone, ZoneCondition::ReadOnly);
    assert_eq!(fs.damaged_files().unwrap(), []);
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::at(ZoneCommand::Read, 1, fault).in_zone(zone));
    fs.clean_ahead().unwrap();
    assert_eq!(zones_of(&fs, "/a.sst"), [zone]);
    for (path, byte, size) in [("/b.sst", 2, 5000), ("/c.sst", 3, 30_000)] {
        assert!(!zones_of(&fs, path).contains(&zone), "{path}");
        assert!(read(&fs, path).unwrap() == vec![byte; size]);
    }
    assert!(!fs.clean_ahead().unwrap(), "it is not tried again");
}

#[test]
fn a_part_of_a_log_that_cannot_be_read_keeps_no_later_part_in_a_zone_that_may_be_lost() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/000001.log").unwrap();
    for size in [900, 800] {
        log.append(&[1; 900]).unwrap();
        log.sync().unwrap();
        log.truncate(size).unwrap();
    }
    log.append(&[2; 900]).unwrap();
    log.close().unwrap();
    fs.sync_metadata().unwrap();
    assert!(fs.close_sequential_zones().unwrap());
    let zone = zones_of(&fs, "/000001.log")[0];
    device.break_zone(zone, ZoneCondition::ReadOnly);
    assert_eq!(fs.damaged_files().unwrap(), []);
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::at(ZoneCommand::Read, 1, fault).in_zone(zone));
    fs.clean_ahead().unwrap();
    device.clear();
    let places = fs.extents("/000001.log").unwrap();
    let (first, last) = (places.first().unwrap(), places.last().unwrap());
    assert_eq!(first.at.zone, zone);
    assert_ne!(last.at.zone, zone);
    let found = read(&fs, "/000001.log").unwrap();
    assert!(found == [vec![1; 800], vec![2; 900]].concat());
}

fn names_file_and_zone(error: &Error, path: &str, zone: ZoneId) {
    let Error::ZoneLost {
        path: found,
        zone: at,
        source: ZoneError::Offline { .. },
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((found.as_str(), *at), (path, zone));
    assert!(error.to_string().contains(path));
}

#[test]
fn files_with_bytes_in_an_offline_zone_are_told_and_everything_else_goes_on() {
    for (conventional, path, at_mount) in [
        (0, "/a.sst", true),
        (0, "/a.sst", false),
        (0, "/000001.log", true),
        (0, "/000001.log", false),
        (4, "/000001.log", true),
    ] {
        let device = formatted(conventional, 0);
        let mut fs = mount(device.clone()).unwrap();
        some_files(&fs);
        let zone = zones_of(&fs, path)[0];
        device.break_zone(zone, ZoneCondition::Offline);
        if at_mount {
            drop(fs);
            fs = mount(device.clone()).unwrap();
        }
        let error = read(&fs, path).unwrap_err();
        names_file_and_zone(&error, path, zone);
        let inode = fs.metadata(path).unwrap().inode;
        let [DamagedFile { bytes, .. }] = fs.damaged_files().unwrap()[..] else {
            panic!("{:?}", fs.damaged_files());
        };
        assert!(bytes > 20_000, "{bytes}");
        let found = DamagedFile {
            path: path.into(),
            inode,
            is_log: path.ends_with(".log"),
            zone,
            bytes,
        };
        assert_eq!(fs.damaged_files().unwrap(), [found]);
        let report = fs.check(false).unwrap();
        assert!(report.errors.contains_key("in a zone that is offline"));
        assert!(report.details.iter().any(|detail| detail.contains(path)));
        for (other, byte) in [("/a.sst", 1), ("/b.sst", 2), ("/000001.log", 3)] {
            if other != path {
                assert!(read(&fs, other).unwrap().iter().all(|b| *b == byte));
            }
        }
        write(&fs, "/c.sst", &[4; 60_000]).unwrap();
        write(&fs, "/000002.log", &[5; 60_000]).unwrap();
        while fs.clean_ahead().unwrap() {}
        // Once the file is deleted, the zone is out of use and the file system is healthy.
        fs.delete(path).unwrap();
        fs.sync_metadata().unwrap();
        assert!(is_out_of_use(&fs, zone), "{:?}", fs.zones());
        drop(fs);
        let fs = mount(device).unwrap();
        assert_eq!(fs.damaged_files().unwrap(), []);
        assert_clean(&fs);
        assert!(read(&fs, "/c.sst").unwrap() == [4; 60_000]);
        assert!(read(&fs, "/000002.log").unwrap() == [5; 60_000]);
    }
}

#[test]
fn a_log_whose_last_zone_is_offline_does_not_pass_for_a_shorter_one() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    some_files(&fs);
    let zone = *zones_of(&fs, "/000001.log").last().unwrap();
    device.break_zone(zone, ZoneCondition::Offline);
    drop(fs);
    for _ in 0..2 {
        let fs = mount(device.clone()).unwrap();
        let error = read(&fs, "/000001.log").unwrap_err();
        names_file_and_zone(&error, "/000001.log", zone);
    }
}

#[test]
fn a_log_that_has_lost_records_takes_nothing_more_and_another_does() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/000001.log").unwrap();
    log.append(&[1; 700]).unwrap();
    log.sync().unwrap();
    let zone = zones_of(&fs, "/000001.log")[0];
    let broken = Fault::Break(ZoneCondition::Offline);
    device.add(Plan::at(ZoneCommand::Write, 1, broken).in_zone(zone));
    log.append(&[1; 700]).unwrap();
    names_file_and_zone(&log.sync().unwrap_err(), "/000001.log", zone);
    names_file_and_zone(&log.sync().unwrap_err(), "/000001.log", zone);
    names_file_and_zone(&log.append(&[1; 7]).unwrap_err(), "/000001.log", zone);
    write(&fs, "/000002.log", &[2; 700]).unwrap();
    drop((log, fs));
    let fs = mount(device).unwrap();
    assert_eq!(read(&fs, "/000002.log").unwrap(), [2; 700]);
}

#[test]
fn a_file_that_nothing_is_lost_of_goes_on_elsewhere() {
    for path in ["/000001.log", "/a.sst"] {
        let device = formatted(0, 0);
        let fs = mount(device.clone()).unwrap();
        // The first zone that the writer takes goes offline at the first write to it.
        let broken = Fault::Break(ZoneCondition::Offline);
        device.add(Plan::at(ZoneCommand::Write, 1, broken));
        let mut expected = Vec::new();
        let mut writer = fs.create(path).unwrap();
        for i in 0..40 {
            writer.append(&[i; 900]).unwrap();
            writer.sync().unwrap();
            expected.extend([i; 900]);
        }
        drop((writer, fs));
        let fs = mount(device.clone()).unwrap();
        assert!(read(&fs, path).unwrap() == expected);
        assert_eq!(fs.damaged_files().unwrap(), []);
    }
}

#[test]
fn what_was_lost_before_a_sync_comes_up_in_it_and_stays() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    let mut writer = fs.create("/a.sst").unwrap();
    writer.append(&vec![1; 1 << 20]).unwrap();
    let zone = zones_of(&fs, "/a.sst")[0];
    writer.append(&[1; 100]).unwrap();
    device.break_zone(zone, ZoneCondition::Offline);
    // A reader notices the loss before the writer does.
    let mut bytes = [0; 10];
    assert!(fs.open("/a.sst").unwrap().read_at(0, &mut bytes).is_err());
    names_file_and_zone(&writer.sync().unwrap_err(), "/a.sst", zone);
    names_file_and_zone(&writer.sync().unwrap_err(), "/a.sst", zone);
    write(&fs, "/b.sst", &[2; 60_000]).unwrap();
    assert!(read(&fs, "/b.sst").unwrap() == [2; 60_000]);
}

#[test]
fn superblocks_and_the_journal_go_on_in_other_zones() {
    // A zone of each kind that holds metadata breaks while it is written to.
    for condition in [ZoneCondition::ReadOnly, ZoneCondition::Offline] {
        for conventional in [0, 4] {
            let device = formatted(conventional, 0);
            let fs = mount(device.clone()).unwrap();
            some_files(&fs);
            let [ring, journal] = {
                let info = fs.info();
                let zones = device.report(ZoneId(0), 2).unwrap();
                let ring = zones.iter().max_by_key(|z| z.write_pointer);
                [ring.unwrap().id, info.journal_zone]
            };
            device.break_zone(journal, condition);
            write(&fs, "/c.sst", &[4; 60_000]).unwrap();
            device.break_zone(ring, condition);
            fs.unmount().unwrap();
            let fs = mount(device.clone()).unwrap();
            all_there(&fs);
            assert!(read(&fs, "/c.sst").unwrap() == [4; 60_000]);
            write(&fs, "/d.sst", &[5; 60_000]).unwrap();
        }
    }
}

#[test]
fn a_journal_that_cannot_be_read_is_told_with_its_zone() {
    let device = formatted(0, 0);
    let fs = mount(device.clone()).unwrap();
    some_files(&fs);
    let zone = fs.info().journal_zone;
    drop(fs);
    device.break_zone(zone, ZoneCondition::Offline);
    let error = mount(device).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::JournalDamaged { at, offline: true, .. } if at.zone == zone),
        "{error}"
    );
}

#[test]
fn a_log_that_an_unmount_cannot_write_does_not_cost_another_its_tail() {
    const LOGS: [&str; 2] = ["/000001.log", "/000002.log"];
    for lost in [0, 1] {
        let device = formatted(0, 0);
        let fs = mount(device.clone()).unwrap();
        let mut logs = LOGS.map(|path| fs.create(path).unwrap());
        logs[lost].append(&[1; 700]).unwrap();
        logs[lost].sync().unwrap();
        for log in &mut logs {
            log.append(&[2; 700]).unwrap();
        }
        let zone = zones_of(&fs, LOGS[lost])[0];
        device.break_zone(zone, ZoneCondition::Offline);
        names_file_and_zone(&fs.unmount().unwrap_err(), LOGS[lost], zone);
        drop((logs, fs));
        let fs = mount(device).unwrap();
        assert_eq!(read(&fs, LOGS[1 - lost]).unwrap(), [2; 700]);
    }
}

/// A device whose commands the host does not pass on is not full.
#[test]
fn a_drive_that_resets_nothing_is_refused_with_its_own_error() {
    let drive = MemoryDrive::new(geometry(60, 0, 0)).unwrap();
    for zone in drive.geometry().zones() {
        drive
            .write(drive.geometry().start(zone), &[1; 4096])
            .unwrap();
    }
    let drive = Faults::new(drive);
    drive.add(Plan::from(
        ZoneCommand::Reset,
        1,
        Fault::Io(std::io::ErrorKind::PermissionDenied),
    ));
    let options = FormatOptions {
        uuid: [3; 16],
        role: Role::Alone,
        copies: 1,
        force: true,
    };
    let error = BlueFs::format(&drive, &options).unwrap_err();
    assert!(error.to_string().contains("reset"), "{error}");
}

/// With two copies, a zone that fails while it is written to loses nothing, so no append is refused.
#[test]
fn with_two_copies_a_log_goes_on_whichever_zone_fails() {
    let begun = || {
        let drive = MemoryDrive::new(geometry(60, 0, 0)).unwrap();
        support::format_copies(&drive, Role::Alone, 2);
        let device: Arc<Drive> = Arc::new(Faults::new(drive));
        let fs = mount(device.clone()).unwrap();
        let mut log = fs.create("/000001.log").unwrap();
        log.append(&[1; 5000]).unwrap();
        log.sync().unwrap();
        (device, fs, log)
    };
    let (_, fs, _log) = begun();
    let zones: Vec<ZoneId> = fs.zones().into_iter().map(|(zone, _)| zone).collect();
    for zone in zones {
        for condition in [ZoneCondition::ReadOnly, ZoneCondition::Offline] {
            let (device, fs, mut log) = begun();
            device.break_zone(zone, condition);
            for _ in 0..3 {
                let done = log.append(&[2; 5000]).and_then(|()| log.sync());
                done.unwrap_or_else(|error| panic!("{zone} {condition:?}: {error}"));
            }
            drop((log, fs));
            let fs = mount(device).unwrap();
            let found = read(&fs, "/000001.log").unwrap();
            assert!(found == [vec![1; 5000], vec![2; 15_000]].concat());
        }
    }
}

/// A drive with [`some_files`] on which the last zone of `/b.sst` went back, and that zone.
fn went_back(active: u32) -> (Arc<MemoryDrive>, ZoneId) {
    let memory = Arc::new(MemoryDrive::new(geometry(60, 0, active)).unwrap());
    format(&*memory, Role::Alone);
    let fs = mount(memory.clone()).unwrap();
    some_files(&fs);
    let zone = zones_of(&fs, "/b.sst").pop().unwrap();
    fs.unmount().unwrap();
    // A second mount, so that the snapshot that begins its journal is durable.
    mount(memory.clone()).unwrap().unmount().unwrap();
    let drive = Faults::new(memory.clone());
    ZoneDamage::WentBack.strike(&drive, zone, |_| 1).unwrap();
    (memory, zone)
}

/// The drive returns zeros above the write pointer, which must not be taken for data, even in reads too small for a
/// checksum to cover.
#[test]
fn what_a_zone_that_went_back_has_lost_is_an_error_and_nothing_is_written_there() {
    for active in [0, 6] {
        let (memory, zone) = went_back(active);
        for n in 0..3 {
            let fs = mount(memory.clone()).unwrap();
            assert!(read(&fs, "/a.sst").unwrap() == [1; 40_000]);
            assert!(read(&fs, "/000001.log").unwrap() == [3; 60_000]);
            let reader = fs.open("/b.sst").unwrap();
            let lost = reader.read_at(39_000, &mut [0; 100]).unwrap_err();
            assert!(matches!(lost, Error::Corrupt { .. }), "{lost}");
            read(&fs, "/b.sst").unwrap_err();
            write(&fs, &format!("/{n}.sst"), &[7; 100_000]).unwrap();
            let _ = fs.clean_ahead();
            assert!(!zones_of(&fs, &format!("/{n}.sst")).contains(&zone));
            fs.unmount().unwrap();
        }
        let fs = mount(memory).unwrap();
        fs.delete("/b.sst").unwrap();
        // After the deletion, the zone can be reused in the same mount.
        let is_reused = (0..100).any(|again| {
            if again > 0 {
                fs.delete("/again.sst").unwrap();
            }
            write(&fs, "/again.sst", &[8; 400_000]).unwrap();
            zones_of(&fs, "/again.sst").contains(&zone)
        });
        assert!(is_reused);
        assert!(read(&fs, "/again.sst").unwrap() == [8; 400_000]);
        assert_clean(&fs);
    }
}

/// Its live data cannot be moved, and it has the least.
#[test]
fn a_zone_that_went_back_does_not_keep_others_from_being_emptied() {
    for in_need in [true, false] {
        let (memory, _) = went_back(0);
        let fs = mount(memory).unwrap();
        fs.delete("/a.sst").unwrap();
        write(&fs, "/c.sst", &[4; 12_000]).unwrap();
        write(&fs, "/gone.sst", &[5; 40_000]).unwrap();
        fs.delete("/gone.sst").unwrap();
        fs.sync_metadata().unwrap();
        let before = zones_of(&fs, "/c.sst");
        let is_done = (0..100).any(|_| match in_need {
            true => {
                fs.reclaim().unwrap();
                zones_of(&fs, "/c.sst") != before
            }
            false => !fs.clean_ahead().unwrap(),
        });
        assert!(is_done, "in need: {in_need}");
        assert!(read(&fs, "/c.sst").unwrap() == [4; 12_000]);
    }
}

/// Neither does the cache keep the zeros.
#[test]
fn many_reads_at_once_of_what_a_zone_has_lost_are_errors() {
    for cache_bytes in [0, 1 << 20] {
        let (memory, _) = went_back(0);
        let options = MountOptions {
            cache_bytes,
            ..MountOptions::default()
        };
        let fs = BlueFs::mount(memory.clone(), support::pool(&*memory), options).unwrap();
        let reader = fs.open("/b.sst").unwrap();
        let (mut one, mut other) = ([0; 100], [0; 100]);
        for _ in 0..2 {
            let done = reader.read_many(&mut [(39_000, &mut one[..]), (39_500, &mut other[..])]);
            for read in done {
                assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
            }
        }
        reader.verify().unwrap_err();
    }
}

fn fail(device: &Drive, command: ZoneCommand, zone: ZoneId) {
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(command, 1, fault).in_zone(zone));
}

/// A power cut has left a superblock zone and more zones with data active than a mount continues in.
#[test]
fn zones_that_cannot_be_finished_do_not_refuse_a_mount() {
    let device = formatted(0, 8);
    let fs = mount(device.clone()).unwrap();
    let paths = ["/000001.log", "/a.sst", "/b.sst"];
    let mut writers = paths.map(|path| fs.create(path).unwrap());
    for writer in &mut writers {
        writer.append(&[7; 1000]).unwrap();
        writer.sync().unwrap();
    }
    let mut zones: Vec<_> = paths.iter().flat_map(|path| zones_of(&fs, path)).collect();
    drop((writers, fs));
    let report = device.report(ZoneId(0), 60).unwrap();
    zones.retain(|zone| report[zone.index()].condition.is_active());
    // Its first block is no superblock.
    device
        .write(device.geometry().start(ZoneId(1)), &[0; 512])
        .unwrap();
    zones.push(ZoneId(1));
    zones
        .iter()
        .for_each(|zone| fail(&device, ZoneCommand::Finish, *zone));
    let fs = mount(device.clone()).unwrap();
    assert!(device.struck() > 0);
    for path in paths {
        assert_eq!(read(&fs, path).unwrap(), [7; 1000]);
    }
    write(&fs, "/c.sst", &[8; 60_000]).unwrap();
    drop(fs);
    let fs = mount(device).unwrap();
    assert_eq!(read(&fs, "/c.sst").unwrap(), [8; 60_000]);
    assert_clean(&fs);
}

/// Neither a mount nor a later journal needs the zone of the journal before it, or that of an older superblock, finished.
#[test]
fn zones_with_metadata_that_cannot_be_finished_stop_nothing() {
    // With fewer than 8 active zones each superblock has a zone of its own.
    for active in [7, 12] {
        for metadata in [false, true] {
            let device = formatted(0, active);
            let fs = mount(device.clone()).unwrap();
            some_files(&fs);
            let zones = match metadata {
                true => BlueFs::superblock_zones(device.geometry()),
                false => vec![fs.info().journal_zone, fs.info().spare_zone],
            };
            drop(fs);
            zones
                .iter()
                .for_each(|zone| fail(&device, ZoneCommand::Finish, *zone));
            let fs = mount(device.clone()).unwrap();
            all_there(&fs);
            let begun = fs.info().journal_epoch;
            while fs.info().journal_epoch < begun + 4 {
                write(&fs, "/c.sst", &[8; 700]).unwrap();
                fs.delete("/c.sst").unwrap();
            }
            fs.unmount().unwrap();
            assert!(device.struck() > 0 || active == 12 && metadata);
            all_there(&mount(device).unwrap());
        }
    }
}

#[test]
fn a_zone_that_cannot_be_reset_is_left_out_by_a_format() {
    for copies in [1, 2] {
        let device = formatted(0, 0);
        let fs = mount(device.clone()).unwrap();
        some_files(&fs);
        let zone = zones_of(&fs, "/a.sst")[0];
        fs.unmount().unwrap();
        fail(&device, ZoneCommand::Reset, zone);
        let options = FormatOptions {
            uuid: [4; 16],
            role: Role::Alone,
            copies,
            force: true,
        };
        BlueFs::format(&*device, &options).unwrap();
        let fs = mount(device.clone()).unwrap();
        some_files(&fs);
        all_there(&fs);
        drop(fs);
        all_there(&mount(device).unwrap());
    }
}
