//! What every engine guarantees for a moment: later writes do not change it. The tests of each engine include this
//! file.

use kv::{Batch, Durability, Kv, View};

/// Reads a moment while all its rows change; `keeps_files` says whether the engine has files that compactions replace.
pub fn is_what_there_was_whatever_is_written_meanwhile(kv: &Kv, keeps_files: bool) {
    let put = |from: u8, value: &[u8]| {
        let mut batch = Batch::default();
        (from..200).for_each(|key| batch.put(&[b'k', key], value));
        kv.write(&batch, Durability::Synced).unwrap();
    };
    put(0, b"before");
    kv.flush().unwrap();
    let moment = kv.moment();
    let mut first = moment.scan(b"k", None);
    let mut second = moment.scan(&[b'k', 100], Some(&[b'k', 110]));
    assert_eq!(first.next().unwrap().unwrap().0, [b'k', 0]);
    put(0, b"behind");
    let mut gone = Batch::default();
    (50..150).for_each(|key| gone.delete(&[b'k', key]));
    kv.write(&gone, Durability::Synced).unwrap();
    kv.flush().unwrap();
    kv.compact().unwrap();
    assert_eq!(kv.kept_bytes() > 0, keeps_files);
    // Two scans and lookups, interleaved.
    for number in 1..200 {
        let row = first.next().unwrap().unwrap();
        assert_eq!(row, (vec![b'k', number], b"before".to_vec()));
        if number <= 10 {
            let row = second.next().unwrap().unwrap();
            assert_eq!(row, (vec![b'k', 99 + number], b"before".to_vec()));
        } else {
            assert!(second.next().is_none());
        }
        let found = moment.get(&[b'k', number]).unwrap();
        assert_eq!(found.as_deref(), Some(&b"before"[..]));
        assert_eq!(moment.get(&[b'k', number, 0]).unwrap(), None);
    }
    assert!(first.next().is_none());
    second.seek(&[b'k', 105]);
    assert_eq!(second.next().unwrap().unwrap().0, [b'k', 105]);
    drop((first, second));
    drop(moment);
    assert_eq!(kv.kept_bytes(), 0);
    assert_eq!(kv.get(&[b'k', 60]).unwrap(), None);
}
