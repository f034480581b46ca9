//! Random histories beside the model, with restarts; damage; full drives and removed files that are still read; calls
//! that are refused.

use crate::support::Step::*;
use crate::support::{BUFFER, NAMES, Pair, bytes, format, geometry, mount, number, read, write};
use device::{FileDrive, MemoryDrive, ZonedDevice, erase};
use fastrand::Rng;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::Arc;
use zea::{Instance, LogicalAddress, Options, Sequence};
use zeafs::format::frame::checksum;
use zeafs::{Error, Examined, Lifetime, ZeaFs};
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId};

fn history(device: Arc<dyn ZonedDevice>, seed: u64) {
    let mut random = Rng::with_seed(seed);
    format(&*device);
    let mut pair = Pair::new(device).unwrap();
    for _ in 0..number("ZONESTORE_ZEA_STEPS", 500) {
        let (f, g) = (random.usize(..NAMES.len()), random.usize(..NAMES.len()));
        let step = match random.u32(..24) {
            0..2 => Create(f),
            2..10 => {
                let most = [50, 900, 4000][random.usize(..3)];
                Append(f, random.usize(1..most))
            }
            10..14 => Sync(f),
            14 => Close(f),
            15..17 => Delete(f),
            17 if f != g => Rename(f, g),
            18..20 => Truncate(f, random.u64(..)),
            20 => SyncNames,
            21 => Remount,
            22 => Kill,
            _ => continue,
        };
        // Keeps the live bytes within what the smallest drive holds.
        if pair.fs.usage().live_bytes > 60_000 {
            pair.step(Delete(f)).unwrap();
            pair.step(Truncate(g, 100)).unwrap();
            pair.step(SyncNames).unwrap();
            continue;
        }
        pair.step(step)
            .unwrap_or_else(|e| panic!("seed {seed}: {step:?}: {e}"));
        if random.u32(..8) == 0 {
            pair.model.assert_now(&pair.fs).unwrap();
        }
    }
    pair.step(Remount).unwrap();
}

#[test]
fn in_memory() {
    for seed in 0..6 {
        let g = [
            geometry(9, 1, 0),
            geometry(11, 0, 0),
            geometry(11, 0, [4, 6][seed as usize / 3]),
        ][seed as usize % 3]
            .clone();
        history(Arc::new(MemoryDrive::new(g).unwrap()), seed);
    }
}

#[test]
fn in_a_file() {
    let path = std::env::temp_dir().join(format!("zeafs-{}", std::process::id()));
    let drive = FileDrive::create(&path, &geometry(9, 1, 0), "test").unwrap();
    history(Arc::new(drive), 7);
    std::fs::remove_file(path).unwrap();
}

fn filled(g: &Geometry) -> (Arc<MemoryDrive>, Vec<(String, Vec<u8>)>) {
    let device = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let mut files = Vec::new();
    for n in 0..6 {
        let (name, data) = (format!("db/{n}"), bytes(n, 100 + n as usize * 900));
        write(&fs, &name, &data).unwrap();
        files.push((name, data));
    }
    (device, files)
}

/// One flipped bit anywhere: each file reads as it was or is refused as corrupt, or the mount is refused.
#[test]
fn a_flipped_bit_is_never_wrong_bytes() {
    for g in [geometry(9, 1, 0), geometry(11, 0, 0)] {
        let (device, files) = filled(&g);
        let mut refused = 0;
        for zone in g.zones() {
            let capacity = g.capacity(zone);
            for offset in (0..capacity).step_by(512) {
                let mut random = Rng::with_seed(offset + u64::from(zone.0));
                let (byte, mask) = (random.usize(..80), 1 << random.u32(..8));
                let image = device.snapshot();
                image.decay(ZoneAddress::new(zone, offset), 512, |block| {
                    block[byte] ^= mask
                });
                let fs = match mount(Arc::new(image)) {
                    Ok(fs) => fs,
                    Err(Error::Corrupt { .. } | Error::UnsupportedVersion { .. }) => {
                        refused += 1;
                        continue;
                    }
                    Err(Error::NotFormatted) => {
                        refused += 1;
                        continue;
                    }
                    Err(error) => panic!("zone {zone} + {offset}: {error}"),
                };
                // Only the last frame may be taken for torn, so the last file is left out.
                for (name, data) in &files[..5] {
                    match read(&fs, name) {
                        Ok(found) => assert!(found == *data, "zone {zone} + {offset}: {name}"),
                        Err(Error::Corrupt { .. }) => refused += 1,
                        Err(error) => panic!("zone {zone} + {offset}: {name}: {error}"),
                    }
                }
            }
        }
        assert!(refused > 20, "{refused}");
    }
}

/// Destroyed blocks anywhere: nothing panics, and the bytes read of a file are a prefix of those written to it.
#[test]
fn many_blocks_destroyed() {
    let (count, mut mounts) = (number("ZONESTORE_ZEA_DAMAGES", 300), 0);
    for seed in 0..count {
        let mut random = Rng::with_seed(seed);
        let g = [geometry(9, 1, 0), geometry(11, 0, 0)][seed as usize % 2].clone();
        let (device, files) = filled(&g);
        let image = device.snapshot();
        for _ in 0..random.u32(1..10) {
            let zone = ZoneId(random.u32(..4));
            let most = if random.bool() {
                6000
            } else {
                g.capacity(zone)
            };
            let offset = random.u64(..most) / 512 * 512;
            image.decay(ZoneAddress::new(zone, offset), 512, |block| {
                match random.u32(..3) {
                    0 => block.fill(0),
                    1 => random.fill(block),
                    _ => block[random.usize(..512)] ^= 1 << random.u32(..8),
                }
            });
        }
        let Ok(fs) = mount(Arc::new(image)) else {
            continue;
        };
        mounts += 1;
        for (name, data) in &files {
            if let Ok(found) = read(&fs, name) {
                assert!(data.starts_with(&found), "seed {seed}: {name}");
            }
        }
        // A new file is written, or refused with an error.
        let _ = write(&fs, "new", b"new").and_then(|()| read(&fs, "new"));
    }
    assert!(mounts > count / 4, "{mounts} of {count}");
}

#[test]
fn a_removed_file_is_read_to_the_end_of_its_readers() {
    let g = geometry(9, 1, 0);
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let data = bytes(1, 20_000);
    write(&fs, "a", &data).unwrap();
    let reader = fs.open("a").unwrap();
    fs.delete("a").unwrap();
    fs.sync_metadata().unwrap();
    for n in 0..20 {
        write(&fs, "b", &bytes(n, 9000)).unwrap();
    }
    let mut found = vec![0; 20_000];
    assert_eq!(reader.read_at(0, &mut found).unwrap(), 20_000);
    assert!(found == data);
    let used = fs.usage().live_bytes;
    drop(reader);
    fs.sync_metadata().unwrap();
    assert!(fs.usage().live_bytes < used);
    assert_eq!(fs.list(""), ["b"]);
    assert_eq!(mount(device).unwrap().list(""), ["b"]);
}

#[test]
fn a_full_drive_says_so_and_goes_on_when_something_is_removed() {
    for g in [geometry(6, 1, 0), geometry(8, 0, 6)] {
        let device = Arc::new(MemoryDrive::new(g).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        let mut names = Vec::new();
        let full = loop {
            let name = format!("f{}", names.len());
            match write(&fs, &name, &bytes(names.len() as u64, 4000)) {
                Ok(()) => names.push(name),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::NoSpace), "{full}");
        assert!(names.len() > 8, "{}", names.len());
        for (n, name) in names.iter().enumerate() {
            assert!(read(&fs, name).unwrap() == bytes(n as u64, 4000));
        }
        // Removes every other file, so that each zone is half dead.
        fs.delete(&format!("f{}", names.len())).unwrap();
        for name in names.iter().step_by(2) {
            fs.delete(name).unwrap();
        }
        for n in 0..names.len() / 4 {
            write(&fs, &format!("again{n}"), &bytes(900 + n as u64, 4000)).unwrap();
        }
        assert!(fs.usage().moved_bytes > 0);
        drop(fs);
        let fs = mount(device).unwrap();
        for (n, name) in names.iter().enumerate().skip(1).step_by(2) {
            assert!(read(&fs, name).unwrap() == bytes(n as u64, 4000));
        }
    }
}

/// An append for which there is no room moves no data in vain.
#[test]
fn a_full_drive_is_not_cleaned_in_vain() {
    let device = Arc::new(MemoryDrive::new(geometry(14, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device).unwrap();
    let put = |n: u64| write(&fs, &format!("{n}"), &bytes(n, 1500));
    let count = (0..).take_while(|n| put(*n).is_ok()).count() as u64;
    assert!(count > 100, "{count}");
    let before = fs.usage().moved_bytes;
    for n in 0..2 {
        let refused = put(count + n);
        assert!(matches!(refused, Err(Error::NoSpace)), "{refused:?}");
    }
    let moved = fs.usage().moved_bytes - before;
    assert!(moved <= 24 << 10, "{moved}");
}

/// Small pieces are put together in such zones only as the cleaner does not need.
#[test]
fn putting_pieces_together_leaves_the_cleaner_its_zones() {
    let device = Arc::new(MemoryDrive::new(geometry(14, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device).unwrap();
    for n in 0..15 {
        write(&fs, &format!("{n}"), &bytes(n, 20)).unwrap();
    }
    let mut logs = ["A", "B"].map(|name| fs.create(name).unwrap());
    for n in 0..200 {
        let log = &mut logs[n % 2];
        log.append(&bytes(n as u64, 900)).unwrap();
        log.sync().unwrap_or_else(|error| panic!("{n}: {error}"));
    }
    for (first, name) in [(0, "A"), (1, "B")] {
        let lines = (first..200).step_by(2).flat_map(|n| bytes(n, 900));
        assert!(read(&fs, name).unwrap() == lines.collect::<Vec<u8>>());
    }
}

fn active(device: &MemoryDrive) -> usize {
    let g = device.geometry();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    report
        .iter()
        .filter(|zone| zone.condition.is_active())
        .count()
}

/// A zone that is left with one free block, as by the longer lines, is finished: it would stay active.
#[test]
fn zones_that_are_left_are_not_active() {
    for (length, lines) in [(900, 90), (1600, 54)] {
        let device = Arc::new(MemoryDrive::new(geometry(11, 0, 6)).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        let mut log = fs.create("log").unwrap();
        for n in 0..lines {
            log.append(&bytes(n, length)).unwrap();
            log.sync().unwrap_or_else(|error| panic!("{n}: {error}"));
            assert!(active(&device) <= 3, "{n}");
        }
    }
}

/// Others hold the drive's active zones: that costs no zone.
#[test]
fn a_zone_that_may_not_be_active_is_free_again() {
    let device = Arc::new(MemoryDrive::new(geometry(11, 0, 6)).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let others: Vec<ZoneId> = (6..11).map(ZoneId).take(6 - active(&device)).collect();
    for zone in &others {
        device.open(*zone).unwrap();
    }
    let free = fs.usage().free_zones;
    let mut writer = fs.create("a").unwrap();
    writer.append(&bytes(1, 700)).unwrap();
    for _ in 0..3 {
        let refused = writer.sync();
        assert!(
            matches!(&refused, Err(error) if error.of_drive().is_some_and(appender::is_of_limit)),
            "{refused:?}"
        );
    }
    assert_eq!(fs.usage().free_zones, free);
    for zone in others {
        device.close(zone).unwrap();
    }
    writer.sync().unwrap();
    assert!(read(&fs, "a").unwrap() == bytes(1, 700));
}

/// An append that succeeds has space on the drive, also while its bytes wait in memory: appends for which there is none
/// fail, and an unmount never does.
#[test]
fn what_was_taken_has_a_place() {
    for seed in 0..number("ZONESTORE_ZEA_HISTORIES", 60) {
        let mut random = Rng::with_seed(seed);
        let g =
            [geometry(6, 1, 0), geometry(8, 0, 6), geometry(12, 1, 0)][seed as usize % 3].clone();
        let device = Arc::new(MemoryDrive::new(g).unwrap());
        format(&*device);
        let buffer = [BUFFER, 20_000, 100_000][random.usize(..3)];
        let fs = ZeaFs::mount_with(device.clone(), Runtime::seeded(seed), buffer).unwrap();
        let largest = [60, 900, 30_000][random.usize(..3)];
        let mut taken: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut writers = BTreeMap::new();
        let (mut full, mut name) = (0, 0);
        while full < 12 {
            if writers.len() < 5 {
                name += 1;
                let mut writer = fs.create(&format!("f{name}")).unwrap();
                if random.bool() {
                    writer.set_lifetime(Lifetime::Long);
                }
                writers.insert(format!("f{name}"), writer);
            }
            let names: Vec<String> = writers.keys().cloned().collect();
            let name = names[random.usize(..names.len())].clone();
            let writer = writers.get_mut(&name).unwrap();
            match random.u32(..40) {
                0 => writer.sync().unwrap(),
                1 => {
                    writer.close().unwrap();
                    writers.remove(&name);
                }
                2 if full > 0 => {
                    writers.remove(&name);
                    fs.delete(&name).unwrap();
                    taken.remove(&name);
                }
                n => {
                    let data = bytes(u64::from(n), random.usize(..=largest));
                    let file = taken.entry(name.clone()).or_default();
                    match writer.append(&data) {
                        Ok(()) => file.extend(data),
                        Err(Error::NoSpace) => {
                            full += 1;
                            let before = file.len();
                            let found = read(&fs, &name).unwrap();
                            assert!(found.starts_with(file), "seed {seed}");
                            assert!(found.len() < before + data.len(), "seed {seed}");
                            assert!(matches!(writer.append(&data), Err(Error::NoSpace)));
                            *file = found;
                            writers.remove(&name);
                        }
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            }
        }
        drop(writers);
        let ended = fs.unmount();
        assert!(ended.is_ok(), "seed {seed}: {ended:?}");
        let fs = mount(device).unwrap();
        for (name, data) in &taken {
            assert!(read(&fs, name).unwrap() == *data, "seed {seed}: {name}");
        }
    }
}

/// Bytes of a removed file that wait in memory stay readable for its open readers, also after syncs.
#[test]
fn a_removed_file_keeps_what_waits_for_its_readers() {
    let device = Arc::new(MemoryDrive::new(geometry(9, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device).unwrap();
    let mut writer = fs.create("a").unwrap();
    let data = bytes(1, 700);
    writer.append(&data).unwrap();
    let reader = fs.open("a").unwrap();
    fs.delete("a").unwrap();
    fs.sync().unwrap();
    let more = bytes(2, 5000);
    writer.append(&more).unwrap();
    writer.sync().unwrap();
    let mut found = vec![0; 6000];
    assert_eq!(reader.read_at(0, &mut found).unwrap(), 5700);
    assert!(found[..700] == data && found[700..5700] == more);
    drop(writer);
    drop(reader);
    fs.sync_metadata().unwrap();
    assert_eq!(fs.usage().live_bytes, 0);
}

/// After an append that was written in part, later appends are refused: a reader of a log would stop at the partial
/// record and miss all records synced after it.
#[test]
fn nothing_follows_a_part_of_an_append() {
    for g in [geometry(6, 1, 0), geometry(8, 0, 6)] {
        let device = Arc::new(MemoryDrive::new(g).unwrap());
        format(&*device);
        let fs = mount(device).unwrap();
        let other = (0..).map(|n| write(&fs, &format!("f{n}"), &bytes(n, 4000)));
        let others = other.take_while(Result::is_ok).count();
        let mut log = fs.create("log").unwrap();
        let record = bytes(1, 700);
        let whole = (0..).take_while(|_| log.append(&record).is_ok()).count();
        for n in 0..others {
            fs.delete(&format!("f{n}")).unwrap();
        }
        assert!(matches!(log.append(&record), Err(Error::NoSpace)));
        assert!(matches!(log.sync(), Err(Error::NoSpace)));
        drop(log);
        let found = read(&fs, "log").unwrap();
        assert!(found.len() < record.len() * (whole + 1));
        assert!(found.starts_with(&record.repeat(whole)));
        write(&fs, "log", &record).unwrap();
        assert_eq!(read(&fs, "log").unwrap(), record);
    }
}

/// Programs that erase or format a drive do not know where the checkpoints are; what they usually erase is enough to
/// remove the file system.
#[test]
fn an_erased_drive_has_no_file_system() {
    let g = geometry(9, 1, 0);
    let (device, _) = filled(&g);
    assert!(Examined::is_there(&*device).unwrap());
    let written = erase::written_zones(&*device, 0..g.zone_count).unwrap();
    for zone in written {
        device.reset(zone.id).unwrap();
    }
    // Only the first area, as programs erase the start of larger conventional zones.
    device
        .write(ByteOffset(0), &vec![0; g.zone_size as usize / 2])
        .unwrap();
    let has_none = || {
        assert!(!Examined::is_there(&*device).unwrap());
        assert!(matches!(mount(device.clone()), Err(Error::NotFormatted)));
    };
    has_none();
    // Nor do extents of somebody else count.
    let (sequence, runtime) = (Sequence::default(), Runtime::seeded(7));
    for zone in 1..g.zone_count {
        let drive: Arc<dyn ZonedDevice> = device.clone();
        let options = Options::default();
        let instance = Instance::format(drive, ZoneId(zone), options, sequence.clone(), &runtime);
        let instance = instance.unwrap();
        instance.put(LogicalAddress(77), &bytes(2, 700)).unwrap();
    }
    has_none();
}

/// Each synced line of a log takes a block of padding and one of metadata. Once moved by cleaning, the lines take
/// hardly any space.
#[test]
fn cleaning_puts_together_what_was_synced_line_by_line() {
    for g in [geometry(6, 1, 0), geometry(8, 0, 6)] {
        let device = Arc::new(MemoryDrive::new(g).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        let mut log = fs.create("log").unwrap();
        let lines = 1000;
        for n in 0..lines {
            log.append(&bytes(n, 20)).unwrap();
            log.sync().unwrap();
        }
        // A removed file that is still read is moved like any other.
        let reader = fs.open("log").unwrap();
        fs.delete("log").unwrap();
        let mut other = fs.create("other").unwrap();
        for n in 0..lines {
            other.append(&bytes(n, 20)).unwrap();
            other.sync().unwrap();
        }
        let expected: Vec<u8> = (0..lines).flat_map(|n| bytes(n, 20)).collect();
        let mut found = vec![0; expected.len()];
        assert_eq!(reader.read_at(0, &mut found).unwrap(), expected.len());
        assert!(found == expected);
        drop((reader, other, fs));
        let fs = mount(device).unwrap();
        assert_eq!(fs.list(""), ["other"]);
        assert!(read(&fs, "other").unwrap() == expected);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let g = geometry(9, 1, 0);
    let device = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    assert!(matches!(mount(device.clone()), Err(Error::NotFormatted)));
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    assert!(matches!(fs.open("a"), Err(Error::NotFound { .. })));
    assert!(matches!(fs.create(""), Err(Error::BadName { .. })));
    fs.lock("LOCK").unwrap();
    assert!(matches!(fs.lock("LOCK"), Err(Error::Locked { .. })));
    fs.unlock("LOCK");
    fs.lock("LOCK").unwrap();
    let mut writer = fs.create("a").unwrap();
    writer.append(b"abc").unwrap();
    assert!(matches!(writer.truncate(4), Err(Error::Longer { .. })));
    writer.sync().unwrap();
    let taken = ZeaFs::format(&*device, [4; 16], false);
    assert!(matches!(taken, Err(Error::NotEmpty)));
    fs.unmount().unwrap();
    assert!(matches!(writer.append(b"d"), Err(Error::Stopped { .. })));
    // A conventional zone has no write pointer that would tell of its data.
    let other = MemoryDrive::new(g).unwrap();
    other.write(ByteOffset(4096), &[7; 512]).unwrap();
    let taken = ZeaFs::format(&other, [4; 16], false);
    assert!(matches!(taken, Err(Error::NotEmpty)));
    let mut kept = [0; 512];
    other.read(ByteOffset(4096), &mut kept).unwrap();
    assert_eq!(kept, [7; 512]);
    let small = MemoryDrive::new(geometry(3, 1, 0)).unwrap();
    let small = ZeaFs::format(&small, [4; 16], false);
    assert!(matches!(small, Err(Error::DriveTooSmall { .. })));
    let few = MemoryDrive::new(geometry(9, 0, 3)).unwrap();
    let few = ZeaFs::format(&few, [4; 16], false);
    assert!(matches!(
        few,
        Err(Error::TooFewActiveZones { found: 3, .. })
    ));
    // Another version in both copies of the head. With a wrong checksum, it is damage, and the areas are read.
    for is_right in [false, true] {
        for copy in [0, 512] {
            device.decay(ZoneAddress::new(ZoneId(0), copy), 512, |block| {
                block[8] = 9;
                let sum = if is_right { checksum(&block[..80]) } else { 7 };
                block[12..16].copy_from_slice(&sum.to_le_bytes());
            });
        }
        assert!(Examined::is_there(&*device).unwrap());
        if !is_right {
            let damaged = ZeaFs::mount(device.clone(), Runtime::seeded(1));
            assert!(damaged.is_ok(), "{damaged:?}");
        }
    }
    let other = ZeaFs::mount(device, Runtime::seeded(1));
    assert!(
        matches!(other, Err(Error::UnsupportedVersion { found: 9, .. })),
        "{other:?}"
    );
}
