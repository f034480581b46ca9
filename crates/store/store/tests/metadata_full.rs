//! Operations that make metadata larger are refused before they take the space that is reserved for removals.

use crate::common::{
    assert_clean, create_collection, geometry, mkfs, mkfs_in_copies, mount, pattern, put,
};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use std::sync::Arc;
use store::{Attributes, Error, Transaction};
use zone::Geometry;

type Step = fn(&mut Transaction, u64, Attributes);

/// Operations that each add about as much metadata as the attributes given to them.
const STEPS: [(&str, Step); 7] = [
    ("put nothing", |_, _, _| {}),
    ("clone", |tx, _, large| {
        tx.set_attributes("c", "source", large);
    }),
    ("clone a range", |tx, n, large| {
        let name = format!("new{n}");
        tx.clone_range(("c", "source"), 0..5, ("c", &name), 0)
            .set_attributes("c", &name, large);
    }),
    ("touch", |tx, n, large| {
        let name = format!("new{n}");
        tx.touch("c", &name).set_attributes("c", &name, large);
    }),
    ("update attributes", |tx, n, large| {
        let large = large.into_values().map(|v| (format!("{n}"), v));
        let name = format!("source{}", n % 200);
        tx.update_attributes("c", &name, large.collect(), &[]);
    }),
    ("omap", |tx, n, large| {
        let large = large.into_values().map(|v| (n.to_be_bytes().to_vec(), v));
        tx.omap_set("c", "source", large.collect());
    }),
    ("create a collection", |tx, n, large| {
        tx.create_collection(&format!("new{n}"), large);
    }),
];

#[test]
fn nothing_takes_what_is_kept_for_deletions() {
    for (what, step) in STEPS {
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
        mkfs(&device);
        let store = mount(&device);
        create_collection(&store);
        put(&store, "source", b"bytes").unwrap();
        for n in 0..200 {
            put(&store, &format!("source{n}"), b"bytes").unwrap();
        }
        let mut done = 0;
        let error = loop {
            let large = Attributes::from([("large".to_owned(), pattern(done, 40_000))]);
            let mut tx = Transaction::new();
            if what == "clone" {
                let name = format!("new{done}");
                tx.clone_object(("c", "source"), ("c", &name));
            }
            if what == "put nothing" {
                let data = store.nothing().unwrap();
                tx.put("c", format!("new{done}"), data, large.clone());
            }
            step(&mut tx, done, large);
            match store.commit(tx) {
                Ok(()) => done += 1,
                Err(error) => break error,
            }
            assert!(done < 20_000, "{what}: never refused");
        };
        assert!(
            matches!(error, Error::NoMetadataSpace { .. }),
            "{what}, {done}: {error}"
        );
        for n in 0..200 {
            let mut tx = Transaction::new();
            tx.remove("c", format!("source{n}"));
            store.commit(tx).unwrap();
        }
        drop(store);
        let store = mount(&device);
        let mut tx = Transaction::new();
        tx.remove("c", "source");
        store.commit(tx).unwrap();
        assert_clean(&store);
    }
}

/// Sets an omap of `values` values of 256 KiB in one transaction.
fn omap(object: &str, values: u64) -> Transaction {
    let rows = (0..values).map(|n| (n.to_be_bytes().to_vec(), pattern(n, 256 << 10)));
    let mut tx = Transaction::new();
    tx.touch("c", object).omap_set("c", object, rows.collect());
    tx
}

/// Transactions that need more space than there is at once are refused: written all the same, either would stop the
/// store.
#[test]
fn what_finds_no_room_at_once_is_refused() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let refused = |tx| {
        let error = store.commit(tx).unwrap_err();
        assert!(
            matches!(error, Error::TransactionTooLarge { .. }) && error.is_no_space(),
            "{error}"
        );
    };
    refused(omap("large", 1000));
    let mut puts = Transaction::new();
    for n in 0..200 {
        let large = Attributes::from([("large".to_owned(), pattern(n, 1 << 19))]);
        puts.put("c", format!("{n}"), store.nothing().unwrap(), large);
    }
    refused(puts);
    assert!(store.list("c", "", "", 9).unwrap().is_empty());
    store.commit(omap("source", 20)).unwrap();
    // Clones of clones within one transaction; their size is known only once they have been made.
    let mut chain = Transaction::new();
    for n in 0..20 {
        let (from, to) = (format!("copy{}", n - 1), format!("copy{n}"));
        let from = if n == 0 { "source" } else { &from };
        chain.clone_object(("c", from), ("c", &to));
    }
    refused(chain);
    let mut copies = 0;
    loop {
        let mut tx = Transaction::new();
        tx.clone_object(("c", "source"), ("c", format!("{copies}")));
        match store.commit(tx) {
            Ok(()) => copies += 1,
            Err(Error::NoMetadataSpace { .. } | Error::TransactionTooLarge { .. }) => break,
            Err(error) => panic!("{copies}: {error}"),
        }
    }
    assert!(copies > 0);
    put(&store, "small", b"bytes").unwrap_or_else(|error| assert!(error.is_no_space()));
    for found in store.list("c", "", "", 1000).unwrap() {
        let mut tx = Transaction::new();
        tx.remove("c", &found.name);
        store.commit(tx).unwrap();
    }
    drop(store);
    let store = mount(&device);
    assert_clean(&store);
    store.commit(omap("source", 20)).unwrap();
}

/// Removing all rows of a full omap in one transaction would take more than is reserved for removals; written by half,
/// it would stop the store or keep it from mounting again. Removals in parts succeed.
#[test]
fn rows_of_a_full_omap_go_in_parts() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let mut store = mount(&device);
    create_collection(&store);
    put(&store, "small", b"bytes").unwrap();
    let name = |row: u32| [&row.to_be_bytes()[..], &[7; 58]].concat();
    let mut rows = 0;
    loop {
        let mut tx = Transaction::new();
        let some = (rows..rows + 500).map(|row| (name(row), pattern(row.into(), 300)));
        tx.touch("c", "o").omap_set("c", "o", some.collect());
        match store.commit(tx) {
            Ok(()) => rows += 500,
            Err(Error::NoMetadataSpace { .. }) => break,
            Err(error) => panic!("{rows}: {error}"),
        }
    }
    let range = |first: u32, last: u32| {
        let mut tx = Transaction::new();
        tx.omap_remove_range("c", "o", &name(first)..&name(last));
        tx
    };
    let keys = |first: u32, last: u32| {
        let mut tx = Transaction::new();
        let names: Vec<_> = (first..last).map(name).collect();
        let names: Vec<_> = names.iter().map(Vec::as_slice).collect();
        tx.omap_remove("c", "o", &names);
        tx
    };
    for tx in [range(0, rows), keys(0, rows)] {
        let error = store.commit(tx).unwrap_err();
        assert!(
            matches!(error, Error::TransactionTooLarge { .. }),
            "{error}"
        );
        assert!(error.is_no_space());
    }
    assert_eq!(store.omap("c", "o", &[], 1).unwrap().len(), 1);
    let mut tx = Transaction::new();
    tx.remove("c", "small");
    store.commit(tx).unwrap();
    // Parts grow until one is refused, which depends on what the database has compacted by then; the smallest part
    // never is.
    let (mut first, mut part, mut refused) = (0, 2000, 0);
    while first < rows {
        let last = (first + part).min(rows);
        let tx = if first % 3 == 0 {
            range(first, last)
        } else {
            keys(first, last)
        };
        match store.commit(tx) {
            Ok(()) => (first, part) = (last, part * 2),
            Err(Error::TransactionTooLarge { .. }) if part > 2000 => {
                (part, refused) = (2000, refused + 1)
            }
            Err(error) => panic!("{first}, {part}: {error}"),
        }
        if refused % 4 == 1 {
            drop(store);
            store = mount(&device);
        }
    }
    drop(store);
    let store = mount(&device);
    assert_clean(&store);
    assert!(store.omap("c", "o", &[], 1).unwrap().is_empty());
    let mut tx = Transaction::new();
    let some = (0..rows / 2).map(|row| (name(row), pattern(row.into(), 300)));
    let some: Vec<_> = some.collect();
    for part in some.chunks(500) {
        tx.omap_set("c", "o", part.iter().cloned().collect());
        store.commit(std::mem::take(&mut tx)).unwrap();
    }
}

/// A removal record is as large as a long name, and stays in the database until compaction merges it with its row. For
/// names in random order, every SST gets some of these records at once.
#[test]
fn objects_of_a_full_drive_go_in_any_order() {
    for (zones, pad, at_once) in [(64, 1000, 1), (96, 220, 1000)] {
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
        mkfs(&device);
        let mut store = mount(&device);
        create_collection(&store);
        let mut random = fastrand::Rng::with_seed(1);
        let pad = "k".repeat(pad);
        let mut names = Vec::new();
        // After a refusal the database compacts and takes more, so the drive is filled four times.
        for _ in 0..4 {
            loop {
                let some: Vec<_> = (0..200)
                    .map(|n| format!("{:08}{pad}", names.len() + n))
                    .collect();
                let mut tx = Transaction::new();
                for name in &some {
                    let value = (0..60).map(|_| random.u8(..)).collect();
                    let attributes = Attributes::from([("a".to_owned(), value)]);
                    tx.touch("c", name).set_attributes("c", name, attributes);
                }
                match store.commit(tx) {
                    Ok(()) => names.extend(some),
                    Err(Error::NoMetadataSpace { .. }) => break,
                    Err(error) => panic!("{}: {error}", names.len()),
                }
            }
            store.flush().unwrap();
        }
        random.shuffle(&mut names);
        let count = names.len();
        for (n, some) in names.chunks(at_once).enumerate() {
            if n == count / at_once / 4 {
                drop(store);
                store = mount(&device);
            }
            store
                .remove_all("c", some)
                .unwrap_or_else(|error| panic!("{n} of {count}: {error}"));
        }
        assert!(store.list("c", "", "", 1).unwrap().is_empty());
        drop(store);
        let store = mount(&device);
        assert_clean(&store);
        put(&store, "new", &pattern(1, 1 << 20)).unwrap();
    }
}

/// SSTs in two copies take nearly all of a small drive, with rows in all levels. The space reserved for compactions
/// then has to be enough for each of them.
#[test]
fn a_drive_full_of_metadata_can_be_emptied() {
    for seed in 0..4 {
        let mut dice = Rng::with_seed(seed);
        let small = Geometry {
            zone_size: 512 << 10,
            zone_capacity: 268 << 10,
            conventional_zones: 0,
            ..geometry(180)
        };
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(small).unwrap());
        mkfs_in_copies(&device, Some(2));
        let store = mount(&device);
        create_collection(&store);
        let mut names = Vec::new();
        let mut refused = 0;
        while refused < 3 {
            let rows = (0..dice.u64(1..1500)).map(|row| {
                let key = row.to_be_bytes().to_vec();
                (key, pattern(row, dice.usize(0..120)))
            });
            let rows = rows.collect();
            let name = format!("{:08x}", dice.u32(..));
            let mut tx = Transaction::new();
            tx.touch("c", &name).omap_set("c", &name, rows);
            match store.commit(tx) {
                Ok(()) => names.push(name),
                Err(Error::NoMetadataSpace { .. }) => refused += 1,
                Err(error) => panic!("seed {seed}, {}: {error}", names.len()),
            }
        }
        let free = store.statfs().free_zones;
        println!("{} objects, {free} zones left", names.len());
        assert!(free >= 16, "seed {seed}: {free} zones are left");
        dice.shuffle(&mut names);
        for (removed, name) in names.iter().enumerate() {
            let mut tx = Transaction::new();
            tx.remove("c", name);
            let done = store.commit(tx);
            done.unwrap_or_else(|error| panic!("seed {seed}, {removed} removed: {error}"));
        }
        assert_clean(&store);
    }
}
