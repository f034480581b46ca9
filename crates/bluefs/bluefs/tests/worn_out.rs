//! A worn-out zone, which takes writes and cannot be read: a scrub finds it, and neither the journal nor the superblock
//! is written there again.

use crate::support::{assert_clean, format_copies, geometry, mount, put, read};
use bluefs::{BlueFs, Role, ZonePurpose};
use device::changed::{Change, Changed};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneId, ZoneKind, ZoneResult};

type Drive = Faults<MemoryDrive>;

const FILES: usize = 30;

fn formatted(conventional: u32, copies: u32) -> (Arc<Drive>, BlueFs) {
    let drive = MemoryDrive::new(geometry(120, conventional, 0)).unwrap();
    format_copies(&drive, Role::Alone, copies);
    let drive = Arc::new(Faults::new(drive));
    let fs = mount(drive.clone()).unwrap();
    for number in 0..FILES {
        put(&fs, &format!("/{number}.sst"), &[number as u8; 700]);
    }
    (drive, fs)
}

/// Makes all reads of the zone fail, whatever is written to it.
fn wear_out(drive: &Drive, zone: ZoneId) {
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
}

fn scrub(fs: &BlueFs) {
    let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
    assert!(scrubbed.lost.is_empty(), "{scrubbed:?}");
}

fn purpose(fs: &BlueFs, zone: ZoneId) -> Option<ZonePurpose> {
    let mut zones = fs.zones().into_iter();
    zones.find(|(z, _)| *z == zone).map(|(_, purpose)| purpose)
}

/// Writes files, so that one journal after another begins, and calls `each` after each new journal.
fn go_on(fs: &BlueFs, files: usize, each: &mut dyn FnMut(&BlueFs)) {
    let mut epoch = fs.info().journal_epoch;
    for number in 0..files {
        put(fs, &format!("/new{}.sst", number % 7), &[7; 600]);
        let now = fs.info().journal_epoch;
        if now != epoch {
            each(fs);
            epoch = now;
        }
    }
}

fn all_there(fs: &BlueFs) {
    for number in 0..FILES {
        let data = read(fs, &format!("/{number}.sst")).unwrap();
        assert_eq!(data, [number as u8; 700]);
    }
    assert_clean(fs);
}

#[test]
fn the_journal_keeps_out_of_it() {
    for (conventional, copies) in [(0, 1), (0, 2), (16, 1), (16, 2)] {
        for in_twin in [false, true] {
            if in_twin && copies == 1 {
                continue;
            }
            let (drive, fs) = formatted(conventional, copies);
            let info = fs.info();
            let zone = match in_twin {
                true => info.journal_twin.unwrap(),
                false => info.journal_zone,
            };
            let what = format!("{conventional} conventional, {copies} copies, zone {zone}");
            wear_out(&drive, zone);
            scrub(&fs);
            assert_eq!(fs.worn_out(), [zone], "{what}");
            assert!(fs.pool().unusable().contains(&zone), "{what}");
            let mut epochs = 0;
            go_on(&fs, 2000, &mut |fs| {
                epochs += 1;
                assert_eq!(purpose(fs, zone), None, "{what}");
            });
            assert!(epochs > 3, "{what}: {epochs}");
            all_there(&fs);
            let struck = drive.struck();
            scrub(&fs);
            assert_eq!(drive.struck(), struck, "{what}: nobody reads there");
            fs.unmount().unwrap();
            if drive.geometry().kind(zone) == ZoneKind::Conventional {
                continue;
            }
            // The next mount finds the zone by itself.
            let fs = mount(drive.clone()).unwrap();
            assert!(fs.pool().unusable().contains(&zone), "{what}");
            go_on(&fs, 2000, &mut |fs| {
                assert_eq!(purpose(fs, zone), None, "{what}")
            });
            all_there(&fs);
            fs.unmount().unwrap();
        }
    }
}

/// Addresses of blocks that cannot be read.
#[derive(Default)]
pub(crate) struct BadBlocks(pub(crate) Mutex<Vec<u64>>);

impl Change<MemoryDrive> for BadBlocks {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let read = at.0..at.0 + buffer.len() as u64;
        match self.0.lock().unwrap().iter().any(|bad| read.contains(bad)) {
            true => Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(ErrorKind::Other.into()),
            }),
            false => drive.read(at, buffer),
        }
    }
}

/// A zone with a few bad sectors stays in use, for the drive remaps sectors when they are written again.
#[test]
fn a_zone_with_a_few_bad_places_is_used_again() {
    for (bad, is_worn_out) in [(3, false), (4, true)] {
        let drive = MemoryDrive::new(geometry(120, 0, 0)).unwrap();
        format_copies(&drive, Role::Alone, 2);
        let change = BadBlocks::default();
        let drive = Arc::new(Changed { drive, change });
        let fs = mount(drive.clone()).unwrap();
        for number in 0..FILES {
            put(&fs, &format!("/{number}.sst"), &[number as u8; 700]);
        }
        let (zone, g) = (fs.info().journal_zone, drive.geometry());
        let block = u64::from(g.block_size);
        // Every second block, from the second on.
        let places = (0..bad).map(|n| g.start(zone).0 + (1 + 2 * n) * block);
        *drive.change.0.lock().unwrap() = places.collect();
        scrub(&fs);
        assert_eq!(fs.worn_out().contains(&zone), is_worn_out, "{bad}");
        assert_eq!(fs.pool().unusable().contains(&zone), is_worn_out, "{bad}");
        all_there(&fs);
    }
}

#[test]
fn superblocks_go_to_the_other_zone_of_their_end() {
    for conventional in [0, 16] {
        for bad in [0, 1, 118, 119].map(ZoneId) {
            let (drive, fs) = formatted(conventional, 2);
            let what = format!("{conventional} conventional, zone {bad}");
            wear_out(&drive, bad);
            let other = ZoneId(bad.0 ^ 1);
            // The zone is known as worn out once a scrub has found some unreadable superblocks in it.
            for _ in 0..40 {
                scrub(&fs);
                go_on(&fs, 150, &mut |_| {});
            }
            go_on(&fs, 2000, &mut |_| {});
            let report = fs.check(true).unwrap();
            assert!(report.is_clean(), "{what}: {:?}", report.details);
            let generation = fs.info().generation;
            let ends = newest_in(&drive, other);
            assert_eq!(ends, Some(generation), "{what}");
            all_there(&fs);
            fs.unmount().unwrap();
            // Then the other ring is lost.
            let far = if bad.0 < 2 { [118, 119] } else { [0, 1] };
            far.into_iter()
                .for_each(|zone| wear_out(&drive, ZoneId(zone)));
            let fs = mount(drive).unwrap();
            all_there(&fs);
        }
    }
}

/// The generation of the newest superblock in a zone.
fn newest_in(drive: &Drive, zone: ZoneId) -> Option<u64> {
    let g = drive.geometry();
    let mut bytes = vec![0; g.capacity(zone) as usize];
    drive.read(g.start(zone), &mut bytes).unwrap();
    let blocks = bytes.chunks(g.block_size as usize);
    let superblocks = blocks.filter(|block| block.starts_with(b"ZSBLUEFS"));
    superblocks
        .map(|block| u64::from_le_bytes(block[32..40].try_into().unwrap()))
        .max()
}
