//! Removed objects of which a row is damaged, or that have many rows.

use crate::format::key;
use crate::inner::Inner;
use crate::rows::{onode_key, read_extents};
use crate::space::LARGE;
use crate::staging::{MAX_DROPPED, Staging};
use crate::test_drive::changed_database::{Changed, Unread};
use crate::test_drive::{change, drive, mount, options, put, remove};
use crate::{Attributes, Error, MountOptions, Store, Transaction};
use kv::{Batch, Durability, Kv};
use std::sync::Arc;

/// Overwrites all extents of doomed maps.
fn damage_doomed(kv: &Kv, batch: &mut Batch) {
    for row in kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])) {
        let map = key::map(key::parse_doomed(&row.unwrap().0).unwrap());
        for row in kv.scan(&map, key::after_prefix(&map).as_deref()) {
            batch.put(&row.unwrap().0, &[9]);
        }
    }
    assert_eq!(batch.changes().count(), 1);
}

/// Removes an object while it is open, so that its rows are left to the purge.
fn doom(store: &Store, name: &str) {
    let reader = store.open("c", name).unwrap();
    remove(store, name);
    drop(reader);
}

fn doomed(inner: &Inner) -> usize {
    let kv = inner.kv().unwrap();
    kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])).count()
}

#[test]
fn a_damaged_row_of_a_removed_object_does_not_refuse_the_mount() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "damaged");
    put(&store, "whole");
    doom(&store, "damaged");
    drop(store);
    change(&drive, |opened, batch| damage_doomed(&opened.kv, batch));
    for _ in 0..2 {
        let store = mount(&drive);
        doom(&store, "whole");
        let named = store.health().unwrap().metadata;
        assert!(
            named.len() == 1 && named[0].contains("no extent"),
            "{named:?}"
        );
        put(&store, "whole");
        assert_eq!(doomed(&store.inner), 2);
        store.tend().unwrap();
        assert_eq!(doomed(&store.inner), 1);
        store.unmount().unwrap();
    }
}

#[test]
fn an_object_with_a_damaged_record_is_put_again_or_removed() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "o");
    put(&store, "p");
    store.unmount().unwrap();
    change(&drive, |opened, batch| {
        for row in opened.kv.scan(b"O", Some(b"P")) {
            batch.put(&row.unwrap().0, b"?");
        }
        assert_eq!(batch.changes().count(), 2);
    });
    let store = mount(&drive);
    assert!(store.stat("c", "o").is_err());
    put(&store, "o");
    assert_eq!(store.stat("c", "o").unwrap().unwrap().size, 100_000);
    let mut transaction = Transaction::new();
    transaction.remove_if_present("c", "p");
    store.commit(transaction).unwrap_err();
    let mut transaction = Transaction::new();
    transaction.remove_even_damaged("c", "p");
    transaction.remove_even_damaged("c", "none");
    store.commit(transaction).unwrap();
    assert!(store.stat("c", "p").unwrap().is_none());
}

/// The bytes behind those that are lost would move to their place.
#[test]
fn an_object_that_has_lost_an_extent_is_not_cloned() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "o");
    for _ in 0..2 {
        let mut writer = store.writer(None).unwrap();
        writer.write(&[8; 100_000]).unwrap();
        let mut tx = Transaction::new();
        tx.append("c", "o", writer.finish().unwrap());
        store.commit(tx).unwrap();
    }
    store.unmount().unwrap();
    change(&drive, |opened, batch| {
        let rows: Vec<_> = opened
            .kv
            .scan(&[key::EXTENT], Some(&[key::EXTENT + 1]))
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(rows.len(), 3);
        batch.delete(&rows[1].0);
    });
    let store = mount(&drive);
    let mut tx = Transaction::new();
    tx.clone_object(("c", "o"), ("c", "clone"));
    let cloned = store.commit(tx);
    assert!(
        matches!(&cloned, Err(Error::CorruptMetadata { .. })),
        "{cloned:?}"
    );
    assert!(store.open("c", "clone").is_err());
    let mut tx = Transaction::new();
    tx.clone_range(("c", "o"), 0..100_000, ("c", "clone"), 0);
    store.commit(tx).unwrap();
}

#[test]
fn rows_of_a_removed_object_that_the_drive_does_not_read_do_not_refuse_the_mount() {
    let drive = drive();
    let unread = Arc::<Unread>::default();
    let mount = || {
        let options = MountOptions {
            background: false,
            runtime: options().runtime,
            ..MountOptions::new(Changed(unread.clone()))
        };
        Store::mount(drive.clone(), options).unwrap()
    };
    let store = mount();
    put(&store, "unread");
    doom(&store, "unread");
    let kv = store.inner.kv().unwrap();
    let rows: Vec<_> = kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])).collect();
    drop(kv);
    let [Ok((row, _))] = &rows[..] else {
        panic!("{rows:?}")
    };
    let map = key::parse_doomed(row).unwrap();
    unread.0.lock().push(key::map(map));
    drop(store);
    let store = mount();
    put(&store, "other");
    doom(&store, "other");
    store.tend().unwrap();
    assert_eq!(doomed(&store.inner), 1);
    let told = store.health().unwrap().metadata;
    assert!(
        told.iter().any(|what| what.contains("is damaged")),
        "{told:?}"
    );
    drop(store);
    // The drive reads them again.
    unread.0.lock().clear();
    let store = mount();
    store.tend().unwrap();
    assert_eq!(doomed(&store.inner), 0);
}

#[test]
fn a_damaged_row_of_a_removed_object_stops_neither_cleaner_nor_puts() {
    let store = mount(&drive());
    let put_large = |number: u32| {
        let mut writer = store.writer(Some(512 << 10))?;
        writer.write(&[number as u8; 512 << 10])?;
        let mut tx = Transaction::new();
        tx.put("c", number.to_string(), writer.finish()?, Attributes::new());
        store.commit(tx)
    };
    put(&store, "damaged");
    let mut tx = Transaction::new();
    tx.omap_set(
        "c",
        "damaged",
        [(b"key".to_vec(), b"value".to_vec())].into(),
    );
    store.commit(tx).unwrap();
    let stored = (0..).find(|number| put_large(*number).is_err()).unwrap();
    for number in (0..stored).step_by(2) {
        remove(&store, &number.to_string());
    }
    doom(&store, "damaged");
    let inner = &store.inner;
    let mut batch = Batch::default();
    let kv = inner.kv().unwrap();
    damage_doomed(&kv, &mut batch);
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    assert_eq!(doomed(inner), 2);
    // Half of each zone is dead.
    for number in (0..stored / 2).step_by(2) {
        put_large(number).unwrap();
    }
    assert_eq!(doomed(inner), 1, "the omap is purged");
    store.tend().unwrap();
    assert!(!store.health().unwrap().metadata.is_empty());
}

/// A large removal is refused if it finds no room, and nothing would ever make room for it.
#[test]
fn removing_one_object_is_no_large_change() {
    // The last two are left to the purge.
    for wanted in [MAX_DROPPED - 1, MAX_DROPPED, 4095] {
        let store = mount(&drive());
        let name = "n".repeat(200);
        let mut tx = Transaction::new();
        for _ in 0..wanted {
            let mut writer = store.writer(None).unwrap();
            writer.write(b"x").unwrap();
            tx.append("c", &name, writer.finish().unwrap());
        }
        store.commit(tx).unwrap();
        let inner = &store.inner;
        let key = onode_key(&inner.collections()["c"].kind, "c", name.as_bytes()).unwrap();
        let kv = inner.kv().unwrap();
        let mut staging = Staging::new(inner, &kv);
        let onode = staging.onode(&key).unwrap().unwrap();
        staging.set_onode(key, None);
        let mut extents = 0;
        for segment in onode.segments {
            extents += read_extents(&*kv, segment.map, 0, u64::MAX, usize::MAX)
                .unwrap()
                .len();
            staging.drop_map(segment.map, false).unwrap();
        }
        assert_eq!(extents, wanted);
        assert_eq!(staging.doomed.is_empty(), wanted < MAX_DROPPED);
        assert!(staging.taken() <= LARGE, "{}", staging.taken());
    }
}
