//! A drive command that does not return delays only the callers that need it, and no reader of anything else.

use crate::support;
use crate::support::{format, geometry, pool, put, read};
use bluefs::{BlueFs, MountOptions, Role, Writer, ZonePurpose};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zone::{ZoneCommand, ZoneCondition, ZoneId};

/// Timeout; only a failing test waits this long.
const FOR_EVER: Duration = Duration::from_secs(600);

fn mounted(cache_bytes: u64) -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(64, 0, 0)).unwrap()));
    format(&*drive, Role::Alone);
    let options = MountOptions {
        cache_bytes,
        ..MountOptions::default()
    };
    let pool = pool(&*drive);
    let fs = BlueFs::mount(drive.clone(), pool, options).unwrap();
    for (name, byte) in [("/a.sst", 1), ("/b.sst", 2), ("/000003.log", 3)] {
        put(&fs, name, &[byte; 20_000]);
    }
    (drive, fs)
}

fn comes_back(gate: &Gate, what: impl FnOnce() + Send) {
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            what();
            done.send(()).unwrap();
        });
        let came_back = is_done.recv_timeout(FOR_EVER).is_ok();
        if !came_back {
            gate.release();
        }
        assert!(came_back);
    });
}

#[test]
fn a_stuck_read_holds_up_neither_writers_of_its_file_nor_other_readers() {
    for cache_bytes in [0, 1 << 20] {
        let (drive, fs) = mounted(cache_bytes);
        let gate = Gate::new();
        drive.add(Plan::at(ZoneCommand::Read, 1, Fault::Stuck(gate.clone())));
        std::thread::scope(|scope| {
            let stuck = scope.spawn(|| read(&fs, "/000003.log"));
            gate.wait_until_stuck(1);
            comes_back(&gate, || {
                let mut writer = fs.reopen("/000003.log").unwrap();
                writer.append(&[4; 1000]).unwrap();
                writer.sync().unwrap();
                writer.close().unwrap();
            });
            comes_back(&gate, || {
                let mut expected = vec![3; 20_000];
                expected.extend([4; 1000]);
                assert_eq!(read(&fs, "/000003.log").unwrap(), expected);
                assert_eq!(read(&fs, "/a.sst").unwrap(), [1; 20_000]);
            });
            gate.release();
            assert_eq!(stuck.join().unwrap().unwrap(), [3; 20_000]);
        });
    }
}

/// The thread of reads that are waited for later hangs in one: who waits for another does it without the thread.
#[test]
fn a_stuck_read_that_is_waited_for_later_holds_up_no_other() {
    let (drive, fs) = mounted(0);
    let gate = Gate::new();
    drive.add(Plan::at(ZoneCommand::Read, 1, Fault::Stuck(gate.clone())));
    let (a, b) = (fs.open("/a.sst").unwrap(), fs.open("/b.sst").unwrap());
    let stuck = a.read_later(0, 20_000);
    gate.wait_until_stuck(1);
    let pending = b.read_later(0, 20_000);
    comes_back(&gate, || {
        assert_eq!(pending.wait().unwrap(), [2; 20_000]);
    });
    gate.release();
    assert_eq!(stuck.wait().unwrap(), [1; 20_000]);
}

/// The file is deleted meanwhile. Its zone is reset when the read has come back, for who needs a zone then.
#[test]
fn a_stuck_scrub_holds_up_no_sync() {
    let (drive, fs) = mounted(0);
    let mut log = log(&fs);
    put(&fs, "/c.sst", &[7; 72 << 10]);
    let zone = fs.extents("/c.sst").unwrap()[1].at.zone;
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    let is_empty = || drive.report_zone(zone).unwrap().condition == ZoneCondition::Empty;
    std::thread::scope(|scope| {
        let scrub = scope.spawn(|| fs.scrub(&mut |_| true).unwrap().unwrap());
        gate.wait_until_stuck(1);
        fs.delete("/c.sst").unwrap();
        others_go_on(&fs, &gate, &mut log, true);
        comes_back(&gate, || {
            fs.sync_metadata().unwrap();
            put(&fs, "/d.sst", &[8; 30_000]);
        });
        assert!(!is_empty());
        let (done, is_done) = mpsc::channel();
        let fs = &fs;
        let need = scope.spawn(move || done.send(fs.reclaim().unwrap()).unwrap());
        // A faulty one comes back before the read does.
        let early = is_done.recv_timeout(Duration::from_millis(100));
        gate.release();
        early.unwrap_err();
        need.join().unwrap();
        assert!(is_done.recv().unwrap() && is_empty());
        assert_eq!(scrub.join().unwrap().lost, [""; 0]);
    });
}

#[test]
fn a_stuck_reset_holds_up_no_read() {
    let (drive, fs) = mounted(0);
    let gate = Gate::new();
    drive.add(Plan::from(
        ZoneCommand::Reset,
        1,
        Fault::Stuck(gate.clone()),
    ));
    std::thread::scope(|scope| {
        let (a, log) = (fs.open("/a.sst").unwrap(), fs.open("/000003.log").unwrap());
        let removing = scope.spawn(|| {
            for i in 0..8 {
                let name = format!("/gone{i}.sst");
                put(&fs, &name, &[9; 24 << 10]);
                fs.delete(&name).unwrap();
                fs.sync_metadata().unwrap();
            }
        });
        gate.wait_until_stuck(1);
        comes_back(&gate, || {
            let mut bytes = [0; 20_000];
            a.read_at(0, &mut bytes).unwrap();
            assert_eq!(bytes, [1; 20_000]);
            log.read_at(0, &mut bytes).unwrap();
            assert_eq!(bytes, [3; 20_000]);
        });
        assert!(!removing.is_finished());
        gate.release();
        removing.join().unwrap();
    });
}

/// A log with a run, to which appends need no journal frame.
fn log(fs: &BlueFs) -> Writer {
    let mut log = fs.create("/000009.log").unwrap();
    log.append(&[5; 1000]).unwrap();
    log.sync().unwrap();
    log
}

/// Reads, renames and appends to a log succeed. `can_flush`: whether a sync of the log does too.
fn others_go_on(fs: &BlueFs, gate: &Gate, log: &mut Writer, can_flush: bool) {
    comes_back(gate, || {
        for name in fs.list("/").unwrap() {
            fs.metadata(&name).unwrap();
            assert!(fs.exists(&name));
        }
        assert_eq!(read(fs, "/a.sst").unwrap(), [1; 20_000]);
        assert_eq!(read(fs, "/000003.log").unwrap(), [3; 20_000]);
        assert!(fs.usage().files >= 4);
        assert!(fs.zones().len() > 8);
        assert!(fs.info().generation > 0);
        assert!(fs.damaged_files().unwrap().is_empty());
        assert!(!fs.extents("/b.sst").unwrap().is_empty());
    });
    comes_back(gate, || {
        let mut expected = read(fs, "/000009.log").unwrap();
        log.append(&[6; 1000]).unwrap();
        if can_flush {
            log.sync().unwrap();
        }
        expected.extend([6; 1000]);
        assert_eq!(read(fs, "/000009.log").unwrap(), expected);
        let mut plain = fs.create("/new.tmp").unwrap();
        plain.append(&[8; 3000]).unwrap();
        fs.rename("/new.tmp", "/new").unwrap();
        assert_eq!(read(fs, "/new").unwrap(), [8; 3000]);
        drop(plain);
        fs.delete("/new").unwrap();
    });
}

fn journal_zone(fs: &BlueFs) -> ZoneId {
    let zones = fs.zones();
    let journal = zones.iter().find(|z| z.1 == ZonePurpose::Journal);
    journal.unwrap().0
}

/// In each write or reset that the journal makes.
#[test]
fn a_stuck_journal_holds_up_neither_readers_nor_logs() {
    type Where = fn(&BlueFs) -> ZoneId;
    let cases: [(&str, ZoneCommand, Where); 5] = [
        ("a frame", ZoneCommand::Write, journal_zone),
        ("a snapshot", ZoneCommand::Write, |fs| fs.info().spare_zone),
        ("a superblock", ZoneCommand::Write, |_| ZoneId(0)),
        ("its copy", ZoneCommand::Write, |_| ZoneId(63)),
        ("an old journal", ZoneCommand::Reset, journal_zone),
    ];
    for (what, command, zone) in cases {
        let (drive, fs) = mounted(0);
        let mut log = log(&fs);
        let gate = Gate::new();
        drive.add(Plan::at(command, 1, Fault::Stuck(gate.clone())).in_zone(zone(&fs)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                // The limit ends a failing test.
                for _ in 0..10_000 {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    put(&fs, "/busy.sst", &[9; 1000]);
                    fs.delete("/busy.sst").unwrap();
                    fs.sync_metadata().unwrap();
                }
            });
            gate.wait_until_stuck(1);
            println!("{what} is stuck");
            others_go_on(&fs, &gate, &mut log, true);
            assert!(!work.is_finished());
            is_over.store(true, Ordering::Relaxed);
            gate.release();
            work.join().unwrap();
        });
        log.close().unwrap();
        fs.unmount().unwrap();
        let fs = support::mount(drive).unwrap();
        assert!(fs.check(true).unwrap().is_clean());
        assert_eq!(read(&fs, "/000009.log").unwrap().len(), 2000);
    }
}

#[test]
fn a_stuck_flush_holds_up_neither_readers_nor_appends() {
    let (drive, fs) = mounted(0);
    let mut log = log(&fs);
    let gate = Gate::new();
    drive.add(Plan::at(ZoneCommand::Flush, 1, Fault::Stuck(gate.clone())));
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| put(&fs, "/c.sst", &[7; 1000]));
        gate.wait_until_stuck(1);
        others_go_on(&fs, &gate, &mut log, false);
        assert!(!stuck.is_finished());
        gate.release();
        stuck.join().unwrap();
    });
}

/// Also readers of the file being written, writers that need a zone, and the cleaner.
#[test]
fn a_stuck_write_holds_up_neither_readers_nor_other_files() {
    for name in ["/w.sst", "/000011.log"] {
        let (drive, fs) = mounted(0);
        let mut log = log(&fs);
        put(&fs, name, &[7; 1000]);
        let mut writer = fs.reopen(name).unwrap();
        writer.append(&[7; 1000]).unwrap();
        writer.sync().unwrap();
        let zone = fs.extents(name).unwrap().last().unwrap().at.zone;
        let mut other = fs.reopen(name).unwrap();
        let gate = Gate::new();
        let stuck = Fault::Stuck(gate.clone());
        drive.add(Plan::at(ZoneCommand::Write, 1, stuck).in_zone(zone));
        std::thread::scope(|scope| {
            let fs = &fs;
            let stuck = scope.spawn(move || {
                writer.append(&[7; 1000]).unwrap();
                writer.sync().unwrap();
            });
            gate.wait_until_stuck(1);
            others_go_on(fs, &gate, &mut log, zone != zone_of(fs, "/000009.log"));
            comes_back(&gate, || {
                assert_eq!(read(fs, name).unwrap(), [7; 3000]);
                other.append(&[7; 1000]).unwrap();
                assert_eq!(read(fs, name).unwrap(), [7; 4000]);
                put(fs, "/long.sst", &[4; 30_000]);
                fs.clean_ahead().unwrap();
            });
            assert!(!stuck.is_finished());
            gate.release();
            stuck.join().unwrap();
            assert_eq!(read(fs, name).unwrap(), [7; 4000]);
        });
    }
}

fn zone_of(fs: &BlueFs, name: &str) -> ZoneId {
    fs.extents(name).unwrap().last().unwrap().at.zone
}

/// A zone whose reset has failed, and one that is offline.
#[test]
fn a_stuck_report_of_a_failing_zone_holds_up_no_lookup() {
    let (drive, fs) = mounted(0);
    for name in ["/gone.sst", "/lost.sst"] {
        put(&fs, name, &[9; 72 << 10]);
    }
    let zone = |name| fs.extents(name).unwrap()[1].at.zone;
    let (gone, lost) = (zone("/gone.sst"), zone("/lost.sst"));
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Reset, 1, fault).in_zone(gone));
    drive.break_zone(lost, ZoneCondition::Offline);
    fs.delete("/gone.sst").unwrap();
    let sync = || fs.sync_metadata().unwrap();
    let ask = || assert_eq!(fs.damaged_files().unwrap().len(), 1);
    // The first report of `gone` is the one before its reset.
    let cases: [(ZoneId, u64, &(dyn Fn() + Sync)); 2] = [(gone, 2, &sync), (lost, 1, &ask)];
    for (zone, kth, work) in cases {
        let gate = Gate::new();
        let stuck = Fault::Stuck(gate.clone());
        drive.add(Plan::at(ZoneCommand::Report, kth, stuck).in_zone(zone));
        std::thread::scope(|scope| {
            let work = scope.spawn(work);
            gate.wait_until_stuck(1);
            comes_back(&gate, || {
                assert!(fs.exists("/a.sst"));
                fs.open("/a.sst").unwrap();
                assert_eq!(fs.list("/").unwrap().len(), 4);
            });
            gate.release();
            work.join().unwrap();
        });
    }
}

#[test]
fn after_a_failed_flush_files_can_be_opened_and_read() {
    let (drive, fs) = mounted(0);
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Flush, 1, fault));
    let mut writer = fs.create("/new.sst").unwrap();
    writer.append(&[7; 100]).unwrap();
    writer.sync().unwrap_err();
    assert!(fs.create("/newer.sst").is_err());
    assert_eq!(read(&fs, "/b.sst").unwrap(), [2; 20_000]);
    assert!(fs.metadata("/a.sst").is_ok());
}
