//! A cache of bytes in memory within a budget, in which a scan does not evict entries that are read repeatedly.
//!
//! The policy is `quick_cache`'s (Clock-PRO, near to S3-FIFO). Its locks are held for a lookup or an insertion
//! and nothing else is called under them, so under shuttle each is one step; keys are hashed the same in every
//! run.

mod counters;
mod hash;
mod kept;
mod share;
mod statistics;

pub use kept::Cache;
pub use share::{ShareError, Shares};
pub use statistics::CacheStatistics;
