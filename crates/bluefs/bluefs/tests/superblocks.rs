//! The loss of superblock zones: synced data is there, the lost copy is rewritten, and a drive with data is never taken
//! for an empty one.

use crate::support::Step::*;
use crate::support::{Pair, assert_clean, format, geometry, mount, mount_in, pool, read};
use bluefs::{BlueFs, Error, FormatOptions, Role};
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneId, ZoneKind};

/// Drives without conventional zones, with some, with conventional zones only, and with few active zones.
fn geometries() -> [Geometry; 4] {
    [(0, 0), (4, 0), (40, 0), (0, 6)]
        .map(|(conventional, active)| geometry(40, conventional, active))
}

fn rings(g: &Geometry) -> [[ZoneId; 2]; 2] {
    let last = g.zone_count - 1;
    [[ZoneId(0), ZoneId(1)], [ZoneId(last - 1), ZoneId(last)]]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    Offline,
    ReadOnly,
    Zeroed,
    Reset,
    /// A flipped bit in every block.
    Flipped,
}

const LOSSES: [Loss; 5] = [
    Loss::Offline,
    Loss::ReadOnly,
    Loss::Zeroed,
    Loss::Reset,
    Loss::Flipped,
];

fn lose(drive: &MemoryDrive, zone: ZoneId, loss: Loss) {
    let g = drive.geometry();
    let is_sequential = g.kind(zone) != ZoneKind::Conventional;
    let written = match drive.report_zone(zone).unwrap() {
        report if report.write_pointer_valid() => report.write_pointer,
        report => report.capacity,
    };
    let mut bytes = vec![0; written as usize];
    if !bytes.is_empty() {
        drive.read(g.start(zone), &mut bytes).unwrap();
    }
    match loss {
        Loss::Offline => return drive.set_condition(zone, ZoneCondition::Offline).unwrap(),
        Loss::ReadOnly => return drive.set_condition(zone, ZoneCondition::ReadOnly).unwrap(),
        Loss::Zeroed | Loss::Reset => bytes.fill(0),
        Loss::Flipped => bytes.iter_mut().step_by(512).for_each(|byte| *byte ^= 1),
    }
    if is_sequential {
        drive.reset(zone).unwrap();
    }
    let is_lost = is_sequential && loss == Loss::Reset;
    if !is_lost && !bytes.is_empty() {
        drive.write(g.start(zone), &bytes).unwrap();
    }
}

fn put(fs: &BlueFs, path: &str, content: &[u8]) {
    let mut writer = fs.create(path).unwrap();
    writer.append(content).unwrap();
    writer.close().unwrap();
    fs.sync_metadata().unwrap();
}

/// A drive with two files, after `mounts` mounts, which determine how far the rings are filled.
fn with_files(g: &Geometry, mounts: u32) -> MemoryDrive {
    let drive = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    format(&*drive, Role::Alone);
    for round in 0..=mounts {
        let fs = mount(drive.clone()).unwrap();
        put(&fs, "/a.sst", &[round as u8; 3000]);
        put(&fs, "/000001.log", &[round as u8; 900]);
        fs.unmount().unwrap();
    }
    drive.snapshot()
}

#[track_caller]
fn has_files(fs: &BlueFs, round: u32) {
    assert_eq!(read(fs, "/a.sst").unwrap(), [round as u8; 3000]);
    assert_eq!(read(fs, "/000001.log").unwrap(), [round as u8; 900]);
}

#[test]
fn the_loss_of_any_superblock_zone_loses_nothing() {
    for g in geometries() {
        // A zone holds 48 superblocks, a conventional one 16, so the last superblock is in the first or in the second
        // zone of a ring.
        for mounts in [0, 5, 11, 23, 24, 30] {
            let good = with_files(&g, mounts);
            for zone in rings(&g).concat() {
                for loss in LOSSES {
                    let drive = Arc::new(good.snapshot());
                    lose(&drive, zone, loss);
                    let again = BlueFs::format(&*drive, &options(false));
                    assert!(matches!(again, Err(Error::NotEmpty { .. })), "{again:?}");
                    let reader = mount_in(drive.clone(), pool(&*drive), true).unwrap();
                    has_files(&reader, mounts);
                    let fs = mount(drive.clone())
                        .unwrap_or_else(|e| panic!("{e}: {zone} {loss:?} of {g:?}"));
                    has_files(&fs, mounts);
                    assert_clean(&fs);
                    put(&fs, "/b", b"more");
                    fs.unmount().unwrap();
                    // The lost ring has been rewritten, so the other ring may be lost now.
                    let [first, second] = rings(&g);
                    let other = if first.contains(&zone) { second } else { first };
                    for zone in other {
                        lose(&drive, zone, Loss::Offline);
                    }
                    let fs = mount_in(drive.clone(), pool(&*drive), true).unwrap();
                    has_files(&fs, mounts);
                    assert_eq!(read(&fs, "/b").unwrap(), b"more");
                    if g.max_active_zones > 0 && [Loss::Offline, Loss::ReadOnly].contains(&loss) {
                        // One superblock zone of four is left, with the only superblock in it: read-only mounts work,
                        // others do not.
                        continue;
                    }
                    let fs = mount(drive.clone()).unwrap();
                    // One ring is enough to continue.
                    put(&fs, "/c", b"and more");
                    fs.unmount().unwrap();
                    assert_eq!(read(&mount(drive).unwrap(), "/c").unwrap(), b"and more");
                }
            }
        }
    }
}

/// A superblock zone that can only be read keeps old superblocks; the new file system must count as newer.
#[test]
fn a_superblock_that_cannot_be_erased_does_not_come_back() {
    for g in geometries() {
        for mounts in [0, 11, 24] {
            let good = with_files(&g, mounts);
            for zone in rings(&g).concat() {
                // Formatting overwrites a conventional zone, or fails.
                if g.kind(zone) == ZoneKind::Conventional {
                    continue;
                }
                let drive = Arc::new(good.snapshot());
                lose(&drive, zone, Loss::ReadOnly);
                BlueFs::format(&*drive, &options(true)).unwrap();
                let fs = mount(drive.clone())
                    .unwrap_or_else(|e| panic!("{e}: {zone} of {g:?}, {mounts} mounts"));
                assert!(!fs.exists("/a.sst"), "{zone} of {g:?}");
                put(&fs, "/new", b"new");
                fs.unmount().unwrap();
                let fs = mount(drive).unwrap();
                assert_eq!(read(&fs, "/new").unwrap(), b"new");
                assert_clean(&fs);
            }
        }
    }
}

fn options(force: bool) -> FormatOptions {
    FormatOptions {
        uuid: [5; 16],
        role: Role::Alone,
        copies: 1,
        force,
    }
}

const LIMITS: CrashLimits = CrashLimits {
    max_states: 24,
    max_choices_per_zone: 6,
    seed: 1,
};

#[test]
fn a_power_cut_during_an_update_and_the_loss_of_a_zone() {
    // A mount writes a superblock at its beginning and one at its end: rings change zones in the 24th mount, those in
    // conventional zones after eight.
    let mut states = 0;
    for g in geometries() {
        for mounts in [0, 7, 23] {
            for point in 0.. {
                let device = Arc::new(PowerCut::new(g.clone()).unwrap());
                format(&*device, Role::Alone);
                let mut pair = Pair::new(device.clone()).unwrap();
                for step in [Create(0), Append(0, 3000), Sync(0), Close(0)] {
                    pair.step(step).unwrap();
                }
                for _ in 0..mounts {
                    pair.step(Remount).unwrap();
                }
                device.cut_after(point);
                let result = pair.step(Remount);
                for state in device.crash_states(LIMITS) {
                    states += 1;
                    for zone in rings(&g).concat() {
                        let image = Arc::new(device.image(&state));
                        image.set_condition(zone, ZoneCondition::Offline).unwrap();
                        let told = || format!("cut at {point} of {g:?}, zone {zone}, {state:?}");
                        let fs = mount(image).unwrap_or_else(|e| panic!("{e}: {}", told()));
                        let wrong = pair.model.contradiction(&fs);
                        assert!(wrong.is_none(), "{wrong:?}: {}", told());
                        assert_clean(&fs);
                    }
                }
                if result.is_ok() {
                    break;
                }
            }
        }
    }
    println!("{states} states after power cuts, with each zone lost");
}

#[test]
fn a_damaged_copy_is_reported_until_it_is_made_anew() {
    for g in geometries() {
        let drive = Arc::new(with_files(&g, 3));
        for zone in rings(&g)[0] {
            lose(&drive, zone, Loss::Flipped);
        }
        let reader = mount_in(drive.clone(), pool(&*drive), true).unwrap();
        let report = reader.check(false).unwrap();
        assert_eq!(report.errors.len(), 1, "{report:?}");
        assert!(report.details[0].contains("superblock"), "{report:?}");
        assert_clean(&mount(drive.clone()).unwrap());
        let reader = mount_in(drive.clone(), pool(&*drive), true).unwrap();
        assert_clean(&reader);
    }
}

#[test]
fn without_a_superblock_a_drive_with_data_is_not_empty() {
    for g in geometries() {
        for loss in LOSSES.into_iter().filter(|loss| *loss != Loss::ReadOnly) {
            let drive = Arc::new(with_files(&g, 2));
            for zone in rings(&g).concat() {
                lose(&drive, zone, loss);
            }
            let lost = mount(drive.clone()).err().unwrap();
            assert!(matches!(lost, Error::SuperblockLost { .. }), "{lost:?}");
            let told = lost.to_string();
            assert!(told.contains("missing or unreadable"), "{told}");
            assert!(!told.contains("mkfs"), "{told}");
            let refused = BlueFs::format(&*drive, &options(false)).unwrap_err();
            assert!(matches!(refused, Error::NotEmpty { .. }), "{refused:?}");
            BlueFs::format(&*drive, &options(true)).map_or_else(
                |error| assert_eq!(loss, Loss::Offline, "{error}"),
                |()| assert!(mount(drive.clone()).unwrap().list("/").unwrap().is_empty()),
            );
        }
    }
}

#[test]
fn only_an_empty_drive_is_formatted_without_force() {
    for g in geometries() {
        let empty = MemoryDrive::new(g.clone()).unwrap();
        assert!(BlueFs::contents(&empty).unwrap().is_empty());
        // Data of another program in any one zone.
        for zone in g.zones() {
            let drive = empty.snapshot();
            let at = match g.kind(zone) {
                ZoneKind::Conventional => 512 * u64::from(zone.0 % 40),
                _ => 0,
            };
            let at = g.absolute(ZoneAddress::new(zone, at));
            drive.write(at, &[7; 512]).unwrap();
            let refused = BlueFs::format(&drive, &options(false));
            assert!(matches!(refused, Err(Error::NotEmpty { .. })), "{zone}");
            let mut kept = [0; 512];
            drive.read(at, &mut kept).unwrap();
            assert_eq!(kept, [7; 512]);
        }
        for zone in rings(&g).concat() {
            let drive = empty.snapshot();
            drive.set_condition(zone, ZoneCondition::Offline).unwrap();
            let refused = BlueFs::format(&drive, &options(false));
            assert!(matches!(refused, Err(Error::NotEmpty { .. })), "{zone}");
        }
        // An offline zone elsewhere has no data that formatting could destroy.
        let drive = empty.snapshot();
        drive
            .set_condition(ZoneId(2), ZoneCondition::Offline)
            .unwrap();
        BlueFs::format(&drive, &options(false)).unwrap();
        put(&mount(Arc::new(drive)).unwrap(), "/x", b"x");
    }
}

#[test]
fn an_older_superblock_never_passes_for_the_newest() {
    // Both rings have lost their latest superblocks, so an older one is left, whose journal is gone.
    for g in geometries() {
        let good = with_files(&g, 4);
        for keep in 1..5 {
            let drive = Arc::new(good.snapshot());
            for zone in rings(&g).concat() {
                cut_off(&drive, zone, keep);
            }
            match mount(drive.clone()) {
                Ok(fs) => has_files(&fs, 4),
                Err(Error::SuperblocksDamaged {
                    generation, lost, ..
                }) => assert!(
                    generation == keep as u64 && lost > 0,
                    "{generation} of {keep}"
                ),
                // Where nothing is reset, only frames after the snapshot tell which superblock is theirs.
                Err(Error::JournalDamaged { .. }) if g.conventional_zones > 0 => {}
                Err(error) => panic!("{keep}: {error}"),
            }
        }
    }
}

/// Keeps only the first `keep` superblocks of a zone.
fn cut_off(drive: &MemoryDrive, zone: ZoneId, keep: usize) {
    let g = drive.geometry();
    let mut bytes = vec![0; 16 * 512];
    drive.read(g.start(zone), &mut bytes).unwrap();
    bytes[keep * 512..].fill(0);
    let start: ByteOffset = g.start(zone);
    if g.kind(zone) == ZoneKind::Conventional {
        return drive.write(start, &bytes).unwrap();
    }
    let written = drive.report_zone(zone).unwrap().write_pointer as usize;
    drive.reset(zone).unwrap();
    let kept = written.min(keep * 512);
    if kept > 0 {
        drive.write(start, &bytes[..kept]).unwrap();
    }
    if g.max_active_zones > 0 {
        drive.finish(zone).unwrap();
    }
}

/// Active zones of another user of the drive leave too few for a mount: it fails, however often it is tried, and
/// succeeds once these zones have been reset.
#[test]
fn too_many_active_zones_erase_no_superblock() {
    for conventional in [0, 1] {
        let g = geometry(40, conventional, 6);
        for (mounts, spare) in [0, 1, 2, 5]
            .into_iter()
            .flat_map(|m| [(m, 0), (m, 1), (m, 2)])
        {
            let drive = Arc::new(with_files(&g, mounts));
            let all = drive.report(ZoneId(0), g.zone_count).unwrap();
            let active = all.iter().filter(|z| z.condition.is_active()).count() as u32;
            let rings = rings(&g).concat();
            let empty = all.iter().rev();
            let empty = empty.filter(|z| z.condition == ZoneCondition::Empty);
            let empty = empty.filter(|z| !rings.contains(&z.id));
            let taken: Vec<_> = empty
                .take((g.max_active_zones - active).saturating_sub(spare) as usize)
                .map(|z| z.id)
                .collect();
            for zone in &taken {
                drive.write(g.start(*zone), &[1; 4096]).unwrap();
            }
            for _ in 0..4 {
                drop(mount(drive.clone()));
            }
            for zone in &taken {
                _ = drive.reset(*zone);
            }
            let fs = mount(drive.clone())
                .unwrap_or_else(|e| panic!("{conventional} {mounts} {spare}: {e}"));
            has_files(&fs, mounts);
            assert_clean(&fs);
        }
    }
}
