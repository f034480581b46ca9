//! Options of `mkfs` and `mount`.

use caveat::Fit;
use zone_alloc::{CleaningPolicy, CostBenefit, Greedy};

/// Policy that chooses the next band to clean.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Policy {
    /// The band with the fewest live bytes.
    Greedy,
    /// The band with the highest ratio of benefit to cost, where age counts.
    #[default]
    CostBenefit,
}

impl Policy {
    /// The implementation of the policy.
    pub fn get(self) -> &'static dyn CleaningPolicy {
        match self {
            Self::Greedy => &Greedy,
            Self::CostBenefit => &CostBenefit,
        }
    }
}

/// Options of `mkfs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MkfsOptions {
    /// Bytes of a block, the unit of checksums and space: a power of two from 4 KiB to 64 KiB. Metadata in memory
    /// takes 4 bytes a block, so large blocks suit drives with large files.
    pub block_size: u32,
    /// Each file lies in one band, or in one run of blocks, as a whole, as in the thesis. No file can be larger than
    /// a band then, and each change of a file writes all of it.
    pub whole_files: bool,
    /// On a Caveat-Scriptor drive, a reserve is kept free, and once no write fits any more, live blocks between free
    /// ones move to it. Not possible with whole files.
    pub clean_when_full: bool,
    /// Label of the file system.
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

/// Options of `mount`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MountOptions {
    /// Nothing is written, not even to remove what a crash left behind.
    pub read_only: bool,
    /// Most bytes of the buffer; writes beyond this go to the drive at once.
    pub buffer_bytes: u64,
    /// Policy that chooses the next band to clean.
    pub policy: Policy,
    /// Policy that chooses the next free extent of a Caveat-Scriptor drive.
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
