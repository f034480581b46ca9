//! Drives of all small shapes are filled, emptied and filled again, until metadata needs the last zones. A drive may
//! refuse writes for lack of space; it must not stop, lose a name, or stay full.
//!
//! `ZONESTORE_SMALL_DRIVES=n` runs n of them.

use crate::support::*;
use bluefs::{BlueFs, Error, FormatOptions, Role};
use device::MemoryDrive;
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

const EACH_DAY: u64 = 60;

fn shape(random: &mut Random) -> Geometry {
    let block_size: u32 = if random.below(2) == 0 { 512 } else { 4096 };
    let zone_size = (16 << 10) << random.below(7);
    let zone_capacity = match random.below(3) {
        0 => zone_size,
        // At least four blocks after the quarter that may be missing.
        _ => (zone_size / 4 * 3).max(4 * u64::from(block_size)),
    };
    let active = match random.below(4) {
        0 => 0,
        _ => 6 + random.below(9) as u32,
    };
    let zone_count = 10 + random.below(55) as u32;
    Geometry {
        block_size,
        zone_size,
        zone_capacity,
        zone_count,
        conventional_zones: [0, 0, 1, 2, 4, 6][random.below(6) as usize],
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: active,
        max_active_zones: active,
        max_append_bytes: 0,
    }
}

/// The files that were synced, and their contents.
#[derive(Default)]
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn name(random: &mut Random, number: u64, long: bool) -> String {
        let ending = ["sst", "log", "tmp"][random.below(3) as usize];
        let prefix = match (ending, long) {
            ("log", _) | (_, false) => String::new(),
            _ => "n".repeat(random.below(200) as usize),
        };
        format!("{prefix}{number:06}.{ending}")
    }

    /// Writes files until one finds no space. Returns the bytes that were written.
    fn fill(&mut self, fs: &BlueFs, random: &mut Random, first: u64) -> u64 {
        let zone = fs.device().geometry().zone_capacity;
        // Mostly data, or mostly names.
        let largest = [1, 3000, zone / 2, 3 * zone][random.below(4) as usize];
        let long = random.below(2) == 0;
        let mut bytes = 0;
        for number in first..first + 4000 {
            let name = Self::name(random, number, long);
            let data = vec![number as u8; random.below(largest + 1) as usize];
            let written = fs.create(&name).and_then(|mut writer| {
                writer.append(&data)?;
                writer.sync()?;
                writer.close()
            });
            match written {
                Ok(()) => bytes += data.len() as u64,
                Err(Error::NoSpace { .. }) => {
                    // The file may have found no space for its name.
                    if fs.exists(&name) {
                        fs.delete(&name).unwrap();
                    }
                    break;
                }
                Err(error) => panic!("{name}: {error}"),
            }
            self.0.insert(name, data);
        }
        bytes
    }

    fn delete(&mut self, fs: &BlueFs, mut goes: impl FnMut() -> bool) {
        self.0.retain(|name, _| {
            let goes = goes();
            if goes {
                fs.delete(name).unwrap();
            }
            !goes
        });
        // The journal may have no space for all removals at first, but gets it in the end.
        match fs.sync_metadata() {
            Ok(()) | Err(Error::NoSpace { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn look(&self, fs: &BlueFs) {
        for (name, data) in &self.0 {
            assert!(read(fs, name).unwrap() == *data, "{name}");
        }
        let report = fs.check(false).unwrap();
        assert!(report.is_clean(), "{:?}", report.details);
    }
}

fn live(seed: u64) {
    let random = &mut Random(seed);
    let g = shape(random);
    println!("seed {seed}: {g:?}");
    let drive = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    let has_room = g.zone_count >= 16 && !(1..8).contains(&g.max_active_zones);
    let copies = if has_room && seed.is_multiple_of(2) {
        2
    } else {
        1
    };
    format_copies(&*drive, Role::Alone, copies);
    let mut fs = mount(drive.clone()).unwrap();
    let mut files = Files::default();
    let mut first_fill = 0;
    for round in 0..6 {
        let filled = files.fill(&fs, random, round * 10_000);
        files.look(&fs);
        if round == 0 {
            first_fill = filled;
        }
        match random.below(3) {
            0 => files.delete(&fs, || true),
            1 => files.delete(&fs, || random.below(4) > 0),
            _ => {}
        }
        if random.below(2) == 0 {
            match fs.unmount() {
                Ok(()) => {}
                Err(error) => panic!("{error}"),
            }
            drop(fs);
            fs = mount(drive.clone()).unwrap();
            files.look(&fs);
        }
    }
    files.delete(&fs, || true);
    fs.sync_metadata().unwrap();
    // The emptied drive has nearly as much space as a new one: a log may hold the last zone.
    let mut writer = fs.create("last.sst").unwrap();
    let mut room = 0;
    let piece = vec![1; g.block_size as usize];
    while room < (first_fill / 2).min(4 * g.zone_capacity) {
        match writer.append(&piece).and_then(|()| writer.sync()) {
            Ok(()) => room += u64::from(g.block_size),
            Err(error) => panic!("room for {room} of {first_fill}: {error}"),
        }
    }
}

#[test]
fn a_small_drive_may_be_full_but_never_stops() {
    let given = std::env::var("ZONESTORE_SMALL_DRIVES");
    let count = given.ok().and_then(|n| n.parse().ok()).unwrap_or(EACH_DAY);
    let failed: Vec<u64> = (0..count)
        .filter(|seed| std::panic::catch_unwind(|| live(*seed)).is_err())
        .collect();
    assert!(failed.is_empty(), "seeds {failed:?}");
}

/// The longest operations of the journal: renames between the longest paths, and lists of extents.
#[test]
fn the_longest_operations_fit_the_smallest_zone() {
    let drive = |blocks: u64| {
        let g = Geometry {
            block_size: 4096,
            zone_size: 16 << 10,
            zone_capacity: blocks * 4096,
            ..geometry(400, 0, 0)
        };
        Arc::new(MemoryDrive::new(g).unwrap())
    };
    let options = FormatOptions {
        uuid: [3; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    let refused = BlueFs::format(&*drive(3), &options);
    assert!(matches!(refused, Err(Error::Unsuitable { needed: 4, .. })));
    let drive = drive(4);
    format(&*drive, Role::Alone);
    let fs = mount(drive.clone()).unwrap();
    let names = [1, 2].map(|n| format!("/{n}{}", "x".repeat(4094)));
    let mut writers = [names[0].as_str(), "/other"].map(|name| fs.create(name).unwrap());
    for n in 0..300 {
        for writer in &mut writers {
            writer.append(&[n as u8; 100]).unwrap();
            writer.sync().unwrap();
        }
    }
    drop(writers);
    for _ in 0..20 {
        fs.rename(&names[0], &names[1]).unwrap();
        fs.rename(&names[1], &names[0]).unwrap();
        fs.sync_metadata().unwrap();
    }
    drop(fs);
    let fs = mount(drive).unwrap();
    assert_eq!(read(&fs, &names[0]).unwrap().len(), 30_000);
    assert_clean(&fs);
}
