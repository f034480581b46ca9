//! The filters of SSTs: keys that are scanned in groups, keys without a group, and how much of a filter is read.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use bluefs::BlueFs;
use kv::{Batch, Durability, Kv, Options};
use kv_rocksdb::RocksDb;
use std::collections::BTreeSet;
use support::{formatted, mount, options};

fn open(fs: &BlueFs, bytes: u64) -> Kv {
    let options = Options {
        write_buffer_bytes: bytes,
        target_file_bytes: bytes,
        block_cache_bytes: 8 << 20,
        scanned: vec![b"g\0\0\0".to_vec(), b"s\0\0/".to_vec()],
        ..options()
    };
    Kv::open(&RocksDb, fs, "/db", &options, None).unwrap()
}

fn put(kv: &Kv, keys: impl Iterator<Item = Vec<u8>>) {
    let mut batch = Batch::default();
    for key in keys {
        batch.put(&key, b"");
    }
    kv.write(&batch, Durability::Buffered).unwrap();
}

#[test]
fn what_is_there_is_found_one_by_one_in_groups_and_as_a_whole() {
    let kv = open(&mount(&formatted()), 1 << 20);
    // Keys shorter than a group prefix, as long, and longer; keys of other shapes; in three SSTs and a memtable.
    let heads: [&[u8]; 7] = [
        b"g",
        b"gab",
        b"g\xff\xff\xff",
        b"gabc",
        b"sab",
        b"sab/",
        b"sab-",
    ];
    let tails: [&[u8]; 4] = [b"", b"\0", b"x", b"xyz\xff"];
    let all: Vec<Vec<u8>> = heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| [*head, tail].concat()))
        .chain([b"o".to_vec(), b"other".to_vec()])
        .collect();
    let mut there = BTreeSet::new();
    for part in 0..4 {
        let some = all.iter().skip(part).step_by(5).cloned();
        there.extend(some.clone());
        put(&kv, some);
        if part < 3 {
            kv.flush().unwrap();
        }
    }
    let scanned = |lower: &[u8], upper: Option<&[u8]>| -> Vec<Vec<u8>> {
        let rows = kv.scan(lower, upper);
        rows.map(|row| row.unwrap().0.to_vec()).collect()
    };
    assert_eq!(
        scanned(b"", None),
        there.iter().cloned().collect::<Vec<_>>()
    );
    for key in &all {
        assert_eq!(
            kv.get(key).unwrap().is_some(),
            there.contains(key),
            "{key:?}"
        );
        let Some(last) = key.iter().rposition(|byte| *byte != 0xff) else {
            continue;
        };
        let mut upper = key[..=last].to_vec();
        upper[last] += 1;
        let expected = there.range(key.clone()..upper.clone());
        let expected: Vec<Vec<u8>> = expected.cloned().collect();
        assert_eq!(scanned(key, Some(&upper)), expected, "{key:?}");
    }
}

#[test]
fn a_look_for_what_is_not_there_reads_little_of_a_filter() {
    let group = |number: u32| {
        let [_, rest @ ..] = number.to_be_bytes();
        [b"g", &rest[..], b"row"].concat()
    };
    let fs = mount(&formatted());
    let kv = open(&fs, 64 << 20);
    // A few groups of two keys among those of one: RocksDB counts entries of a filter by ones and by twos.
    let rows = 300_000;
    let second = (0..rows)
        .step_by(10_001)
        .map(|number| [group(2 * number), b"2".to_vec()].concat());
    put(&kv, second);
    for first in (0..rows).step_by(10_000) {
        put(&kv, (first..first + 10_000).map(|number| group(2 * number)));
    }
    kv.compact().unwrap();
    // Opened again, for blocks that have just been written are cached.
    kv.close().unwrap();
    let kv = open(&fs, 64 << 20);
    let before = kv.cache();
    for number in (1..2 * rows).step_by(1_000) {
        let upper = group(number + 1);
        assert_eq!(kv.scan(&group(number)[..4], Some(&upper[..4])).count(), 0);
        assert!(kv.get(&group(number)).unwrap().is_none());
    }
    let now = kv.cache();
    let read = now.inserted_bytes - before.inserted_bytes;
    let misses = now.misses - before.misses;
    assert!(misses > 20, "{misses}");
    assert!(read < misses * (24 << 10), "{read} bytes in {misses} reads");
}
