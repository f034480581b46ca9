//! Makes a store on a drive: BlueFS, the database in it, and the store's record.

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
use zone::{Geometry, ZoneId};
use zone_alloc::{KEPT_FOR_CLEANER, ZonePool};

/// Zones that BlueFS always has, and those that it keeps to grow into.
const LEAST_FOR_METADATA: u32 = bluefs::LEAST_ZONES + Reservation::LEAST_HEADROOM;
/// Least capacity of a zone: with smaller zones, a drive full of small objects could end up refusing removals.
const LEAST_ZONE_BYTES: u64 = 64 << 10;
/// Least zones for data and its cleaner.
const LEAST_FOR_DATA: u32 = 4;

/// Active zones that a store needs: for the superblock, two journals, two streams of objects, logs and SSTs written at
/// the same time, and for the second copies of all but superblocks and objects.
const fn min_active_zones(copies: u32) -> u32 {
    if copies == 1 { 8 } else { 13 }
}

/// What [`crate::Store::mkfs`] has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Made {
    /// Number of zones that each byte of metadata is written to.
    pub metadata_copies: u32,
    /// Why there is only one copy, if the caller has not chosen the number.
    pub one_copy: Option<OneCopy>,
}

/// Why the default is one copy of the metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OneCopy {
    /// The drive's limit of active zones is too low to write both copies at the same time.
    #[error("two copies need {needed} active zones, and the drive has {found}")]
    ActiveZones {
        /// The drive's limit.
        found: u32,
        /// The limit that two copies need.
        needed: u32,
    },
    /// The drive has too few zones for two copies.
    #[error("two copies need {needed} sequential zones, and the drive has {found}")]
    Zones {
        /// Sequential zones of the drive.
        found: u32,
        /// Sequential zones that two copies need.
        needed: u32,
    },
    /// A second copy would take too large a share of the drive.
    #[error("a second copy would take {zones} of {found} sequential zones")]
    Share {
        /// Sequential zones that it would take: more than `MOST_FOR_SECOND_COPY` of all.
        zones: u32,
        /// Sequential zones of the drive.
        found: u32,
    },
}

/// Largest share of a drive that a second copy takes by default.
const MOST_FOR_SECOND_COPY: f64 = 1.0 / 16.0;

impl OneCopy {
    /// Why a drive gets no second copy by default; `None` if it does.
    fn of(geometry: &Geometry) -> Option<Self> {
        let (active, found) = (geometry.max_active_zones, geometry.sequential_count());
        if (1..min_active_zones(2)).contains(&active) {
            let needed = min_active_zones(2);
            return Some(Self::ActiveZones {
                found: active,
                needed,
            });
        }
        let needed = least_zones(geometry, 2);
        if found < needed {
            return Some(Self::Zones { found, needed });
        }
        let zones = |copies| Reservation::of_empty_drive(geometry, copies);
        let zones = zones(2).saturating_sub(zones(1));
        let is_much = f64::from(zones) > f64::from(found) * MOST_FOR_SECOND_COPY;
        is_much.then_some(Self::Share { zones, found })
    }
}

/// Copies of its metadata that a store on such a drive has by default.
pub(crate) fn default_copies(geometry: &Geometry) -> u32 {
    if OneCopy::of(geometry).is_some() {
        1
    } else {
        2
    }
}

/// Sequential zones of the smallest store, one of which is left as its capacity.
fn least_zones(geometry: &Geometry, copies: u32) -> u32 {
    let kept = Reservation::of_empty_drive(geometry, copies) + KEPT_FOR_CLEANER;
    let least = bluefs::zones_for(LEAST_FOR_METADATA, copies) + LEAST_FOR_DATA;
    least.max(kept + 1)
}

pub(crate) fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<Made> {
    let record = SuperRecord {
        version: FORMAT_VERSION,
        uuid: options.uuid,
    };
    let mut batch = Batch::default();
    batch.put(key::SUPER_FORMAT, &record.encode());
    mkfs_with(device, options, &batch)
}

/// Makes a store whose database has these rows; [`MkfsOptions::uuid`] is the file system's.
pub(crate) fn mkfs_with(
    device: Arc<dyn ZonedDevice>,
    options: &MkfsOptions,
    rows: &Batch,
) -> Result<Made> {
    let one_copy = match options.metadata_copies {
        Some(_) => None,
        None => OneCopy::of(device.geometry()),
    };
    let default = default_copies(device.geometry());
    let metadata_copies = options.metadata_copies.unwrap_or(default);
    let device = divide(device, metadata_copies);
    let geometry = device.geometry().clone();
    let sequential = geometry.sequential_count();
    let needed = least_zones(&geometry, metadata_copies);
    if sequential < needed {
        return Err(Error::DriveTooSmall {
            found: sequential,
            needed,
        });
    }
    let min_active_zones = min_active_zones(metadata_copies);
    if (1..min_active_zones).contains(&geometry.max_active_zones) {
        return Err(Error::BlueFs(bluefs::Error::Unsuitable {
            what: "limit of active zones",
            found: geometry.max_active_zones.into(),
            needed: min_active_zones.into(),
        }));
    }
    if geometry.least_capacity() < LEAST_ZONE_BYTES {
        return Err(Error::BlueFs(bluefs::Error::Unsuitable {
            what: "zone capacity in bytes",
            found: geometry.least_capacity(),
            needed: LEAST_ZONE_BYTES,
        }));
    }
    let format = FormatOptions {
        uuid: options.uuid,
        role: Role::Shared,
        copies: metadata_copies,
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
        ..kv_options(&geometry, metadata_copies, 1 << 20)
    };
    let kv = Kv::open(&*options.engine, &fs, DIRECTORY, &kv_options, None)?;
    kv.write(rows, Durability::Synced)?;
    kv.flush()?;
    kv.close()?;
    fs.unmount()?;
    Ok(Made {
        metadata_copies,
        one_copy,
    })
}

fn divide(device: Arc<dyn ZonedDevice>, copies: u32) -> Arc<dyn ZonedDevice> {
    let parts = Reservation::conventional_parts(device.geometry(), copies);
    match Divided::new(device.clone(), parts) {
        Ok(divided) if parts > device.geometry().conventional_parts => Arc::new(divided),
        _ => device,
    }
}
