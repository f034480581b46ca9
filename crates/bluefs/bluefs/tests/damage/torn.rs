//! On drives whose zones all have write pointers, damage to the very last step before an unclean stop is told from a
//! torn write: a power cut that takes the end of a write takes the write pointer back too.

use super::*;
use device::FileDrive;

/// Offsets at which the last record or frame is changed: in its header, so that it names another place, and in its
/// content.
const CHANGED: [usize; 4] = [5, 73, 80, 300];

fn past(history: History<'_>, copies: u32) -> Past {
    Past::in_copies(copies, history, 0, 0, false)
}

#[test]
fn damage_to_the_very_last_step_is_no_tear() {
    for history in HISTORIES {
        let (past, mut seen) = (past(history, 1), Seen::default());
        for at in &past.blocks {
            past.examine(&format!("{at} zeroed"), &[(*at, vec![0; BLOCK])], &mut seen);
            let good = block(&past.device, *at);
            for byte in CHANGED {
                let mut bad = good.clone();
                bad[byte] ^= 16;
                past.examine(&format!("{at} byte {byte}"), &[(*at, bad)], &mut seen);
            }
        }
        assert_eq!(seen.last_step_missing, 0, "{}: {seen:?}", past.name);
    }
}

/// One copy is zeroed from some place on, and the other went back to there, so no mark is left that covers the missing
/// data. The write pointer of the zeroed copy still proves that it was written.
#[test]
fn what_both_copies_lack_and_one_was_written_for_is_no_tear() {
    for history in HISTORIES {
        let past = past(history, 2);
        let g = past.device.geometry();
        let report = past.device.report(ZoneId(0), g.zone_count).unwrap();
        let twins = BlueFs::observe(&*past.device, &report).unwrap().twins;
        let mut refused = 0;
        for (zone, twin) in twins {
            for (zeroed, back) in [(zone, twin), (twin, zone)] {
                let end = report[zeroed.index()].write_pointer;
                for from in (0..end).step_by(BLOCK) {
                    let at = |offset| ZoneAddress::new(zeroed, offset);
                    let tail = (from..end).step_by(BLOCK).map(|o| (at(o), vec![0; BLOCK]));
                    let drive = changed(&past.device, &tail.collect::<Vec<_>>());
                    roll_back(&drive, back, from);
                    let told = format!("{}: {zeroed} from {from} on", past.name);
                    match mount(drive) {
                        Ok(fs) if readable(&fs).is_ok_and(|found| found == past.all) => {}
                        Ok(fs) => assert!(!fs.check(true).unwrap().is_clean(), "{told}"),
                        Err(error) => {
                            assert!(error.is_damage(), "{told}: {error}");
                            refused += 1;
                        }
                    }
                }
            }
        }
        assert!(refused > 0);
    }
}

/// One copy has bytes of an earlier life of its zone, more than the other copy has ever had in this life.
#[test]
fn a_copy_of_an_earlier_life_tells_nothing() {
    for history in HISTORIES {
        let past = past(history, 2);
        let g = past.device.geometry();
        let report = past.device.report(ZoneId(0), g.zone_count).unwrap();
        let twins = BlueFs::observe(&*past.device, &report).unwrap().twins;
        for zone in twins.into_iter().flat_map(|(zone, twin)| [zone, twin]) {
            for bytes in [0, 7] {
                let drive = past.device.snapshot();
                drive.reset(zone).unwrap();
                let earlier = vec![bytes; (g.zone_capacity - 512) as usize];
                drive.write(g.start(zone), &earlier).unwrap();
                let fs = mount(Arc::new(drive)).unwrap();
                assert_eq!(readable(&fs).unwrap(), past.all, "{}: {zone}", past.name);
            }
        }
    }
}

/// A power loss of the host may leave zeros below a write pointer, so these are no reason to refuse a mount of a drive
/// file.
#[test]
fn a_drive_in_a_file_may_end_in_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.zoned");
    let device = Arc::new(FileDrive::create(&path, &geometry(40, 0, 0), "").unwrap());
    format_copies(&*device, Role::Alone, 1);
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/1.log").unwrap();
    for part in [[1; 300], [2; 300]] {
        log.append(&part).unwrap();
        log.sync().unwrap();
    }
    // Dropped without an unmount, like a kill.
    drop((log, fs, device));
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.windows(4).rposition(|window| window == b"BFWR");
    bytes[last.unwrap()..][..BLOCK].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let open = || Arc::new(FileDrive::open(&path).unwrap());
    // As long as the host has run since, a drive file is as reliable as a drive.
    let refused = mount(open()).map(drop).unwrap_err();
    assert!(matches!(refused, Error::LogDamaged { .. }), "{refused}");
    std::fs::remove_file(folder.path().join("drive.zoned.unsynced")).unwrap();
    let fs = mount(open()).unwrap();
    assert_eq!(read(&fs, "/1.log").unwrap(), [1; 300]);
}

/// If nothing says how far a zone is written, a drive file takes the last byte that is not zero as its end. Bytes after
/// the written end are not taken for a missing record: one byte if there is one copy, up to a block if there are two.
#[test]
fn damage_behind_the_end_of_a_drive_in_a_file_is_no_record() {
    for (copies, size) in [(1, 1), (2, 1), (2, BLOCK)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.zoned");
        let device = Arc::new(FileDrive::create(&path, &geometry(40, 0, 0), "").unwrap());
        format_copies(&*device, Role::Alone, copies);
        let fs = mount(device.clone()).unwrap();
        let mut log = fs.create("/1.log").unwrap();
        for part in 0..8 {
            log.append(&[part; 300]).unwrap();
            log.sync().unwrap();
        }
        let expected = read(&fs, "/1.log").unwrap();
        drop((log, fs, device));
        let good = std::fs::read(&path).unwrap();
        let ends = (0..good.len() - BLOCK).step_by(BLOCK).filter(|at| {
            let is_record = good[*at..].starts_with(b"BFWR") || good[*at..].starts_with(b"BFJL");
            is_record && good[at + BLOCK..][..BLOCK].iter().all(|byte| *byte == 0)
        });
        let mut moved = 0;
        for end in ends.map(|at| at + BLOCK) {
            for behind in [0, BLOCK] {
                let mut bytes = good.clone();
                bytes[end + behind + 100..][..size.min(BLOCK - 100)].fill(4);
                std::fs::write(&path, bytes).unwrap();
                let drive = Arc::new(FileDrive::open(&path).unwrap());
                let read_only = MountOptions {
                    read_only: true,
                    ..MountOptions::default()
                };
                let fs = BlueFs::mount(drive.clone(), pool_of(&*drive), read_only).unwrap();
                assert_eq!(
                    read(&fs, "/1.log").unwrap(),
                    expected,
                    "{copies} {end} {behind}"
                );
                moved += 1;
            }
        }
        assert!(moved > 0);
    }
}

/// A process was killed while the last record was being written to both copies, so one copy may lack it. A record that
/// a later one covers must be in both.
#[test]
fn a_check_takes_the_last_write_in_one_copy_for_no_damage() {
    let device = Arc::new(MemoryDrive::new(geometry(40, 0, 0)).unwrap());
    format_copies(&*device, Role::Alone, 2);
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/1.log").unwrap();
    for part in 0..8 {
        log.append(&[part; 300]).unwrap();
        log.sync().unwrap();
    }
    let at = fs.extents("/1.log").unwrap()[0].at.zone;
    drop((log, fs));
    let report = device.report(ZoneId(0), 40).unwrap();
    let twins = BlueFs::observe(&*device, &report).unwrap().twins;
    let is_log = |(zone, twin): &(ZoneId, ZoneId)| *zone == at || *twin == at;
    let (zone, twin) = twins.into_iter().find(is_log).unwrap();
    for short in [zone, twin] {
        for lacks in [1, 2] {
            let drive = Arc::new(device.snapshot());
            let end = report[short.index()].write_pointer;
            roll_back(&drive, short, end - lacks * BLOCK as u64);
            let read_only = MountOptions {
                read_only: true,
                ..MountOptions::default()
            };
            let fs = BlueFs::mount(drive.clone(), pool_of(&*drive), read_only).unwrap();
            let found = fs.check(true).unwrap();
            assert_eq!(found.is_clean(), lacks == 1, "{short} {lacks}: {found:?}");
            drop(fs);
            let fs = mount(drive).unwrap();
            assert!(fs.check(true).unwrap().is_clean());
        }
    }
}

fn roll_back(drive: &MemoryDrive, zone: ZoneId, end: u64) {
    let start = drive.geometry().start(zone);
    let mut bytes = vec![0; end as usize];
    if end > 0 {
        drive.read(start, &mut bytes).unwrap();
    }
    drive.reset(zone).unwrap();
    if end > 0 {
        drive.write(start, &bytes).unwrap();
    }
}
