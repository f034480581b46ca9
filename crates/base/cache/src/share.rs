//! Default sizes of caches, as shares of the memory that a process may use.

use std::ops::RangeInclusive;
use zone::Bytes;

/// The memory budgets of the data and metadata caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Bytes for data of a drive without a cache below it (a drive file has the host's page cache below).
    pub data: u64,
    /// Bytes for the blocks of a store's database.
    pub metadata: u64,
}

const MIB: u64 = 1 << 20;
/// Below the lower bound, onode lookups read the drive where a larger cache would avoid it.
const METADATA: RangeInclusive<u64> = 64 * MIB..=4096 * MIB;

/// Why a requested cache size is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Less than 1 MiB: its shards would be too small to hold anything.
    #[error("a cache keeps nothing in less than 1 MiB; write 0 for none")]
    TooSmall,
    /// More than the memory that this process may use.
    #[error("that is more than the {} of memory there is", Bytes(*.memory))]
    TooLarge {
        /// Bytes that this process may use.
        memory: u64,
    },
}

impl Shares {
    /// Checks a requested size of the data cache for a process that may use `memory` bytes; `memory` is 0 if
    /// unknown.
    pub const fn asked(bytes: u64, memory: u64) -> Result<u64, ShareError> {
        match bytes {
            0 => Ok(0),
            1..MIB => Err(ShareError::TooSmall),
            _ if memory > 0 && bytes > memory => Err(ShareError::TooLarge { memory }),
            _ => Ok(bytes),
        }
    }

    /// Defaults for a process that may use `memory` bytes (`runtime::memory_bytes`): an eighth for data, as
    /// several drives are served beside each other; a 32nd, at least 64 MiB and at most 4 GiB, for metadata,
    /// which amounts to a 512th of a store's data.
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

    #[test]
    fn what_keeps_nothing_and_what_is_not_there_is_refused() {
        let memory = 8 << 30;
        let asked = |bytes| Shares::asked(bytes, memory);
        for fits in [0, MIB, memory] {
            assert_eq!(asked(fits), Ok(fits));
        }
        assert_eq!([1, MIB - 1].map(asked), [Err(ShareError::TooSmall); 2]);
        assert_eq!(asked(memory + 1), Err(ShareError::TooLarge { memory }));
        assert_eq!(Shares::asked(u64::MAX, 0), Ok(u64::MAX));
    }
}
