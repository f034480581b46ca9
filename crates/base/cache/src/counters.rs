//! Counters of cache lookups, sharded so that threads seldom write to the same cache line.

use runtime::thread;
use std::sync::atomic::{AtomicU64, Ordering};

const PARTS: usize = 16;

/// One shard of the counters, on a processor cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Part {
    hits: AtomicU64,
    hit_bytes: AtomicU64,
    misses: AtomicU64,
    inserted_bytes: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Counters([Part; PARTS]);

/// The sums of the counters over all shards.
pub(crate) struct Sums {
    pub hits: u64,
    pub hit_bytes: u64,
    pub misses: u64,
    pub inserted_bytes: u64,
}

impl Counters {
    fn mine(&self) -> &Part {
        &self.0[thread::number() % PARTS]
    }

    pub fn hit(&self, bytes: usize) {
        let part = self.mine();
        part.hits.fetch_add(1, Ordering::Relaxed);
        part.hit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn missed(&self) {
        self.mine().misses.fetch_add(1, Ordering::Relaxed);
    }

    pub fn inserted(&self, bytes: u64) {
        let counter = &self.mine().inserted_bytes;
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn sums(&self) -> Sums {
        let sum = |of: fn(&Part) -> &AtomicU64| {
            let parts = self.0.iter();
            parts.map(|part| of(part).load(Ordering::Relaxed)).sum()
        };
        Sums {
            hits: sum(|part| &part.hits),
            hit_bytes: sum(|part| &part.hit_bytes),
            misses: sum(|part| &part.misses),
            inserted_bytes: sum(|part| &part.inserted_bytes),
        }
    }
}
