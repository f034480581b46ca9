//! A database while it is open, and when it is opened again.

use crate::moment;
use crate::support::*;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability, Engine, Error, Kv, Options};
use kv_log::KvLog;
use std::sync::{Arc, mpsc};

fn fresh() -> (Arc<MemoryDrive>, BlueFs) {
    let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
    format(&*drive);
    let fs = mount(&drive);
    (drive, fs)
}

fn counters(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn a_batch_happens_in_order_and_rows_come_back() {
    let (_, fs) = fresh();
    let kv = open(&fs).unwrap();
    let mut batch = Batch::default();
    batch.put(b"a", b"1");
    batch.put(b"b", b"");
    batch.delete(b"a");
    batch.merge(b"#", &counters(&[3, -1]));
    kv.write(&batch, Durability::Buffered).unwrap();
    let mut more = Batch::default();
    more.merge(b"#", &counters(&[4]));
    kv.write(&more, Durability::Synced).unwrap();
    let check = |kv: &Kv| {
        assert_eq!(kv.get(b"a").unwrap(), None);
        assert_eq!(kv.get(b"b").unwrap(), Some(Vec::new()));
        assert_eq!(kv.get(b"#").unwrap(), Some(counters(&[7, -1])));
    };
    check(&kv);
    // From the log, and from a snapshot.
    kv.close().unwrap();
    let kv = open(&fs).unwrap();
    check(&kv);
    kv.flush().unwrap();
    check(&kv);
    kv.close().unwrap();
    check(&open(&fs).unwrap());
}

#[test]
fn merges_are_refused_where_nothing_may_be_merged() {
    let (_, fs) = fresh();
    let kv = open(&fs).unwrap();
    for (key, value) in [
        (&b"a"[..], counters(&[1])),
        (b"", counters(&[1])),
        (b"#", vec![1]),
    ] {
        let mut batch = Batch::default();
        batch.put(b"k0001", &[1]);
        batch.merge(key, &value);
        let refused = kv.write(&batch, Durability::Synced);
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    assert_eq!(numbers(&kv), []);
}

#[test]
fn a_filter_stops_the_replay_for_good() {
    let (_, fs) = fresh();
    let kv = open(&fs).unwrap();
    for number in 0..9 {
        kv.write(&numbered(number, 10), Durability::Synced).unwrap();
    }
    drop(kv);
    let replayed = |options: &Options, stop| {
        let (send, seen) = mpsc::channel();
        let filter = Box::new(StopAt(stop, send));
        let kv = Kv::open(&KvLog, &fs, "/db", options, Some(filter)).unwrap();
        (numbers(&kv), seen.try_iter().collect::<Vec<_>>())
    };
    let read_only = Options {
        read_only: true,
        ..options()
    };
    let until = |end: u32| (0..end).collect::<Vec<_>>();
    // A read-only open replays the log and changes nothing.
    assert_eq!(replayed(&read_only, Some(4)), (until(4), until(5)));
    assert_eq!(replayed(&read_only, None), (until(9), until(9)));
    assert_eq!(replayed(&options(), Some(6)), (until(6), until(7)));
    // The log is empty now.
    assert_eq!(replayed(&options(), None), (until(6), vec![]));
}

#[test]
fn only_one_may_write_and_only_the_engine_that_made_it_may_open() {
    let (_, fs) = fresh();
    let missing = Kv::open(&KvLog, &fs, "/db", &Options::default(), None);
    assert!(matches!(missing.err(), Some(Error::NotFound { .. })));
    let kv = open(&fs).unwrap();
    assert!(matches!(open(&fs).err(), Some(Error::Busy { .. })));
    let read_only = Options {
        read_only: true,
        ..options()
    };
    let view = Kv::open(&KvLog, &fs, "/db", &read_only, None).unwrap();
    let refused = view.write(&numbered(1, 1), Durability::Synced);
    assert!(matches!(refused, Err(Error::Invalid { .. })));
    drop((kv, view));

    struct Other;
    impl Engine for Other {
        fn name(&self) -> &'static str {
            "RocksDB"
        }
        fn open(
            &self,
            _: &BlueFs,
            _: &str,
            _: &Options,
            _: Option<Box<dyn kv::ReplayFilter>>,
        ) -> kv::Result<Box<dyn kv::Database>> {
            unreachable!("it did not make this database")
        }
    }
    let refused = Kv::open(&Other, &fs, "/db", &options(), None).err();
    let told = "the database was made by kv-log, not by RocksDB";
    assert_eq!(refused.unwrap().to_string(), told);
}

#[test]
fn writers_at_once_are_in_the_log_as_readers_saw_them() {
    let (drive, fs) = fresh();
    let kv = open(&fs).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let kv = &kv;
            scope.spawn(move || {
                for number in 0..50 {
                    let durability = [Durability::Synced, Durability::Buffered][number % 2];
                    let mut batch = Batch::default();
                    batch.merge(b"#sum", &counters(&[1]));
                    batch.put(b"last", &[thread]);
                    kv.write(&batch, durability).unwrap();
                    if number == 25 {
                        kv.flush().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(kv.get(b"#sum").unwrap(), Some(counters(&[200])));
    let last = kv.get(b"last").unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    drop(fs);
    assert!(drive.geometry().zone_count > 0);
    let again = open(&mount(&drive)).unwrap();
    assert_eq!(again.get(b"#sum").unwrap(), Some(counters(&[200])));
    assert_eq!(again.get(b"last").unwrap(), last);
}

#[test]
fn a_damaged_file_refuses_the_opening() {
    for name in ["CURRENT", "000002.sst"] {
        let (_, fs) = fresh();
        let kv = open(&fs).unwrap();
        kv.write(&numbered(1, 10), Durability::Synced).unwrap();
        kv.flush().unwrap();
        drop(kv);
        let path = format!("/db/{name}");
        fs.delete(&path).unwrap();
        let mut file = fs.create(&path).unwrap();
        file.append(b"kv-log but nothing that was written here before")
            .unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        let refused = open(&fs).err();
        assert!(
            matches!(refused, Some(Error::Corruption { .. })),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn a_moment() {
    let (_, fs) = fresh();
    let kv = open(&fs).unwrap();
    moment::is_what_there_was_whatever_is_written_meanwhile(&kv, false);
    kv.close().unwrap();
}
