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
use zone::{Geometry, ZoneId};
use zone_alloc::{KEPT_FOR_CLEANER, ZonePool};

/// What BlueFS always has, and what it finds to grow into.
const LEAST_FOR_METADATA: u32 = bluefs::LEAST_ZONES + Reservation::LEAST_HEADROOM;
/// With smaller zones, a drive full of small objects came to refuse removals.
const LEAST_ZONE_BYTES: u64 = 64 << 10;
/// What is left of few zones for data and its cleaner.
const LEAST_FOR_DATA: u32 = 4;

/// Superblock, journal and the next one, two streams of objects, logs and SSTs beside each other; and the second
/// copies of all but superblocks and objects.
const fn min_active_zones(copies: u32) -> u32 {
    if copies == 1 { 8 } else { 13 }
}

/// What was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Made {
    /// In how many zones each byte of metadata is.
    pub metadata_copies: u32,
    /// Why that is one, if nobody has said how many.
    pub one_copy: Option<OneCopy>,
}

/// Why metadata is in one copy where nobody has said how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OneCopy {
    /// Both copies are written at the same time.
    #[error("two copies need {needed} active zones, and the drive has {found}")]
    ActiveZones {
        /// The drive's limit.
        found: u32,
        /// How many it takes.
        needed: u32,
    },
    /// There is no place for them.
    #[error("two copies need {needed} sequential zones, and the drive has {found}")]
    Zones {
        /// On the drive.
        found: u32,
        /// How many it takes.
        needed: u32,
    },
    /// The drive is small.
    #[error("a second copy would take {zones} of {found} sequential zones")]
    Share {
        /// More than [`MOST_FOR_SECOND_COPY`].
        zones: u32,
        /// On the drive.
        found: u32,
    },
}

/// A second copy that nobody asked for takes no more than this share of a drive.
const MOST_FOR_SECOND_COPY: f64 = 1.0 / 16.0;

impl OneCopy {
    /// Why a drive gets no second copy unless somebody asks for it.
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

/// How many copies of its metadata a store gets on such a drive.
pub(crate) fn default_copies(geometry: &Geometry) -> u32 {
    if OneCopy::of(geometry).is_some() {
        1
    } else {
        2
    }
}

/// Sequential zones of the smallest store, which has one for what is declared.
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

/// A store with these rows; [`MkfsOptions::uuid`] is the file system's.
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
