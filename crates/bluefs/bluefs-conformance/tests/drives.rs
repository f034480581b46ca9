//! The suite that runs on every drive, on drives in memory and in a file.

#![allow(clippy::unwrap_used)]

use bluefs::{BlueFs, Error};
use bluefs_conformance::{Options, run_on};
use device::{FileDrive, MemoryDrive};
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

/// As the drives of the lab are, with smaller zones.
fn geometry(conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 64 + conventional_zones,
        conventional_parts: 1,
        conventional_zones,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

fn zns(max_active_zones: u32) -> Geometry {
    Geometry {
        zone_capacity: 768 << 10,
        max_append_bytes: 128 << 10,
        ..geometry(0, max_active_zones)
    }
}

fn in_memory(geometry: Geometry) {
    for seed in [1, 2] {
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut done = Vec::new();
        let drive = Arc::new(MemoryDrive::new(geometry.clone()).unwrap());
        run_on(drive.clone(), options, &mut |name| {
            eprintln!("{name}");
            done.push(name.to_owned());
        });
        assert_eq!(done.len(), 9);
        // Nothing is left that could be taken for a file system.
        let left = BlueFs::probe(&*drive);
        assert!(matches!(left, Err(Error::NotFormatted)), "{left:?}");
    }
}

#[test]
fn on_an_smr_drive_in_memory() {
    in_memory(geometry(4, 0));
}

#[test]
fn with_fourteen_active_zones_in_memory() {
    in_memory(zns(14));
}

#[test]
fn with_six_active_zones_in_memory() {
    in_memory(zns(6));
}

#[test]
fn on_a_drive_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    let drive = FileDrive::create(path, &geometry(12, 0), "test").unwrap();
    // Again, over what the first run left.
    let drive = Arc::new(drive);
    for zones in [24, 14] {
        let options = Options {
            zones,
            uuid: [zones as u8; 16],
            ..Options::default()
        };
        run_on(drive.clone(), options, &mut |_| {});
    }
}
