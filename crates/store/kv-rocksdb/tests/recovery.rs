//! SSTs that cannot be read for a while or for good: writes succeed or are refused with the reason, reads of other SSTs
//! succeed, and the database recovers when the SST can be read again.

#![allow(clippy::unwrap_used)]

mod support;

use device::changed::Changed;
use device::{MemoryDrive, ZonedDevice};
use kv::{Durability, Error, Kv, Options};
use kv_rocksdb::RocksDb;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::*;

type Drive = Changed<MemoryDrive, Unreadable>;

/// Timeout; only a failing test waits this long.
const FOR_EVER: Duration = Duration::from_secs(300);
const NOTHING: Range<u64> = 0..0;
const EVERYTHING: Range<u64> = 0..u64::MAX;

fn set(drive: &Drive, bytes: Range<u64>) {
    *drive.change.0.lock().unwrap() = (bytes, u32::MAX);
}

/// A database with `rows` rows in compacted SSTs.
fn with_rows(rows: u32) -> (Arc<Drive>, bluefs::BlueFs, Kv) {
    with_rows_and(rows, &options())
}

fn with_rows_and(rows: u32, options: &Options) -> (Arc<Drive>, bluefs::BlueFs, Kv) {
    let drive = breakable(MemoryDrive::new(geometry()).unwrap());
    format(&*drive);
    let fs = mount(&drive);
    let kv = Kv::open(&RocksDb, &fs, "/db", options, None).unwrap();
    for n in 0..rows {
        kv.write(&numbered(n, 9000), Durability::Buffered).unwrap();
    }
    kv.compact().unwrap();
    (drive, fs, kv)
}

/// Byte range of the first SST on the drive, which has the first rows.
fn a_table(drive: &Drive, fs: &bluefs::BlueFs) -> Range<u64> {
    let names = fs.list("/db").unwrap();
    let table = names.iter().filter(|name| name.ends_with(".sst")).min();
    let extents = fs.extents(&format!("/db/{}", table.unwrap())).unwrap();
    let from = drive.geometry().absolute(extents[0].at).0;
    from..from + extents[0].length
}

fn level_0(kv: &Kv) -> u32 {
    let found = kv.property("rocksdb.num-files-at-level0");
    found.unwrap().parse().unwrap()
}

/// Overwrites every tenth row, in a new SST each time, `times` times or until a write is refused.
fn overwrite(kv: &Kv, rows: u32, times: u32) -> Result<(), Error> {
    for _ in 0..times {
        for n in (0..rows).step_by(10) {
            kv.write(&numbered(n, 90), Durability::Synced)?;
        }
        kv.flush()?;
    }
    Ok(())
}

/// Waits until writes succeed and compactions have caught up, and asserts that all rows are there.
fn is_whole_again(kv: &Kv, rows: u32) {
    let begun = Instant::now();
    loop {
        let done = overwrite(kv, rows, 1);
        if done.is_ok() && level_0(kv) <= 4 {
            break;
        }
        let tables = level_0(kv);
        assert!(begun.elapsed() < FOR_EVER, "{done:?}, {tables} tables");
        std::thread::yield_now();
    }
    assert_eq!(numbers(kv), (0..rows).collect::<Vec<_>>());
}

#[test]
fn a_table_that_a_compaction_cannot_read_stops_no_write() {
    let (drive, fs, kv) = with_rows(200);
    set(&drive, a_table(&drive, &fs));
    // More than the four SSTs of level 0 that begin a compaction.
    overwrite(&kv, 200, 12).unwrap();
    assert!(level_0(&kv) >= 12, "{} tables", level_0(&kv));
    assert_eq!(kv.get(&key(0)).unwrap().unwrap().len(), 90);
    set(&drive, NOTHING);
    is_whole_again(&kv, 200);
    kv.close().unwrap();
    assert!(fs.check(true).unwrap().is_clean());
    fs.unmount().unwrap();
}

/// A pending compaction begins while the database is being opened, and may fail before that is done.
#[test]
fn a_table_that_a_compaction_cannot_read_stops_no_opening() {
    let (drive, fs, kv) = with_rows(200);
    // The first half of the SST is unreadable; opening reads its end.
    let table = a_table(&drive, &fs);
    set(
        &drive,
        table.start..table.start + (table.end - table.start) / 2,
    );
    overwrite(&kv, 200, 8).unwrap();
    kv.close().unwrap();
    for n in 0..6 {
        let kv = Kv::open(&RocksDb, &fs, "/db", &options(), None).unwrap();
        let put = kv.write(&numbered(n, 90), Durability::Synced);
        assert!(put.is_ok(), "opening {n}: {put:?}");
        kv.close().unwrap();
    }
    fs.unmount().unwrap();
}

/// A failed compaction is tried again once a second. Level 0 is full while some of these attempts fail, and writers
/// wait until the SST can be read again.
#[test]
fn writers_wait_some_tries_for_a_table_that_can_be_read_again() {
    let (drive, fs, mut kv) = with_rows(200);
    set(&drive, a_table(&drive, &fs));
    let begun = Instant::now();
    overwrite(&kv, 200, 20).unwrap();
    assert!(level_0(&kv) >= 20, "{} tables", level_0(&kv));
    std::thread::sleep(Duration::from_secs(4));
    set(&drive, NOTHING);
    // This thread had no turn for so long that the tries, 30 of them, may be used up.
    if begun.elapsed() > Duration::from_secs(20) {
        drop(kv);
        kv = open(&fs);
    }
    is_whole_again(&kv, 200);
    kv.close().unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_flush_that_cannot_read_back_its_table_for_a_moment_stops_no_write() {
    let (drive, fs, kv) = with_rows(10);
    *drive.change.0.lock().unwrap() = (EVERYTHING, 3);
    kv.write(&numbered(10, 9000), Durability::Synced).unwrap();
    kv.flush().unwrap();
    assert_eq!(drive.change.0.lock().unwrap().1, 0);
    kv.write(&numbered(11, 9000), Durability::Synced).unwrap();
    assert_eq!(numbers(&kv), (0..12).collect::<Vec<_>>());
    kv.close().unwrap();
    fs.unmount().unwrap();
}

/// Options with which level 0 is bounded by what a compaction may take, so that writers wait at far fewer SSTs.
fn few() -> Options {
    Options {
        max_compaction_bytes: 6 << 20,
        ..options()
    }
}

#[test]
fn a_table_that_can_never_be_read_refuses_writes_in_the_end_and_says_why() {
    for options in [options(), few()] {
        let (drive, fs, kv) = with_rows_and(200, &options);
        let lost = a_table(&drive, &fs);
        set(&drive, lost.clone());
        let refused = overwrite(&kv, 200, 40).unwrap_err();
        assert!(
            matches!(&refused, Error::Stopped { message } if message.contains(".sst")),
            "{refused}"
        );
        for n in (0..200).step_by(10) {
            assert_eq!(kv.get(&key(n)).unwrap().unwrap().len(), 90);
        }
        assert!(numbers_until_an_error(&kv) > 0);
        // Once the SST can be read again, the database recovers.
        set(&drive, NOTHING);
        drop(kv);
        let kv = Kv::open(&RocksDb, &fs, "/db", &options, None).unwrap();
        is_whole_again(&kv, 200);
        kv.close().unwrap();
        fs.unmount().unwrap();
    }
}

/// The file system fails while writers wait for a compaction of level 0 that cannot come any more: they get an error.
#[test]
fn a_drive_that_is_gone_lets_nobody_wait() {
    let (drive, fs, kv) = with_rows_and(200, &few());
    set(&drive, a_table(&drive, &fs));
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| overwrite(&kv, 200, 40));
        while level_0(&kv) < 8 {
            std::thread::yield_now();
        }
        drive.change.1.store(true, Ordering::Relaxed);
        assert!(
            fs.create("/x")
                .and_then(|mut file| {
                    file.append(&[1])?;
                    file.sync()
                })
                .is_err()
        );
        assert!(matches!(writer.join().unwrap(), Err(Error::Stopped { .. })));
    });
    kv.write(&numbered(0, 90), Durability::Synced).unwrap_err();
    drop(kv);
    drop(fs);
}

fn numbers_until_an_error(kv: &Kv) -> usize {
    kv.scan(b"k0000019", None).take_while(Result::is_ok).count()
}

/// Behind the flush, the log with these rows is removed. The first table of a process is read ahead as a whole.
#[test]
fn a_new_table_with_a_block_that_cannot_be_read_is_no_flushed_one() {
    let write = |kv: &Kv| {
        for n in 0..20 {
            kv.write(&numbered(n, 9000), Durability::Synced).unwrap();
        }
    };
    let (drive, fs, kv) = with_rows(0);
    write(&kv);
    kv.flush().unwrap();
    let table = a_table(&drive, &fs);
    drop((kv, fs));
    let (drive, fs, kv) = with_rows(0);
    write(&kv);
    set(&drive, table.start..table.start + 4096);
    kv.flush().unwrap_err();
    drop(kv);
    set(&drive, NOTHING);
    let kv = open(&fs);
    assert_eq!(numbers(&kv), (0..20).collect::<Vec<_>>());
    kv.close().unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_database_that_refuses_writes_can_be_closed_and_opened() {
    let (drive, fs, kv) = with_rows(20);
    set(&drive, EVERYTHING);
    kv.write(&numbered(20, 9000), Durability::Synced).unwrap();
    kv.flush().unwrap_err();
    drop(kv);
    set(&drive, NOTHING);
    let kv = open(&fs);
    assert_eq!(numbers(&kv), (0..21).collect::<Vec<_>>());
    kv.close().unwrap();
    fs.unmount().unwrap();
}
