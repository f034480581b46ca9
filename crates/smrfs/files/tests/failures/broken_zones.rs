//! Zones that cannot be written, and drives with few active ones.

use super::{mkfs, new_file};
use crate::common::{KIB, Kind, assert_clean, contents, geometry};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{Error, FileSystem, Fit, MkfsOptions, MountOptions, ROOT};
use std::sync::Arc;
use zone::{Geometry, ZoneCondition, ZoneId};
use zone_alloc::Pressure;

#[test]
fn a_zone_that_cannot_be_written_is_left() {
    let inner = Arc::new(MemoryDrive::new(geometry(30, 4)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let fs = FileSystem::mount(inner.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    fs.write(ino, 0, &vec![1; 20_000]).unwrap();
    fs.sync().unwrap();
    inner
        .set_condition(ZoneId(4), ZoneCondition::ReadOnly)
        .unwrap();
    fs.write(ino, 20_000, &vec![2; 20_000]).unwrap();
    fs.sync().unwrap();
    drop(fs);
    let fs = FileSystem::mount(inner, runtime, MountOptions::default()).unwrap();
    let bytes = contents(&fs, ino).unwrap();
    assert_eq!(bytes, [vec![1; 20_000], vec![2; 20_000]].concat());
    assert_clean(&fs);
}

#[test]
fn a_zone_below_a_caveat_drive_that_cannot_be_written_is_left() {
    for fit in [
        Fit::Best,
        Fit::First,
        Fit::Next,
        Fit::LastAccessed,
        Fit::Worst,
    ] {
        let kind = Kind::Caveat {
            distance: 3,
            range: 1,
            cleaned: false,
        };
        let inner = Arc::new(MemoryDrive::new(kind.geometry(30)).unwrap());
        let medium = kind.medium(inner.clone(), None);
        let runtime = Runtime::seeded(1);
        FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
        let options = MountOptions {
            fit,
            ..MountOptions::default()
        };
        let fs = FileSystem::mount_on(&medium, runtime.clone(), options).unwrap();
        let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
        let mut expected = Vec::new();
        for turn in 0..40 {
            // The one in which the file begins, behind the unshingled part, and one that it comes to.
            if let Some(zone) = [(1, 4), (20, 6)].iter().find(|(at, _)| *at == turn) {
                inner
                    .set_condition(ZoneId(zone.1), ZoneCondition::ReadOnly)
                    .unwrap();
            }
            let more = vec![turn as u8; 30_000];
            fs.write(ino, expected.len() as u64, &more).unwrap();
            expected.extend(more);
            // A zone that cannot be written is no error of a call.
            fs.sync()
                .unwrap_or_else(|error| panic!("{fit:?}, {turn}: {error}"));
        }
        drop(fs);
        let fs = FileSystem::mount_on(&medium, runtime, options).unwrap();
        assert_eq!(contents(&fs, ino).unwrap(), expected);
        assert_clean(&fs);
    }
}

/// Overwrites files at random on a drive of this geometry, until some are cleaned.
fn clean_with_few_active(geometry: Geometry, options: &MkfsOptions) {
    let device = Arc::new(MemoryDrive::new(geometry).unwrap());
    let runtime = mkfs(&device, options);
    let mount =
        || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let mut fs = mount();
    let mut random = fastrand::Rng::with_seed(7);
    let mut files = Vec::new();
    for n in 0..20_u8 {
        let ino = fs.create(ROOT, &[b'a' + n], new_file()).unwrap().ino;
        fs.write(ino, 0, &[n; 100_000]).unwrap();
        files.push((ino, n));
    }
    for turn in 0..150_u8 {
        let file = random.usize(0..files.len());
        fs.write(files[file].0, 0, &[turn; 60_000]).unwrap();
        files[file].1 = turn;
        fs.sync().unwrap();
        if turn == 75 {
            drop(fs);
            fs = mount();
        }
    }
    while fs.counts().moved_bytes == 0 {
        assert!(fs.clean(Pressure::Any).unwrap());
    }
    for (n, (ino, byte)) in files.iter().enumerate() {
        let found = contents(&fs, *ino).unwrap();
        let was_written = found[..60_000].iter().all(|found| found == byte);
        let is_old = found[60_000..].iter().all(|found| *found == n as u8);
        assert!(was_written && is_old && found.len() == 100_000, "{n}");
    }
    assert_clean(&fs);
}

#[test]
fn a_drive_with_too_few_active_zones_is_refused() {
    let options = MkfsOptions::default();
    for (conventional, least) in [(0, 4), (4, 2)] {
        let active = |zones| Geometry {
            max_open_zones: zones,
            max_active_zones: zones,
            ..geometry(30, conventional)
        };
        let few = Arc::new(MemoryDrive::new(active(least - 1)).unwrap());
        let few = FileSystem::mkfs(few, &Runtime::seeded(1), &options).unwrap_err();
        assert!(matches!(few, Error::Shape(_)), "{few}");
        clean_with_few_active(active(least), &options);
    }
}

/// The end of a zone that holds no block does not keep it active.
#[test]
fn zones_that_are_no_multiple_of_a_block_are_finished() {
    let options = MkfsOptions {
        block_size: 8 << 10,
        ..MkfsOptions::default()
    };
    let geometry = Geometry {
        zone_capacity: 204 * KIB,
        max_open_zones: 5,
        max_active_zones: 5,
        ..geometry(40, 0)
    };
    clean_with_few_active(geometry, &options);
}
