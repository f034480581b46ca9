//! Bytes that change on the drive: damage is told, or makes no difference.

use super::{Unreadable, filled, mkfs, new_file};
use crate::common::{KIB, assert_clean, contents, geometry, seen};
use caveat::{CaveatDevice, CaveatShape};
use device::changed::Changed;
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, ROOT};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId};
use zone_alloc::Pressure;

#[test]
fn changed_data_is_an_error_and_never_given() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let (runtime, files, _) = filled(&device);
    let written = device.report_zone(ZoneId(4)).unwrap().write_pointer;
    let mut random = fastrand::Rng::with_seed(3);
    let mut damaged = 0;
    for _ in 0..60 {
        let copy = Arc::new(device.snapshot());
        let at = ZoneAddress::new(ZoneId(4), random.u64(0..written));
        copy.decay(at, 1, |bytes| bytes[0] ^= 1 << 3);
        let options = MountOptions::default();
        let fs = FileSystem::mount(copy.clone(), runtime.clone(), options).unwrap();
        let look = |fs: &FileSystem| {
            let mut bad = 0;
            for (ino, bytes) in &files {
                match contents(fs, *ino) {
                    Ok(found) => assert_eq!(found, *bytes),
                    Err(Error::DamagedData { .. }) => bad += 1,
                    Err(Error::NotFound) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            bad
        };
        let bad = look(&fs);
        assert_eq!(fs.check(true).errors.get("data").copied().unwrap_or(0), bad);
        damaged += bad;
        // The cleaner moves it as it is, and it stays an error.
        fs.unlink(ROOT, b"l").unwrap();
        while fs.clean(Pressure::Any).unwrap() {}
        assert!(look(&fs) <= bad + 1);
    }
    assert!(damaged > 20, "{damaged}");
}

#[test]
fn changed_metadata_is_refused_or_makes_no_difference() {
    change_metadata(false);
    change_metadata(true);
}

fn change_metadata(is_sealed: bool) {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let (runtime, _, mut all) = filled(&device);
    if is_sealed {
        let options = MountOptions::default();
        let fs = FileSystem::mount(device.clone(), runtime.clone(), options).unwrap();
        fs.create(ROOT, b"last", new_file()).unwrap();
        fs.seal().unwrap();
        fs.seal().unwrap();
        all = seen(&fs, []).unwrap();
    }
    let mut random = fastrand::Rng::with_seed(5);
    let (mut refused, mut last) = (0, 0);
    for _ in 0..600 {
        let copy = Arc::new(device.snapshot());
        let at = ZoneAddress::new(
            ZoneId(random.u32(0..4)),
            random.u64(0..64) * 4096 + random.u64(0..300),
        );
        copy.decay(at, 1, |bytes| bytes[0] ^= 1 << random.u8(0..8));
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        match FileSystem::mount(copy.clone(), runtime.clone(), read_only) {
            Ok(fs) => match seen(&fs, []) {
                Ok(found) if found == all => {}
                // Damage to the very last group looks like one that was not finished.
                Ok(found) => {
                    assert_eq!(found.len() + 1, all.len());
                    last += 1;
                }
                Err(error) => panic!("{error}"),
            },
            Err(Error::DamagedMetadata { .. } | Error::Version { .. } | Error::NotFormatted) => {
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    // Behind an unmount the older copy may have any damage.
    assert!(refused > if is_sealed { 0 } else { 20 }, "{refused}");
    assert!(last < 20 && (last == 0 || !is_sealed), "{last}");
}

#[test]
fn noise_is_no_file_system() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..30 {
        let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
        let (runtime, ..) = filled(&device);
        for _ in 0..random.usize(1..40) {
            let zone = ZoneId(random.u32(0..8));
            let written = match device.report_zone(zone).unwrap() {
                report if report.write_pointer_valid() => report.write_pointer,
                _ => 256 * KIB,
            };
            if written > 0 {
                let at = ZoneAddress::new(zone, random.u64(0..written / 64) * 64);
                device.decay(at, 64, |bytes| random.fill(bytes));
            }
        }
        // Whatever comes, no panic.
        if let Ok(fs) = FileSystem::mount(device, runtime, MountOptions::default()) {
            let _ = seen(&fs, []);
            let _ = fs.check(true);
            let _ = fs.sync();
        }
    }
}

#[test]
fn other_versions_and_empty_drives_are_named() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = Runtime::seeded(1);
    let mount = |device: &Arc<MemoryDrive>| {
        FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap_err()
    };
    assert!(matches!(mount(&device), Error::NotFormatted));
    assert!(!smrfs::is_there(&*device).unwrap());
    mkfs(&device, &MkfsOptions::default());
    assert!(smrfs::is_there(&*device).unwrap());
    // Of two copies one will do, and neither is of another version.
    let version = |copy: u32| ZoneAddress::new(ZoneId(2 * copy), 8);
    device.decay(version(0), 1, |bytes| bytes[0] = 9);
    FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    device.decay(version(0), 1, |bytes| bytes[0] = 9);
    device.decay(version(1), 1, |bytes| bytes[0] = 9);
    assert!(matches!(mount(&device), Error::DamagedMetadata { .. }));
    let mut head = vec![0; 4096];
    device.read(ByteOffset(0), &mut head).unwrap();
    let payload = 64 + u32::from_le_bytes(head[12..16].try_into().unwrap()) as usize;
    let covered = [&head[..56], &head[64..payload]].concat();
    head[56..64].copy_from_slice(&xxh3_64(&covered).to_le_bytes());
    device.write(ByteOffset(0), &head).unwrap();
    assert!(matches!(mount(&device), Error::Version { found: 9, .. }));
}

/// Whatever byte of a Caveat-Scriptor drive's header is changed: what is there is damaged, and never another drive. With its
/// copy all is as it was, a check says so, and a mount mends it.
#[test]
fn a_damaged_header_of_a_caveat_drive_has_a_copy() {
    for (zones, has_copy) in [(40, true), (12, false)] {
        let below = || {
            let geometry = Geometry {
                zone_size: 256 * KIB * 40 / u64::from(zones) / 4096 * 4096,
                ..geometry(zones, zones)
            };
            let zone_capacity = geometry.zone_size;
            let geometry = Geometry {
                zone_capacity,
                ..geometry
            };
            Arc::new(MemoryDrive::new(geometry).unwrap())
        };
        let shape = CaveatShape {
            block_size: 4096,
            isolation_distance: 16,
            no_overlap_range: 6,
            unshingled_bytes: 1 << 20,
        };
        let device = below();
        CaveatDevice::create(device.clone(), &shape).unwrap();
        let runtime = mkfs(&device, &MkfsOptions::default());
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        let mount = |options| FileSystem::mount(device.clone(), runtime.clone(), options);
        for byte in 0..56 {
            let flip = || {
                device.decay(ZoneAddress::new(ZoneId(0), byte), 1, |bytes| bytes[0] ^= 1);
            };
            flip();
            assert!(smrfs::is_there(&*device).unwrap());
            if !has_copy {
                let error = mount(read_only).unwrap_err();
                assert!(matches!(error, Error::DamagedMetadata { .. }), "{error}");
                flip();
                continue;
            }
            let fs = mount(read_only).unwrap();
            assert_eq!(fs.check(true).errors.get("metadata"), Some(&1), "{byte}");
            assert_clean(&mount(MountOptions::default()).unwrap());
            assert_clean(&mount(read_only).unwrap());
        }
    }
}

/// A power cut tears the bitmap of a Caveat-Scriptor drive, or leaves it unreadable. The drive below has all data: all files
/// are there, a check says what is damaged, and a mount for writing mends it.
#[test]
fn a_bitmap_that_a_power_cut_tore_loses_nothing() {
    let inner = Arc::new(MemoryDrive::new(geometry(40, 40)).unwrap());
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance: 16,
        no_overlap_range: 6,
        unshingled_bytes: 1 << 20,
    };
    CaveatDevice::create(inner.clone(), &shape).unwrap();
    let (runtime, _, all) = filled(&inner);
    let piece = 4096;
    let mount = |block: u64, read_only| {
        let device = Arc::new(Changed {
            drive: inner.clone(),
            change: Unreadable([block; 2]),
        });
        let options = MountOptions {
            read_only,
            ..MountOptions::default()
        };
        FileSystem::mount(device, runtime.clone(), options).unwrap()
    };
    for unreadable in [u64::MAX, piece] {
        inner.decay(ZoneAddress::new(ZoneId(0), piece), 512, |bytes| {
            bytes.fill(7);
        });
        let fs = mount(unreadable, true);
        assert_eq!(seen(&fs, []).unwrap(), all);
        assert_eq!(fs.check(true).errors.get("metadata"), Some(&1));
        drop(fs);
        let fs = mount(unreadable, false);
        assert_eq!(seen(&fs, []).unwrap(), all);
        drop(fs);
        assert_clean(&mount(u64::MAX, true));
    }
}

/// A checkpoint resets the zones of the older copy one by one, and the power goes: whichever of them it took, the newer copy
/// is as it was.
#[test]
fn an_older_copy_of_which_some_zones_are_reset_is_no_damage() {
    for zones in 1..8_u32 {
        let device = Arc::new(MemoryDrive::new(geometry(30, 0)).unwrap());
        let runtime = mkfs(&device, &MkfsOptions::default());
        let fs = FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default());
        let fs = fs.unwrap();
        let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
        for turn in 0_u32.. {
            fs.write(ino, 0, &turn.to_le_bytes()).unwrap();
            fs.sync().unwrap();
            // From the second copy, which mkfs leaves, to the first.
            if fs.counts().checkpoints > 0 {
                break;
            }
        }
        let expected = contents(&fs, ino).unwrap();
        drop(fs);
        // The second copy is in zones 3 to 5.
        for n in (0..3).filter(|n| zones >> n & 1 == 1) {
            device.reset(ZoneId(3 + n)).unwrap();
        }
        let fs = FileSystem::mount(device, runtime, MountOptions::default()).unwrap();
        assert_eq!(contents(&fs, ino).unwrap(), expected);
        assert_clean(&fs);
    }
}
