//! Damage and read errors in every file of a database: reads return the right rows or an error. RocksDB asserts which
//! kinds of errors it gets, so one of another kind would end the process.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bluefs::{BlueFs, MountOptions};
use device::{MemoryDrive, ZonedDevice};
use kv::{Durability, Error, Kv};
use kv_rocksdb::RocksDb;
use std::sync::Arc;
use support::*;
use zone::{ZoneAddress, ZoneCondition, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

/// A drive with a database that has SSTs and a log.
fn with_database() -> MemoryDrive {
    let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
    format(&*drive);
    let fs = mount(&drive);
    let kv = open(&fs);
    for number in 0..200 {
        kv.write(&numbered(number, 900), Durability::Buffered)
            .unwrap();
        if number % 50 == 49 {
            kv.flush().unwrap();
        }
    }
    for number in 200..230 {
        kv.write(&numbered(number, 900), Durability::Synced)
            .unwrap();
    }
    kv.close().unwrap();
    fs.unmount().unwrap();
    drive.snapshot()
}

/// The name of each file, and the address and length of each of its extents.
fn files(drive: &MemoryDrive) -> Vec<(String, Vec<(ZoneAddress, u64)>)> {
    let fs = mount_read_only(&Arc::new(drive.snapshot())).unwrap();
    let names = fs.list("/db").unwrap();
    let extents = |name: &String| {
        let extents = fs.extents(&format!("/db/{name}")).unwrap();
        extents.iter().map(|e| (e.at, e.length)).collect()
    };
    names
        .iter()
        .map(|name| (name.clone(), extents(name)))
        .collect()
}

fn mount_read_only(drive: &Arc<impl ZonedDevice + 'static>) -> Result<BlueFs, bluefs::Error> {
    let g = drive.geometry().clone();
    let report = drive.report(ZoneId(0), g.zone_count)?;
    let options = MountOptions {
        read_only: true,
        ..MountOptions::default()
    };
    BlueFs::mount(drive.clone(), Arc::new(ZonePool::new(g, &report)), options)
}

/// A copy of the drive with one bit flipped.
fn flipped(drive: &MemoryDrive, zone: ZoneId, offset: u64) -> MemoryDrive {
    let copy = drive.snapshot();
    let g = copy.geometry().clone();
    let length = match copy.report_zone(zone).unwrap() {
        report if report.write_pointer_valid() => report.write_pointer,
        report => report.capacity,
    };
    let mut bytes = vec![0; length as usize];
    copy.read(g.start(zone), &mut bytes).unwrap();
    bytes[offset as usize] ^= 4;
    if g.kind(zone) != ZoneKind::Conventional {
        copy.reset(zone).unwrap();
    }
    copy.write(g.start(zone), &bytes).unwrap();
    copy
}

/// The number of rows, or the error that opening or reading the database returns.
fn contents(fs: &BlueFs, read_only: bool) -> Result<usize, Error> {
    let options = if read_only {
        support::read_only()
    } else {
        options()
    };
    let kv = Kv::open(&RocksDb, fs, "/db", &options, None)?;
    let mut count = 0;
    for row in kv.scan(b"k", Some(b"l")) {
        let (row, value) = row?;
        assert_eq!(row, key(count as u32));
        assert!(value.iter().all(|byte| *byte == count as u8));
        count += 1;
    }
    if !read_only {
        write_more(&kv)?;
    }
    kv.close()?;
    Ok(count)
}

fn write_more(kv: &Kv) -> Result<(), Error> {
    let mut batch = kv::Batch::default();
    batch.put(b"more", b"and more");
    kv.write(&batch, Durability::Synced)?;
    kv.flush()
}

/// Asserts that the database is whole, or that opening or reading it fails; it never has fewer rows.
fn examine(name: &str, told: &str, fs: &BlueFs, read_only: bool) {
    match contents(fs, read_only) {
        Ok(count) => assert_eq!(count, 230, "{name} {told}"),
        Err(error) => {
            // Neither opening nor reading needs these files.
            let spare = ["IDENTITY", "LOG", "LOCK"].contains(&name) || name.starts_with("OPTIONS");
            assert!(!spare, "{name} {told}: {error}");
        }
    }
}

#[test]
fn a_flip_in_any_file_is_an_error_or_nothing() {
    let good = with_database();
    let mut seen = Vec::new();
    for (name, extents) in files(&good) {
        seen.push(name.clone());
        for (at, length) in extents {
            for offset in [0, length / 2, length - 1] {
                let drive = Arc::new(flipped(&good, at.zone, at.offset + offset));
                let told = format!("flipped at {at} and {offset}");
                if let Ok(fs) = mount_read_only(&drive) {
                    if fs.damage().is_empty() {
                        examine(&name, &told, &fs, true);
                    } else {
                        drop(contents(&fs, true));
                    }
                }
                let Ok(fs) = try_mount(&drive) else {
                    continue;
                };
                examine(&name, &told, &fs, false);
                fs.unmount().unwrap();
                if name == "IDENTITY" {
                    // The file was rewritten.
                    let fs = mount(&drive);
                    assert!(fs.check(true).unwrap().is_clean());
                    assert_eq!(fs.metadata("/db/IDENTITY").unwrap().size, 36);
                }
            }
        }
    }
    for kind in [
        "CURRENT",
        "IDENTITY",
        "MANIFEST-",
        "OPTIONS-",
        "LOG",
        ".sst",
        ".log",
    ] {
        assert!(
            seen.iter().any(|name| name.contains(kind)),
            "{kind}: {seen:?}"
        );
    }
}

#[test]
fn a_read_error_in_any_file_is_an_error_or_nothing() {
    let good = with_database();
    for (name, extents) in files(&good) {
        for (at, length) in extents {
            for read_only in [true, false] {
                let drive = breakable(good.snapshot());
                let fs = if read_only {
                    mount_read_only(&drive).unwrap()
                } else {
                    mount(&drive)
                };
                let from = drive.geometry().absolute(at).0;
                *drive.change.0.lock().unwrap() = (from..from + length, u32::MAX);
                examine(&name, "cannot be read", &fs, read_only);
            }
        }
    }
}

/// RocksDB's point-in-time recovery takes some errors of a log for the log's end, and would continue without the rest.
#[test]
fn a_log_in_a_zone_that_is_offline_is_no_shorter_log() {
    let good = with_database();
    let files = files(&good);
    let log = files.iter().find(|(name, _)| name.ends_with(".log"));
    let (_, extents) = log.expect("a log that the SSTs do not hold");
    for read_only in [true, false] {
        let drive = Arc::new(good.snapshot());
        drive
            .set_condition(extents[0].0.zone, ZoneCondition::Offline)
            .unwrap();
        let fs = if read_only {
            mount_read_only(&drive).unwrap()
        } else {
            mount(&drive)
        };
        let refused = contents(&fs, read_only);
        assert!(refused.is_err(), "{refused:?}");
    }
}

/// Enough rows to fill several SSTs of a level.
const LEVEL_ROWS: u32 = 400;

/// Offset of a byte within the first row of an SST.
const FIRST_ROW: u64 = 40;

/// A drive with a database that has several SSTs in a level, and a newer SST with every 20th row.
fn with_a_level() -> MemoryDrive {
    let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
    format(&*drive);
    let fs = mount(&drive);
    let kv = open(&fs);
    for number in 0..LEVEL_ROWS {
        kv.write(&numbered(number, 9000), Durability::Buffered)
            .unwrap();
    }
    kv.compact().unwrap();
    for number in (0..LEVEL_ROWS).step_by(20) {
        kv.write(&numbered(number, 90), Durability::Buffered)
            .unwrap();
    }
    kv.flush().unwrap();
    let tables = |level| kv.property(&format!("rocksdb.num-files-at-level{level}"));
    let most = (1..7)
        .map(|level| tables(level).unwrap().parse::<u32>().unwrap())
        .max();
    // The number of levels over which the SSTs are spread depends on the compactions.
    assert!(most >= Some(2), "{most:?} tables in a level");
    kv.close().unwrap();
    fs.unmount().unwrap();
    drive.snapshot()
}

/// Asserts that a scan from any key returns all rows from there on or an error, and a get its row or an error.
fn rows_or_errors(kv: &Kv, told: &str) {
    for first in (0..LEVEL_ROWS).step_by(80) {
        let mut next = first;
        let rows: Result<Vec<_>, Error> = kv.scan(&key(first), None).collect();
        for (row, value) in rows.iter().flatten() {
            assert_eq!(*row, key(next), "{told}: a hole in a scan");
            assert_eq!(value[0], next as u8, "{told}");
            next += 1;
        }
        assert!(
            rows.is_err() || next == LEVEL_ROWS,
            "{told}: a scan from {first} ends in front of {next}"
        );
    }
    for number in 0..LEVEL_ROWS {
        if let Ok(row) = kv.get(&key(number)) {
            let value = row.unwrap_or_else(|| panic!("{told}: {number} is missing"));
            assert_eq!(value[0], number as u8, "{told}");
        }
    }
}

#[test]
fn damage_behind_the_first_table_of_a_level_is_no_end_of_it() {
    let good = with_a_level();
    for (name, extents) in files(&good) {
        if !name.ends_with(".sst") {
            continue;
        }
        let length: u64 = extents.iter().map(|(_, length)| length).sum();
        let last = extents.len() - 1;
        for (at, offset) in [
            // The first row of an SST, which every reader needs, a place in its middle, and its index.
            (extents[0].0, FIRST_ROW),
            (extents[0].0, extents[0].1 / 2),
            (extents[last].0, extents[last].1.saturating_sub(1500)),
        ] {
            let told = format!("{name} of {length} bytes, flipped at {at} and {offset}");
            let drive = Arc::new(flipped(&good, at.zone, at.offset + offset));
            let fs = mount_read_only(&drive).unwrap();
            if let Ok(kv) = Kv::open(&RocksDb, &fs, "/db", &support::read_only(), None) {
                rows_or_errors(&kv, &format!("{told}, only read"));
                kv.close().unwrap();
            }
            drop(fs);
            let fs = mount(&drive);
            if let Ok(kv) = Kv::open(&RocksDb, &fs, "/db", &options(), None) {
                rows_or_errors(&kv, &told);
                let refused = kv.scan(b"k", None).any(|row| row.is_err());
                assert!(refused || offset != FIRST_ROW, "{told}");
                // Whether the compaction of the damaged SST succeeds or fails, no row is lost without an error.
                let compacted = kv.compact();
                rows_or_errors(&kv, &format!("{told}, then compacted: {compacted:?}"));
                drop(kv.close());
                if let Ok(kv) = Kv::open(&RocksDb, &fs, "/db", &options(), None) {
                    rows_or_errors(&kv, &format!("{told}, then opened again"));
                    drop(kv.close());
                }
            }
            drop(fs.unmount());
        }
    }
}

/// A table of up to 512 KiB is read ahead as a whole where it is opened. That must not fail for a block that nobody asks
/// for: the database opens, and has all rows but those of the block.
#[test]
fn a_small_table_opens_with_a_damaged_block() {
    let good = with_database();
    let tables = files(&good).into_iter();
    let tables = tables.filter(|(name, _)| name.ends_with(".sst"));
    let mut opened = 0;
    for (at, length) in tables.flat_map(|(_, extents)| extents) {
        assert!(length < 512 << 10, "{length}");
        let drive = Arc::new(flipped(&good, at.zone, at.offset));
        let fs = mount(&drive);
        let kv = Kv::open(&RocksDb, &fs, "/db", &options(), None).unwrap();
        let rows = (0..230).map(|number| kv.get(&key(number)));
        let (found, failed): (Vec<_>, Vec<_>) = rows.partition(Result::is_ok);
        assert!(found.iter().all(|row| matches!(row, Ok(Some(_)))));
        assert!((1..40).contains(&failed.len()), "{}", failed.len());
        for row in failed {
            let error = row.unwrap_err();
            assert!(matches!(error, Error::Corruption { .. }), "{error}");
        }
        opened += 1;
    }
    assert!(opened > 2, "{opened}");
}
