//! Whether the metadata of a store are lost, and which zones are known to hold nothing else.

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

/// How far a salvage in place has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No rows that count are on the drive.
    Lost,
    /// All rows are; what could not stay where it is may not have been copied.
    Placed,
}

/// A drive whose store cannot be opened any more.
#[derive(Debug)]
pub struct Lost {
    pub(super) stage: Stage,
    /// Zones of a file system that can be mounted: none of them is an object's.
    pub(super) metadata: BTreeSet<ZoneId>,
    /// In how many zones each byte of metadata was.
    pub(super) copies: Option<u32>,
}

impl Lost {
    /// Looks at what is there of the metadata.
    ///
    /// # Errors
    /// [`Error::StillOpens`] if all of it can be read: then a repair loses less. What says that the drive is
    /// another's, or of another version, is passed on.
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

    /// Whether the same command has been here before, and has all rows in place.
    pub fn is_placed(&self) -> bool {
        self.stage == Stage::Placed
    }
}

fn stage(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Stage> {
    let looked = Opened::open_unfinished(device, options).and_then(|opened| {
        let read = match read_all(&opened.kv) {
            // Of a damaged copy the other one may do.
            Err(error) if is_damage(&error) && opened.fs.info().copies() > 1 => {
                opened.fs.repair_copies()?;
                read_all(&opened.kv)
            }
            read => read,
        };
        read.and_then(|()| opened.salvage_stage())
    });
    match looked {
        Ok(None) => Err(Error::StillOpens),
        Ok(Some(2)) => Ok(Stage::Placed),
        Ok(Some(_)) => Ok(Stage::Lost),
        Err(error) if is_damage(&error) => {
            tracing::info!(%error, "the metadata cannot be read");
            Ok(Stage::Lost)
        }
        Err(error) => Err(error),
    }
}

fn read_all(kv: &Kv) -> Result<()> {
    for row in kv.scan(&[], None) {
        row?;
    }
    Ok(())
}

/// Whether metadata are missing or are not what they were, rather than another's or not to be had at the moment.
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

/// What a journal without damage says.
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
