//! Memory for the caches of a served drive.

use cache::{ShareError, Shares};
use device::Drive;
use std::path::Path;

/// Bytes for the cache of object data, as `asked` or by default, and for the database's block cache. A drive in a
/// file needs no data cache by default: the host's page cache has the file.
///
/// # Errors
/// `asked` is not a possible size of a cache.
pub fn of(drive: &Path, asked: Option<u64>) -> Result<(u64, u64), ShareError> {
    let memory = runtime::memory_bytes();
    let shares = Shares::of(memory);
    let data = match asked {
        Some(asked) => Shares::asked(asked, memory)?,
        None if device::is_host_device(drive) => shares.data,
        None => 0,
    };
    Ok((data, shares.metadata))
}

/// The drive as it is read and written with a cache of `data` bytes: without one, a drive in a file leaves that to the
/// host's page cache, and with one it does not fill the host's as well.
pub fn beside_cache(drive: Drive, data: u64) -> Drive {
    if data > 0 {
        drive.with_direct_io()
    } else {
        drive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_in_a_file_has_a_cache_of_objects_only_if_asked_for() {
        let drive = Path::new("no such drive");
        assert_eq!(of(drive, None).unwrap().0, 0);
        assert_eq!(of(drive, Some(7 << 20)).unwrap().0, 7 << 20);
        assert_eq!(of(drive, Some(7)), Err(ShareError::TooSmall));
        assert!(of(drive, None).unwrap().1 >= 64 << 20);
    }
}
