//! Small drives with a file system, and the model with which histories of files are compared.

#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used)]

mod model;
mod pair;
mod random;
mod step;

pub use pair::Pair;
pub use random::{Random, seed};
pub use step::{NAMES, Step};

use bluefs::{BlueFs, Cleaning, Error, FormatOptions, MountOptions, Role};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

/// Small zones and blocks, so that files spread over many zones.
pub fn geometry(zone_count: u32, conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 512,
        zone_size: 32 << 10,
        zone_capacity: 24 << 10,
        zone_count,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

pub fn format(device: &dyn ZonedDevice, role: Role) {
    format_copies(device, role, 1);
}

/// Formats the drive with `copies` copies of all files and metadata.
pub fn format_copies(device: &dyn ZonedDevice, role: Role, copies: u32) {
    let options = FormatOptions {
        uuid: [3; 16],
        role,
        copies,
        force: false,
    };
    BlueFs::format(device, &options).unwrap();
}

/// A drive in memory with an empty file system.
pub fn formatted(g: Geometry) -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device, Role::Alone);
    device
}

pub fn pool(device: &dyn ZonedDevice) -> Arc<ZonePool> {
    let g = device.geometry();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    Arc::new(ZonePool::new(g.clone(), &report))
}

/// Each step of cleaning moves whatever is worth it, without a background thread or a budget.
pub const ALWAYS: Cleaning = Cleaning {
    in_background: false,
    percent: 100_000,
    tidy_per_mille: 0,
    begin_below: Some(u32::MAX),
};

pub fn mount(device: Arc<dyn ZonedDevice>) -> Result<BlueFs, Error> {
    let pool = pool(&*device);
    mount_in(device, pool, false)
}

pub fn mount_in(
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    read_only: bool,
) -> Result<BlueFs, Error> {
    BlueFs::mount(
        device,
        pool,
        MountOptions {
            read_only,
            accept_damage: read_only,
            runtime: Runtime::seeded(0),
            cleaning: Some(ALWAYS),
            ..MountOptions::default()
        },
    )
}

pub fn write(fs: &BlueFs, path: &str, data: &[u8]) -> Result<(), Error> {
    let mut writer = fs.create(path)?;
    writer.append(data)?;
    writer.sync()?;
    writer.close()
}

pub fn put(fs: &BlueFs, path: &str, data: &[u8]) {
    write(fs, path, data).unwrap();
}

pub fn read(fs: &BlueFs, path: &str) -> Result<Vec<u8>, Error> {
    let reader = fs.open(path)?;
    let mut data = vec![0; reader.size() as usize];
    let got = reader.read_at(0, &mut data)?;
    assert_eq!(got, data.len());
    Ok(data)
}

#[track_caller]
pub fn assert_clean(fs: &BlueFs) {
    let report = fs.check(true).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
}
