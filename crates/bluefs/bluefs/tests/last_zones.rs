//! The order in which files get the last free zones, and logs that got none.

use crate::support::*;
use bluefs::{BlueFs, Error, Role, Writer};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Plan};
use std::collections::VecDeque;
use std::sync::Arc;
use zone::ZoneCommand;

fn fresh() -> (Arc<MemoryDrive>, BlueFs) {
    let device = Arc::new(MemoryDrive::new(geometry(40, 2, 0)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    (device, fs)
}

/// Appends and syncs one block at a time until there is no space. Returns the number of blocks.
fn fill(writer: &mut Writer) -> usize {
    for count in 0.. {
        match writer.append(&[7; 512]).and_then(|()| writer.sync()) {
            Ok(()) => {}
            Err(Error::NoSpace { .. }) => return count,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

/// A database that cannot compact continues; one that cannot flush its memtable continues for a while; one without a
/// log stops. So compactions must leave zones to flushes, and these to logs.
#[test]
fn compactions_leave_zones_to_memtables_and_these_to_logs() {
    let (_device, fs) = fresh();
    let mut compaction = fs.create("/000001.sst").unwrap();
    compaction.set_background(true);
    assert!(fill(&mut compaction) > 400);
    let mut memtable = fs.create("/000002.sst").unwrap();
    assert!(fill(&mut memtable) > 20);
    let mut log = fs.create("/000003.log").unwrap();
    assert!(fill(&mut log) > 20);
}

/// LevelDB rewrites `CURRENT` whenever it opens a database, and a full database has to be opened before anything in it
/// can be deleted.
#[test]
fn what_says_which_manifest_is_current_finds_room_on_a_full_drive() {
    let (_device, fs) = fresh();
    for (n, name) in ["/000001.sst", "/000002.log", "/MANIFEST-000003"]
        .iter()
        .enumerate()
    {
        let mut writer = fs.create(name).unwrap();
        assert!(fill(&mut writer) > 0 || n > 0);
    }
    let other = fs.create("/000004.sst").unwrap().append(&[7; 512]);
    let mut plain = fs.create("/000005.sst").unwrap();
    let refused = other
        .and_then(|()| plain.append(&[7; 512]))
        .and_then(|()| plain.sync());
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    for n in 6..20 {
        let name = format!("/{n:06}.dbtmp");
        let mut current = fs.create(&name).unwrap();
        current.append(b"MANIFEST-000003").unwrap();
        current.sync().unwrap();
        fs.rename(&name, "/CURRENT").unwrap();
    }
}

/// A log that found no space lacks a piece, so it takes no more appends: records after the gap must not come back.
#[test]
fn a_log_that_found_no_space_takes_nothing_more() {
    let (device, fs) = fresh();
    let mut filler = fs.create("/000001.sst").unwrap();
    let mut log = fs.create("/000002.log").unwrap();
    log.append(b"first").unwrap();
    log.sync().unwrap();
    fill(&mut filler);
    let synced = fill(&mut log);
    let size = log.size();
    drop(filler);
    fs.delete("/000001.sst").unwrap();
    fs.sync_metadata().unwrap();
    let late = log.append(b"late").and_then(|()| log.sync());
    assert!(matches!(late, Err(Error::NoSpace { .. })), "{late:?}");
    drop(log);
    assert!(fs.metadata("/000002.log").unwrap().size <= size);
    // Another file can use the space.
    let mut other = fs.create("/000003.log").unwrap();
    other.append(&[1; 4096]).unwrap();
    other.sync().unwrap();
    drop(other);
    // The append whose sync failed may be there as a whole, if space was found later.
    fs.unmount().unwrap();
    drop(fs);
    let found = read(&mount(device).unwrap(), "/000002.log").unwrap();
    let appended = [b"first", [7; 512].repeat(synced + 1).as_slice()].concat();
    assert!(appended.starts_with(&found));
    let least = 5 + synced * 512;
    assert!(
        [least, least + 512].contains(&found.len()),
        "{}",
        found.len()
    );
}

/// While resets fail, each move takes a zone and gives none back, also of those that logs leave to moves only.
#[test]
fn a_log_is_told_before_it_finds_no_space() {
    for seed in 0..40 {
        let copies = 1 + seed as u32 % 2;
        let drive = MemoryDrive::new(geometry(60, 0, 0)).unwrap();
        format_copies(&drive, Role::Alone, copies);
        let device = Arc::new(Faults::new(drive));
        let fs = mount(device.clone()).unwrap();
        let fault = Fault::Io(std::io::ErrorKind::Other);
        device.add(Plan::from(ZoneCommand::Reset, 1, fault));
        let mut random = Random(seed);
        let mut tables = VecDeque::new();
        let mut log = fs.create("/000000.log").unwrap();
        for step in 1.. {
            match random.below(8) {
                0 => {
                    let name = format!("/{step:06}.sst");
                    match write(&fs, &name, &vec![1; random.size() as usize]) {
                        Ok(()) => tables.push_back(name),
                        Err(Error::NoSpace { .. }) => fs.delete(&name).unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
                1 => tables
                    .pop_front()
                    .iter()
                    .for_each(|table| fs.delete(table).unwrap()),
                2 => assert!(
                    !matches!(fs.reclaim(), Err(error) if !matches!(error, Error::NoSpace { .. }))
                ),
                _ => {
                    let bytes = 1 + random.below(4000);
                    if !fs.takes_log(bytes) {
                        break;
                    }
                    let written = log
                        .append(&vec![7; bytes as usize])
                        .and_then(|()| log.sync());
                    assert!(written.is_ok(), "{copies}, {seed}, {step}: {written:?}");
                }
            }
        }
        assert!(device.struck() > 0, "{copies}, {seed}");
        // And not much too early.
        let zones = fill(&mut log) * 512 / (24 << 10);
        assert!(zones < 4, "{copies}, {seed}: {zones}");
        assert_clean(&fs);
    }
}

/// With two open zones, the log shares one with the manifest.
#[test]
fn a_log_that_has_room_in_a_shared_zone_is_told_so() {
    let device = Arc::new(MemoryDrive::new(geometry(40, 0, 5)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device).unwrap();
    let mut manifest = fs.create("/MANIFEST-000001").unwrap();
    manifest.append(&[7; 400]).unwrap();
    manifest.sync().unwrap();
    let mut log = fs.create("/000002.log").unwrap();
    log.append(&[7; 400]).unwrap();
    log.sync().unwrap();
    fill(&mut fs.create("/000003.sst").unwrap());
    assert!(fs.takes_log(400));
    assert!(fill(&mut log) > 20);
    assert!(!fs.takes_log(400));
}

/// Whether a log of `records` records finds space; the log is deleted afterwards.
fn writes_log(fs: &BlueFs, name: &str, records: u64) -> bool {
    let mut log = fs.create(name).unwrap();
    let mut record = || log.append(&[7; 400]).and_then(|()| log.sync());
    let written = (0..records).try_for_each(|_| record());
    drop(log);
    fs.delete(name).unwrap();
    match written {
        Ok(()) => true,
        Err(Error::NoSpace { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A part of every zone is dead, so there is space, but live data has to be moved together first. Moving stays possible
/// whoever takes the last zones meanwhile, for few bytes or for many.
#[test]
fn nobody_takes_the_room_that_moving_needs() {
    for round in 0..20 {
        let device = Arc::new(MemoryDrive::new(geometry(40, 0, 0)).unwrap());
        format(&*device, Role::Alone);
        let fs = mount(device.clone()).unwrap();
        let mut random = Random(round);
        let mut files = Vec::new();
        loop {
            let name = format!("/{:06}.sst", files.len());
            match write(&fs, &name, &vec![1; 1 + random.below(9000) as usize]) {
                Ok(()) => files.push(name),
                Err(Error::NoSpace { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let _ = fs.delete(&format!("/{:06}.sst", files.len()));
        let mut live = VecDeque::new();
        for name in files {
            match random.below(5) {
                0 => fs.delete(&name).unwrap(),
                _ => live.push_back(name),
            }
        }
        for step in 0..1000 {
            match random.below(4) {
                0 => {
                    let name = format!("/{step:06}.dbtmp");
                    write(&fs, &name, b"MANIFEST-000001\n").unwrap();
                    fs.rename(&name, "/CURRENT").unwrap();
                }
                1 => {
                    let name = format!("/{step:06}.log");
                    let records = 1 + random.below(20);
                    if !writes_log(&fs, &name, records) {
                        // If four zones' worth of files are deleted, the log can be written, wherever that space is.
                        let mut freed = 0;
                        while freed < 96 << 10 {
                            let file = live.pop_front().unwrap();
                            freed += fs.metadata(&file).unwrap().size;
                            fs.delete(&file).unwrap();
                        }
                        assert!(writes_log(&fs, &name, records), "{round}, {step}");
                    }
                }
                _ => {
                    let name = format!("/n{step:06}.sst");
                    let background = random.below(2) == 0;
                    let bytes = vec![2; 1 + random.below(9000) as usize];
                    let written = fs.create(&name).and_then(|mut file| {
                        file.set_background(background);
                        file.append(&bytes)?;
                        file.sync()
                    });
                    match written {
                        Ok(()) => live.push_back(name),
                        Err(Error::NoSpace { .. }) => _ = fs.delete(&name),
                        Err(error) => panic!("{error}"),
                    }
                    if random.below(2) == 0 {
                        fs.delete(&live.pop_front().unwrap()).unwrap();
                    }
                }
            }
        }
        assert_clean(&fs);
    }
}
