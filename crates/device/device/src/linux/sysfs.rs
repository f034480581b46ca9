//! Reads the properties of a block device from `/sys`.

use super::HostDriveError;
use super::shape::Limits;
use rustix::fs::{major, minor};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of one read or write call, even if the device accepts more.
const MOST_AT_ONCE: u64 = 512 << 10;
const PAGE: u64 = 4096;

/// The properties of a block device's queue.
pub(super) struct Queue {
    pub limits: Limits,
    /// Most bytes that reach the device as one request, which nothing can reorder.
    pub request_bytes: usize,
    /// Whether the device is hardware, and not one that the kernel emulates (null_blk, zloop, device mapper).
    pub is_hardware: bool,
}

/// Reads the queue properties of the open device.
pub(super) fn queue(path: &Path, file: &File) -> Result<Queue, HostDriveError> {
    let failed = |source| HostDriveError::Io {
        path: path.into(),
        source,
    };
    let not_zoned = |what| HostDriveError::NotZoned {
        path: path.into(),
        what,
    };
    let folder = folder(&file.metadata().map_err(failed)?);
    if folder.join("partition").exists() {
        return Err(not_zoned("a partition, only a whole drive can be used"));
    }
    let text = |name: &str| std::fs::read_to_string(folder.join("queue").join(name));
    let number = |name: &str| -> Result<u64, HostDriveError> {
        let text = text(name).map_err(failed)?;
        let parsed = text.trim().parse();
        parsed.map_err(|_| failed(io::Error::from(io::ErrorKind::InvalidData)))
    };
    match text("zoned") {
        Ok(zoned) if matches!(zoned.trim(), "host-managed" | "host-aware") => {}
        Ok(_) => return Err(not_zoned("an ordinary block device")),
        Err(_) => return Err(not_zoned("this kernel knows no zoned block devices")),
    }
    // A value that an older kernel does not have means no limit; the unit of writes is a physical block then.
    let optional = |name: &str| number(name).unwrap_or(0);
    let block_size = number("logical_block_size")?
        .max(number("zone_write_granularity").or_else(|_| number("physical_block_size"))?);
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let request = (number("max_sectors_kb")? << 10)
        .min(number("max_segments")? * PAGE)
        .min(MOST_AT_ONCE);
    let limits = Limits {
        block_size: small(block_size),
        zone_size: number("chunk_sectors")? * 512,
        max_open_zones: small(optional("max_open_zones")),
        max_active_zones: small(optional("max_active_zones")),
        max_append_bytes: 0,
    };
    let blocks = (request / block_size.max(1)).max(1);
    let place = folder.canonicalize().map_err(failed)?;
    Ok(Queue {
        limits,
        is_hardware: is_hardware(&place),
        request_bytes: (blocks * block_size) as usize,
    })
}

/// Whether a device of this place in `/sys/devices` is hardware. The kernel puts an NVMe namespace that may have several
/// paths among the virtual devices.
fn is_hardware(place: &Path) -> bool {
    let has = |name: &str| place.components().any(|part| part.as_os_str() == name);
    !has("virtual") || has("nvme-subsystem")
}

fn folder(metadata: &Metadata) -> PathBuf {
    let device = metadata.rdev();
    format!("/sys/dev/block/{}:{}", major(device), minor(device)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_is_told_from_what_the_kernel_emulates() {
        for (place, is_so) in [
            (
                "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                true,
            ),
            ("pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1", true),
            ("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", true),
            ("virtual/block/nullb0", false),
            ("virtual/block/zloop0", false),
            ("virtual/block/dm-3", false),
        ] {
            assert_eq!(
                is_hardware(&Path::new("/sys/devices").join(place)),
                is_so,
                "{place}"
            );
        }
    }
}
