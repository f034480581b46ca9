//! Files and names, one behavior per test, on a drive in memory.

mod contents;
mod costs;
mod foreign;
mod logs;
mod names;
mod space;

use crate::support;
use crate::support::{assert_clean, formatted, pool, put};
use bluefs::{
    BlueFs, Error, FORMAT_VERSION, FormatOptions, Lifetime, MountOptions, Role, SuperblockInfo,
};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};

fn geometry(conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 64,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

fn mount(device: &Arc<MemoryDrive>) -> BlueFs {
    let options = MountOptions {
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    BlueFs::mount(device.clone(), pool(&**device), options).unwrap()
}

fn fresh() -> (Arc<MemoryDrive>, BlueFs) {
    let device = formatted(geometry(4, 0));
    let fs = mount(&device);
    (device, fs)
}

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| {
            (i as u8)
                .wrapping_mul(31)
                .wrapping_add(seed)
                .wrapping_add((i >> 8) as u8)
        })
        .collect()
}

fn read(fs: &BlueFs, path: &str) -> Vec<u8> {
    support::read(fs, path).unwrap()
}
