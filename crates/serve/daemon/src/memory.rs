//! What the caches of a served drive take of the machine's memory.

use cache::Shares;
use std::path::Path;

/// Bytes for objects that were read, if nobody `asked` for others, and for the blocks of the database. Of a drive in a
/// file the host's page cache has what was read.
pub fn of(drive: &Path, asked: Option<u64>) -> (u64, u64) {
    let shares = Shares::of(runtime::memory_bytes());
    let data = if device::is_host_device(drive) {
        shares.data
    } else {
        0
    };
    (asked.unwrap_or(data), shares.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_in_a_file_has_a_cache_of_objects_only_if_asked_for() {
        let drive = Path::new("no such drive");
        assert_eq!(of(drive, None).0, 0);
        assert_eq!(of(drive, Some(7)).0, 7);
        assert!(of(drive, None).1 >= 64 << 20);
    }
}
