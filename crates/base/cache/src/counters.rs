//! Counters of look-ups, several of each, so that threads seldom write the same one.

use runtime::thread;
use std::sync::atomic::{AtomicU64, Ordering};

const PARTS: usize = 16;

/// On a line of the processor's cache of its own.
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

/// Their sums.
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
