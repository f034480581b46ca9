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
const STEPS: [(&str, Step); 6] = [
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
