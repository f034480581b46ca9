//! Clones share blobs: what a clone costs, and when shared blobs are freed.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::Arc;
use store::{Error, Store, Transaction};

const SIZE: usize = 300_000;

fn fresh() -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "o", &pattern(1, SIZE)).unwrap();
    (device, store)
}

fn commit(store: &Store, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    store.commit(tx).unwrap();
}

fn clone(store: &Store, from: &str, to: &str) {
    commit(store, |tx| _ = tx.clone_object(("c", from), ("c", to)));
}

fn remove(store: &Store, name: &str) {
    commit(store, |tx| _ = tx.remove("c", name));
}

fn live(store: &Store) -> u64 {
    store.statfs().live_bytes
}

#[test]
fn clones_take_no_space_until_the_last_of_them_goes() {
    let (device, store) = fresh();
    let alone = live(&store);
    for i in 0..5 {
        clone(&store, "o", &format!("clone{i}"));
    }
    assert_eq!(live(&store), alone);
    assert_clean(&store);
    remove(&store, "o");
    for i in 0..4 {
        remove(&store, &format!("clone{i}"));
    }
    drop(store);
    let store = mount(&device);
    assert_eq!(live(&store), alone);
    assert!(read(&store, "clone4").unwrap() == pattern(1, SIZE));
    remove(&store, "clone4");
    assert_eq!(live(&store), 0);
    assert_clean(&store);
}

#[test]
fn what_no_clone_shows_any_more_is_given_back() {
    let (_, store) = fresh();
    clone(&store, "o", "clone");
    let before = live(&store);
    for name in ["o", "clone"] {
        commit(&store, |tx| _ = tx.punch("c", name, 65_536, 131_072));
    }
    assert_eq!(live(&store), before - 131_072);
    assert!(
        read(&store, "o").unwrap()[65_536..196_608]
            .iter()
            .all(|b| *b == 0)
    );
    assert_clean(&store);
}

#[test]
fn the_cleaner_moves_what_clones_show_once() {
    let (device, store) = fresh();
    clone(&store, "o", "clone");
    commit(&store, |tx| {
        tx.truncate("c", "o", 100_000).punch("c", "clone", 10, 20);
    });
    store.seal_open_zones().unwrap();
    let before = live(&store);
    while store.clean_one().unwrap() {}
    assert!(store.clean_status().bytes_moved > 0);
    assert_eq!(live(&store), before);
    assert_clean(&store);
    drop(store);
    let store = mount(&device);
    let mut model = pattern(1, SIZE);
    assert!(read(&store, "o").unwrap() == model[..100_000]);
    model[10..30].fill(0);
    assert!(read(&store, "clone").unwrap() == model);
    assert_clean(&store);
}

#[test]
fn a_reader_of_a_clone_keeps_what_it_has_open() {
    let (_, store) = fresh();
    clone(&store, "o", "clone");
    let reader = store.open("c", "clone").unwrap();
    remove(&store, "clone");
    put(&store, "o", b"small").unwrap();
    let mut data = vec![0; SIZE];
    assert_eq!(reader.read_at(0, &mut data).unwrap(), SIZE);
    assert!(data == pattern(1, SIZE));
    drop(reader);
    while store.clean_one().unwrap() {}
    assert_clean(&store);
}

#[test]
fn a_range_of_an_object_is_cloned_into_itself() {
    let (_, store) = fresh();
    let mut model = pattern(1, SIZE);
    commit(&store, |tx| {
        _ = tx.clone_range(("c", "o"), 1_000..200_000, ("c", "o"), 50_000)
    });
    model.copy_within(1_000..200_000, 50_000);
    assert!(read(&store, "o").unwrap() == model);
    assert_clean(&store);
}

#[test]
fn a_missing_row_is_damage_and_no_hole() {
    let (device, store) = fresh();
    commit(&store, |tx| _ = tx.punch("c", "o", 65_536, 65_536));
    store.unmount().unwrap();
    drop(store);
    // The rows of the hole and of the data after it: a key ends with its extent's end.
    for end in [131_072, SIZE as u64] {
        let (fs, kv) = database(&device);
        let rows: Vec<_> = kv.scan(b"X", Some(b"Y")).map(Result::unwrap).collect();
        let row = rows
            .iter()
            .find(|(key, _)| key.ends_with(&end.to_be_bytes()));
        let (key, value) = row.unwrap();
        let mut batch = Batch::default();
        batch.delete(key);
        kv.write(&batch, Durability::Synced).unwrap();
        kv.flush().unwrap();
        let before = (key.clone(), value.clone());
        drop((kv, fs));
        let store = mount(&device);
        let error = read(&store, "o").unwrap_err();
        assert!(matches!(error, Error::CorruptMetadata { .. }));
        let told = error.to_string();
        assert!(told.starts_with("object \"c/o\": "), "{told}");
        assert!(!store.fsck(false, &mut |_, _| {}).unwrap().is_clean());
        store.unmount().unwrap();
        drop(store);
        let (fs, kv) = database(&device);
        let mut batch = Batch::default();
        batch.put(&before.0, &before.1);
        kv.write(&batch, Durability::Synced).unwrap();
        kv.flush().unwrap();
        drop((kv, fs));
    }
}

#[test]
fn commits_on_clones_of_one_object_keep_their_references_right() {
    let (_, store) = fresh();
    let names: Vec<String> = (0..4).map(|i| format!("clone{i}")).collect();
    names.iter().for_each(|name| clone(&store, "o", name));
    std::thread::scope(|scope| {
        for (i, name) in names.iter().enumerate() {
            let store = &store;
            scope.spawn(move || {
                for round in 0..60 {
                    let at = (i as u64 * 7_001 + round * 12_345) % 290_000;
                    commit(store, |tx| _ = tx.punch("c", name, at, 900));
                }
            });
        }
    });
    assert_clean(&store);
    for name in names {
        remove(&store, &name);
    }
    remove(&store, "o");
    assert_eq!(live(&store), 0);
    assert_clean(&store);
}

#[test]
fn an_object_says_where_it_has_data_and_where_holes() {
    let (_, store) = fresh();
    let ranges = |from, to| {
        let reader = store.open("c", "o").unwrap();
        let ranges = reader.data_ranges(from..to).unwrap().into_iter();
        ranges.map(|r| (r.start, r.end)).collect::<Vec<_>>()
    };
    let size = SIZE as u64;
    assert_eq!(ranges(0, u64::MAX), [(0, size)]);
    // Data, a hole, cloned data, and a hole that makes the object larger.
    commit(&store, |tx| {
        tx.punch("c", "o", 70_000, 60_000)
            .clone_range(("c", "o"), 0..10_000, ("c", "o"), 100_000)
            .punch("c", "o", size, 1_000_000);
    });
    let data = [(0, 70_000), (100_000, 110_000), (130_000, size)];
    assert_eq!(ranges(0, u64::MAX), data);
    assert_eq!(ranges(1, 70_001), [(1, 70_000)]);
    assert_eq!(
        ranges(69_999, 109_000),
        [(69_999, 70_000), (100_000, 109_000)]
    );
    assert_eq!(ranges(110_000, 130_000), []);
    assert_eq!(ranges(size, size + 1), []);
    assert_eq!(ranges(u64::MAX, u64::MAX), []);
    assert_eq!(store.open("c", "o").unwrap().info().size, size + 1_000_000);
    // An object that consists of several maps.
    put(&store, "p", b"part").unwrap();
    commit(&store, |tx| {
        let parts = [("c", "o"), ("c", "p")];
        tx.assemble("c", "o", &parts, store::Attributes::new());
    });
    let end = size + 1_000_000;
    let expected = [(130_000, size), (end, end + 4)];
    assert_eq!(ranges(120_000, u64::MAX), expected);
}
