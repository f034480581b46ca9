//! Omaps and attributes against a plain model, through restarts, clones, renames and removals.

use crate::common;
use crate::common::{assert_clean, create_collection, geometry, mkfs, mount, options, put};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use store::{Attributes, Error, MountOptions, Omap, Store, Transaction};
use zone::Geometry;

type Model = BTreeMap<String, (Attributes, Omap)>;

fn fresh() -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

fn found(store: &Store) -> Model {
    let objects = store.list("c", "", "", usize::MAX).unwrap();
    let rows = objects.into_iter().map(|object| {
        let rows = store.omap("c", &object.name, &[], usize::MAX).unwrap();
        assert!(rows.is_sorted());
        let omap = rows.into_iter().collect();
        (object.name.to_string(), (object.attributes, omap))
    });
    rows.collect()
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = vec![0; random.usize(..3)];
    key.fill_with(|| [0, 1, 0x7f, 0xff][random.usize(..4)]);
    key
}

/// Adds a random change to the transaction and the model; false if the object does not exist.
fn change(tx: &mut Transaction, model: &mut Model, random: &mut fastrand::Rng) -> bool {
    let (a, b) = (
        format!("o{}", random.u8(..5)),
        format!("o{}", random.u8(..5)),
    );
    let kind = random.u8(..12);
    if kind == 0 {
        tx.touch("c", &a);
        model.entry(a).or_default();
        return true;
    }
    let Some((attributes, omap)) = model.get_mut(&a) else {
        tx.omap_clear("c", &a);
        return false;
    };
    match kind {
        1 => {
            tx.remove("c", &a);
            model.remove(&a);
        }
        2 if a != b => {
            tx.rename(("c", &a), ("c", &b));
            let moved = model.remove(&a).unwrap();
            model.insert(b, moved);
        }
        3 => {
            tx.clone_object(("c", &a), ("c", &b));
            let copy = model[&a].clone();
            model.insert(b, copy);
        }
        4 => {
            tx.omap_clear("c", &a);
            omap.clear();
        }
        5 => {
            let (from, to) = (key(random), key(random));
            tx.omap_remove_range("c", &a, &from[..]..&to[..]);
            omap.retain(|key, _| *key < from || *key >= to);
        }
        6 => {
            let keys: Vec<_> = (0..3).map(|_| key(random)).collect();
            let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
            tx.omap_remove("c", &a, &borrowed);
            omap.retain(|key, _| !keys.contains(key));
        }
        7 => {
            let set = Attributes::from([(format!("k{}", random.u8(..3)), vec![random.u8(..)])]);
            let gone = format!("k{}", random.u8(..3));
            tx.update_attributes("c", &a, set.clone(), &[&gone]);
            attributes.remove(&gone);
            attributes.extend(set);
        }
        _ => {
            let rows: Omap = (0..random.usize(1..6))
                .map(|_| (key(random), vec![random.u8(..); random.usize(..9)]))
                .collect();
            tx.omap_set("c", &a, rows.clone());
            omap.extend(rows);
        }
    }
    true
}

#[test]
fn omaps_and_attributes_are_their_model() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    let (device, mut store) = fresh();
    let mut model = Model::new();
    for round in 0..600 {
        let (mut tx, mut next) = (Transaction::new(), model.clone());
        let mut is_whole = true;
        for _ in 0..random.u8(1..4) {
            is_whole &= change(&mut tx, &mut next, &mut random);
        }
        match store.commit(tx) {
            Ok(()) if is_whole => model = next,
            Err(Error::NoObject { .. }) if !is_whole => {}
            other => panic!("round {round}: {other:?}"),
        }
        if random.u8(..20) == 0 {
            if random.bool() {
                store.unmount().unwrap();
            }
            drop(store);
            store = mount(&device);
        }
        assert!(found(&store) == model, "round {round}");
    }
    // Purges the rows of removed omaps.
    store.clean_one().unwrap();
    assert_clean(&store);
    let keys = store.fsck(false, &mut |_, _| {}).unwrap().omap_keys;
    assert_eq!(
        keys as usize,
        model.values().map(|(_, omap)| omap.len()).sum::<usize>()
    );
}

#[test]
fn a_page_begins_at_its_key_and_a_large_omap_goes_by_one_row() {
    let (_, store) = fresh();
    put(&store, "o", b"data").unwrap();
    for part in 0..10u32 {
        let rows = (0..500).map(|n| ((part * 500 + n).to_be_bytes().to_vec(), vec![7; 20]));
        let mut tx = Transaction::new();
        tx.omap_set("c", "o", rows.collect());
        store.commit(tx).unwrap();
    }
    let page = store.omap("c", "o", &2500u32.to_be_bytes(), 3).unwrap();
    let keys: Vec<_> = page.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(
        keys,
        [2500u32, 2501, 2502].map(|n| n.to_be_bytes().to_vec())
    );
    let get = |n: u32| store.omap_get("c", "o", &n.to_be_bytes()).unwrap();
    assert_eq!((get(4999), get(5000)), (Some(vec![7; 20]), None));
    let mut tx = Transaction::new();
    tx.omap_clear("c", "o");
    store.commit(tx).unwrap();
    assert_eq!(store.omap("c", "o", &[], 9).unwrap(), []);
    store.clean_one().unwrap();
    assert_eq!(store.fsck(false, &mut |_, _| {}).unwrap().omap_keys, 0);
    assert_eq!(common::read(&store, "o").unwrap(), b"data");
}

#[test]
fn what_does_not_fit_or_is_not_there_is_refused_whole() {
    let (_, store) = fresh();
    put(&store, "o", b"").unwrap();
    let mut tx = Transaction::new();
    tx.omap_set("c", "o", Omap::from([(b"k".to_vec(), b"v".to_vec())]));
    tx.omap_set("c", "o", Omap::from([(vec![0; 5000], Vec::new())]));
    assert!(matches!(store.commit(tx), Err(Error::Invalid { .. })));
    let mut tx = Transaction::new();
    let many: Attributes = (0..200).map(|n| (format!("{n}"), vec![0; 4000])).collect();
    tx.update_attributes("c", "o", many.clone(), &[]);
    store.commit(tx).unwrap();
    let more: Attributes = (200..400)
        .map(|n| (format!("{n}"), vec![0; 4000]))
        .collect();
    let mut tx = Transaction::new();
    tx.omap_clear("c", "o")
        .update_attributes("c", "o", more, &[]);
    assert!(matches!(store.commit(tx), Err(Error::Invalid { .. })));
    assert_eq!(found(&store)["o"], (many, Omap::new()));
    assert!(matches!(
        store.omap("c", "x", &[], 1),
        Err(Error::NoObject { .. })
    ));
}

/// Rows of a removed large omap are purged by background work after the mount: neither a mount nor an unmount waits for
/// all of them.
#[test]
fn what_a_removal_leaves_is_purged_behind_the_mount() {
    const ROWS: u32 = 60_000;
    let geometry = Geometry {
        zone_size: 16 << 20,
        zone_capacity: 16 << 20,
        ..geometry(64)
    };
    let drive = Arc::new(Stats::new(MemoryDrive::new(geometry).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "o", b"").unwrap();
    let set = |store: &Store, name: &str, rows: Range<u32>| {
        let mut tx = Transaction::new();
        let rows = rows.map(|row| (row.to_be_bytes().to_vec(), Vec::new()));
        tx.omap_set("c", name, rows.collect());
        store.commit(tx).unwrap();
    };
    for first in (0..ROWS).step_by(10_000) {
        set(&store, "o", first..first + 10_000);
    }
    let mut tx = Transaction::new();
    tx.remove("c", "o");
    store.commit(tx).unwrap();
    store.unmount().unwrap();

    // Purging flushes once for each thousand rows.
    let flushes = |work: &mut dyn FnMut()| {
        let before = drive.snapshot();
        work();
        drive.snapshot().since(&before).flush.operations
    };
    let mut store = None;
    let at_mount = flushes(&mut || store = Some(mount(&device)));
    let store = store.unwrap();
    assert!((10..45).contains(&at_mount), "{at_mount}");
    assert_clean(&store);
    let behind = flushes(&mut || while store.tend().unwrap() {});
    assert!((30..60).contains(&behind), "{behind}");
    assert_clean(&store);
    assert!(flushes(&mut || while store.tend().unwrap() {}) < 3);

    // The background thread purges in parts, and an unmount ends it between two parts.
    store.unmount().unwrap();
    let options = MountOptions {
        background: true,
        ..options()
    };
    let store = Store::mount(device.clone(), options).unwrap();
    put(&store, "p", b"").unwrap();
    set(&store, "p", 0..50_000);
    let mut tx = Transaction::new();
    tx.omap_clear("c", "p");
    store.commit(tx).unwrap();
    let ended = flushes(&mut || store.unmount().unwrap());
    assert!(ended < 40, "{ended}");
    let store = mount(&device);
    assert_clean(&store);
    assert!(store.omap("c", "p", &[], 1).unwrap().is_empty());
}

/// A clone and the removal of a range of an omap have a limit, for each row is in memory several times meanwhile.
#[test]
fn what_is_cloned_or_removed_as_a_range_has_a_limit() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(2048)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let key = |row: u32| [&[7; 4000][..], &row.to_be_bytes()].concat();
    let rows = 35_000;
    for first in (0..rows).step_by(1000) {
        let mut tx = Transaction::new();
        let some = (first..first + 1000).map(|row| (key(row), Vec::new()));
        tx.touch("c", "o").omap_set("c", "o", some.collect());
        store.commit(tx).unwrap();
    }
    let range = |tx: &mut Transaction, first: u32, end: u32| {
        tx.omap_remove_range("c", "o", &key(first)..&key(end));
    };
    let mut clone = Transaction::new();
    clone.clone_object(("c", "o"), ("c", "copy"));
    let mut all = Transaction::new();
    range(&mut all, 0, rows);
    let mut parts = Transaction::new();
    range(&mut parts, 0, rows / 2);
    range(&mut parts, rows / 2, rows);
    for tx in [clone, all, parts] {
        let error = store.commit(tx).unwrap_err();
        assert!(
            matches!(error, Error::Invalid { allowed, .. } if allowed == 128 << 20),
            "{error}"
        );
    }
    assert_eq!(store.list("c", "", "", 9).unwrap().len(), 1);
    assert_eq!(store.omap("c", "o", &[], 1).unwrap()[0].0, key(0));
    let mut tx = Transaction::new();
    range(&mut tx, 0, rows / 2);
    store.commit(tx).unwrap();
    let mut tx = Transaction::new();
    tx.clone_object(("c", "o"), ("c", "copy"));
    tx.omap_clear("c", "o");
    store.commit(tx).unwrap();
    let copied = store.omap("c", "copy", &[], usize::MAX).unwrap();
    assert_eq!(copied.len() as u32, rows / 2);
    // Rows that the transaction itself has cloned count towards the limit too.
    let mut chain = Transaction::new();
    chain.clone_object(("c", "copy"), ("c", "second"));
    chain.clone_object(("c", "second"), ("c", "third"));
    let error = store.commit(chain).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert_eq!(store.list("c", "", "", 9).unwrap().len(), 2);
    assert_clean(&store);
}
