//! Making a store on a drive.

use crate::database::{DIRECTORY, kv_options};
use crate::format::record::SuperRecord;
use crate::format::{FORMAT_VERSION, key};
use crate::options::MkfsOptions;
use crate::reservation::Reservation;
use crate::{Error, Result};
use bluefs::{BlueFs, FormatOptions, Role};
use device::ZonedDevice;
use device::divided::Divided;
use kv::{Batch, Durability, Kv, Options};
use std::sync::Arc;
use zone::ZoneId;
use zone_alloc::ZonePool;

/// What BlueFS always has, what it finds to grow into, and what is left of so few for data and its cleaner.
const MIN_SEQUENTIAL_ZONES: u32 = bluefs::LEAST_ZONES + Reservation::LEAST_HEADROOM + 4;

/// Superblock, journal and the next one, two streams of objects, logs and SSTs beside each other.
const MIN_ACTIVE_ZONES: u32 = 8;

pub(crate) fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<()> {
    let device = divide(device);
    let geometry = device.geometry().clone();
    let sequential = geometry.sequential_count();
    if sequential < MIN_SEQUENTIAL_ZONES {
        return Err(Error::DriveTooSmall {
            found: sequential,
            needed: MIN_SEQUENTIAL_ZONES,
        });
    }
    if (1..MIN_ACTIVE_ZONES).contains(&geometry.max_active_zones) {
        return Err(Error::BlueFs(bluefs::Error::Unsuitable {
            what: "limit of active zones",
            found: geometry.max_active_zones.into(),
            needed: MIN_ACTIVE_ZONES.into(),
        }));
    }
    let format = FormatOptions {
        uuid: options.uuid,
        role: Role::Shared,
        copies: options.metadata_copies,
        force: options.force,
    };
    BlueFs::format(&*device, &format)?;
    let report = device.report(ZoneId(0), geometry.zone_count)?;
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs_options = bluefs::MountOptions {
        runtime: options.runtime.clone(),
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(device, pool, fs_options)?;
    fs.create_directory(DIRECTORY)?;
    let kv_options = Options {
        create_if_missing: true,
        ..kv_options(&geometry, 1 << 20)
    };
    let kv = Kv::open(&*options.engine, &fs, DIRECTORY, &kv_options, None)?;
    let record = SuperRecord {
        version: FORMAT_VERSION,
        uuid: options.uuid,
    };
    let mut batch = Batch::default();
    batch.put(key::SUPER_FORMAT, &record.encode());
    kv.write(&batch, Durability::Synced)?;
    kv.flush()?;
    kv.close()?;
    fs.unmount()?;
    Ok(())
}

fn divide(device: Arc<dyn ZonedDevice>) -> Arc<dyn ZonedDevice> {
    let parts = Reservation::conventional_parts(device.geometry());
    match Divided::new(device.clone(), parts) {
        Ok(divided) if parts > device.geometry().conventional_parts => Arc::new(divided),
        _ => device,
    }
}
