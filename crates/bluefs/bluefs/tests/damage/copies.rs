//! With two copies, damage to one of them loses nothing: the drive mounts, and all files are whole.

use super::*;
use device::ZonedDevice;
use std::cell::Cell;
use zone::ZoneCondition;

/// Drives by their number of conventional zones and their limit of active zones.
const DRIVES: [(u32, u32); 3] = [(0, 0), (12, 10), (40, 0)];

impl Past {
    /// Asserts that all files are there, also after a mount for writing, a write and another mount.
    fn all_is_there(&self, damaged: Arc<dyn ZonedDevice>, what: &str) {
        let told = format!("{}: {what}", self.name);
        for _ in 0..2 {
            let fs = mount(damaged.clone()).unwrap_or_else(|error| panic!("{told}: {error}"));
            let found = readable(&fs).unwrap_or_else(|error| panic!("{told}: {error}"));
            let sizes = |files: &BTreeMap<&str, Vec<u8>>| -> Vec<_> {
                files
                    .iter()
                    .map(|(n, f)| (n.to_string(), f.len()))
                    .collect()
            };
            assert!(
                found == self.all,
                "{told}: {:?} of {:?}",
                sizes(&found),
                sizes(&self.all)
            );
            support::put(&fs, "/afterwards.sst", &[1; 3000]);
        }
    }

    fn changed_blocks(&self, change: impl Fn(&mut Vec<u8>)) {
        for at in &self.blocks {
            let mut bad = block(&self.device, *at);
            change(&mut bad);
            self.all_is_there(changed(&self.device, &[(*at, bad)]), &at.to_string());
        }
    }
}

fn everywhere(test: impl Fn(&Past)) {
    for history in HISTORIES {
        for (conventional, active) in DRIVES {
            for clean in [false, true] {
                test(&Past::in_copies(2, history, conventional, active, clean));
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_takes_nothing() {
    everywhere(|past| {
        past.changed_blocks(|bytes| bytes[9] ^= 2);
        past.changed_blocks(|bytes| bytes[73] ^= 2);
    });
}

#[test]
fn what_is_damaged_in_one_copy_is_written_anew() {
    let moved = Cell::new(0);
    everywhere(|past| {
        for at in &past.blocks {
            let mut bad = block(&past.device, *at);
            bad[9] ^= 2;
            let damaged = changed(&past.device, &[(*at, bad)]);
            let fs = mount(damaged.clone()).unwrap();
            moved.set(moved.get() + fs.repair_copies().unwrap());
            assert_eq!(fs.repair_copies().unwrap(), 0, "{at}: done once");
            let is_left = fs.usage().damaged_copies > 0;
            let has_room = past.device.geometry().max_active_zones == 0;
            assert!(!has_room || !is_left, "{at}");
            fs.unmount().unwrap();
            if is_left {
                continue;
            }
            // Once repaired, each copy alone is enough, whichever other zone is lost.
            let broken: Vec<ZoneId> = fs.zones().into_iter().map(|(zone, _)| zone).collect();
            let fs = mount(damaged.clone()).unwrap();
            let found = readable(&fs).unwrap();
            assert!(found == past.all, "{}: {at}", past.name);
            drop(fs);
            let random = support::seed() as usize + at.offset as usize / BLOCK;
            let other = broken[random % broken.len()];
            damaged
                .set_condition(other, ZoneCondition::Offline)
                .unwrap();
            past.all_is_there(damaged, &format!("{at}, then zone {other} offline"));
        }
    });
    assert!(moved.get() > 100, "{}", moved.get());
}

#[test]
fn a_zeroed_block_anywhere_takes_nothing() {
    everywhere(|past| past.changed_blocks(|bytes| bytes.fill(0)));
}

#[test]
fn a_block_that_went_back_takes_nothing() {
    everywhere(|past| {
        for at in &past.blocks {
            let mut earlier: Vec<_> = past.snapshots.iter().map(|s| block(s, *at)).collect();
            earlier.dedup();
            for bytes in earlier {
                let what = format!("{at} as it was");
                past.all_is_there(changed(&past.device, &[(*at, bytes)]), &what);
            }
        }
    });
}

#[test]
fn a_zone_that_goes_offline_or_can_only_be_read_takes_nothing() {
    everywhere(|past| {
        for zone in past.device.geometry().zones() {
            for condition in [ZoneCondition::Offline, ZoneCondition::ReadOnly] {
                let copy = past.device.snapshot();
                copy.set_condition(zone, condition).unwrap();
                past.all_is_there(Arc::new(copy), &format!("{zone} {condition:?}"));
            }
        }
    });
}

#[test]
fn a_zone_that_went_back_takes_nothing() {
    everywhere(|past| {
        for zone in past.device.geometry().zones() {
            for earlier in &past.snapshots {
                let copy = past.device.snapshot();
                put_back(&copy, earlier, zone);
                past.all_is_there(Arc::new(copy), &format!("{zone} as it was"));
            }
        }
    });
}

#[test]
fn a_zone_that_went_back_is_made_whole_before_the_other_copy_goes() {
    for clean in [false, true] {
        let past = Past::in_copies(2, ZONES, 0, 0, clean);
        let written = |drive: &MemoryDrive, zone| drive.report_zone(zone).unwrap().write_pointer;
        let zones: Vec<ZoneId> = past.device.geometry().zones().collect();
        for zone in zones.iter().copied() {
            let is_shorter = |d: &&MemoryDrive| written(d, zone) < written(&past.device, zone);
            let Some(earlier) = past.snapshots.iter().rev().find(is_shorter) else {
                continue;
            };
            let copy = Arc::new(past.device.snapshot());
            put_back(&copy, earlier, zone);
            drop(mount(copy.clone()).unwrap());
            for other in zones.iter().copied().filter(|other| *other != zone) {
                let copy = copy.snapshot();
                copy.set_condition(other, ZoneCondition::Offline).unwrap();
                past.all_is_there(
                    Arc::new(copy),
                    &format!("{zone} as it was, {other} offline"),
                );
            }
        }
    }
}

/// Gives a zone the content and write pointer that it had on the drive `earlier`.
fn put_back(device: &MemoryDrive, earlier: &MemoryDrive, zone: ZoneId) {
    let g = device.geometry();
    let told = earlier.report_zone(zone).unwrap();
    let used = match told.kind {
        ZoneKind::Conventional => told.capacity,
        _ => told.write_pointer,
    };
    if told.kind != ZoneKind::Conventional {
        device.reset(zone).unwrap();
    }
    if used > 0 {
        let mut bytes = vec![0; used as usize];
        earlier.read(g.start(zone), &mut bytes).unwrap();
        device.write(g.start(zone), &bytes).unwrap();
    }
}

/// Different blocks of an SST are exchanged between its copies or damaged in one copy each: both copies are wrong, and
/// the file is still put together from them.
#[test]
fn different_blocks_damaged_in_both_copies_are_put_together() {
    let content: Vec<u8> = (0..20_000_u32).map(|i| (i * i % 251) as u8).collect();
    let drive = MemoryDrive::new(support::geometry(40, 0, 0)).unwrap();
    support::format_copies(&drive, Role::Alone, 2);
    let drive = Arc::new(drive);
    let fs = mount(drive.clone()).unwrap();
    support::put(&fs, "/1.sst", &content);
    fs.unmount().unwrap();
    let report = drive.report(ZoneId(0), 40).unwrap();
    let twins = bluefs::BlueFs::observe(&*drive, &report).unwrap().twins;
    let begins = |zone: ZoneId| {
        let mut bytes = vec![0; BLOCK];
        drive
            .read(drive.geometry().start(zone), &mut bytes)
            .unwrap();
        bytes == content[..BLOCK]
    };
    let (zone, twin) = twins.into_iter().find(|(zone, _)| begins(*zone)).unwrap();
    let at = |zone, number: usize| ZoneAddress::new(zone, (number * BLOCK) as u64);
    let block_of = |drive: &MemoryDrive, place| block(drive, place);
    for (one, other) in [(0, 1), (5, 2), (3, 38), (38, 0)] {
        for is_exchanged in [false, true] {
            let copy = Arc::new(drive.snapshot());
            let (here, there) = (at(zone, one), at(twin, other));
            let (mine, theirs) = (block_of(&drive, here), block_of(&drive, there));
            for (place, new) in [(here, theirs), (there, mine)] {
                copy.decay(place, BLOCK, |bytes| match is_exchanged {
                    true => bytes.copy_from_slice(&new),
                    false => bytes.fill(7),
                });
            }
            // Without writing it cannot be put together, and a retry of a read would be in vain.
            let reads = mount_in(copy.clone(), pool_of(&*copy), true).unwrap();
            reads.repair_copies().unwrap();
            assert_eq!(reads.repair_copies().unwrap(), 0);
            drop(reads);
            let fs = mount(copy.clone()).unwrap();
            let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
            assert!(
                scrubbed.lost.is_empty() && scrubbed.repaired > 0,
                "{scrubbed:?}"
            );
            assert!(
                support::read(&fs, "/1.sst").unwrap() == content,
                "{one}, {other}"
            );
            support::assert_clean(&fs);
            assert_eq!(fs.scrub(&mut |_| true).unwrap().unwrap().repaired, 0);
            drop(fs);
            // With the same block damaged in both copies, the loss is reported.
            let copy = drive.snapshot();
            for zone in [zone, twin] {
                copy.decay(at(zone, one), BLOCK, |bytes| bytes[0] ^= 1 << (zone.0 % 8));
            }
            let fs = mount(Arc::new(copy)).unwrap();
            let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
            assert_eq!(scrubbed.lost, ["/1.sst"]);
        }
    }
}
