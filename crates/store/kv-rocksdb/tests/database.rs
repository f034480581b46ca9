//! The interface of an open database: batches, merges, scans, closing, and opening again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../kv/engine-tests/moment.rs"]
mod moment;
mod support;

use kv::{Batch, Durability, Error, Kv};
use kv_rocksdb::RocksDb;
use support::*;

fn counters(values: &[i64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn keys(kv: &Kv, lower: &[u8], upper: Option<&[u8]>) -> Vec<String> {
    kv.scan(lower, upper)
        .map(|entry| String::from_utf8(entry.unwrap().0).unwrap())
        .collect()
}

#[test]
fn a_batch_happens_in_order_and_as_one() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    let mut batch = Batch::default();
    assert!(batch.is_empty());
    batch.put(b"a", b"1");
    batch.put(b"b", b"2");
    batch.delete(b"a");
    batch.put(b"c", b"3");
    batch.delete(b"c");
    batch.put(b"d", b"");
    assert!(!batch.is_empty() && batch.byte_len() > 12);
    kv.write(&batch, Durability::Synced).unwrap();
    assert_eq!(kv.get(b"a").unwrap(), None);
    assert_eq!(kv.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(kv.get(b"c").unwrap(), None);
    assert_eq!(kv.get(b"d").unwrap().as_deref(), Some(&b""[..]));

    batch.clear();
    assert!(batch.is_empty());
    batch.log_data(b"only for the log");
    assert!(batch.is_empty());
    kv.write(&batch, Durability::Synced).unwrap();
    kv.close().unwrap();
}

#[test]
fn counters_add_up_in_memory_in_tables_and_over_reopening() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    let add = |kv: &Kv, values: &[i64]| {
        let mut batch = Batch::default();
        batch.merge(b"#zone", &counters(values));
        kv.write(&batch, Durability::Buffered).unwrap();
    };
    add(&kv, &[1]);
    add(&kv, &[10, -5]);
    assert_eq!(kv.get(b"#zone").unwrap(), Some(counters(&[11, -5])));
    kv.flush().unwrap();
    add(&kv, &[i64::MAX, 5, 1]);
    kv.flush().unwrap();
    kv.compact().unwrap();
    let sum = counters(&[11_i64.wrapping_add(i64::MAX), 0, 1]);
    assert_eq!(kv.get(b"#zone").unwrap(), Some(sum.clone()));
    add(&kv, &[1]);
    kv.close().unwrap();
    let kv = open(&fs);
    assert_eq!(
        kv.get(b"#zone").unwrap(),
        Some(counters(&[i64::MIN + 11, 0, 1]))
    );
    let mut batch = Batch::default();
    batch.put(b"#zone", &sum);
    batch.delete(b"#gone");
    batch.merge(b"#gone", &counters(&[7]));
    kv.write(&batch, Durability::Synced).unwrap();
    assert_eq!(kv.get(b"#zone").unwrap(), Some(sum));
    assert_eq!(kv.get(b"#gone").unwrap(), Some(counters(&[7])));
}

#[test]
fn a_merge_that_makes_no_sense_is_an_error_of_the_read() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    let mut batch = Batch::default();
    batch.merge(b"no operator", &counters(&[1]));
    batch.merge(b"#odd", b"123");
    kv.write(&batch, Durability::Synced).unwrap();
    for key in [&b"no operator"[..], b"#odd"] {
        let error = kv.get(key).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "{error}");
    }
}

#[test]
fn scans_keep_to_their_bounds_their_state_and_where_they_are_sent() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    let put = |kv: &Kv, key: &[u8]| {
        let mut batch = Batch::default();
        batch.put(key, key);
        kv.write(&batch, Durability::Buffered).unwrap();
    };
    for key in ["a", "b", "c"] {
        put(&kv, key.as_bytes());
    }
    kv.flush().unwrap();
    for key in ["d", "e", "\u{ff}"] {
        put(&kv, key.as_bytes());
    }
    assert_eq!(keys(&kv, b"b", Some(b"e")), ["b", "c", "d"]);
    assert_eq!(keys(&kv, b"bb", None), ["c", "d", "e", "\u{ff}"]);
    assert_eq!(keys(&kv, b"", Some(b"b")), ["a"]);
    assert_eq!(keys(&kv, b"x", Some(b"y")), [""; 0]);
    assert_eq!(keys(&kv, b"d", Some(b"b")), [""; 0]);
    assert_eq!(
        keys(&kv, b"", Some(b"")),
        [""; 0],
        "an empty bound is a bound"
    );

    let mut scan = kv.scan(b"a", Some(b"e"));
    assert_eq!(scan.next().unwrap().unwrap().0, b"a");
    put(&kv, b"bz");
    scan.seek(b"ba");
    assert_eq!(
        scan.next().unwrap().unwrap().0,
        b"c",
        "a scan sees what was there at its begin"
    );
    assert_eq!(
        scan.next().unwrap().unwrap(),
        (b"d".to_vec(), b"d".to_vec())
    );
    assert!(scan.next().is_none());
    assert!(scan.next().is_none());
    scan.seek(b"a");
    assert_eq!(scan.next().unwrap().unwrap().0, b"a");
    scan.seek(b"z");
    assert!(scan.next().is_none());
}

#[test]
fn everything_is_there_after_closing_and_mounting_again() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    for number in 0..200 {
        kv.write(&numbered(number, 20_000), Durability::Buffered)
            .unwrap();
    }
    kv.close().unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let fs = mount(&drive);
    let kv = open(&fs);
    assert_eq!(numbers(&kv), (0..200).collect::<Vec<_>>());
    kv.compact().unwrap();
    assert_eq!(numbers(&kv), (0..200).collect::<Vec<_>>());
    assert!(kv.property("rocksdb.estimate-num-keys").is_some());
    assert_eq!(kv.property("no such property"), None);
}

#[test]
fn a_database_that_is_missing_or_held_is_told_apart() {
    let fs = mount(&formatted());
    let mut missing = options();
    missing.create_if_missing = false;
    let error = |options: kv::Options| {
        Kv::open(&RocksDb, &fs, "/db", &options, None)
            .err()
            .unwrap()
    };
    assert!(matches!(
        error(missing),
        Error::Invalid { .. } | Error::NotFound { .. }
    ));
    assert!(
        matches!(error(read_only()), Error::NotFound { .. }),
        "{}",
        error(read_only())
    );
    let kv = open(&fs);
    assert!(
        matches!(error(options()), Error::Busy { .. }),
        "{}",
        error(options())
    );
    kv.close().unwrap();
    open(&fs).close().unwrap();
}

#[test]
fn a_read_only_view_writes_nothing() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    kv.write(&numbered(1, 100), Durability::Synced).unwrap();
    kv.close().unwrap();
    let (before, names) = (drive.snapshot(), fs.list("/db").unwrap());
    let view = Kv::open(&RocksDb, &fs, "/db", &read_only(), None).unwrap();
    assert_eq!(numbers(&view), [1]);
    let error = view
        .write(&numbered(2, 100), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    view.close().unwrap();
    assert_eq!(fs.list("/db").unwrap(), names);
    assert_eq!(drive.snapshot().since(&before).bytes_written(), 0);
}

#[test]
fn a_moment() {
    let fs = mount(&formatted());
    let kv = open(&fs);
    moment::is_what_there_was_whatever_is_written_meanwhile(&kv, true);
    kv.close().unwrap();
}
