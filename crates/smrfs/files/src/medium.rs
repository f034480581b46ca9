//! The medium of a file system: a zoned drive, whose bands are appended to, or a Caveat-Scriptor drive.

use crate::bands::Bands;
use crate::error::{Error, Result};
use crate::extents::Extents;
use crate::layout::{Layout, Shape};
use crate::log;
use crate::options::MountOptions;
use crate::placement::Placement;
use crate::state::Bounds;
use caveat::{CaveatDevice, CaveatDeviceError};
use device::ZonedDevice;
use std::sync::Arc;

/// The medium of a file system.
#[derive(Clone)]
pub enum Medium {
    /// A zoned drive.
    Bands(Arc<dyn ZonedDevice>),
    /// A drive that takes writes anywhere, each of which may damage blocks after it.
    Caveat(Arc<CaveatDevice>),
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_caveat() { "Caveat" } else { "Bands" })
    }
}

impl From<CaveatDeviceError> for Error {
    fn from(error: CaveatDeviceError) -> Self {
        match error {
            CaveatDeviceError::Drive(error) => Self::Drive(error),
            CaveatDeviceError::NotThere => Self::NotFormatted,
            error @ CaveatDeviceError::Damaged => Self::metadata(error.to_string()),
            CaveatDeviceError::Version { found } => Self::Version {
                what: "Caveat-Scriptor drive's format",
                found,
                known: caveat::VERSION,
            },
            CaveatDeviceError::Shape(what) => Self::Shape(what),
            CaveatDeviceError::Options(what) => Self::Options(what),
        }
    }
}

impl Medium {
    /// The medium on `drive`: the Caveat-Scriptor drive that is on it, or `drive` itself.
    pub fn of(drive: Arc<dyn ZonedDevice>) -> Result<Self> {
        match caveat::is_there(&*drive)? {
            true => Ok(Self::Caveat(Arc::new(CaveatDevice::open(drive)?))),
            false => Ok(Self::Bands(drive)),
        }
    }

    /// Whether the medium has a file system, whole or damaged.
    pub fn has_file_system(&self) -> Result<bool> {
        log::is_there(&*self.device(), &self.layout()?)
    }

    /// Describes damage to a Caveat-Scriptor drive that loses nothing: to its bitmap, or to one of two copies of its
    /// header.
    pub(crate) fn damage(&self) -> Vec<String> {
        let Self::Caveat(device) = self else {
            return Vec::new();
        };
        let header = device.damaged_header();
        let header =
            header.map(|copy| format!("copy {copy} of the Caveat-Scriptor drive's header"));
        let bitmap = device.lost().into_iter().map(|(first, end)| {
            format!(
                "the Caveat-Scriptor drive's bitmap of blocks {first} to {}",
                end - 1
            )
        });
        header.into_iter().chain(bitmap).collect()
    }

    /// Rewrites a damaged header from its copy, and damaged parts of the bitmap.
    pub(crate) fn mend(&self) -> Result<()> {
        let Self::Caveat(device) = self else {
            return Ok(());
        };
        for (what, was_damaged) in [
            ("a copy of the header", device.mend_header()?),
            ("a part of the bitmap", device.mend_bitmap()?),
        ] {
            if was_damaged {
                tracing::warn!(
                    what,
                    "the Caveat-Scriptor drive was damaged; this is written anew"
                );
            }
        }
        Ok(())
    }

    /// Whether the medium is a Caveat-Scriptor drive.
    pub const fn is_caveat(&self) -> bool {
        matches!(self, Self::Caveat(_))
    }

    /// The drive to read and write.
    pub fn device(&self) -> Arc<dyn ZonedDevice> {
        match self {
            Self::Bands(device) => Arc::clone(device),
            Self::Caveat(device) => Arc::clone(device) as Arc<dyn ZonedDevice>,
        }
    }

    /// The layout of a file system on this medium.
    pub(crate) fn layout(&self) -> Result<Layout> {
        match self {
            Self::Bands(device) => Layout::of(device.geometry()),
            Self::Caveat(device) => Layout::of_caveat(&device.modesense()),
        }
    }

    /// Bounds of extents: zones and blocks where data may lie.
    pub(crate) fn bounds(&self, layout: &Layout, block_size: u32) -> Bounds {
        let block = u64::from(block_size);
        let zone_blocks = match self {
            Self::Bands(device) => device.geometry().zone_capacity / block,
            Self::Caveat(device) => crate::extents::blocks(&device.modesense(), block),
        };
        Bounds {
            first_zone: layout.first_zone,
            zones: layout.zones,
            zone_blocks: zone_blocks as u32,
            file_blocks: crate::state::MAX_SIZE / block,
        }
    }

    /// The allocator of space for data.
    pub(crate) fn placement(
        &self,
        layout: &Layout,
        shape: &Shape,
        options: &MountOptions,
    ) -> Result<Box<dyn Placement>> {
        Ok(match self {
            Self::Bands(device) => {
                let device = Arc::clone(device);
                Box::new(Bands::new(
                    device,
                    layout,
                    shape.block_size,
                    shape.is_whole,
                )?)
            }
            Self::Caveat(device) => Box::new(Extents::new(Arc::clone(device), shape, options.fit)),
        })
    }
}
