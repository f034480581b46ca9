//! Budget, use and hit counts of a cache.

use serde::{Deserialize, Serialize};

/// Budget and use of a cache, and its counters since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatistics {
    /// Most bytes that the cache holds; 0 if it is off.
    pub budget_bytes: u64,
    /// Bytes held now, including the overhead of entries.
    pub held_bytes: u64,
    /// Lookups that found at least the wanted bytes.
    pub hits: u64,
    /// Bytes wanted by these lookups.
    pub hit_bytes: u64,
    /// Lookups that did not find them.
    pub misses: u64,
    /// All bytes inserted, including the overhead of entries.
    pub inserted_bytes: u64,
}

impl CacheStatistics {
    /// Hits as a part of all lookups; `None` if there was no lookup.
    pub fn hit_ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }

    /// Bytes inserted and no longer held: evicted, replaced or removed.
    pub const fn left_bytes(&self) -> u64 {
        self.inserted_bytes.saturating_sub(self.held_bytes)
    }
}
