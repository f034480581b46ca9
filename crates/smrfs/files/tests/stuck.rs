//! A flush of the drive that takes long, or does not return, holds up no reader.

use crate::common::{assert_clean, contents, geometry};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Gate, Plan};
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zone::ZoneCommand;

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
