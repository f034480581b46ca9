//! Finds out whether a store's metadata is lost, and which zones certainly hold nothing but metadata.

use crate::answers::answers;
use crate::opened::Opened;
use crate::options::MountOptions;
use crate::{Error, Result};
use appender::is_of_zone;
use bluefs::{BlueFs, Role};
use device::ZonedDevice;
use kv::Kv;
use std::collections::BTreeSet;
use std::sync::Arc;
use zone::ZoneId;
use zone_alloc::{Owner, ZonePool};

/// Progress of a salvage in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The drive has no valid rows.
    Lost,
    /// All rows are written; objects that could not stay in place may not be copied yet.
    Placed,
}

/// A drive whose store cannot be opened any more, as the input of a salvage in place.
#[derive(Debug)]
pub struct Lost {
    pub(super) stage: Stage,
    /// Zones of a BlueFS that can be mounted: none of them holds object data.
    pub(super) metadata: BTreeSet<ZoneId>,
    /// Number of zones that each byte of metadata was written to, if the superblock can be read.
    pub(super) copies: Option<u32>,
}

impl Lost {
    /// Reads all metadata that is left.
    ///
    /// # Errors
    /// [`Error::StillOpens`] if all of it can be read: then a repair loses less. Errors that show that the drive
    /// belongs to another system, or to another version, are passed on.
    pub fn look(device: &Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Self> {
        let options = MountOptions {
            read_only: true,
            accept_damage: false,
            background: false,
            ..options.clone()
        };
        let stage = stage(device.clone(), &options)?;
        let superblock = BlueFs::contents(&**device).ok().and_then(|c| c.superblock);
        Ok(Self {
            stage,
            metadata: zones_of_metadata(device, &options).unwrap_or_default(),
            copies: superblock.map(|superblock| superblock.copies()),
        })
    }

    /// Whether an earlier salvage in place has written all rows already.
    pub fn is_placed(&self) -> bool {
        self.stage == Stage::Placed
    }
}

fn stage(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Stage> {
    let mut looked = look_once(device.clone(), options);
    if looked.as_ref().is_err_and(is_damage) {
        if !answers(&*device) {
            return looked.and(Err(Error::Incomplete));
        }
        // A drive that did not answer for a while looks the same, and does not the second time.
        looked = look_once(device.clone(), options);
    }
    match looked {
        Ok(None) => Err(Error::StillOpens),
        Ok(Some(2)) => Ok(Stage::Placed),
        Ok(Some(_)) => Ok(Stage::Lost),
        Err(error) if is_damage(&error) && answers(&*device) => {
            tracing::info!(%error, "the metadata cannot be read");
            Ok(Stage::Lost)
        }
        Err(error) => Err(error),
    }
}

fn look_once(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Option<u64>> {
    Opened::open_unfinished(device, options).and_then(|opened| {
        let read = match read_all(&opened.kv) {
            // A damaged copy may be repaired from the other one.
            Err(error) if is_damage(&error) && opened.fs.copies() > 1 => {
                opened.fs.repair_copies()?;
                read_all(&opened.kv)
            }
            read => read,
        };
        read.and_then(|()| opened.salvage_stage())
    })
}

fn read_all(kv: &Kv) -> Result<()> {
    for row in kv.scan(&[], None) {
        row?;
    }
    Ok(())
}

/// Whether an error means that metadata is missing or damaged, rather than another system's or unavailable at present.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::Incomplete
        | Error::CorruptMetadata { .. }
        | Error::ChecksumMismatch { .. }
        | Error::NotFormatted => true,
        Error::Drive(error) | Error::BlueFs(bluefs::Error::Drive(error)) => is_of_zone(error),
        Error::BlueFs(error) => {
            error.is_damage()
                || matches!(
                    error,
                    bluefs::Error::SuperblockLost { .. } | bluefs::Error::NotFound { .. }
                )
        }
        Error::Kv(error) => matches!(
            error,
            kv::Error::Corruption { .. }
                | kv::Error::NotFound { .. }
                | kv::Error::Stopped { .. }
                | kv::Error::Io { .. }
        ),
        _ => false,
    }
}

/// The zones that BlueFS owns, if its journal has no damage.
fn zones_of_metadata(
    device: &Arc<dyn ZonedDevice>,
    options: &MountOptions,
) -> Result<BTreeSet<ZoneId>> {
    let device = BlueFs::view(device.clone())?;
    let geometry = device.geometry().clone();
    let report = device.report(ZoneId(0), geometry.zone_count)?;
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs_options = bluefs::MountOptions {
        read_only: true,
        role: Some(Role::Shared),
        runtime: options.runtime.clone(),
        ..bluefs::MountOptions::default()
    };
    let _fs = BlueFs::mount(device, pool.clone(), fs_options)?;
    let owned = geometry.zones();
    Ok(owned
        .filter(|zone| pool.owner(*zone) == Some(Owner::BlueFs))
        .collect())
}
