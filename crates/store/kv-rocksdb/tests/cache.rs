//! RocksDB's block cache: its statistics, and that a scan does not flush it.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use kv::{Durability, Kv};
use support::{formatted, key, mount, numbered, open};

/// Rows of 400 bytes: about 40 in a block, 14 MiB in all, with a cache of 1 MiB.
const KEYS: u32 = 36_000;
/// About as many rows as a block has.
const BLOCK: u32 = 38;

fn read(kv: &Kv, numbers: impl Iterator<Item = u32>) -> (u64, u64) {
    let before = kv.cache();
    for number in numbers {
        assert!(kv.get(&key(number)).unwrap().is_some());
    }
    let now = kv.cache();
    (now.hits - before.hits, now.misses - before.misses)
}

#[test]
fn a_scan_leaves_what_is_looked_up_again_and_again() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    for number in 0..KEYS {
        kv.write(&numbered(number, 400), Durability::Buffered)
            .unwrap();
    }
    kv.compact().unwrap();
    // 24 blocks: three eighths of the cache. By chance, most of them may be in one of its two parts, as the hashes of
    // their keys differ from process to process.
    let working = || (0..24).map(|block| block * 17 * BLOCK);
    let (_, misses) = read(&kv, working());
    assert!(misses >= 24, "{misses}");
    for _ in 0..3 {
        read(&kv, working());
    }
    let (hits, misses) = read(&kv, working());
    assert!(hits >= 24 && misses == 0, "{hits}, {misses}");

    let before = kv.cache();
    assert_eq!(kv.scan(b"", None).count(), KEYS as usize);
    let scanned = kv.cache().inserted_bytes - before.inserted_bytes;
    assert!(scanned > 10 * before.budget_bytes, "{scanned} bytes");
    let (hits, misses) = read(&kv, working());
    assert!(misses <= 2, "{hits}, {misses} after a scan");

    let counted = kv.cache();
    assert_eq!(counted.budget_bytes, 1 << 20);
    assert!(counted.held_bytes <= 1 << 20 && counted.held_bytes > 1 << 19);
    assert!(counted.hit_bytes > counted.hits * 1000);
}
