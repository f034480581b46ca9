//! A zone that an append fails in is left, and can be cleaned; the append goes on in another.

use super::*;
use device::MemoryDrive;
use device::changed::{Change, Changed};
use device::faults::{Fault, Faults, Plan};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneKind, ZoneResult};

const BLOCK: u64 = 4096;

fn geometry(max_append_bytes: u32) -> Geometry {
    Geometry {
        block_size: BLOCK as u32,
        zone_size: 4 * BLOCK,
        zone_capacity: 4 * BLOCK,
        zone_count: 14,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes,
    }
}

fn stream(device: Arc<dyn ZonedDevice>) -> Stream {
    let geometry = device.geometry().clone();
    let report = device.report(ZoneId(0), geometry.zone_count).unwrap();
    let freelist = Freelist::new(geometry.zone_count, geometry.zone_capacity);
    let pool = ZonePool::new(geometry, &report);
    Stream::new(device, Arc::new(pool), Arc::new(freelist), Purpose::Data)
}

/// Appends a block and unpins its zone, as a caller does once it has entered the block; returns the zone.
fn append(stream: &Stream) -> Option<ZoneId> {
    let placed = stream.append(&[1; BLOCK as usize]).ok()?;
    stream.freelist.unpin(placed.at.zone);
    Some(placed.at.zone)
}

fn cleanable(stream: &Stream) -> Vec<ZoneId> {
    let dead = stream.freelist.dead_zones();
    dead.iter().map(|c| c.zone).collect()
}

/// Reports once that the data lies in another zone.
struct Astray(AtomicBool);

impl Change<MemoryDrive> for Astray {
    fn append(&self, drive: &MemoryDrive, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let at = drive.append(zone, data)?;
        let astray = self.0.swap(false, Ordering::Relaxed);
        Ok(if astray {
            drive.geometry().start(ZoneId(9))
        } else {
            at
        })
    }
}

#[test]
fn a_drive_that_answers_another_zone_is_not_believed() {
    let drive = MemoryDrive::new(geometry(BLOCK as u32)).unwrap();
    let change = Astray(AtomicBool::new(true));
    let stream = stream(Arc::new(Changed { drive, change }));
    assert_eq!(append(&stream), Some(ZoneId(1)));
    assert_eq!(cleanable(&stream), [ZoneId(0)]);
}

#[test]
fn an_append_goes_on_in_another_zone_but_not_for_ever() {
    for max_append_bytes in [0, BLOCK as u32] {
        let command = match max_append_bytes {
            0 => ZoneCommand::Write,
            _ => ZoneCommand::Append,
        };
        let drive = Arc::new(Faults::new(
            MemoryDrive::new(geometry(max_append_bytes)).unwrap(),
        ));
        let stream = stream(drive.clone());
        for zone in (1..11).map(ZoneId) {
            let fault = Fault::Io(io::ErrorKind::Other);
            drive.add(Plan::from(command, 1, fault).in_zone(zone));
        }
        for _ in 0..4 {
            assert_eq!(append(&stream), Some(ZoneId(0)));
        }
        assert_eq!(append(&stream), None, "nine zones in a row");
        assert_eq!(cleanable(&stream), (0..10).map(ZoneId).collect::<Vec<_>>());
        assert!((1..10).all(|zone| stream.freelist.failures(ZoneId(zone)) == 1));
        assert_eq!(append(&stream), Some(ZoneId(11)));
    }
}

#[test]
fn a_full_disk_of_the_host_is_no_fault_of_the_zone() {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(0)).unwrap()));
    let stream = stream(drive.clone());
    drive.add(Plan::at(
        ZoneCommand::Write,
        2,
        Fault::Io(io::ErrorKind::StorageFull),
    ));
    assert_eq!(append(&stream), Some(ZoneId(0)));
    assert_eq!(append(&stream), None);
    assert_eq!(stream.freelist.failures(ZoneId(0)), 0);
    // What was written of the block is unknown, so the zone is left.
    assert_eq!(append(&stream), Some(ZoneId(1)));
    assert_eq!(cleanable(&stream), [ZoneId(0)]);
}

#[test]
fn a_read_only_file_system_of_the_host_takes_no_zone_out_of_use() {
    for max_append_bytes in [0, BLOCK as u32] {
        let drive = Arc::new(Faults::new(
            MemoryDrive::new(geometry(max_append_bytes)).unwrap(),
        ));
        let stream = stream(drive.clone());
        for used in 0..3 {
            for command in [ZoneCommand::Write, ZoneCommand::Append, ZoneCommand::Finish] {
                let fault = Fault::Io(io::ErrorKind::ReadOnlyFilesystem);
                drive.add(Plan::from(command, 1, fault));
            }
            assert!((0..20).all(|_| append(&stream).is_none()), "{used}");
            drive.clear();
            assert_eq!(append(&stream), Some(ZoneId(0)), "{used}");
        }
        assert_eq!(stream.freelist.failures(ZoneId(0)), 0);
        assert_eq!(cleanable(&stream), []);
        assert_eq!(stream.freelist.zone(ZoneId(0)).0, 3 * BLOCK);
    }
}

/// The write that would fill a zone fails, and is made again.
#[test]
fn the_last_block_of_a_zone_is_written_once_the_host_is_writable_again() {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(0)).unwrap()));
    let stream = stream(drive.clone());
    (0..3).for_each(|_| assert_eq!(append(&stream), Some(ZoneId(0))));
    let fault = Fault::Io(io::ErrorKind::ReadOnlyFilesystem);
    drive.add(Plan::at(ZoneCommand::Write, 1, fault));
    assert_eq!(append(&stream), None);
    assert_eq!(append(&stream), Some(ZoneId(0)));
    assert_eq!(append(&stream), Some(ZoneId(1)));
}

/// The write that would fill a zone fails: the zone must not stay active.
#[test]
fn a_zone_whose_last_block_is_not_written_is_finished() {
    for max_append_bytes in [0, BLOCK as u32] {
        let geometry = Geometry {
            max_open_zones: 1,
            max_active_zones: 1,
            ..geometry(max_append_bytes)
        };
        let drive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
        let stream = stream(drive.clone());
        (0..3).for_each(|_| assert_eq!(append(&stream), Some(ZoneId(0))));
        for command in [ZoneCommand::Write, ZoneCommand::Append] {
            let fault = Fault::Io(io::ErrorKind::StorageFull);
            drive.add(Plan::at(command, 1, fault));
        }
        assert_eq!(append(&stream), None);
        assert_eq!(append(&stream), Some(ZoneId(1)));
        assert_eq!(cleanable(&stream), [ZoneId(0)]);
    }
}

/// Appends slowly, so that other appends run meanwhile.
struct Slow;

impl Change<MemoryDrive> for Slow {
    fn append(&self, drive: &MemoryDrive, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        std::thread::sleep(std::time::Duration::from_millis(1));
        drive.append(zone, data)
    }
}

#[test]
fn appends_at_once_have_one_zone_active() {
    let geometry = Geometry {
        max_open_zones: 1,
        max_active_zones: 1,
        ..geometry(BLOCK as u32)
    };
    let drive = MemoryDrive::new(geometry).unwrap();
    let stream = stream(Arc::new(Changed {
        drive,
        change: Slow,
    }));
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for _ in 0..8 {
                    assert!(append(&stream).is_some());
                }
            });
        }
    });
    assert_eq!(cleanable(&stream), (0..10).map(ZoneId).collect::<Vec<_>>());
}

type Hook = Box<dyn FnOnce() + Send>;

/// Calls a hook once during an append, which fails then, and one before a finish.
#[derive(Default)]
struct Meanwhile {
    append: Mutex<Option<(bool, Hook)>>,
    finish: Mutex<Option<Hook>>,
}

impl Change<MemoryDrive> for Meanwhile {
    fn append(&self, drive: &MemoryDrive, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let hook = self.append.lock().take();
        let fails = hook.is_some_and(|(fails, hook)| {
            hook();
            fails
        });
        if fails {
            let source = Arc::new(io::ErrorKind::StorageFull.into());
            let (command, at) = (ZoneCommand::Append, drive.geometry().start(zone));
            return Err(ZoneError::Io {
                command,
                at,
                source,
            });
        }
        drive.append(zone, data)
    }

    fn finish(&self, drive: &MemoryDrive, zone: ZoneId) -> ZoneResult<()> {
        let hook = self.finish.lock().take();
        hook.into_iter().for_each(|hook| hook());
        drive.finish(zone)
    }
}

fn meanwhile(max_append_bytes: u32) -> (Arc<Changed<MemoryDrive, Meanwhile>>, Arc<Stream>) {
    let device = Arc::new(Changed {
        drive: MemoryDrive::new(geometry(max_append_bytes)).unwrap(),
        change: Meanwhile::default(),
    });
    let stream = Arc::new(stream(device.clone()));
    (device, stream)
}

/// Sealed before, it could be reset and be another stream's when the command comes to the drive.
#[test]
fn a_zone_is_finished_before_it_can_be_cleaned() {
    let (device, stream) = meanwhile(0);
    let zone = append(&stream).unwrap();
    let (seen, told) = (stream.clone(), Arc::new(AtomicBool::new(false)));
    let tells = told.clone();
    *device.change.finish.lock() = Some(Box::new(move || {
        tells.store(cleanable(&seen).is_empty(), Ordering::Relaxed);
    }));
    stream.seal().unwrap();
    assert!(told.load(Ordering::Relaxed));
    assert_eq!(cleanable(&stream), [zone]);
}

#[test]
fn an_append_to_a_zone_that_the_store_has_finished_is_no_failure_of_it() {
    let (device, stream) = meanwhile(BLOCK as u32);
    let first = append(&stream).unwrap();
    let seals = stream.clone();
    let hook = Box::new(move || seals.seal().unwrap());
    *device.change.append.lock() = Some((false, hook));
    assert_ne!(append(&stream), Some(first));
    assert_eq!(stream.freelist.failures(first), 0);
}

/// The append may still fail, and seal the zone.
#[test]
fn a_zone_is_not_handed_over_during_an_append() {
    let (device, moved) = meanwhile(BLOCK as u32);
    let data = Arc::new(Stream {
        device: device.clone(),
        pool: moved.pool.clone(),
        freelist: moved.freelist.clone(),
        purpose: Purpose::Data,
        state: Mutex::default(),
        idle: Condvar::new(),
    });
    let (from, to) = (moved.clone(), data.clone());
    let (began, thread) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    let (begins, started) = (began.clone(), thread.clone());
    let hook: Hook = Box::new(move || {
        let hands = std::thread::spawn(move || {
            begins.store(true, Ordering::Release);
            from.hand_over(&to)
        });
        while !began.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // Most often it waits by now; the outcome is the same if it does not.
        std::thread::sleep(std::time::Duration::from_millis(20));
        *started.lock() = Some(hands);
    });
    *device.change.append.lock() = Some((true, hook));
    assert_eq!(append(&moved), None);
    let hands = thread.lock().take().unwrap();
    assert!(!hands.join().unwrap(), "the zone has been left");
    let zone = append(&data).unwrap();
    let candidates = data.freelist.candidates();
    assert!(candidates.iter().all(|c| c.zone != zone));
}
