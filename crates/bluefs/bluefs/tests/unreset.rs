//! Resets that fail for a while: zones come back into use when resets succeed again.

use crate::support::*;
use bluefs::{BlueFs, Cleaning, Error, MountOptions, Role};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::{Runtime, SimulatedClock};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use zone::{ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneId};

type Drive = Faults<MemoryDrive>;

/// Shared with a store, so that BlueFS resets only its own zones.
const ROLE: Role = Role::Shared;
const PATIENCE: Duration = Duration::from_secs(120);
const COPIES: [u32; 2] = [1, 2];

fn formatted(copies: u32) -> (Arc<Drive>, Arc<SimulatedClock>) {
    let drive = MemoryDrive::new(geometry(60, 0, 0)).unwrap();
    format_copies(&drive, ROLE, copies);
    (Arc::new(Faults::new(drive)), Arc::default())
}

fn mount_at(device: Arc<dyn ZonedDevice>, clock: &Arc<SimulatedClock>) -> BlueFs {
    let pool = pool(&*device);
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        cleaning: Some(ALWAYS),
        ..MountOptions::default()
    };
    BlueFs::mount(device, pool, options).unwrap()
}

fn fail_resets(device: &Drive) {
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Reset, 1, fault));
}

/// Writes and replaces files of two blocks more than a zone, until there is no space or `at_most` were written. Returns
/// the number of files.
fn churn(fs: &BlueFs, at_most: usize) -> usize {
    let file = [7; (24 << 10) + 1024];
    for n in 0..at_most {
        let written = write(fs, "/next.sst", &file);
        match written.and_then(|()| fs.rename("/next.sst", "/last.sst")) {
            Ok(()) => {}
            Err(Error::NoSpace { .. }) => {
                fs.delete("/next.sst").unwrap();
                return n;
            }
            Err(error) => panic!("{error}"),
        }
    }
    at_most
}

/// Bytes that fit in a file; the file is removed again.
fn room(fs: &BlueFs) -> usize {
    let mut writer = fs.create("/room.sst").unwrap();
    let mut blocks = 0;
    while writer
        .append(&[1; 512])
        .and_then(|()| writer.sync())
        .is_ok()
    {
        blocks += 1;
    }
    drop(writer);
    fs.delete("/room.sst").unwrap();
    fs.sync_metadata().unwrap();
    blocks * 512
}

/// A file system without space, for all resets fail, and the space after its file before that.
fn without_resets(device: &Arc<Drive>, clock: &Arc<SimulatedClock>) -> (BlueFs, usize) {
    let fs = mount_at(device.clone(), clock);
    put(&fs, "/kept.sst", &[5; 50_000]);
    let before = room(&fs);
    fail_resets(device);
    assert!((2..400).contains(&churn(&fs, 400)));
    (fs, before)
}

#[test]
fn zones_that_could_not_be_reset_come_back() {
    for copies in COPIES {
        let (device, clock) = formatted(copies);
        let (fs, before) = without_resets(&device, &clock);
        assert!(room(&fs) < before / 3);
        device.clear();
        // Reset as soon as a writer needs space, some time after the failure.
        clock.advance(Duration::from_secs(1));
        assert_eq!(churn(&fs, 400), 400);
        fs.delete("/last.sst").unwrap();
        assert!(room(&fs) + (48 << 10) >= before, "{} {before}", room(&fs));
        assert!(read(&fs, "/kept.sst").unwrap() == [5; 50_000]);
        assert_clean(&fs);
    }
}

/// A writer that finds no space tries them at once, without any delay after the last failure.
#[test]
fn who_finds_no_space_tries_them_at_once() {
    for copies in COPIES {
        let (device, clock) = formatted(copies);
        let (fs, _) = without_resets(&device, &clock);
        device.clear();
        write(&fs, "/next.sst", &[7; 50_000]).unwrap();
        fs.unmount().unwrap();
    }
}

/// The background thread resets them without any commit.
#[test]
fn they_come_back_while_nobody_does_anything() {
    let (device, _) = formatted(1);
    let options = MountOptions {
        cleaning: Some(Cleaning {
            in_background: true,
            ..ALWAYS
        }),
        ..MountOptions::default()
    };
    let fs = BlueFs::mount(device.clone(), pool(&*device), options).unwrap();
    fail_resets(&device);
    churn(&fs, 400);
    fs.delete("/last.sst").unwrap();
    fs.sync_metadata().unwrap();
    let empty = || {
        let zones = device.report(ZoneId(0), 60).unwrap();
        let is_empty = |zone: &&ZoneDescriptor| zone.condition == ZoneCondition::Empty;
        zones.iter().filter(is_empty).count()
    };
    let before = empty();
    assert!(before < 20, "{before} of 60 zones are empty");
    device.clear();
    let begin = Instant::now();
    while empty() < 40 {
        thread::sleep(Duration::from_millis(10));
        assert!(begin.elapsed() < PATIENCE, "{} zones are empty", empty());
    }
}

/// A mount resets BlueFS's zones before the store says which zones are its own.
#[test]
fn the_next_mount_resets_them_first() {
    for copies in COPIES {
        let (device, clock) = formatted(copies);
        let (fs, before) = without_resets(&device, &clock);
        fs.sync_metadata().unwrap();
        let crashed = device.inner().snapshot();
        crashed.power_cycle();
        let fs = mount_at(Arc::new(crashed), &clock);
        fs.delete("/last.sst").unwrap();
        assert!(room(&fs) + (48 << 10) >= before, "{} {before}", room(&fs));
        assert!(read(&fs, "/kept.sst").unwrap() == [5; 50_000]);
        assert_clean(&fs);
    }
}

/// A zone whose resets always fail is tried at growing intervals, and costs nothing else.
#[test]
fn one_that_never_can_be_reset_is_tried_less_and_less() {
    let (device, clock) = formatted(1);
    let fs = mount_at(device.clone(), &clock);
    put(&fs, "/a.sst", &[5; 24 << 10]);
    let zone = fs.extents("/a.sst").unwrap()[0].at.zone;
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Reset, 1, fault).in_zone(zone));
    fs.delete("/a.sst").unwrap();
    fs.sync_metadata().unwrap();
    assert_eq!(device.struck(), 1);
    for _ in 0..100 {
        assert_eq!(churn(&fs, 10), 10);
        clock.advance(Duration::from_secs(10));
        // A writer that needs space.
        room(&fs);
    }
    let tried = device.struck();
    assert!((20..=220).contains(&tried), "{tried}");
    // Once the zone is read-only, it is given up and not tried again.
    device.clear();
    device.break_zone(zone, ZoneCondition::ReadOnly);
    clock.advance(Duration::from_secs(100));
    room(&fs);
    fs.sync_metadata().unwrap();
    assert!(fs.zones().iter().all(|(owned, _)| *owned != zone));
    assert_clean(&fs);
}
