//! A command of the drive that does not come back holds up no reader of anything else.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, MountOptions, Role};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Gate, Plan};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::{format, geometry, pool, read};
use zone::ZoneCommand;

/// Only a test that fails takes so long.
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

fn put(fs: &BlueFs, name: &str, bytes: &[u8]) {
    let mut writer = fs.create(name).unwrap();
    writer.append(bytes).unwrap();
    writer.sync().unwrap();
    writer.close().unwrap();
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
