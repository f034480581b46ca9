//! What caches take of a machine's memory where nobody says otherwise.

use std::ops::RangeInclusive;
use zone::Bytes;

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

/// Why a cache does not get what somebody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Its parts would be too small for anything.
    #[error("a cache keeps nothing in less than 1 MiB; write 0 for none")]
    TooSmall,
    /// There is no such memory.
    #[error("that is more than the {} of memory there is", Bytes(*.memory))]
    TooLarge {
        /// Bytes that this process may use.
        memory: u64,
    },
}

impl Shares {
    /// Bytes for data that somebody asks for, of a process that may use `memory` bytes; 0 if that is not known.
    pub const fn asked(bytes: u64, memory: u64) -> Result<u64, ShareError> {
        match bytes {
            0 => Ok(0),
            1..MIB => Err(ShareError::TooSmall),
            _ if memory > 0 && bytes > memory => Err(ShareError::TooLarge { memory }),
            _ => Ok(bytes),
        }
    }

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
