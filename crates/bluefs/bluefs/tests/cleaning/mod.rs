//! Cleaning ahead of need: the data it moves, its budget, and that no caller waits for it.

mod budget;
mod cost;
mod failing;
mod logs;
mod meanwhile;
mod thread;

use crate::support;
use crate::support::{assert_clean, geometry, mount, pool, read, write};
use bluefs::{BlueFs, Cleaning, Error, Lifetime, MountOptions, Writer};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zone::{ZoneCommand, ZoneId};

/// A drive in memory with an empty file system.
fn formatted() -> Arc<MemoryDrive> {
    support::formatted(geometry(60, 0, 0))
}

fn mount_with(device: Arc<dyn ZonedDevice>, cleaning: Option<Cleaning>) -> BlueFs {
    let pool = pool(&*device);
    let options = MountOptions {
        cleaning,
        ..MountOptions::default()
    };
    BlueFs::mount(device, pool, options).unwrap()
}

/// Returns the first zone of `/old.sst`, a fifth of which is live; the rest was a deleted file's.
fn mostly_dead(fs: &BlueFs) -> ZoneId {
    write(fs, "/old.sst", &[1; 5000]).unwrap();
    write(fs, "/gone.sst", &[2; 30_000]).unwrap();
    fs.delete("/gone.sst").unwrap();
    fs.sync_metadata().unwrap();
    zone_of(fs, "/old.sst")
}

fn zone_of(fs: &BlueFs, path: &str) -> ZoneId {
    fs.extents(path).unwrap()[0].at.zone
}

/// Runs `meanwhile` while the cleaner is stuck in the read of a zone that `before` has filled. Returns the file system
/// and the zone.
fn held_up_in(
    before: impl FnOnce(&BlueFs) -> ZoneId,
    meanwhile: impl FnOnce(&BlueFs),
) -> (BlueFs, ZoneId) {
    let device = Arc::new(Faults::new(formatted()));
    let fs = mount(device.clone()).unwrap();
    let zone = before(&fs);
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    device.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    std::thread::scope(|scope| {
        let cleaner = scope.spawn(|| fs.clean_ahead().unwrap());
        gate.wait_until_stuck(1);
        meanwhile(&fs);
        gate.release();
        assert!(cleaner.join().unwrap());
    });
    (fs, zone)
}

fn goes_on(fs: &BlueFs, zone: ZoneId) {
    assert_clean(fs);
    fs.sync_metadata().unwrap();
    write(fs, "/later.sst", &[9; 60_000]).unwrap();
    let device = fs.device().clone();
    assert!(
        fs.zones()
            .iter()
            .all(|(z, purpose)| { *z != zone || *purpose != bluefs::ZonePurpose::Freed })
    );
    let again = mount(device).unwrap();
    assert!(read(&again, "/later.sst").unwrap() == [9; 60_000]);
    assert_clean(&again);
}

fn byte(i: usize) -> u8 {
    (i * 7 + i / 251) as u8
}

/// Appends and syncs 90 bytes at a time, so that a log takes much more space than it holds.
fn append(log: &mut Writer, count: usize) {
    for _ in 0..count {
        let from = log.size() as usize;
        log.append(&(from..from + 90).map(byte).collect::<Vec<_>>())
            .unwrap();
        log.sync().unwrap();
    }
}

#[track_caller]
fn has(fs: &BlueFs, path: &str, size: usize) {
    let data = read(fs, path).unwrap();
    assert_eq!(data.len(), size);
    assert!(data.iter().enumerate().all(|(i, b)| *b == byte(i)));
}

fn old_log(fs: &BlueFs) -> ZoneId {
    let mut log = fs.create("/000001.log").unwrap();
    append(&mut log, 60);
    log.close().unwrap();
    zone_of(fs, "/000001.log")
}
