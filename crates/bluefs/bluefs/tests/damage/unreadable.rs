//! Blocks of the journal and of logs that cannot be read count as damaged ones; those behind the ends of both refuse no
//! mount.

use super::journal_counted::frames;
use super::*;
use crate::worn_out::BadBlocks;
use device::changed::Changed;
use device::faults::{Fault, Faults, Plan};
use std::io::ErrorKind;
use zone::{Geometry, ZoneCommand};

const FILES: usize = 10;

type Drive = Arc<Changed<MemoryDrive, BadBlocks>>;

fn drive(drive: MemoryDrive) -> Drive {
    let change = BadBlocks::default();
    Arc::new(Changed { drive, change })
}

/// A drive with this many conventional zones, and one copy of its files. The process was killed.
fn killed(conventional: u32) -> (Drive, u64) {
    let g = Geometry {
        zone_size: 128 << 10,
        zone_capacity: 128 << 10,
        ..geometry(40, conventional, 0)
    };
    let drive = drive(MemoryDrive::new(g).unwrap());
    format_copies(&*drive, Role::Alone, 1);
    let fs = mount(drive.clone()).unwrap();
    for number in 0..FILES {
        support::put(&fs, &format!("/{number}.sst"), &[number as u8; 700]);
    }
    let mut log = fs.create("/1.log").unwrap();
    for part in 0..FILES {
        log.append(&[part as u8; 300]).unwrap();
        log.sync().unwrap();
    }
    let epoch = fs.info().journal_epoch;
    drop((log, fs));
    (drive, epoch)
}

fn log_bytes() -> Vec<u8> {
    (0..FILES).flat_map(|part| [part as u8; 300]).collect()
}

fn spoil(drive: &Drive, at: ZoneAddress) {
    let bad = drive.geometry().absolute(at).0;
    drive.change.0.lock().unwrap().push(bad);
}

fn blocks_on(at: ZoneAddress, blocks: u64) -> ZoneAddress {
    ZoneAddress::new(at.zone, at.offset + blocks * BLOCK as u64)
}

/// The address of each frame of the journal, and its end.
fn journal(drive: &Drive, epoch: u64) -> (Vec<ZoneAddress>, ZoneAddress) {
    let frames: Vec<ZoneAddress> = frames(&drive.drive, epoch)
        .into_values()
        .flatten()
        .collect();
    let last = *frames.last().unwrap();
    let mut behind = (1..).map(|blocks| blocks_on(last, blocks));
    let end = behind.find(|at| block(&drive.drive, *at) == [0; BLOCK]);
    (frames, end.unwrap())
}

/// The records of the log, each of one block.
fn records(drive: &Drive) -> Vec<ZoneAddress> {
    let g = drive.geometry();
    let blocks = g.zones().flat_map(|zone| {
        let offsets = (0..g.zone_capacity).step_by(BLOCK);
        offsets.map(move |offset| ZoneAddress::new(zone, offset))
    });
    let records: Vec<ZoneAddress> = blocks
        .filter(|at| block(&drive.drive, *at).starts_with(b"BFWR"))
        .collect();
    assert_eq!(records.len(), FILES);
    records
}

#[track_caller]
fn all_there(fs: &BlueFs) {
    for number in 0..FILES {
        let data = read(fs, &format!("/{number}.sst")).unwrap();
        assert_eq!(data, [number as u8; 700]);
    }
    assert_eq!(read(fs, "/1.log").unwrap(), log_bytes());
}

fn accepting(device: Arc<dyn ZonedDevice>) -> Result<BlueFs, Error> {
    let options = MountOptions {
        accept_damage: true,
        ..MountOptions::default()
    };
    BlueFs::mount(device.clone(), pool_of(&*device), options)
}

#[test]
fn behind_the_journal_and_behind_a_log_it_refuses_no_mount() {
    for distance in [0, 100] {
        let (drive, epoch) = killed(4);
        let (_, end) = journal(&drive, epoch);
        assert_eq!(drive.geometry().kind(end.zone), ZoneKind::Conventional);
        spoil(&drive, blocks_on(end, distance));
        all_there(&mount_in(drive.clone(), pool_of(&*drive), true).unwrap());
        all_there(&mount(drive.clone()).unwrap());
        all_there(&mount(drive).unwrap());
    }
    let (drive, _) = killed(40);
    let last = *records(&drive).last().unwrap();
    spoil(&drive, blocks_on(last, 1));
    all_there(&mount_in(drive.clone(), pool_of(&*drive), true).unwrap());
    all_there(&mount(drive.clone()).unwrap());
    all_there(&mount(drive).unwrap());
}

/// A drive without empty zones, where the rest of the zone of `/1.log` went to a file of these bytes: the file and its place
/// there.
fn with_a_file_behind_a_log(bytes: &[u8]) -> (Drive, BlueFs, String, ZoneAddress) {
    let drive = drive(MemoryDrive::new(geometry(40, 0, 0)).unwrap());
    format_copies(&*drive, Role::Alone, 1);
    let fs = mount(drive.clone()).unwrap();
    support::write(&fs, "/1.log", &[1; 300]).unwrap();
    let zone = fs.extents("/1.log").unwrap()[0].at.zone;
    let behind_the_log = |path: &String| {
        support::write(&fs, path, bytes).unwrap();
        let extents = fs.extents(path).unwrap();
        extents.iter().find(|e| e.at.zone == zone).map(|e| e.at)
    };
    let mut paths = (0..40).map(|n| format!("/{n}.sst"));
    let (path, at) = paths
        .find_map(|path| behind_the_log(&path).map(|at| (path, at)))
        .unwrap();
    (drive, fs, path, at)
}

/// What the file has lost, or the record in front of it, is no loss of the log.
#[test]
fn at_the_start_of_a_file_behind_a_log_it_refuses_no_mount() {
    for byte in [2, 0] {
        let (drive, fs, path, at) = with_a_file_behind_a_log(&[byte; 20_000]);
        drop(fs);
        let before = ZoneAddress::new(at.zone, at.offset - BLOCK as u64);
        spoil(&drive, if byte == 0 { before } else { at });
        let fs = mount(drive).unwrap();
        assert_eq!(read(&fs, "/1.log").unwrap(), [1; 300]);
        match read(&fs, &path) {
            Ok(bytes) => assert!(byte == 0 && bytes == [0; 20_000]),
            Err(error) => assert!(byte == 2 && matches!(error, Error::Drive(_)), "{error}"),
        }
    }
}

/// The file is behind it without any record in between.
#[test]
fn the_last_record_of_a_log_that_was_just_closed_is_missed_in_front_of_a_file() {
    let drive = drive(MemoryDrive::new(geometry(40, 0, 0)).unwrap());
    format_copies(&*drive, Role::Alone, 1);
    let fs = mount(drive.clone()).unwrap();
    let mut log = fs.create("/1.log").unwrap();
    let mut append = |byte| {
        log.append(&[byte; 300]).unwrap();
        log.sync().unwrap();
    };
    append(1);
    // Until no empty zone is left.
    let mut paths = (0..).map(|n| format!("/{n}.sst"));
    let full = paths.find(|path| support::write(&fs, path, &[2; 20_000]).is_err());
    fs.delete(&full.unwrap()).unwrap();
    append(3);
    drop(log);
    support::write(&fs, "/last.sst", &[2; 700]).unwrap();
    let last = fs.extents("/last.sst").unwrap()[0].at;
    let record = ZoneAddress::new(last.zone, last.offset - BLOCK as u64);
    // Behind the header.
    let payload = fs.extents("/1.log").unwrap()[1].at;
    assert_eq!(payload.zone, record.zone);
    assert!((record.offset..last.offset).contains(&payload.offset));
    drop(fs);
    // A sector of the medium may be larger than a block, so that the start of the file is bad, too.
    for bad in [record, last] {
        spoil(&drive, bad);
        let refused = mount(drive.clone()).map(drop).unwrap_err();
        assert!(matches!(refused, Error::LogDamaged { .. }), "{refused}");
    }
}

#[test]
fn what_a_removed_file_began_with_behind_a_log_refuses_no_mount() {
    let mut as_a_record = [1; 20_000];
    as_a_record[..4].copy_from_slice(b"BFWR");
    for bytes in [[0; 20_000], as_a_record] {
        let (drive, fs, path, _) = with_a_file_behind_a_log(&bytes);
        fs.delete(&path).unwrap();
        fs.sync_metadata().unwrap();
        drop(fs);
        let fs = mount(drive).unwrap();
        assert_eq!(read(&fs, "/1.log").unwrap(), [1; 300]);
    }
}

#[test]
fn in_a_durable_frame_it_is_damage_that_can_be_accepted() {
    for conventional in [0, 4] {
        let (drive, epoch) = killed(conventional);
        let (frames, _) = journal(&drive, epoch);
        let bad = frames[frames.len() / 2];
        spoil(&drive, bad);
        let refused = mount(drive.clone()).map(drop).unwrap_err();
        assert!(
            matches!(refused, Error::JournalDamaged { at, missing: 1, .. } if at == bad),
            "{refused}"
        );
        drop(mount_in(drive.clone(), pool_of(&*drive), true).unwrap());
        drop(accepting(drive.clone()).unwrap());
        assert_eq!(read(&mount(drive).unwrap(), "/1.log").unwrap(), log_bytes());
    }
}

/// A search for durability marks reads the blocks beside one that cannot be read.
#[test]
fn it_hides_no_marks_beside_it() {
    let (drive, _) = killed(40);
    let records = records(&drive);
    let damaged = records[FILES - 4];
    drive.drive.decay(damaged, 300, |bytes| bytes[200] ^= 1);
    // The marks in the records beside it are the last ones.
    spoil(&drive, records[FILES - 2]);
    let refused = mount(drive).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::LogDamaged { at, .. } if at == damaged),
        "{refused}"
    );
}

/// Only the last step before the kill may be missing, and only where no write pointer proves it.
#[test]
fn whichever_block_it_is_nothing_is_lost_in_silence() {
    for history in HISTORIES {
        for conventional in [0, 40] {
            let past = Past::in_copies(1, history, conventional, 0, false);
            let mut refused = 0;
            for at in &past.blocks {
                let told = format!("{}: {at}", past.name);
                let drive = drive(past.device.snapshot());
                spoil(&drive, *at);
                match mount(drive.clone()) {
                    Ok(fs) => match readable(&fs) {
                        Ok(found) if found == past.all => {}
                        Ok(found) => {
                            assert!(conventional > 0 && found == past.before[0], "{told}");
                        }
                        // A block of an SST.
                        Err(error) => assert!(matches!(error, Error::Drive(_)), "{told}: {error}"),
                    },
                    Err(error) => {
                        assert!(error.is_damage(), "{told}: {error}");
                        refused += 1;
                        let accepted = accepting(drive).map(drop);
                        assert!(accepted.is_ok(), "{told}: {accepted:?}");
                    }
                }
            }
            assert!(refused > 0, "{}", past.name);
        }
    }
}

/// Even a mount that accepts damage takes nothing for lost because the drive answers no reads for a while.
#[test]
fn a_drive_that_answers_no_reads_loses_nothing() {
    for (history, conventional) in [(LOGS, 0), (LOGS, 40), (MOUNTS, 4)] {
        let past = Past::in_copies(1, history, conventional, 0, false);
        for kth in 1.. {
            let drive = Arc::new(Faults::new(past.device.snapshot()));
            let fault = Fault::Io(ErrorKind::Other);
            drive.add(Plan::from(ZoneCommand::Read, kth, fault));
            drop(accepting(drive.clone()));
            let struck = drive.struck();
            drive.clear();
            let told = format!("{}: read {kth}", past.name);
            let fs = mount(drive).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(contents(&fs), past.all, "{told}");
            if struck == 0 {
                assert!(kth > 3, "{told}");
                break;
            }
        }
    }
}

/// Nor does a mount take a damaged log for a shorter one because the drive answers none of the reads that look for
/// marks.
#[test]
fn a_drive_that_answers_no_reads_hides_no_damage() {
    const READS: u64 = 40;
    let (killed, _) = killed(40);
    let damaged = records(&killed)[FILES - 4];
    killed.drive.decay(damaged, 300, |bytes| bytes[200] ^= 1);
    for kth in 1.. {
        let drive = Arc::new(Faults::new(killed.drive.snapshot()));
        for kth in kth..kth + READS {
            drive.add(Plan::at(
                ZoneCommand::Read,
                kth,
                Fault::Io(ErrorKind::Other),
            ));
        }
        assert!(mount(drive.clone()).is_err(), "read {kth}");
        if drive.struck() == 0 {
            assert!(kth > 3);
            break;
        }
    }
}
