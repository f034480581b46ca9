//! `dump` decodes every record of the database, and reports bytes that are no valid record as such.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Dump, Dumped, Error, RecordKind, Store, Transaction};

fn fresh() -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

/// The number of records of each kind, and the keys of those that cannot be decoded.
fn dump(store: &Store, which: &Dump) -> (BTreeMap<&'static str, u32>, Vec<Vec<u8>>) {
    let (mut kinds, mut damaged) = (BTreeMap::new(), Vec::new());
    let each = &mut |dumped: Dumped<'_>| match dumped {
        Dumped::Record {
            kind,
            key,
            name,
            said,
            ..
        } => {
            *kinds.entry(kind.unwrap_or("unknown")).or_default() += 1;
            if name.is_none() || said.is_none() {
                damaged.push(key.to_vec());
            }
            Ok::<_, Error>(())
        }
        Dumped::Unreadable { why, .. } => Err(why),
    };
    store.dump(which, each).unwrap();
    (kinds, damaged)
}

#[test]
fn every_record_makes_sense_and_is_met_once() {
    let (device, store) = fresh();
    for number in 0..4 {
        put(&store, &format!("o{number}"), &pattern(number, 100_000)).unwrap();
    }
    put(&store, "small", b"1").unwrap();
    let mut transaction = Transaction::new();
    transaction
        .clone_object(("c", "o1"), ("c", "clone"))
        .omap_set("c", "small", [(b"k".to_vec(), b"v".to_vec())].into());
    store.commit(transaction).unwrap();
    // An unmount writes a segment summary.
    store.unmount().unwrap();
    let store = mount(&device);
    let (kinds, damaged) = dump(&store, &Dump::default());
    assert!(damaged.is_empty());
    let collection = Some("c".to_owned());
    let of_clone = Dump {
        collection: collection.clone(),
        object: Some("clone".into()),
        ..Dump::default()
    };
    let of_clone = dump(&store, &of_clone).0;
    assert_eq!((of_clone["onodes"], of_clone["blobs"]), (1, kinds["blobs"]));
    let of_collection = Dump {
        collection,
        ..Dump::default()
    };
    let all = dump(&store, &of_collection).0;
    assert_eq!(all["collections"], 1);
    for kind in ["onodes", "extents", "omap"] {
        assert_eq!(all[kind], kinds[kind], "{kind}");
    }
    let only = Dump {
        kinds: vec![RecordKind::Onodes, RecordKind::Zones],
        ..Dump::default()
    };
    assert_eq!(dump(&store, &only).0.len(), 2);
    drop(store);
    let (_fs, kv) = database(&device);
    let rows = kv.scan(&[], None).count() as u32;
    assert_eq!(kinds.values().sum::<u32>(), rows);
}

#[test]
fn what_makes_no_sense_is_shown_and_ends_nothing() {
    let (device, store) = fresh();
    put(&store, "a", b"1").unwrap();
    put(&store, "z", b"1").unwrap();
    store.unmount().unwrap();
    drop(store);
    let (fs, kv) = database(&device);
    let bad: [&[u8]; 4] = [b"Gshort", b"O\0\0\0\x01m", b"Qunknown", b"X"];
    let mut batch = Batch::default();
    for key in bad {
        batch.put(key, b"no value");
    }
    kv.write(&batch, Durability::Synced).unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let read_only = store::MountOptions {
        read_only: true,
        ..options()
    };
    let store = Store::mount(device, read_only);
    let Ok(store) = store else {
        panic!("{:?}", store.err());
    };
    let (kinds, damaged) = dump(&store, &Dump::default());
    assert_eq!(damaged, bad);
    assert_eq!((kinds["onodes"], kinds["unknown"]), (3, 1));
    // A listing that skips the damaged record.
    let listed = store.list_damaged("c", "", "", 9).unwrap();
    let whole: Vec<bool> = listed.iter().map(|(_, info)| info.is_ok()).collect();
    assert_eq!(whole, [true, false, true]);
    assert!(store.list("c", "", "", 9).is_err());
}
