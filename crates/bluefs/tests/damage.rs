//! One bit is changed in every block of short histories. What was acknowledged is there, or a
//! writable mount is refused without a write, and a check says why. Only after an unclean stop may
//! the very last step be missing: nothing behind it says that it was durable.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Error, MountOptions, Role};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::Step::{self, *};
use support::{NAMES, Pair, format, geometry, mount, mount_in, pool as pool_of, read};
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// Steps, each durable at its end.
type History<'a> = &'a [&'a [Step]];

const LOGS: History<'static> = &[
    &[Create(1), Append(1, 450), Sync(1)],
    &[Append(1, 450), Sync(1)],
    &[Append(1, 1700), Sync(1)],
    &[Create(4), Append(4, 900), Sync(4)],
    &[Append(1, 30), Sync(1)],
    &[Append(4, 700), Sync(4)],
    &[Append(1, 30), Sync(1)],
    &[Append(1, 30), Sync(1)],
];

/// A log goes on in other zones, and is cut; another one takes over; a table is written and moved.
const ZONES: History<'static> = &[
    &[Create(1), Append(1, 20_000), Sync(1)],
    &[Append(1, 15_000), Sync(1)],
    &[Create(0), Append(0, 30_000), Sync(0), Close(0)],
    &[Truncate(1, 34_000), Append(1, 1000), Sync(1)],
    &[Append(1, 2000), Sync(1), Close(1)],
    &[Create(3), Append(3, 2000), Sync(3)],
    &[Append(3, 2000), Sync(3)],
    &[Rename(0, 2), SyncNames],
    &[Delete(1), SyncNames],
    &[Append(3, 100), Sync(3)],
];

/// Names and tables, the journal last.
const NAMES_AND_TABLES: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Create(2), Append(2, 16), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Append(1, 3000), Sync(1), Close(1)],
    &[Create(2), Append(2, 20), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Link(5, 0), SyncNames],
];

/// Over a mount, a clean and an unclean one.
const MOUNTS: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Remount],
    &[Append(1, 600), Sync(1)],
    &[Kill],
    &[Append(1, 600), Sync(1)],
    &[Create(0), Append(0, 5000), Sync(0)],
    &[Append(1, 600), Sync(1)],
];

/// All files, with what is in them.
fn contents(fs: &BlueFs) -> BTreeMap<&'static str, Vec<u8>> {
    readable(fs).unwrap()
}

/// All files, or why one of them cannot be read.
fn readable(fs: &BlueFs) -> Result<BTreeMap<&'static str, Vec<u8>>, Error> {
    let there = NAMES.into_iter().filter(|name| fs.exists(name));
    there.map(|name| Ok((name, read(fs, name)?))).collect()
}

/// The drive with one bit changed.
fn changed(device: &MemoryDrive, at: ZoneAddress, byte: usize) -> Arc<MemoryDrive> {
    let copy = device.snapshot();
    let g = copy.geometry().clone();
    let sequential = g.kind(at.zone) != ZoneKind::Conventional;
    let from = if sequential { 0 } else { at.offset };
    let to = if sequential {
        copy.report_zone(at.zone).unwrap().write_pointer
    } else {
        from + 512
    };
    let mut bytes = vec![0; (to - from) as usize];
    let start = g.absolute(ZoneAddress::new(at.zone, from));
    copy.read(start, &mut bytes).unwrap();
    bytes[(at.offset - from) as usize + byte] ^= 1 << (byte % 8);
    if sequential {
        copy.reset(at.zone).unwrap();
    }
    copy.write(start, &bytes).unwrap();
    Arc::new(copy)
}

fn image(device: &MemoryDrive) -> Vec<Vec<u8>> {
    let g = device.geometry();
    let zone = |zone: ZoneId| {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        bytes
    };
    g.zones().map(zone).collect()
}

#[derive(Default, Debug)]
struct Seen {
    refused: u32,
    all_there: u32,
    reported: u32,
    last_step_missing: u32,
}

fn damage_everywhere(history: History<'_>, conventional: u32, active: u32, clean: bool) -> Seen {
    let device = Arc::new(MemoryDrive::new(geometry(40, conventional, active)).unwrap());
    format(&*device, Role::Alone);
    let mut pair = Pair::new(device.clone()).unwrap();
    let mut before = BTreeMap::new();
    for steps in history {
        before = contents(&pair.fs);
        for step in *steps {
            pair.step(*step).unwrap();
        }
    }
    let all = contents(&pair.fs);
    if clean {
        pair.fs.unmount().unwrap();
    }
    let zones: Vec<_> = pair.fs.zones().into_iter().map(|(zone, _)| zone).collect();
    let mut seen = Seen::default();
    for zone in zones {
        let report = device.report_zone(zone).unwrap();
        let used = if report.write_pointer_valid() {
            report.write_pointer
        } else {
            report.capacity
        };
        for block in 0..used / 512 {
            let at = ZoneAddress::new(zone, block * 512);
            let mut bytes = [0; 512];
            device
                .read(device.geometry().absolute(at), &mut bytes)
                .unwrap();
            if bytes == [0; 512] {
                continue;
            }
            let begins = [&b"BFJL"[..], b"BFWR", b"ZSBL"]
                .iter()
                .any(|m| bytes.starts_with(m));
            let all_fields = &[0, 5, 9, 17, 25, 29, 33, 41, 49, 57, 65, 69, 73, 300];
            let bytes: &[usize] = if begins { all_fields } else { &[9] };
            for &byte in bytes {
                let told = format!("{history:?} {conventional} {active} {clean}: {at} byte {byte}");
                let damaged = changed(&device, at, byte);
                let untouched = image(&damaged);
                match mount(damaged.clone()) {
                    Err(Error::Corrupt { .. }) => {
                        seen.refused += 1;
                        assert!(image(&damaged) == untouched, "{told}: written to");
                        let pool = pool_of(&*damaged);
                        let fs = mount_in(damaged.clone(), pool, true).unwrap();
                        assert!(!fs.check(false).unwrap().is_clean(), "{told}");
                        assert!(image(&damaged) == untouched, "{told}: written to");
                        drop(fs);
                        // Accepted once, it is forgotten.
                        let accepting = MountOptions {
                            accept_damage: true,
                            ..MountOptions::default()
                        };
                        let pool = pool_of(&*damaged);
                        let fs = BlueFs::mount(damaged.clone(), pool, accepting).unwrap();
                        assert!(fs.check(false).unwrap().is_clean(), "{told}");
                        drop(fs);
                        let fs = mount(damaged.clone()).unwrap();
                        assert!(fs.check(false).unwrap().is_clean(), "{told}");
                    }
                    Err(error) => panic!("{told}: {error}"),
                    Ok(fs) => {
                        let found = match readable(&fs) {
                            Ok(found) => found,
                            // A table that is read whole is compared with its checksum.
                            Err(Error::Corrupt { .. }) => {
                                seen.reported += 1;
                                assert!(!fs.check(true).unwrap().is_clean(), "{told}");
                                continue;
                            }
                            Err(error) => panic!("{told}: {error}"),
                        };
                        if found == all {
                            seen.all_there += 1;
                        } else if !fs.check(true).unwrap().is_clean() {
                            seen.reported += 1;
                        } else {
                            seen.last_step_missing += 1;
                            let sizes = |files: &BTreeMap<&str, Vec<u8>>| -> Vec<_> {
                                files
                                    .iter()
                                    .map(|(n, f)| (n.to_string(), f.len()))
                                    .collect()
                            };
                            assert!(
                                !clean && found == before,
                                "{told}: {:?} of {:?}",
                                sizes(&found),
                                sizes(&all)
                            );
                        }
                    }
                }
            }
        }
    }
    seen
}

fn everywhere(name: &str, history: History<'_>) {
    for (conventional, active) in [(0, 0), (0, 6), (4, 0), (40, 0)] {
        let unclean = damage_everywhere(history, conventional, active, false);
        let clean = damage_everywhere(history, conventional, active, true);
        println!("{name}, {conventional} conventional: unclean {unclean:?}, clean {clean:?}");
        assert!(unclean.refused > 0 && clean.refused > 0);
        // One record or frame of a few blocks.
        assert!(
            unclean.last_step_missing > 0,
            "the last step is vouched for by nothing"
        );
    }
}

#[test]
fn in_a_log_that_was_written_before_the_journal_was_compacted() {
    let mut history = vec![
        vec![Create(1), Append(1, 3000), Sync(1)],
        vec![Append(1, 300), Sync(1)],
        vec![Create(0), Sync(0), Close(0)],
    ];
    for _ in 0..26 {
        history.extend([vec![Rename(0, 2), SyncNames], vec![Rename(2, 0), SyncNames]]);
    }
    let history: Vec<&[Step]> = history.iter().map(Vec::as_slice).collect();
    for conventional in [0, 40] {
        let unclean = damage_everywhere(&history, conventional, 0, false);
        let clean = damage_everywhere(&history, conventional, 0, true);
        println!("compacted, {conventional} conventional: unclean {unclean:?}, clean {clean:?}");
        assert!(unclean.refused > 0 && clean.refused > 0);
    }
}

#[test]
fn in_two_logs() {
    everywhere("two logs", LOGS);
}

#[test]
fn in_logs_over_zones() {
    everywhere("logs over zones", ZONES);
}

#[test]
fn in_names_and_tables() {
    everywhere("names and tables", NAMES_AND_TABLES);
}

#[test]
fn over_mounts() {
    everywhere("mounts", MOUNTS);
}
