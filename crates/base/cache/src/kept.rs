//! The cache: bytes by key within a memory budget, sharded, with `quick_cache`'s eviction policy.

use crate::counters::Counters;
use crate::hash::MixedHash;
use crate::statistics::CacheStatistics;
use bytes::Bytes;
use quick_cache::sync::{self, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use std::hash::Hash;

/// Bytes that an entry costs besides its bytes and its key: two headers, a place in a list and in a table, a
/// share of the keys that are remembered without bytes, and the allocator's overhead.
const OVERHEAD: u64 = 128;
/// Most shards, each with a lock and a policy of its own.
const SHARDS: usize = 64;
/// Fewest entries of a shard: with fewer, new entries have no room beside those that were read again, and evict
/// them.
const SHARD_ENTRIES: usize = 128;
/// The part of the budget for entries that were read again. The rest is for new ones.
const ASKED_AGAIN: f64 = 0.9;

#[derive(Clone)]
struct Weight;

impl<K> Weighter<K, Bytes> for Weight {
    fn weight(&self, _: &K, bytes: &Bytes) -> u64 {
        weight::<K>(bytes)
    }
}

fn weight<K>(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + OVERHEAD + size_of::<K>() as u64
}

type Entries<K> = sync::Cache<K, Bytes, Weight, MixedHash>;

/// Bytes by key, within a memory budget that includes the overhead of an entry.
///
/// A key must stand for the same bytes for ever, so entries never have to be invalidated. Keys are numbers of our
/// own, not chosen by users.
pub struct Cache<K> {
    entries: Option<Entries<K>>,
    budget: u64,
    counters: Counters,
}

impl<K: Eq + Hash + Clone> Cache<K> {
    /// A cache of at most `budget` bytes, for entries of about `typical` bytes each. One whose budget is too
    /// small for one such entry holds nothing.
    pub fn new(budget: u64, typical: u64) -> Self {
        let items = usize::try_from(budget / typical).unwrap_or(usize::MAX);
        // A power of two, which the library would round up to.
        let shards = 1 << (items / SHARD_ENTRIES).clamp(1, SHARDS).ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .hot_allocation(ASKED_AGAIN)
            .estimated_items_capacity(items)
            .weight_capacity(budget)
            .build();
        let options = options.ok().filter(|_| items > 0);
        let entries = options.map(|options| {
            let (hash, lifecycle) = (MixedHash::default(), DefaultLifecycle::default());
            Entries::with_options(options, Weight, hash, lifecycle)
        });
        let budget = entries.as_ref().map_or(0, |_| budget);
        Self {
            entries,
            budget,
            counters: Counters::default(),
        }
    }

    /// Whether the cache can hold anything.
    pub const fn is_on(&self) -> bool {
        self.entries.is_some()
    }

    /// The bytes of `key`, if there are at least `wanted` of them. The lookup counts as a hit of `wanted`
    /// bytes, or as a miss.
    pub fn get(&self, key: &K, wanted: usize) -> Option<Bytes> {
        let found = self.find(key, wanted);
        if found.is_none() && self.is_on() {
            self.counters.missed();
        }
        found
    }

    /// As [`get`](Self::get), but does not count a miss: for callers that look a missing key up again by `get`,
    /// which counts it.
    pub fn find(&self, key: &K, wanted: usize) -> Option<Bytes> {
        let found = self.entries.as_ref()?.get(key);
        let found = found.filter(|bytes| bytes.len() >= wanted)?;
        self.counters.hit(wanted);
        Some(found)
    }

    /// Stores `bytes` under `key`, in place of an earlier entry.
    pub fn put(&self, key: K, bytes: Bytes) {
        if let Some(entries) = &self.entries {
            self.counters.inserted(weight::<K>(&bytes));
            entries.insert(key, bytes);
        }
    }

    /// Removes the entries of these keys, to free their space.
    pub fn forget(&self, keys: impl Iterator<Item = K>) {
        if let Some(entries) = self.entries.as_ref().filter(|entries| !entries.is_empty()) {
            for key in keys {
                entries.remove(&key);
            }
        }
    }

    /// The budget, the bytes held, and the counts of hits and misses.
    pub fn statistics(&self) -> CacheStatistics {
        let sums = self.counters.sums();
        CacheStatistics {
            budget_bytes: self.budget,
            held_bytes: self.entries.as_ref().map_or(0, sync::Cache::weight),
            hits: sums.hits,
            hit_bytes: sums.hit_bytes,
            misses: sums.misses,
            inserted_bytes: sums.inserted_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Bytes {
        vec![7; length].into()
    }

    #[test]
    fn it_stays_within_its_budget_and_uses_it() {
        for budget in [4 << 10, 12 << 10, 1 << 20, 64 << 20] {
            let cache = Cache::new(budget, 4 << 10);
            let mut entries = fastrand::Rng::with_seed(budget);
            for key in 0..4 * budget / 2048 {
                cache.put(key, bytes(entries.usize(1..4000)));
                let held = cache.statistics().held_bytes;
                assert!(held <= budget, "{held} of {budget}");
            }
            let held = cache.statistics().held_bytes;
            assert!(
                held * 10 >= budget * 9 || budget < 1 << 20,
                "{held} of {budget}"
            );
        }
    }

    /// Addresses on a drive, runs of files: keys that differ in some bits only.
    #[test]
    fn keys_with_a_pattern_are_spread_over_all_parts() {
        for shift in [0, 4, 12, 16, 20, 26, 32, 40] {
            let cache = Cache::new(64 << 20, 4 << 10);
            for number in 0..1u64 << 14 {
                let (zone, place) = (number as u32 >> 10, number << shift);
                cache.put((zone, place, 0u32, 4096u32, 0u32), bytes(4 << 10));
            }
            let held = cache.statistics().held_bytes;
            assert!(held > 60 << 20, "{held} where places differ by 2^{shift}");
        }
    }

    #[test]
    fn too_small_a_budget_is_none() {
        for budget in [0, 4095] {
            let cache = Cache::new(budget, 4096);
            assert!(!cache.is_on());
            cache.put(1, bytes(1));
            assert!(cache.get(&1, 1).is_none());
            assert_eq!(cache.statistics(), CacheStatistics::default());
        }
    }

    #[test]
    fn look_ups_are_counted_with_their_bytes() {
        let cache = Cache::new(1 << 20, 4096);
        cache.put(1, bytes(100));
        assert!(cache.get(&1, 100).is_some());
        assert!(cache.get(&1, 60).is_some());
        assert!(cache.get(&1, 101).is_none());
        assert!(cache.get(&2, 1).is_none());
        let counted = cache.statistics();
        assert_eq!(
            (counted.hits, counted.hit_bytes, counted.misses),
            (2, 160, 2)
        );
        assert_eq!(counted.hit_ratio(), Some(0.5));
        assert_eq!(
            (counted.inserted_bytes, counted.left_bytes()),
            (counted.held_bytes, 0)
        );
        cache.forget([1, 2].into_iter());
        let counted = cache.statistics();
        assert_eq!(
            (counted.held_bytes, counted.left_bytes()),
            (0, counted.inserted_bytes)
        );
    }
}
