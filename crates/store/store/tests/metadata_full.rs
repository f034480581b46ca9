//! What makes metadata larger is refused before it takes what is kept for deletions.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_clean, create_collection, geometry, mkfs, mount, pattern, put};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Attributes, Error, Transaction};

type Step = fn(&mut Transaction, u64, Attributes);

/// Each adds about as much as these attributes are large.
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

/// An omap of so many values of 256 KiB in one transaction.
fn omap(object: &str, values: u64) -> Transaction {
    let rows = (0..values).map(|n| (n.to_be_bytes().to_vec(), pattern(n, 256 << 10)));
    let mut tx = Transaction::new();
    tx.touch("c", object).omap_set("c", object, rows.collect());
    tx
}

/// Written all the same, either would stop the store.
#[test]
fn what_finds_no_room_at_once_is_refused() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let refused = |tx| {
        let error = store.commit(tx).unwrap_err();
        assert!(matches!(error, Error::NoMetadataSpace { .. }), "{error}");
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
    // Copies of copies that the transaction makes itself: how large they are is known once they are made.
    let mut chain = Transaction::new();
    for n in 0..30 {
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
            Err(Error::NoMetadataSpace { .. }) => break,
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
