//! What a cache holds, and how often it had what was asked of it.

use serde::{Deserialize, Serialize};

/// What a cache holds, and how often it had what was asked of it since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatistics {
    /// Most bytes that it holds; 0 if there is none.
    pub budget_bytes: u64,
    /// Bytes that it holds now, and what they cost besides.
    pub held_bytes: u64,
    /// Look-ups that found what they were for.
    pub hits: u64,
    /// Bytes of these.
    pub hit_bytes: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// All bytes that were put into it, counted as they are held.
    pub inserted_bytes: u64,
}

impl CacheStatistics {
    /// The part of the look-ups that were hits; `None` if there was none.
    pub fn hit_ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }

    /// Bytes that are in it no more: evicted, replaced or removed.
    pub const fn left_bytes(&self) -> u64 {
        self.inserted_bytes.saturating_sub(self.held_bytes)
    }
}
