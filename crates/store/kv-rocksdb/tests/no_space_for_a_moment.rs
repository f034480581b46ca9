//! Other users of the pool take all free zones of the drive for a while. Whatever needs a zone then (a log, a flush of
//! a memtable, a compaction, the manifest), no acknowledged batch is lost, a batch refused as busy was not written, and
//! the database continues once there are zones again.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::BlueFs;
use fastrand::Rng;
use kv::{Batch, Durability, Error, Kv, Options};
use kv_rocksdb::RocksDb;
use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Drive, format, geometry, killed};
use zone::{Geometry, ZoneId};
use zone_alloc::{Purpose, ZonePool};

const KEYS: u32 = 400;
const PATIENCE: Duration = Duration::from_secs(600);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

struct Mounted {
    pool: Arc<ZonePool>,
    fs: BlueFs,
    kv: Kv,
}

fn mount(drive: &Drive) -> Mounted {
    let (pool, fs) = support::mount_with_pool(drive);
    let small = Options {
        // The manifest, logs and SSTs fill a few zones each.
        write_buffer_bytes: 64 << 10,
        target_file_bytes: 60 << 10,
        max_manifest_bytes: 16 << 10,
        ..support::options()
    };
    let kv = Kv::open(&RocksDb, &fs, "/db", &small, None).unwrap();
    Mounted { pool, fs, kv }
}

fn rows(kv: &Kv) -> Rows {
    kv.scan(b"k", Some(b"l")).map(Result::unwrap).collect()
}

/// A batch that puts and deletes a few random rows, and the rows after it.
fn change(dice: &mut Rng, before: &Rows) -> (Batch, Rows) {
    let (mut batch, mut after) = (Batch::default(), before.clone());
    for _ in 0..dice.u32(1..20) {
        let key = support::key(dice.u32(0..KEYS));
        if dice.u8(0..4) == 0 {
            batch.delete(&key);
            after.remove(&key);
        } else {
            let value: Vec<u8> = (0..dice.usize(0..2000)).map(|_| dice.u8(..)).collect();
            batch.put(&key, &value);
            after.insert(key, value);
        }
    }
    (batch, after)
}

/// The outcome of a batch.
#[derive(PartialEq, Eq, Debug)]
enum Came {
    Taken,
    Refused,
    Unknown,
}

fn write(kv: &Kv, batch: &Batch) -> Came {
    match kv.write(batch, Durability::Synced) {
        Ok(()) => Came::Taken,
        Err(Error::Busy { .. }) => Came::Refused,
        Err(Error::NoSpace { .. }) => Came::Unknown,
        Err(error) => panic!("{error}"),
    }
}

fn history(seed: u64) -> (u32, u32) {
    let mut dice = Rng::with_seed(seed);
    let small = Geometry {
        zone_size: 128 << 10,
        zone_capacity: 128 << 10,
        conventional_zones: dice.u32(0..4),
        max_active_zones: [0, 14][dice.usize(0..2)],
        ..geometry()
    };
    let drive = support::drive_of(small);
    format(&*drive);
    let mut mounted = mount(&drive);
    let mut have = Rows::new();
    let (mut refused, mut unknown) = (0, 0);
    for _ in 0..6 {
        let famine = dice.u32(0..60)..dice.u32(60..120);
        let mut taken: Vec<ZoneId> = Vec::new();
        for step in 0..120 {
            if famine.contains(&step) {
                taken.extend(std::iter::from_fn(|| mounted.pool.take(Purpose::Files)));
            } else {
                taken
                    .drain(..)
                    .for_each(|zone| mounted.pool.give_back(zone));
            }
            let (batch, after) = change(&mut dice, &have);
            match write(&mounted.kv, &batch) {
                Came::Taken => have = after,
                Came::Refused => {
                    refused += 1;
                    assert_eq!(rows(&mounted.kv), have, "seed {seed}");
                }
                Came::Unknown => {
                    unknown += 1;
                    taken
                        .drain(..)
                        .for_each(|zone| mounted.pool.give_back(zone));
                    let Mounted { fs, kv, .. } = mounted;
                    drop(kv);
                    drop(fs);
                    mounted = mount(&drive);
                    let found = rows(&mounted.kv);
                    assert!(found == have || found == after, "seed {seed}");
                    have = found;
                    break;
                }
            }
        }
        taken
            .drain(..)
            .for_each(|zone| mounted.pool.give_back(zone));
        // RocksDB checks only every few seconds whether it can continue.
        let begin = Instant::now();
        loop {
            let (batch, after) = change(&mut dice, &have);
            match write(&mounted.kv, &batch) {
                Came::Taken => {
                    have = after;
                    break;
                }
                Came::Refused => _ = mounted.kv.settle(Duration::from_millis(100)),
                Came::Unknown => panic!("seed {seed}: no space with zones to spare"),
            }
            assert!(begin.elapsed() < PATIENCE, "seed {seed}: it never goes on");
        }
        assert_eq!(rows(&mounted.kv), have, "seed {seed}");
        let crashed = mount(&killed(&drive));
        assert_eq!(rows(&crashed.kv), have, "seed {seed}: behind a crash");
    }
    (refused, unknown)
}

#[test]
fn nothing_is_lost_and_the_database_goes_on() {
    let seeds = env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let counts: Vec<(u32, u32)> = (0..seeds.unwrap_or(3)).map(history).collect();
    println!("refused, unknown: {counts:?}");
    let lacked = counts
        .iter()
        .any(|(refused, unknown)| refused + unknown > 0);
    assert!(lacked, "nobody ever lacked a zone: {counts:?}");
}
