//! Several memtables are merged into one SST: until then reads see all of them, and a kill loses none, for each still
//! has its log.

#![allow(clippy::unwrap_used)]

mod support;

use kv::{Durability, Kv, Options};
use kv_rocksdb::RocksDb;
use support::*;

const VALUE: usize = 200_000;

fn large() -> Options {
    Options {
        write_buffer_bytes: 24 << 20,
        ..options()
    }
}

fn tables(kv: &Kv) -> u32 {
    let count = kv.property("rocksdb.num-files-at-level0").unwrap();
    count.parse().unwrap()
}

#[test]
fn memtables_that_wait_for_others_are_seen_and_survive_a_kill() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = Kv::open(&RocksDb, &fs, "/db", &large(), None).unwrap();
    let logs = || {
        let names = fs.list("/db").unwrap();
        names.iter().filter(|name| name.ends_with(".log")).count()
    };
    // Writes until the third memtable of 8 MiB has begun; each memtable has a log.
    let mut number = 0;
    while logs() < 3 {
        let batch = numbered(number, VALUE);
        kv.write(&batch, Durability::Synced).unwrap();
        number += 1;
    }
    assert!(number as usize * VALUE > 14 << 20, "{number}");
    assert_eq!(tables(&kv), 0);
    let all: Vec<u32> = (0..number).collect();
    assert_eq!(numbers(&kv), all);
    assert!(kv.get(&key(0)).unwrap().is_some());
    assert!(kv.get(&key(number)).unwrap().is_none());

    let killed = killed(&drive);
    let again = mount(&killed);
    let kv_again = Kv::open(&RocksDb, &again, "/db", &large(), None).unwrap();
    assert_eq!(numbers(&kv_again), all);

    kv.flush().unwrap();
    assert_eq!(tables(&kv), 1);
    assert_eq!(numbers(&kv), all);
}
