//! Replay of the logs after a kill, and the filter that can stop it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use device::PowerCut;
use kv::{Durability, Kv};
use kv_rocksdb::RocksDb;
use std::sync::{Arc, Barrier};
use support::*;

/// A drive after a kill, with `count` synced batches in logs. With large values, several memtables are begun meanwhile.
fn killed_after(count: u32, size: usize) -> Drive {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    for number in 0..count {
        kv.write(&numbered(number, size), Durability::Synced)
            .unwrap();
    }
    let image = killed(&drive);
    kv.close().unwrap();
    image
}

#[test]
fn what_was_synced_survives_a_kill() {
    let drive = killed_after(50, 1000);
    let fs = mount(&drive);
    assert_eq!(numbers(&open(&fs)), (0..50).collect::<Vec<_>>());
}

#[test]
fn a_kill_at_any_moment_leaves_a_prefix() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    let mut images = Vec::new();
    for number in 0..60 {
        let durability = if number % 7 == 0 {
            Durability::Synced
        } else {
            Durability::Buffered
        };
        kv.write(&numbered(number, 50_000), durability).unwrap();
        let synced = number / 7 * 7 + 1;
        images.push((synced, number + 1, killed(&drive)));
    }
    kv.close().unwrap();
    for (synced, written, image) in images {
        let fs = mount(&image);
        let found = numbers(&open(&fs));
        assert_eq!(
            found,
            (0..found.len() as u32).collect::<Vec<_>>(),
            "not a prefix"
        );
        assert!(
            (synced..=written).contains(&(found.len() as u32)),
            "{synced} {}",
            found.len()
        );
    }
}

/// Buffered writes of several logs are in the drive's volatile cache at once, and a power cut keeps or loses each zone
/// by itself: an older log may lose its tail while a newer one is whole. The replay must still give a prefix of the
/// writes.
#[test]
fn a_power_cut_at_any_moment_leaves_a_prefix() {
    let mut lengths = std::collections::BTreeSet::new();
    for cut in (1..).step_by(5) {
        let drive = Arc::new(PowerCut::new(geometry()).unwrap());
        format(&*drive);
        let fs = mount(&drive);
        let kv = open(&fs);
        drive.cut_after(cut);
        let (mut synced, mut failed) = (0, false);
        for number in 0..60 {
            let sync = number % 9 == 0;
            let durability = if sync {
                Durability::Synced
            } else {
                Durability::Buffered
            };
            match kv.write(&numbered(number, 90_000), durability) {
                Ok(()) if sync => synced = number + 1,
                Ok(()) => {}
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        // Closing fails, or does not matter if the power was not cut.
        drop(kv);
        drive.cut_after(0);
        for seed in 0..4 {
            let state = drive.random_crash_state(cut * 4 + seed);
            let fs = mount(&Arc::new(drive.image(&state)));
            let found = numbers(&open(&fs));
            let prefix: Vec<u32> = (0..found.len() as u32).collect();
            assert_eq!(found, prefix, "not a prefix (cut {cut}, seed {seed})");
            assert!(
                found.len() as u32 >= synced,
                "{synced} synced, {} found",
                found.len()
            );
            lengths.insert(found.len());
        }
        // The number of commands, and so of states, depends on the threads.
        if !failed && (lengths.len() > 10 || cut > 2000) {
            break;
        }
    }
    assert!(
        lengths.len() > 5,
        "hardly any state was different: {lengths:?}"
    );
}

#[test]
fn batches_that_were_written_together_are_shown_together_and_once() {
    const THREADS: u32 = 6;
    const EACH: u32 = 60;
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (kv, start) = (&kv, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..EACH {
                    kv.write(&numbered(thread * EACH + n, 100), Durability::Synced)
                        .unwrap();
                }
            });
        }
    });
    let image = killed(&drive);
    kv.close().unwrap();
    let view = |stop| {
        let (filter, seen) = stop_at(stop);
        let fs = mount(&killed(&image));
        let found = numbers(&Kv::open(&RocksDb, &fs, "/db", &options(), Some(filter)).unwrap());
        (found, std::mem::take(&mut *seen.lock().unwrap()))
    };
    let (found, records) = view(None);
    assert_eq!(found, (0..THREADS * EACH).collect::<Vec<_>>());
    let mut shown: Vec<u32> = records.concat();
    shown.sort_unstable();
    assert_eq!(shown, found, "each batch once");
    // If the filter stops in the middle of a record, all of the record is dropped.
    let (at, stop) = records
        .iter()
        .enumerate()
        .find_map(|(at, record)| (record.len() > 1).then(|| (at, record[1])))
        .expect("no two writers ever shared a record");
    let mut kept: Vec<u32> = records[..at].concat();
    kept.sort_unstable();
    assert_eq!(view(Some(stop)).0, kept);
}

/// Batches whose ends are near the end of a log block, and batches of several blocks.
#[test]
fn the_filter_knows_where_each_batch_ends() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    let log = || {
        let names = fs.list("/db").unwrap().into_iter();
        let logs = names.filter(|name| name.ends_with(".log"));
        logs.map(|log| format!("/db/{log}")).max().unwrap()
    };
    let mut random = fastrand::Rng::with_seed(9);
    let (mut expected, mut images) = (Vec::new(), Vec::new());
    for n in 0..400 {
        let size = match n % 4 {
            0 => random.usize(..100_000),
            _ => {
                let end = fs.metadata(&log()).unwrap().size as usize;
                (32_768 - end % 32_768).saturating_sub(random.usize(..90))
            }
        };
        kv.write(&numbered(n, size), Durability::Synced).unwrap();
        expected.push((log(), fs.metadata(&log()).unwrap().size));
        if n % 20 == 0 {
            images.push((killed(&drive), expected.len()));
        }
    }
    kv.close().unwrap();
    let read_only = kv::Options {
        read_only: true,
        create_if_missing: false,
        ..options()
    };
    let mut compared = 0;
    for (image, written) in images {
        let fs = mount(&image);
        let (filter, seen) = ends();
        drop(Kv::open(&RocksDb, &fs, "/db", &read_only, Some(filter)).unwrap());
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(expected[written - seen.len()..written], seen);
        compared += seen.len();
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn the_filter_sees_every_batch_in_order() {
    let drive = killed_after(20, 1000);
    let fs = mount(&drive);
    let (filter, seen) = stop_at(None);
    let kv = Kv::open(&RocksDb, &fs, "/db", &options(), Some(filter)).unwrap();
    assert_eq!(numbers(&kv).len(), 20);
    assert_eq!(
        *seen.lock().unwrap(),
        (0..20).map(|n| vec![n]).collect::<Vec<_>>()
    );
}

#[test]
fn a_stopped_tail_is_gone_for_good() {
    for stop in [0, 1, 7, 19] {
        let drive = killed_after(20, 1000);
        let fs = mount(&drive);
        let (filter, seen) = stop_at(Some(stop));
        let kv = Kv::open(&RocksDb, &fs, "/db", &options(), Some(filter)).unwrap();
        assert_eq!(numbers(&kv), (0..stop).collect::<Vec<_>>());
        assert_eq!(
            seen.lock().unwrap().len(),
            stop as usize + 1,
            "nothing is shown behind it"
        );
        // A kill right after the stop does not bring the tail back ...
        let image = killed(&drive);
        let again = mount(&image);
        let (filter, seen) = stop_at(None);
        let reopened = Kv::open(&RocksDb, &again, "/db", &options(), Some(filter)).unwrap();
        assert_eq!(numbers(&reopened), (0..stop).collect::<Vec<_>>());
        assert!(seen.lock().unwrap().iter().flatten().all(|n| *n < stop));
        // ... and batches written in its place are kept.
        kv.write(&numbered(100, 10), Durability::Synced).unwrap();
        kv.close().unwrap();
        let expected: Vec<u32> = (0..stop).chain([100]).collect();
        assert_eq!(numbers(&open(&fs)), expected);
    }
}

/// A drive with batches in several logs after a kill, before the memtables of these logs were flushed; and the number
/// of batches.
fn several_logs() -> (Drive, u32) {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    let mut image = None;
    let mut number = 0;
    while image.is_none() {
        kv.write(&numbered(number, 300_000), Durability::Synced)
            .unwrap();
        number += 1;
        let logs = fs
            .list("/db")
            .unwrap()
            .iter()
            .filter(|n| n.ends_with(".log"))
            .count();
        if logs >= 2 {
            let killed = killed(&drive);
            let fs = mount(&killed);
            let (filter, seen) = stop_at(None);
            Kv::open(&RocksDb, &fs, "/db", &read_only(), Some(filter))
                .unwrap()
                .close()
                .unwrap();
            if seen.lock().unwrap().len() >= 4 {
                image = Some(killed);
            }
        }
        assert!(number < 200, "never two logs with something in the first");
    }
    kv.close().unwrap();
    (image.unwrap(), number)
}

#[test]
fn a_stop_in_an_older_log_drops_the_newer_ones_too() {
    let (image, count) = several_logs();
    let fs = mount(&image);
    let (filter, seen) = stop_at(None);
    Kv::open(&RocksDb, &fs, "/db", &read_only(), Some(filter))
        .unwrap()
        .close()
        .unwrap();
    let shown: Vec<u32> = seen.lock().unwrap().iter().flatten().copied().collect();
    assert_eq!(shown, (shown[0]..count).collect::<Vec<_>>());
    for stop in shown {
        let drive = killed(&image);
        let fs = mount(&drive);
        let (filter, _) = stop_at(Some(stop));
        let kv = Kv::open(&RocksDb, &fs, "/db", &options(), Some(filter)).unwrap();
        assert_eq!(numbers(&kv), (0..stop).collect::<Vec<_>>());
        let after = killed(&drive);
        kv.close().unwrap();
        assert_eq!(
            numbers(&open(&fs)),
            (0..stop).collect::<Vec<_>>(),
            "after closing"
        );
        let fs = mount(&after);
        assert_eq!(
            numbers(&open(&fs)),
            (0..stop).collect::<Vec<_>>(),
            "after a kill"
        );
    }
}

#[test]
fn a_read_only_opening_asks_the_filter_and_changes_nothing() {
    let drive = killed_after(20, 1000);
    let fs = mount(&drive);
    for stop in [Some(5), Some(12), None] {
        let (filter, seen) = stop_at(stop);
        let view = Kv::open(&RocksDb, &fs, "/db", &read_only(), Some(filter)).unwrap();
        assert_eq!(numbers(&view), (0..stop.unwrap_or(20)).collect::<Vec<_>>());
        assert_eq!(
            seen.lock().unwrap().len() as u32,
            stop.map_or(20, |stop| stop + 1)
        );
        view.close().unwrap();
    }
    assert_eq!(numbers(&open(&fs)), (0..20).collect::<Vec<_>>());
}
