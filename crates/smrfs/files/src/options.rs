//! What `mkfs` and `mount` are told.

use caveat::Fit;
use zone_alloc::{CleaningPolicy, CostBenefit, Greedy};

/// Which band is cleaned next.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Policy {
    /// The one with the fewest live bytes.
    Greedy,
    /// The one with the most benefit for its cost: age counts.
    #[default]
    CostBenefit,
}

impl Policy {
    /// The policy itself.
    pub fn get(self) -> &'static dyn CleaningPolicy {
        match self {
            Self::Greedy => &Greedy,
            Self::CostBenefit => &CostBenefit,
        }
    }
}

/// What a file system is made with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MkfsOptions {
    /// Bytes of a block, a power of two from 4 KiB to 64 KiB: the unit of checksums and space. Metadata in memory
    /// takes 4 bytes a block; large ones are for drives with large files.
    pub block_size: u32,
    /// Each file lies in one band, or in one run of blocks, as a whole, as in the thesis. No file can be larger than a
    /// band then, and each
    /// change of a file writes all of it.
    pub whole_files: bool,
    /// On a Caveat-Scriptor drive, some space is kept free, and once no write fits any more, what lies between free
    /// blocks moves there. Not with whole files.
    pub clean_when_full: bool,
    /// A name for people.
    pub label: String,
    /// Owner and group of the root directory.
    pub owner: (u32, u32),
}

impl Default for MkfsOptions {
    fn default() -> Self {
        Self {
            block_size: 4096,
            whole_files: false,
            clean_when_full: false,
            label: String::new(),
            owner: (0, 0),
        }
    }
}

/// What a mount is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MountOptions {
    /// Nothing is written, not even to clean up behind a crash.
    pub read_only: bool,
    /// Bytes of the buffer at most; what is written beyond goes to the drive at once.
    pub buffer_bytes: u64,
    /// Which band is cleaned next.
    pub policy: Policy,
    /// Which free extent of a Caveat-Scriptor drive is taken next.
    pub fit: Fit,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            buffer_bytes: 64 << 20,
            policy: Policy::default(),
            fit: Fit::Best,
        }
    }
}
