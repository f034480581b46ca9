//! The host's disk under a drive file is full before the drive is: appends are refused, and what was accepted without a
//! sync is there after an unmount.

use crate::support::{bytes, format, geometry, number, read};
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use runtime::sync::Mutex;
use runtime::{Runtime, SimulatedClock};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use zeafs::{Error, WRITE_BUFFER, Writer, ZeaFs};
use zone::{
    ByteOffset, Geometry, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId, ZoneKind, ZoneResult,
};

/// Bytes of a write up to which a drive's file takes space ahead, and the space that it takes.
const SMALL: usize = 64 << 10;
const AHEAD: u64 = 1 << 20;

/// A disk on which a drive's file takes space as it is written, and after small writes ahead of them.
#[derive(Default)]
struct Disk {
    bytes: AtomicU64,
    /// Number of queries for the free bytes.
    asked: AtomicU64,
    /// Blocks of the file that take space.
    blocks: Mutex<BTreeSet<u64>>,
}

impl Disk {
    fn left(&self, drive: &MemoryDrive, blocks: &mut BTreeSet<u64>) -> u64 {
        let g = drive.geometry();
        let report = drive.report(ZoneId(0), g.zone_count).unwrap();
        let block_size = u64::from(g.block_size);
        let is_empty =
            |zone: &&ZoneDescriptor| zone.write_pointer_valid() && zone.write_pointer == 0;
        for zone in report.iter().filter(is_empty) {
            let first = g.start(zone.id).0 / block_size;
            let given_back = blocks.range(first..first + g.zone_size / block_size);
            for block in given_back.copied().collect::<Vec<_>>() {
                blocks.remove(&block);
            }
        }
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes.saturating_sub(blocks.len() as u64 * block_size)
    }
}

fn full(at: ByteOffset) -> ZoneError {
    ZoneError::Io {
        command: ZoneCommand::Write,
        at,
        source: Arc::new(ErrorKind::StorageFull.into()),
    }
}

impl Change<MemoryDrive> for Disk {
    fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let block_size = u64::from(drive.geometry().block_size);
        let mut blocks = self.blocks.lock();
        let left = self.left(drive, &mut blocks);
        let written = at.0 / block_size..(at.0 + data.len() as u64) / block_size;
        let new: Vec<u64> = written.filter(|block| !blocks.contains(block)).collect();
        if new.len() as u64 * block_size > left {
            return Err(full(at));
        }
        drive.write(at, data)?;
        let left = (left / block_size) as usize - new.len();
        blocks.extend(new);
        let zone = drive.geometry().address(at).unwrap().zone;
        if drive.geometry().kind(zone) != ZoneKind::Conventional && data.len() < SMALL {
            let next = (at.0 + data.len() as u64) / block_size;
            if !blocks.contains(&next) {
                let end = drive.geometry().start(zone).0 + drive.geometry().zone_size;
                let ahead = next..(next + AHEAD / block_size).min(end / block_size);
                blocks.extend(ahead.take(left));
            }
        }
        Ok(())
    }

    fn host_free_bytes(&self, drive: &MemoryDrive) -> Option<u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Some(self.left(drive, &mut self.blocks.lock()))
    }
}

type Thin = Arc<Changed<MemoryDrive, Disk>>;

/// A formatted drive, mounted on a disk that has `free` bytes left, and the clock.
fn mounted(conventional_zones: u32, free: u64, seed: u64) -> (Thin, ZeaFs, Arc<SimulatedClock>) {
    let g = Geometry {
        block_size: 4096,
        zone_size: 4 << 20,
        zone_capacity: 4 << 20,
        ..geometry(40, conventional_zones, 0)
    };
    let thin = Arc::new(Changed {
        drive: MemoryDrive::new(g).unwrap(),
        change: Disk::default(),
    });
    thin.change.bytes.store(1 << 30, Ordering::Relaxed);
    format(&*thin);
    let clock = Arc::new(SimulatedClock::default());
    let runtime = Runtime::seeded(seed).with_clock(clock.clone());
    let fs = ZeaFs::mount_with(thin.clone(), runtime, WRITE_BUFFER).unwrap();
    leave(&thin, free);
    (thin, fs, clock)
}

/// Lets other programs write to the disk until `free` bytes are left.
fn leave(thin: &Thin, free: u64) {
    let left = thin.host_free_bytes().unwrap();
    let bytes = thin.change.bytes.load(Ordering::Relaxed);
    let bytes = bytes - left + free;
    thin.change.bytes.store(bytes, Ordering::Relaxed);
}

fn remount(thin: &Thin) -> ZeaFs {
    ZeaFs::mount(thin.clone(), Runtime::seeded(1)).unwrap()
}

fn is_of_full_host(error: &Error) -> bool {
    error.of_drive().is_some_and(|error| error.is_host_full())
}

/// Appends rows until one is refused; returns the accepted ones.
fn fill(writer: &mut Writer, row: usize) -> Vec<u8> {
    let mut taken = Vec::new();
    loop {
        let data = bytes(taken.len() as u64, row);
        match writer.append(&data) {
            Ok(()) => taken.extend(data),
            Err(error) => {
                assert!(is_of_full_host(&error), "{error}");
                return taken;
            }
        }
    }
}

#[test]
fn rows_that_were_accepted_are_there_after_an_unmount() {
    for (conventional_zones, row, kib) in [(0, 100, 8000), (1, 100, 8000), (1, 3000, 20_000)] {
        let (thin, fs, _) = mounted(conventional_zones, kib << 10, 1);
        let mut writer = fs.create("rows").unwrap();
        let taken = fill(&mut writer, row);
        // All but 8 MiB of the disk can be used.
        assert!(taken.len() as u64 > (kib << 10).saturating_sub(8 << 20).max(1 << 20));
        drop(writer);
        fs.unmount().unwrap();
        let fs = remount(&thin);
        assert!(read(&fs, "rows").unwrap() == taken);
        // A removal needs no room but that for its frame, and gives space back.
        fs.delete("rows").unwrap();
        fs.sync_metadata().unwrap();
        let mut writer = fs.create("rows").unwrap();
        let again = fill(&mut writer, row);
        assert!(again.len() > taken.len() * 9 / 10, "{}", again.len());
    }
}

/// The same for many files, of which some are synced, closed and removed meanwhile.
#[test]
fn what_was_accepted_is_there_whatever_else_was_done() {
    for seed in 0..number("ZONESTORE_ZEA_HISTORIES", 20) {
        let mut random = Rng::with_seed(seed);
        let (thin, fs, clock) = mounted(seed as u32 % 2, random.u64(5000..20_000) << 10, seed);
        let largest = [300, 5000, 200_000][random.usize(..3)];
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        let (mut full, mut files) = (0, 0);
        while full < 12 {
            while open.len() < 5 {
                files += 1;
                let name = format!("f{files}");
                open.push((name.clone(), fs.create(&name).unwrap(), Vec::new()));
            }
            let at = random.usize(..open.len());
            match random.u32(..100) {
                0 => open[at].1.sync().unwrap(),
                1 => closed.push(open.swap_remove(at)),
                2 if full > 0 => fs.delete(&open.swap_remove(at).0).unwrap(),
                3 => clock.advance(Duration::from_millis(70)),
                n => {
                    let data = bytes(u64::from(n), random.usize(..=largest));
                    match open[at].1.append(&data) {
                        Ok(()) => open[at].2.extend(data),
                        Err(error) => {
                            assert!(is_of_full_host(&error), "seed {seed}: {error}");
                            closed.push(open.swap_remove(at));
                            full += 1;
                        }
                    }
                }
            }
        }
        open.append(&mut closed);
        let taken = open.into_iter().map(|(name, _, taken)| (name, taken));
        let taken: Vec<(String, Vec<u8>)> = taken.collect();
        let ended = fs.unmount();
        assert!(ended.is_ok(), "seed {seed}: {ended:?}");
        let fs = remount(&thin);
        for (name, data) in &taken {
            let found = read(&fs, name).unwrap();
            assert!(found.starts_with(data), "seed {seed}: {name}");
        }
    }
}

/// One answer of the host serves for 64 KiB, and not when another program may have filled the disk since.
#[test]
fn the_host_is_asked_again() {
    let (thin, fs, clock) = mounted(1, 500 << 20, 1);
    let mut writer = fs.create("rows").unwrap();
    let before = thin.change.asked.load(Ordering::Relaxed);
    for _ in 0..1000 {
        writer.append(&[7; 100]).unwrap();
    }
    let asked = thin.change.asked.load(Ordering::Relaxed) - before;
    assert!((1..=4).contains(&asked), "{asked}");
    leave(&thin, 7 << 20);
    clock.advance(Duration::from_secs(1));
    let more = fill(&mut writer, 100);
    assert!(more.len() < 1 << 20);
    drop(writer);
    fs.unmount().unwrap();
    let size = remount(&thin).metadata("rows").unwrap().size;
    assert_eq!(size, 100_000 + more.len() as u64);
}

/// Refuses writes to sequential zones, as long as it is true.
#[derive(Default)]
struct Full(AtomicBool);

impl Change<MemoryDrive> for Full {
    fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let g = drive.geometry();
        let is_conventional = at.0 < u64::from(g.conventional_zones) * g.zone_size;
        match self.0.load(Ordering::Relaxed) && !is_conventional {
            true => Err(full(at)),
            false => drive.write(at, data),
        }
    }
}

fn may_be_full() -> (Arc<Changed<MemoryDrive, Full>>, ZeaFs) {
    let device = Arc::new(Changed {
        drive: MemoryDrive::new(geometry(20, 1, 0)).unwrap(),
        change: Full::default(),
    });
    format(&*device);
    let fs = ZeaFs::mount(device.clone(), Runtime::seeded(1)).unwrap();
    (device, fs)
}

/// A zone that could not be opened is as good as others: it can be once the host's disk has room again.
#[test]
fn a_full_disk_takes_no_zones_away() {
    let (device, fs) = may_be_full();
    let free = fs.usage().free_zones;
    let mut writer = fs.create("a").unwrap();
    writer.append(&bytes(1, 3000)).unwrap();
    device.change.0.store(true, Ordering::Relaxed);
    for _ in 0..30 {
        assert!(is_of_full_host(&writer.sync().unwrap_err()));
    }
    assert_eq!(fs.usage().free_zones, free);
    device.change.0.store(false, Ordering::Relaxed);
    writer.sync().unwrap();
    assert_eq!(read(&fs, "a").unwrap(), bytes(1, 3000));
}

/// Small pieces are merged before a checkpoint, to make it smaller. Changes go on if they cannot be.
#[test]
fn names_change_although_pieces_cannot_be_merged() {
    let (device, fs) = may_be_full();
    let mut writer = fs.create("a").unwrap();
    for _ in 0..100 {
        writer.append(&[7; 10]).unwrap();
        writer.sync().unwrap();
    }
    device.change.0.store(true, Ordering::Relaxed);
    // Now the map is larger than half the log, where merging begins.
    for n in 0..12 {
        fs.create(&format!("{n:0>300}")).unwrap();
    }
    for n in 0..60 {
        fs.create(&format!("{}", n % 2)).unwrap();
        fs.sync_metadata().unwrap();
    }
    device.change.0.store(false, Ordering::Relaxed);
    assert_eq!(read(&fs, "a").unwrap(), [7; 1000]);
    fs.unmount().unwrap();
}
