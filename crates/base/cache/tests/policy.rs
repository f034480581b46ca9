//! What the policy keeps, beside least recently used and beside the optimum (Belady), which knows the future.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use cache::Cache;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of an entry, so that with what it costs besides it is 16 KiB.
const ENTRY: usize = (16 << 10) - 136;
const SLOT: u64 = 16 << 10;

/// The part of `trace` that a cache of `slots` entries had.
fn ours(trace: &[u64], slots: u64) -> f64 {
    let cache = Cache::new(slots * SLOT, SLOT);
    let bytes = bytes::Bytes::from(vec![0; ENTRY]);
    for key in trace {
        if cache.get(key, 1).is_none() {
            cache.put(*key, bytes.clone());
        }
    }
    cache.statistics().hit_ratio().unwrap()
}

fn lru(trace: &[u64], slots: u64) -> f64 {
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    let mut hits = 0;
    for (now, key) in trace.iter().enumerate() {
        if let Some(before) = last.insert(*key, now) {
            hits += 1;
            order.remove(&before);
        } else if order.len() as u64 == slots {
            let (_, evicted) = order.pop_first().unwrap();
            last.remove(&evicted);
        }
        order.insert(now, *key);
    }
    f64::from(hits) / trace.len() as f64
}

/// Evicts what is asked for last of all; admits nothing that comes later than what is there.
fn optimum(trace: &[u64], slots: u64) -> f64 {
    let mut next = vec![usize::MAX; trace.len()];
    let mut seen = HashMap::new();
    for (now, key) in trace.iter().enumerate().rev() {
        next[now] = seen.insert(*key, now).unwrap_or(usize::MAX);
    }
    let (mut held, mut hits) = (BTreeSet::new(), 0);
    for (now, key) in trace.iter().enumerate() {
        if held.remove(&(now, *key)) {
            hits += 1;
        }
        held.insert((next[now], *key));
        if held.len() as u64 > slots {
            held.pop_last();
        }
    }
    f64::from(hits) / trace.len() as f64
}

/// `length` keys of `0..keys`, the k-th as often as 1 ÷ k^`skew`.
fn zipf(seed: u64, keys: u64, skew: f64, length: usize) -> Vec<u64> {
    let mut sum = 0.0;
    let weights = (1..=keys).map(|k| (k as f64).powf(-skew));
    let sums: Vec<f64> = weights
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let draws = (0..length).map(|_| random.f64() * sum);
    draws
        .map(|draw| sums.partition_point(|s| *s < draw) as u64)
        .collect()
}

#[test]
fn zipf_loads_are_held_better_than_by_lru() {
    const KEYS: u64 = 50_000;
    println!("skew, slots of {KEYS} keys: LRU, this, the hottest keys alone, optimum");
    for skew in [0.7, 0.9, 1.1] {
        let trace = zipf(1, KEYS, skew, 1_000_000);
        for slots in [KEYS / 100, KEYS / 20, KEYS / 5] {
            let (least, held) = (lru(&trace, slots), ours(&trace, slots));
            let most = optimum(&trace, slots);
            let hottest = trace.iter().filter(|key| **key < slots).count();
            let hottest = hottest as f64 / trace.len() as f64;
            println!("{skew}, {slots}: {least:.3}, {held:.3}, {hottest:.3}, {most:.3}");
            assert!(held > least, "{held} beside {least}");
            assert!(held > 0.9 * hottest, "{held} of {hottest}");
        }
    }
}

/// A working set of half the budget, then every key of a scan once, then the working set again.
fn after_scan(held: fn(&[u64], u64) -> f64, slots: u64, between: bool) -> f64 {
    let working: Vec<u64> = (0..slots / 2).collect();
    let before = [&working[..]; 2].concat();
    let scan: Vec<u64> = (0..10 * slots).map(|key| (1 << 32) + key).collect();
    let trace: Vec<u64> = if between {
        let woven = scan.iter().enumerate();
        let woven = woven.flat_map(|(i, key)| [*key, working[i / 5 % working.len()]]);
        before.iter().copied().chain(woven).collect()
    } else {
        [&before[..], &scan].concat()
    };
    let hits = |trace: &[u64]| held(trace, slots) * trace.len() as f64;
    let all = [&trace[..], &working].concat();
    (hits(&all) - hits(&trace)) / working.len() as f64
}

#[test]
fn a_scan_does_not_push_out_what_is_read_again() {
    for (slots, between) in [(128, false), (1000, true), (4096, false), (4096, true)] {
        let after = |held| after_scan(held, slots, between);
        let (least, held) = (after(lru), after(ours));
        println!("{slots} slots, read again after a scan: LRU {least:.3}, this {held:.3}");
        assert!(held > 0.99, "{held}");
        assert!(least < 0.5, "the scan would prove nothing: {least}");
    }
}

#[test]
fn a_working_set_that_moves_is_followed() {
    const SLOTS: u64 = 4096;
    let mut random = fastrand::Rng::with_seed(2);
    let trace: Vec<u64> = (0..400_000u64)
        .map(|now| now / 50_000 * SLOTS + random.u64(0..SLOTS / 2))
        .collect();
    let (least, held) = (lru(&trace, SLOTS), ours(&trace, SLOTS));
    println!("a set that moves: LRU {least:.3}, this {held:.3}");
    assert!(held > 0.9 * least, "{held} beside {least}");
}
