//! A compaction of the journal does no I/O under the lock of the metadata: while the drive is stuck in the write of the
//! snapshot, files can be read and written.

use crate::support::{format, geometry, mount, read};
use bluefs::{BlueFs, Role};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Gate, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zone::ZoneCommand;

fn put(fs: &BlueFs, name: &str, bytes: &[u8]) {
    let mut writer = fs.create(name).unwrap();
    writer.append(bytes).unwrap();
    writer.close().unwrap();
}

/// The drive is released only after the reads and appends have returned, so the test would never end if they waited for
/// it.
#[test]
fn reads_and_appends_go_on_while_the_snapshot_is_written() {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(64, 0, 0)).unwrap()));
    format(&*drive, Role::Alone);
    let fs = mount(drive.clone()).unwrap();
    put(&fs, "/old.sst", &[1; 20_000]);
    let mut log = fs.create("/000001.log").unwrap();
    log.append(&[2; 1000]).unwrap();
    log.sync().unwrap();
    let mut table = fs.create("/new.sst").unwrap();
    table.append(&[3; 5000]).unwrap();
    table.sync().unwrap();
    let before = fs.info().journal_epoch;
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Write, 1, stuck).in_zone(fs.info().spare_zone));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs.create("/busy").unwrap();
                fs.sync_metadata().unwrap();
            }
        });
        gate.wait_until_stuck(1);
        assert_eq!(read(&fs, "/old.sst").unwrap(), [1; 20_000]);
        log.append(&[2; 1000]).unwrap();
        log.sync().unwrap();
        table.append(&[3; 5000]).unwrap();
        put(&fs, "/another.sst", &[4; 9000]);
        assert_eq!(read(&fs, "/000001.log").unwrap(), [2; 2000]);
        assert_eq!(read(&fs, "/new.sst").unwrap(), [3; 10_000]);
        assert_eq!(read(&fs, "/another.sst").unwrap(), [4; 9000]);
        assert_eq!(fs.info().journal_epoch, before, "it is not over");
        is_over.store(true, Ordering::Relaxed);
        gate.release();
        compacting.join().unwrap();
    });
    assert!(fs.info().journal_epoch > before);
    table.close().unwrap();
    drop((log, table));
    fs.unmount().unwrap();
    let fs = mount(drive).unwrap();
    assert!(fs.check(true).unwrap().is_clean());
    assert_eq!(read(&fs, "/000001.log").unwrap(), [2; 2000]);
    assert_eq!(read(&fs, "/new.sst").unwrap(), [3; 10_000]);
    assert_eq!(read(&fs, "/another.sst").unwrap(), [4; 9000]);
}
