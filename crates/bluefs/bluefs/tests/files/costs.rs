//! Flushes and padding that files cost.

use super::*;

#[test]
fn synchronous_appends_to_a_log_are_one_write_and_one_flush_each() {
    let (_device, fs) = fresh();
    let mut w = fs.create("/000001.log").unwrap();
    w.append(b"first").unwrap();
    w.sync().unwrap();
    let before = fs.statistics();
    for _ in 0..100 {
        w.append(&[7; 450]).unwrap();
        w.sync().unwrap();
    }
    let after = fs.statistics();
    assert_eq!(after.flushes - before.flushes, 100);
    assert_eq!(after.bytes_written() - before.bytes_written(), 100 * 4096);
}

#[test]
fn a_directory_that_has_not_changed_since_a_flush_costs_none() {
    let (_device, fs) = fresh();
    let flushes = || fs.statistics().flushes;
    let mut w = fs.create("/MANIFEST-000001").unwrap();
    w.append(b"first").unwrap();
    let before = flushes();
    // Also for the first record of a run: the frame that names the run needs no flush of its own.
    w.sync().unwrap();
    assert_eq!(flushes(), before + 1);
    put(&fs, "/000002.sst", &bytes(1, 3000));
    assert_eq!(flushes(), before + 2);
    fs.sync_metadata().unwrap();
    assert_eq!(flushes(), before + 2);
    w.append(b"second").unwrap();
    w.sync().unwrap();
    assert_eq!(flushes(), before + 3);
    fs.delete("/000002.sst").unwrap();
    fs.sync_metadata().unwrap();
    assert_eq!(flushes(), before + 4);
}

#[test]
fn asynchronous_logs_and_tables_cost_next_to_no_padding() {
    let (_device, fs) = fresh();
    for round in 0..6 {
        let mut log = fs.create(&format!("/{round:06}.log")).unwrap();
        for _ in 0..9000 {
            log.append(&[7; 445]).unwrap();
            log.flush().unwrap();
        }
        log.close().unwrap();
        put(&fs, &format!("/{round:06}.sst"), &bytes(1, 4_000_000));
        fs.delete(&format!("/{round:06}.log")).unwrap();
    }
    let s = fs.statistics();
    let ratio = s.bytes_written() as f64 / s.bytes_asked() as f64;
    assert!(ratio < 1.01, "{ratio} {s:?}");
}
