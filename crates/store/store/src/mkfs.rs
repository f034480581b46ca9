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

/// What BlueFS always has, and what it finds to grow into.
const LEAST_FOR_METADATA: u32 = bluefs::LEAST_ZONES + Reservation::LEAST_HEADROOM;
/// What is left of few zones for data and its cleaner.
const LEAST_FOR_DATA: u32 = 4;

/// Superblock, journal and the next one, two streams of objects, logs and SSTs beside each other; and the second
/// copies of all but superblocks and objects.
const fn min_active_zones(copies: u32) -> u32 {
    if copies == 1 { 8 } else { 13 }
}

pub(crate) fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<()> {
    let device = divide(device, options.metadata_copies);
    let geometry = device.geometry().clone();
    let sequential = geometry.sequential_count();
    let needed = bluefs::zones_for(LEAST_FOR_METADATA, options.metadata_copies) + LEAST_FOR_DATA;
    if sequential < needed {
        return Err(Error::DriveTooSmall {
            found: sequential,
            needed,
        });
    }
    let min_active_zones = min_active_zones(options.metadata_copies);
    if (1..min_active_zones).contains(&geometry.max_active_zones) {
        return Err(Error::BlueFs(bluefs::Error::Unsuitable {
            what: "limit of active zones",
            found: geometry.max_active_zones.into(),
            needed: min_active_zones.into(),
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
        ..kv_options(&geometry, options.metadata_copies, 1 << 20)
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

fn divide(device: Arc<dyn ZonedDevice>, copies: u32) -> Arc<dyn ZonedDevice> {
    let parts = Reservation::conventional_parts(device.geometry(), copies);
    match Divided::new(device.clone(), parts) {
        Ok(divided) if parts > device.geometry().conventional_parts => Arc::new(divided),
        _ => device,
    }
}
