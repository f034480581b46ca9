//! A flush of the drive that takes long, or does not return, holds up no reader.

use crate::common::{assert_clean, contents, geometry};
use caveat::{CaveatDevice, CaveatShape};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zone::{ByteOffset, ZoneCommand};

/// Timeout; only a failing test waits this long.
const FOR_EVER: Duration = Duration::from_secs(600);

#[test]
fn readers_go_on_during_both_flushes_of_a_sync() {
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    for flush in [1, 2] {
        let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(24, 4)).unwrap()));
        let runtime = Runtime::seeded(1);
        FileSystem::mkfs(drive.clone(), &runtime, &MkfsOptions::default()).unwrap();
        let fs = FileSystem::mount(drive.clone(), runtime, MountOptions::default()).unwrap();
        let [synced, changed] = [b"synced", b"change"].map(|name| {
            let ino = fs.create(ROOT, name, new).unwrap().ino;
            fs.write(ino, 0, &[1; 20_000]).unwrap();
            fs.open(ino).unwrap();
            ino
        });
        fs.sync().unwrap();
        fs.write(changed, 10_000, &[2; 20_000]).unwrap();
        let gate = Gate::new();
        let stuck = Fault::Stuck(gate.clone());
        drive.add(Plan::at(ZoneCommand::Flush, flush, stuck));
        let (done, is_done) = mpsc::channel();
        let came_back = std::thread::scope(|scope| {
            let syncing = scope.spawn(|| fs.sync());
            gate.wait_until_stuck(1);
            scope.spawn(|| {
                let expected = [[1; 10_000].as_slice(), &[2; 20_000]].concat();
                assert!(contents(&fs, changed).unwrap() == expected);
                assert!(contents(&fs, synced).unwrap() == [1; 20_000]);
                assert_eq!(fs.attributes(changed).unwrap().size, 30_000);
                assert_eq!(fs.list(ROOT, 0, 9).unwrap().len(), 4);
                fs.open(synced).unwrap();
                fs.release(synced);
                fs.release(changed);
                done.send(()).unwrap();
            });
            let came_back = is_done.recv_timeout(FOR_EVER).is_ok();
            gate.release();
            syncing.join().unwrap().unwrap();
            came_back
        });
        assert!(came_back, "flush {flush}");
        for name in [b"synced", b"change"] {
            fs.unlink(ROOT, name).unwrap();
        }
        // One is open still.
        let there = [synced, changed].map(|ino| fs.attributes(ino).is_ok());
        assert_eq!(there, [true, false]);
        fs.release(synced);
        assert!(fs.attributes(synced).is_err());
        assert_clean(&fs);
    }
}

#[test]
fn readers_of_a_caveat_drive_go_on_while_its_bitmap_is_written() {
    let below = Arc::new(Faults::new(MemoryDrive::new(geometry(24, 24)).unwrap()));
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance: 16,
        no_overlap_range: 6,
        unshingled_bytes: 1 << 20,
    };
    let drive = CaveatDevice::create(below.clone(), &shape).unwrap();
    let at = |block: u64| ByteOffset((1 << 20) + block * 4096);
    drive.write(at(0), &[1; 4096]).unwrap();
    drive.flush().unwrap();
    drive.write(at(40), &[2; 4096]).unwrap();
    let gate = Gate::new();
    below.add(Plan::at(ZoneCommand::Write, 1, Fault::Stuck(gate.clone())));
    let (done, is_done) = mpsc::channel();
    let came_back = std::thread::scope(|scope| {
        let flushing = scope.spawn(|| drive.flush());
        gate.wait_until_stuck(1);
        scope.spawn(|| {
            let mut found = [0; 4096];
            drive.read(at(0), &mut found).unwrap();
            assert_eq!(found, [1; 4096]);
            done.send(()).unwrap();
        });
        let came_back = is_done.recv_timeout(FOR_EVER).is_ok();
        gate.release();
        flushing.join().unwrap().unwrap();
        came_back
    });
    assert!(came_back);
}
