//! Unsynced data of logs that survives the end of the process: on a drive file everything flushed, which is noted in a
//! file beside it; on other drives data of a given age.

use crate::support::*;
use bluefs::unsynced::{self, Noted};
use bluefs::{BlueFs, Error, MountOptions, Role};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{FileDrive, MemoryDrive, ZonedDevice};
use proptest::prelude::*;
use runtime::{Clock, Runtime, SimulatedClock};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use zone::{ZoneCommand, ZoneId};

const LOG: &str = "/000001.log";

struct Files {
    _directory: TempDir,
    drive: PathBuf,
    beside: PathBuf,
}

impl Files {
    /// Whether the file beside the drive has notes, which begin behind what it says of host and drive.
    fn has_notes(&self) -> bool {
        std::fs::metadata(&self.beside).is_ok_and(|told| told.len() > 144)
    }
}

fn files() -> Files {
    let directory = TempDir::new().unwrap();
    let drive = directory.path().join("d.zoned");
    let beside = directory.path().join("d.zoned.unsynced");
    let device = FileDrive::create(&drive, &geometry(200, 2, 8), "test").unwrap();
    format(&device, Role::Alone);
    Files {
        _directory: directory,
        drive,
        beside,
    }
}

fn keeping(path: &Path) -> BlueFs {
    keeping_on(Arc::new(FileDrive::open(path).unwrap()))
}

fn keeping_on(device: Arc<dyn ZonedDevice>) -> BlueFs {
    let options = MountOptions {
        keep_unsynced: true,
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    BlueFs::mount(device.clone(), pool(&*device), options).unwrap()
}

/// Mounts without keeping notes, as `zonestore fs` does.
fn plain(path: &Path) -> BlueFs {
    mount(Arc::new(FileDrive::open(path).unwrap())).unwrap()
}

fn bytes(from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|n| (n / 7 % 251) as u8).collect()
}

/// Appends up to `to` bytes, in parts of `part` bytes, and flushes after each.
fn grow(log: &mut bluefs::Writer, to: usize, part: usize) {
    let mut from = log.size() as usize;
    while from < to {
        let next = (from + part).min(to);
        log.append(&bytes(from, next)).unwrap();
        log.flush().unwrap();
        from = next;
    }
}

/// Compares the format document with the file that a mount has written: each row of the tables has the offset of a
/// field, its size, and its name.
#[test]
fn the_document_says_what_is_in_the_file() {
    const DOCUMENT: &str = include_str!("../../../../docs/format/unsynced.md");
    let tables: Vec<Vec<Vec<&str>>> = DOCUMENT
        .split("|---|---|---|")
        .skip(1)
        .map(|table| {
            let lines = table
                .lines()
                .skip(1)
                .take_while(|line| line.starts_with('|'));
            lines
                .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
                .collect()
        })
        .collect();
    let [header, note] = &tables[..] else {
        panic!("{} tables", tables.len())
    };
    let files = files();
    let fs = keeping(&files.drive);
    let info = fs.info();
    let mut one = fs.create(LOG).unwrap();
    grow(&mut one, 300, 300);
    let mut other = fs.create("/000002.log").unwrap();
    grow(&mut other, 70, 70);
    grow(&mut other, 95, 25);
    let found = std::fs::read(&files.beside).unwrap();
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |n, byte| n << 8 | u64::from(*byte))
    };
    let field = |table: &[Vec<&str>], base: usize, name: &str| -> Vec<u8> {
        let row = table
            .iter()
            .find(|row| row[2].starts_with(name))
            .unwrap_or_else(|| panic!("no {name}"));
        let at: usize = row[0].parse().unwrap();
        found[base + at..][..row[1].parse::<usize>().unwrap_or(0)].to_vec()
    };
    assert_eq!(field(header, 0, "magic `ZSUNSYNC`"), b"ZSUNSYNC");
    assert_eq!(number(&field(header, 0, "version: 1")), 1);
    assert_eq!(number(&field(header, 0, "reserved")), 0);
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(
        field(header, 0, "`/proc/sys/kernel/random/boot_id`").starts_with(boot.trim_ascii_end())
    );
    assert_eq!(
        number(&field(header, 0, "magic of the notes: 0x544f4e55")),
        0x544f_4e55
    );
    assert_eq!(field(header, 0, "UUID"), info.uuid);
    // The mount has begun a new epoch.
    let epochs = ["epoch of the journal", "epoch that was about"];
    let epochs = epochs.map(|epoch| number(&field(header, 0, epoch)));
    assert_eq!(epochs, [info.journal_epoch - 1, info.journal_epoch]);
    let end: usize = header
        .iter()
        .find(|row| row[2].starts_with("crc32c"))
        .unwrap()[0]
        .parse()
        .unwrap();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &found[end - 36..end]);
    assert_eq!(number(&field(header, 0, "crc32c of the 36 bytes")), sum);
    // The fields of the file's header and of a note follow each other without gaps.
    let ends = header.windows(2).map(|rows| {
        (
            rows[0][0].parse::<usize>().unwrap() + rows[0][1].parse::<usize>().unwrap(),
            rows[1][0],
        )
    });
    assert!(
        ends.clone()
            .take(header.len() - 2)
            .all(|(end, next)| end.to_string() == next)
    );

    let slots = header
        .iter()
        .find(|row| row[2].starts_with("slots"))
        .unwrap();
    assert_eq!(slots[1], format!("{} MiB each", unsynced::SLOT >> 20));
    let slot: usize = slots[0].parse().unwrap();
    let second = slot + unsynced::SLOT;
    let payload: usize = note.iter().find(|row| row[2] == "the bytes").unwrap()[0]
        .parse()
        .unwrap();
    let mut rounds = Vec::new();
    for (at, inode, offset, length) in [
        (slot, one.inode(), 0, 300),
        (second, other.inode(), 0, 70),
        (second + payload + 70, other.inode(), 70, 25),
    ] {
        assert_eq!(number(&field(note, at, "bytes, at least 1")), length as u64);
        assert_eq!(number(&field(note, at, "inode")), inode);
        assert_eq!(number(&field(note, at, "where in the file")), offset as u64);
        rounds.push(number(&field(note, at, "round")));
        assert_eq!(
            found[at + payload..][..length],
            bytes(offset, offset + length)
        );
        let rest = &found[at + 4..at + payload + length];
        let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, rest);
        assert_eq!(number(&field(note, at, "crc32c of the rest")), sum);
    }
    assert!(rounds[0] != rounds[1] && rounds[1] == rounds[2]);
}

/// Dropped without an unmount, which is a `kill -9` for the file system.
#[test]
fn what_was_flushed_survives_the_process() {
    let files = files();
    for (n, size) in [1, 30_000, 1_100_000, 1_500_000].into_iter().enumerate() {
        let fs = keeping(&files.drive);
        let mut log = fs.reopen(LOG).unwrap();
        grow(&mut log, size, 1001);
        if n == 2 {
            log.sync().unwrap();
            grow(&mut log, size + 5000, 333);
        }
        // Another open log, and one that LevelDB would have let go of unclosed.
        let name = format!("/{:06}.log", n + 10);
        let mut other = fs.create(&name).unwrap();
        grow(&mut other, 3000, 100);
        let mut old = fs.create("/000002.log").unwrap();
        grow(&mut old, 2000, 50);
        old.close().unwrap();
        drop((log, other, old));
        drop(fs);
        assert!(files.has_notes());

        let fs = if n % 2 == 0 {
            plain(&files.drive)
        } else {
            keeping(&files.drive)
        };
        let size = if n == 2 { size + 5000 } else { size };
        assert!(read(&fs, LOG).unwrap() == bytes(0, size), "log of {size}");
        assert!(read(&fs, &name).unwrap() == bytes(0, 3000));
        assert!(read(&fs, "/000002.log").unwrap() == bytes(0, 2000));
        assert_clean(&fs);
        // The next mount makes the data durable before it deletes the notes.
        assert!(!files.has_notes());
        drop(fs);
        assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, size));
    }
}

/// After a power loss of the host, a store has to replay its own log before anything on the drive can be trusted. So
/// beside a store, BlueFS notes that the host runs only after the store has called `record_writes_kept`.
#[test]
fn a_file_system_beside_a_store_does_not_say_that_the_host_runs() {
    for (role, says) in [(Role::Alone, true), (Role::Shared, false)] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("d.zoned");
        let device = Arc::new(FileDrive::create(&path, &geometry(200, 2, 8), "test").unwrap());
        format(&*device, role);
        let fs = mount(device).unwrap();
        let beside = directory.path().join("d.zoned.unsynced");
        assert_eq!(beside.exists(), says, "{role:?}");
        fs.record_writes_kept();
        assert!(beside.exists());
        fs.unmount().unwrap();
        assert!(!beside.exists());
    }
}

#[test]
fn what_was_cut_does_not_come_back() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 1000, 100);
    log.truncate(400).unwrap();
    drop(log);
    drop(fs);
    let found = read(&plain(&files.drive), LOG).unwrap();
    assert!(found == bytes(0, 400), "{}", found.len());
}

/// Notes are removed at the end of the unmount.
#[test]
fn what_is_flushed_during_an_unmount_is_kept_or_refused() {
    let files = files();
    let device = Arc::new(Faults::new(FileDrive::open(&files.drive).unwrap()));
    let fs = keeping_on(device.clone());
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 100, 100);
    log.sync().unwrap();
    let gate = Gate::new();
    device.add(Plan::at(ZoneCommand::Flush, 1, Fault::Stuck(gate.clone())));
    let flushed = std::thread::scope(|scope| {
        let unmount = scope.spawn(|| fs.unmount().unwrap());
        gate.wait_until_stuck(1);
        // There is nothing to write out.
        log.range_sync().unwrap();
        let flushed = log.append(&bytes(100, 200)).and_then(|()| log.flush());
        gate.release();
        unmount.join().unwrap();
        flushed
    });
    drop((log, fs, device));
    let kept = if flushed.is_ok() { 200 } else { 100 };
    assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, kept));
}

/// A file whose writes can fail: it is too short to be mapped while it gets its first bytes.
fn noted_without_a_mapping(files: &Files) -> (BlueFs, bluefs::Writer) {
    let device = Arc::new(FileDrive::create(&files.drive, &geometry(200, 2, 8), "test").unwrap());
    format(&*device, Role::Shared);
    let fs = keeping_on(device);
    let mut log = fs.create(LOG).unwrap();
    log.flush().unwrap();
    limit("200000");
    grow(&mut log, 100, 100);
    limit("unlimited");
    assert!(fs.extents(LOG).unwrap().is_empty());
    (fs, log)
}

fn no_files() -> Files {
    let files = files();
    std::fs::remove_file(&files.drive).unwrap();
    files
}

#[test]
fn a_log_whose_notes_cannot_be_removed_is_not_truncated() {
    if std::env::var_os(LIMITED).is_none() {
        return limited("a_log_whose_notes_cannot_be_removed_is_not_truncated");
    }
    for is_written in [false, true] {
        let files = no_files();
        let (fs, mut log) = noted_without_a_mapping(&files);
        if is_written {
            log.sync().unwrap();
        }
        limit("1000");
        log.truncate(50).unwrap_err();
        assert_eq!(log.size(), 100);
        limit("unlimited");
        log.truncate(50).unwrap();
        fs.sync_metadata().unwrap();
        drop((log, fs));
        assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, 50));
    }
}

#[test]
fn what_was_truncated_in_a_closed_log_does_not_come_back_from_notes_that_stayed() {
    if std::env::var_os(LIMITED).is_none() {
        return limited(
            "what_was_truncated_in_a_closed_log_does_not_come_back_from_notes_that_stayed",
        );
    }
    let files = no_files();
    let (fs, mut log) = noted_without_a_mapping(&files);
    log.sync().unwrap();
    limit("1000");
    log.close().unwrap();
    limit("unlimited");
    fs.truncate(LOG, 10).unwrap();
    fs.sync_metadata().unwrap();
    drop((log, fs));
    assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, 10));
}

/// The journal begins an epoch, and the file beside the drive cannot be told.
#[test]
fn notes_count_as_long_as_no_other_epoch_can_be_noted() {
    if std::env::var_os(LIMITED).is_none() {
        return limited("notes_count_as_long_as_no_other_epoch_can_be_noted");
    }
    let files = no_files();
    let (fs, log) = noted_without_a_mapping(&files);
    drop((fs, log));
    let limit_to = |bytes: &'static str| Fault::Slow(Arc::new(move |_| limit(bytes)));
    let device = Arc::new(Faults::new(FileDrive::open(&files.drive).unwrap()));
    // Of this mount: the flush of what was found, and that of the snapshot, after which the header is written.
    device.add(Plan::at(ZoneCommand::Flush, 2, limit_to("50")));
    for zone in BlueFs::superblock_zones(device.geometry()) {
        device.add(Plan::at(ZoneCommand::Write, 1, limit_to("unlimited")).in_zone(zone));
    }
    let options = MountOptions {
        keep_unsynced: true,
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    let mounted = BlueFs::mount(device.clone(), pool(&*device), options);
    limit("unlimited");
    assert!(mounted.is_err());
    drop((mounted, device));
    assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, 100));
}

/// Mounts while no zone takes the bytes that an earlier process has noted.
fn keeping_without_room(path: &Path) -> BlueFs {
    let info = read_only(path).info();
    let device = Arc::new(Faults::new(FileDrive::open(path).unwrap()));
    let mut metadata = BlueFs::superblock_zones(device.geometry());
    metadata.extend([info.journal_zone, info.spare_zone]);
    let zones = device.geometry().zones();
    for zone in zones.filter(|zone| !metadata.contains(zone)) {
        let fault = Fault::Io(ErrorKind::Other);
        device.add(Plan::from(ZoneCommand::Write, 1, fault).in_zone(zone));
    }
    keeping_on(device)
}

/// What the next mount finds.
fn read_only(path: &Path) -> BlueFs {
    let device = Arc::new(FileDrive::open(path).unwrap());
    mount_in(device.clone(), pool(&*device), true).unwrap()
}

#[test]
fn what_a_mount_without_room_could_not_write_out_stays_noted() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    fs.create("/000002.log").unwrap().sync().unwrap();
    grow(&mut log, 1000, 100);
    drop((log, fs));
    for to in [500, 700] {
        // Notes of another log do not take their place.
        let fs = keeping_without_room(&files.drive);
        grow(&mut fs.reopen("/000002.log").unwrap(), to, 70);
        drop(fs);
    }
    let fs = plain(&files.drive);
    assert!(read(&fs, LOG).unwrap() == bytes(0, 1000));
    assert!(read(&fs, "/000002.log").unwrap() == bytes(0, 700));
    assert!(!files.has_notes());
}

#[test]
fn what_was_cut_does_not_come_back_from_the_notes_of_an_earlier_process() {
    for (synced, size) in [(0, 100), (300, 100), (300, 310)] {
        let files = files();
        let fs = keeping(&files.drive);
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, synced, 100);
        log.sync().unwrap();
        grow(&mut log, synced + 200, 100);
        // Another one, whose bytes are on the drive already.
        let mut other = fs.create("/000002.log").unwrap();
        grow(&mut other, 200, 100);
        other.sync().unwrap();
        let killed = std::fs::read(&files.beside).unwrap();
        drop((log, other, fs));
        std::fs::write(&files.beside, killed).unwrap();
        for _ in 0..3 {
            let fs = keeping_without_room(&files.drive);
            for (path, size) in [(LOG, size), ("/000002.log", 100)] {
                fs.truncate(path, size).unwrap();
                // The last time, in the slot of the first notes.
                fs.reopen(path).unwrap().flush().unwrap();
            }
            fs.sync_metadata().unwrap();
            drop(fs);
            let fs = read_only(&files.drive);
            for (path, size) in [(LOG, size), ("/000002.log", 100)] {
                assert!(
                    read(&fs, path).unwrap() == bytes(0, size as usize),
                    "{path}"
                );
            }
        }
    }
}

/// The log is truncated after its last writer has been closed.
#[test]
fn what_was_cut_from_a_closed_log_does_not_come_back() {
    for by_writer in [false, true] {
        let files = files();
        let fs = keeping(&files.drive);
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, 100, 100);
        log.sync().unwrap();
        log.close().unwrap();
        if by_writer {
            fs.reopen(LOG).unwrap().truncate(10).unwrap();
        } else {
            fs.truncate(LOG, 10).unwrap();
        }
        fs.sync_metadata().unwrap();
        drop((log, fs));
        assert_eq!(read(&plain(&files.drive), LOG).unwrap(), bytes(0, 10));
    }
}

#[test]
fn after_an_unmount_nothing_is_beside_the_drive() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 1000, 100);
    let mut synced = fs.create("/000002.log").unwrap();
    grow(&mut synced, 1000, 100);
    synced.sync().unwrap();
    synced.flush().unwrap();
    assert!(files.beside.exists());
    fs.unmount().unwrap();
    assert!(!files.beside.exists());
    drop((log, synced));
    assert!(!files.beside.exists());
    drop(fs);
    assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, 1000));
}

/// Notes of an earlier mount do not count: without them, another mount has continued from the synced data.
#[test]
fn what_is_of_another_time_does_not_count() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 1000, 100);
    log.sync().unwrap();
    grow(&mut log, 2000, 100);
    drop((log, fs));
    let kept = std::fs::read(&files.beside).unwrap();
    std::fs::remove_file(&files.beside).unwrap();
    assert_eq!(read(&plain(&files.drive), LOG).unwrap().len(), 1000);
    std::fs::write(&files.beside, kept).unwrap();
    assert_eq!(read(&plain(&files.drive), LOG).unwrap().len(), 1000);
    assert!(!files.has_notes());
}

/// Notes from before a restart of the host do not count, for the page cache is lost.
#[test]
fn what_is_of_before_the_hosts_start_does_not_count() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 1000, 100);
    drop((log, fs));
    let mut kept = std::fs::read(&files.beside).unwrap();
    kept[20] ^= 1;
    std::fs::write(&files.beside, kept).unwrap();
    assert_eq!(read(&plain(&files.drive), LOG).unwrap().len(), 0);
}

const LIMITED: &str = "BLUEFS_TEST_LIMITED";

/// Lets this process write no file beyond that many bytes, as on a full disk of the host.
fn limit(bytes: &str) {
    let pid = std::process::id().to_string();
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid, &format!("--fsize={bytes}:")]);
    assert!(command.status().unwrap().success());
}

/// Runs the test of that name in a process of its own, which no signal of a limit ends.
fn limited(name: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", &format!("unsynced::{name}")]);
    let output = command.env(LIMITED, "").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

/// Slots are 4 MiB each, and the drive ends before the third.
#[test]
fn what_has_no_room_beside_the_drive_is_written_to_the_drive() {
    if std::env::var_os(LIMITED).is_none() {
        return limited("what_has_no_room_beside_the_drive_is_written_to_the_drive");
    }
    let files = files();
    let fs = keeping(&files.drive);
    let names = [LOG, "/000002.log", "/000003.log"];
    let mut logs = names.map(|name| fs.create(name).unwrap());
    let mut last = fs.create("/000004.log").unwrap();
    limit("8388608");
    for to in [100, 3000, 3100] {
        logs.iter_mut().for_each(|log| grow(log, to, 100));
    }
    assert!(fs.extents(LOG).unwrap().is_empty());
    grow(&mut last, 100, 100);
    limit("unlimited");
    // As a kill leaves it: no writer has ended.
    let copy = files.drive.with_file_name("copy");
    std::fs::copy(&files.drive, &copy).unwrap();
    assert!(read(&plain(&copy), "/000004.log").unwrap() == bytes(0, 100));
    // Notes are tried again.
    let [_, _, third] = &mut logs;
    let written = fs.extents(names[2]).unwrap();
    grow(third, 3200, 100);
    assert_eq!(fs.extents(names[2]).unwrap(), written);
    drop((logs, last, fs));
    let fs = plain(&files.drive);
    for (name, size) in names.into_iter().zip([3100, 3100, 3200]) {
        assert!(read(&fs, name).unwrap() == bytes(0, size), "{name}");
    }
    assert_clean(&fs);
}

#[test]
fn what_has_no_room_on_the_host_is_not_acknowledged() {
    if std::env::var_os(LIMITED).is_none() {
        return limited("what_has_no_room_on_the_host_is_not_acknowledged");
    }
    let files = files();
    let fs = keeping(&files.drive);
    let mut noted = fs.create(LOG).unwrap();
    let mut other = fs.create("/000002.log").unwrap();
    other.flush().unwrap();
    grow(&mut noted, 100, 100);
    // Neither a second slot nor any zone.
    limit("1048576");
    let mut fresh = fs.create("/000003.log").unwrap();
    grow(&mut noted, 3000, 100);
    for log in [&mut other, &mut fresh] {
        log.append(&bytes(0, 100)).unwrap();
        for _ in 0..3 {
            log.flush().unwrap_err();
        }
    }
    drop((noted, other, fresh, fs));
    limit("unlimited");
    let fs = plain(&files.drive);
    assert!(read(&fs, LOG).unwrap() == bytes(0, 3000));
}

/// The journal names a log before any note of it counts.
#[test]
fn a_log_that_the_journal_cannot_name_is_not_acknowledged() {
    let files = files();
    let device = Arc::new(Faults::new(FileDrive::open(&files.drive).unwrap()));
    let fs = keeping_on(device.clone());
    let mut log = fs.create(LOG).unwrap();
    log.append(&bytes(0, 100)).unwrap();
    device.add(Plan::from(
        ZoneCommand::Write,
        1,
        Fault::Io(ErrorKind::Other),
    ));
    log.flush().unwrap_err();
    log.flush().unwrap_err();
}

#[test]
fn a_stopped_file_system_acknowledges_nothing() {
    let files = files();
    let memory = MemoryDrive::new(geometry(40, 2, 8)).unwrap();
    format(&memory, Role::Alone);
    let file = FileDrive::open(&files.drive).unwrap();
    let drives: [Arc<dyn ZonedDevice>; 2] = [Arc::new(memory), Arc::new(file)];
    for drive in drives {
        let device = Arc::new(Faults::new(drive));
        let fs = keeping_on(device.clone());
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, 100, 100);
        log.sync().unwrap();
        let fault = Fault::Io(ErrorKind::StorageFull);
        device.add(Plan::from(ZoneCommand::Write, 1, fault));
        fs.create("/000002.log").unwrap();
        fs.sync_metadata().unwrap_err();
        log.append(&bytes(100, 200)).unwrap();
        log.flush().unwrap_err();
    }
}

#[test]
fn what_could_not_be_written_out_at_its_age_is_tried_before_the_next_acknowledgement() {
    for goes_again in [false, true] {
        let memory = MemoryDrive::new(geometry(40, 2, 8)).unwrap();
        format(&memory, Role::Alone);
        let device = Arc::new(Faults::new(memory));
        let fs = keeping_on(device.clone());
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, 300, 100);
        // Without the journal the file system would stop.
        let info = fs.info();
        let metadata = [info.journal_zone, info.spare_zone];
        for zone in (0..40).map(ZoneId).filter(|zone| !metadata.contains(zone)) {
            let fault = Fault::Io(ErrorKind::StorageFull);
            device.add(Plan::from(ZoneCommand::Write, 1, fault).in_zone(zone));
        }
        fs.write_out_logs(0).unwrap_err();
        log.append(&bytes(300, 400)).unwrap();
        if !goes_again {
            log.flush().unwrap_err();
            log.append(&[0]).unwrap_err();
            continue;
        }
        device.clear();
        log.flush().unwrap();
        drop((log, fs));
        assert!(read(&mount(device).unwrap(), LOG).unwrap() == bytes(0, 400));
    }
}

/// Each slot is 4 MiB of the host's memory, and would be taken until the unmount.
#[test]
fn a_removed_log_that_could_not_be_written_out_leaves_its_slot() {
    for is_open in [false, true] {
        let files = files();
        let device = Arc::new(Faults::new(FileDrive::open(&files.drive).unwrap()));
        let fs = keeping_on(device.clone());
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, 100, 100);
        // Without the journal the file system would stop.
        let info = fs.info();
        let metadata = [info.journal_zone, info.spare_zone];
        for zone in (0..200).map(ZoneId).filter(|zone| !metadata.contains(zone)) {
            let fault = Fault::Io(ErrorKind::StorageFull);
            device.add(Plan::from(ZoneCommand::Write, 1, fault).in_zone(zone));
        }
        if is_open {
            fs.delete(LOG).unwrap();
        }
        log.close().unwrap_err();
        drop(log);
        device.clear();
        if !is_open {
            fs.delete(LOG).unwrap();
        }
        let mut next = fs.create("/000002.log").unwrap();
        grow(&mut next, 100, 50);
        let memory = device.host_memory().unwrap();
        let left = memory.left_behind().unwrap().unwrap();
        let found = unsynced::decode(&left, &info.uuid, info.journal_epoch);
        let slots: Vec<_> = found.iter().map(|n| (n.slot, n.inode)).collect();
        assert_eq!(slots, [(0, next.inode())], "{is_open}");
    }
}

/// On drives without notes, `write_out_logs` writes data of a given age, which survives the process.
#[test]
fn what_has_an_age_survives_the_process() {
    let device = Arc::new(MemoryDrive::new(geometry(40, 2, 8)).unwrap());
    format(&*device, Role::Alone);
    // Each query advances the clock by a microsecond.
    let clock = Arc::new(SimulatedClock::default());
    let options = MountOptions {
        keep_unsynced: true,
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..MountOptions::default()
    };
    let fs = BlueFs::mount(device.clone(), pool(&*device), options).unwrap();
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 700, 100);
    clock.advance(Duration::from_micros(600));
    let mut young = fs.create("/000002.log").unwrap();
    grow(&mut young, 700, 100);
    fs.write_out_logs(500).unwrap();
    let written = device
        .report_zone(fs.extents(LOG).unwrap()[0].at.zone)
        .unwrap();
    assert!(written.write_pointer > 0);
    assert!(fs.extents("/000002.log").unwrap().is_empty());
    // The writer continues in the same run.
    grow(&mut log, 900, 100);
    clock.advance(Duration::from_micros(500));
    fs.write_out_logs(500).unwrap();
    drop((log, young, fs));
    let fs = mount(device).unwrap();
    assert!(read(&fs, LOG).unwrap() == bytes(0, 900));
    assert!(read(&fs, "/000002.log").unwrap() == bytes(0, 700));
    assert_clean(&fs);
}

/// A program that is killed has renamed and removed files, and has put nothing since.
#[test]
fn changes_of_names_survive_the_process_at_an_age() {
    let device = Arc::new(MemoryDrive::new(geometry(40, 2, 8)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    for name in ["/old", "/gone"] {
        put(&fs, name, b"content");
    }
    fs.sync_metadata().unwrap();
    fs.rename("/old", "/new").unwrap();
    fs.delete("/gone").unwrap();
    fs.create_directory("/d").unwrap();
    fs.write_out_logs(1_000_000).unwrap();
    drop(fs);
    assert_eq!(mount(device).unwrap().list("/").unwrap(), ["d", "new"]);
}

/// Its time of day goes back by half an hour in each second.
struct SetBack(SimulatedClock);

impl Clock for SetBack {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000 - 1_800 * self.now().as_micros() as u64
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wait_until(&self, moment: Duration) {
        self.0.wait_until(moment);
    }
}

#[test]
fn a_clock_that_is_set_back_makes_no_log_younger() {
    let device = Arc::new(MemoryDrive::new(geometry(40, 2, 8)).unwrap());
    format(&*device, Role::Alone);
    let clock = Arc::new(SetBack(SimulatedClock::default()));
    let options = MountOptions {
        keep_unsynced: true,
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..MountOptions::default()
    };
    let fs = BlueFs::mount(device.clone(), pool(&*device), options).unwrap();
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 700, 100);
    clock.0.advance(Duration::from_secs(2));
    fs.write_out_logs(1_000_000).unwrap();
    drop((log, fs));
    assert!(read(&mount(device).unwrap(), LOG).unwrap() == bytes(0, 700));
}

/// The file system writes out the log again once one of its writers has.
#[test]
fn a_log_that_could_not_be_written_out_once_is_written_out_again() {
    let memory = MemoryDrive::new(geometry(40, 2, 8)).unwrap();
    format(&memory, Role::Alone);
    let device = Arc::new(Faults::new(memory));
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create(LOG).unwrap();
    log.append(&bytes(0, 300)).unwrap();
    // Without the journal the file system would stop.
    let info = fs.info();
    let metadata = [info.journal_zone, info.spare_zone];
    let zones = (0..40).map(ZoneId).filter(|zone| !metadata.contains(zone));
    for zone in zones {
        let fault = Fault::Io(ErrorKind::Other);
        device.add(Plan::from(ZoneCommand::Write, 1, fault).in_zone(zone));
    }
    fs.write_out_logs(0).unwrap_err();
    device.clear();
    log.append(&bytes(300, 600)).unwrap();
    log.sync().unwrap();
    log.append(&bytes(600, 900)).unwrap();
    fs.write_out_logs(0).unwrap();
    drop((log, fs));
    assert!(read(&mount(device).unwrap(), LOG).unwrap() == bytes(0, 900));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_bytes_beside_a_drive_are_decoded(mut left in proptest::collection::vec(any::<u8>(), 0..9000), at in 0..9000usize) {
        unsynced::decode(&left, &[0; 16], 0);
        // Notes with one changed byte.
        let files = files();
        let fs = keeping(&files.drive);
        let mut log = fs.create(LOG).unwrap();
        grow(&mut log, 2000, 100);
        let info = fs.info();
        let device = fs.device().clone();
        left = device.host_memory().unwrap().left_behind().unwrap().unwrap();
        let whole = unsynced::decode(&left, &info.uuid, info.journal_epoch);
        let expected = Noted { slot: 0, inode: log.inode(), offset: 0, bytes: bytes(0, 2000) };
        prop_assert_eq!(&whole, std::slice::from_ref(&expected));
        let at = at % left.len();
        left[at] ^= 1;
        for noted in unsynced::decode(&left, &info.uuid, info.journal_epoch) {
            prop_assert!(expected.bytes.starts_with(&noted.bytes));
            prop_assert_eq!(noted.inode, expected.inode);
        }
    }
}

/// Beside the drive lies a folder of that name: each flush writes the log out.
#[test]
fn where_nothing_can_be_noted_each_flush_writes_out() {
    let files = files();
    std::fs::create_dir(&files.beside).unwrap();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    let copy = files.drive.with_file_name("copy");
    for to in [100, 200, 5000, 5100] {
        grow(&mut log, to, 100);
        std::fs::copy(&files.drive, &copy).unwrap();
        assert!(read(&plain(&copy), LOG).unwrap() == bytes(0, to));
    }
}

/// The file cannot be opened, as by a process that may open no more files: what it keeps must not be given up.
#[test]
fn what_cannot_be_read_refuses_the_mount() {
    let files = files();
    let fs = keeping(&files.drive);
    let mut log = fs.create(LOG).unwrap();
    grow(&mut log, 1000, 100);
    drop((log, fs));
    let aside = files.drive.with_file_name("aside");
    for read_only in [true, false] {
        let device = Arc::new(FileDrive::open(&files.drive).unwrap());
        std::fs::rename(&files.beside, &aside).unwrap();
        std::os::unix::fs::symlink(&files.beside, &files.beside).unwrap();
        let options = MountOptions {
            read_only,
            accept_damage: true,
            ..MountOptions::default()
        };
        let refused = BlueFs::mount(device.clone(), pool(&*device), options).map(drop);
        assert!(matches!(&refused, Err(Error::Unsynced(_))), "{refused:?}");
        std::fs::rename(&aside, &files.beside).unwrap();
    }
    assert!(read(&plain(&files.drive), LOG).unwrap() == bytes(0, 1000));
}
