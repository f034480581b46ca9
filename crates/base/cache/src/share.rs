//! What caches take of a machine's memory where nobody says otherwise.

use std::ops::RangeInclusive;

/// What caches may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Bytes for data of a drive that has no cache below, as the host's page cache is one below a drive file.
    pub data: u64,
    /// Bytes for the blocks of a store's database.
    pub metadata: u64,
}

const MIB: u64 = 1 << 20;
/// Below this, a look-up of an onode reads the drive where it need not.
const METADATA: RangeInclusive<u64> = 64 * MIB..=4096 * MIB;

impl Shares {
    /// Of a process that may use `memory` bytes (`runtime::memory_bytes`): an eighth for data, as several
    /// drives are served beside each other; a 32nd, at least 64 MiB and at most 4 GiB, for metadata, of which a store
    /// has a 512th of its data.
    pub fn of(memory: u64) -> Self {
        Self {
            data: memory / 8,
            metadata: (memory / 32).clamp(*METADATA.start(), *METADATA.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_grow_with_memory_between_bounds() {
        let of = |gib: u64| Shares::of(gib << 30);
        assert_eq!(of(0).metadata, 64 * MIB);
        assert_eq!((of(1).data, of(1).metadata), (128 * MIB, 64 * MIB));
        assert_eq!((of(32).data, of(32).metadata), (4 << 30, 1 << 30));
        assert_eq!(of(1024).metadata, 4 << 30);
    }
}
