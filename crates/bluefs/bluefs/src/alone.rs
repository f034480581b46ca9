//! Mounts without a store: the file system takes zones from a pool of its own. For a drive of its own, or to inspect
//! one.

use crate::error::{Error, Result};
use crate::fs::BlueFs;
use crate::mkfs::MIN_ZONE_BLOCKS;
use crate::options::MountOptions;
use device::ZonedDevice;
use device::divided::Divided;
use std::sync::Arc;
use zone::ZoneId;
use zone_alloc::ZonePool;

impl BlueFs {
    /// The drive, with its conventional zones divided into parts as its file system divides them.
    ///
    /// # Errors
    /// As [`BlueFs::probe`].
    pub fn view(device: Arc<dyn ZonedDevice>) -> Result<Arc<dyn ZonedDevice>> {
        let parts = Self::probe(&*device)?.conventional_parts;
        if parts == device.geometry().conventional_parts {
            return Ok(device);
        }
        let zone_size = device.geometry().zone_size;
        let block_size = u64::from(device.geometry().block_size);
        match Divided::new(device, parts) {
            Ok(divided) if divided.geometry().least_capacity() >= MIN_ZONE_BLOCKS * block_size => {
                Ok(Arc::new(divided))
            }
            _ => Err(Error::GeometryChanged {
                what: "bytes of a conventional zone, a multiple of",
                expected: parts.into(),
                found: zone_size,
            }),
        }
    }

    /// Mounts the file system on the drive, with a pool of its own.
    ///
    /// # Errors
    /// As [`BlueFs::mount`], and of the drive's report.
    pub fn mount_alone(device: Arc<dyn ZonedDevice>, options: MountOptions) -> Result<Self> {
        let device = Self::view(device)?;
        let geometry = device.geometry().clone();
        let report = device.report(ZoneId(0), geometry.zone_count)?;
        let pool = Arc::new(ZonePool::new(geometry, &report));
        Self::mount(device, pool, options)
    }

    /// Mounts the file system, calls `work` and unmounts, whether `work` failed or not.
    ///
    /// # Errors
    /// Those of `work` take precedence over those of the unmount.
    pub fn with_mounted<T, E: From<Error>>(
        device: Arc<dyn ZonedDevice>,
        options: MountOptions,
        work: impl FnOnce(&Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let fs = Self::mount_alone(device, options)?;
        let done = work(&fs);
        let stopped = fs.unmount();
        let done = done?;
        stopped?;
        Ok(done)
    }
}
