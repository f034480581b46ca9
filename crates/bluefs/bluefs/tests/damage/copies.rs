//! With two copies one damage takes nothing: the drive mounts, and every byte is there.

use super::*;
use device::ZonedDevice;
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
