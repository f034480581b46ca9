//! With two copies one damage takes nothing: the drive mounts, and every byte is there.

use super::*;
use device::ZonedDevice;
use std::cell::Cell;
use zone::ZoneCondition;

/// Drives by their conventional zones and their limit of active zones.
const DRIVES: [(u32, u32); 3] = [(0, 0), (12, 10), (40, 0)];

impl Past {
    /// Mounted for writing, written to and mounted again, everything is there.
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
            // Now each copy is enough, whichever is lost.
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

/// A zone holds what it held on another drive.
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
