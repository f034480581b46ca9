//! Cost of a page of a listing in hash order, in rows read, and of a split and a merge, in changes written: the same
//! with few objects and with many.

use crate::common::changed_database::{Calls, Changed};
use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Cursor, Database, Durability, Result, Scan};
use kv_log::KvLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{
    Attributes, HashPrefix, HashSource, Hashed, MkfsOptions, MountOptions, Store, Transaction,
};

/// Rows that scans have read, and changes that batches have written.
#[derive(Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
}

struct CountedScan<'a>(Scan<'a>, &'a Counts);

impl Calls for Counts {
    fn write(&self, database: &dyn Database, batch: &Batch, durability: Durability) -> Result<()> {
        let changes = batch.changes().count() as u64;
        self.written.fetch_add(changes, Ordering::Relaxed);
        database.write(batch, durability)
    }

    fn scan<'a>(
        &'a self,
        database: &'a dyn Database,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Scan<'a> {
        Box::new(CountedScan(database.scan(lower, upper), self))
    }
}

impl Iterator for CountedScan<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.1.read.fetch_add(1, Ordering::Relaxed);
        self.0.next()
    }
}

impl Cursor for CountedScan<'_> {
    fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }
}

fn commit(store: &Store, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    store.commit(tx).unwrap();
}

/// With `objects` objects: the most rows read for a page, and the changes written by a split and a merge together.
fn costs(objects: u32) -> (u64, u64) {
    let counts = Arc::<Counts>::default();
    let engine = || Arc::new(Changed(counts.clone()));
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let made = MkfsOptions {
        engine: engine(),
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let mounted = MountOptions {
        engine: engine(),
        ..options()
    };
    let store = Store::mount(device, mounted).unwrap();
    let hashed = Hashed {
        family: 1,
        source: HashSource::Xxh3,
        prefix: HashPrefix::ALL,
    };
    commit(&store, |tx| {
        tx.create_hashed_collection("h", hashed, Attributes::new());
        (0..objects).for_each(|n| _ = tx.touch("h", n.to_string()));
    });
    let (mut seen, mut most) = (Vec::new(), 0);
    loop {
        let from = seen.last().cloned().unwrap_or_default();
        let before = counts.read.load(Ordering::Relaxed);
        let page = store.list("h", "", &from, 10).unwrap();
        most = most.max(counts.read.load(Ordering::Relaxed) - before);
        seen.extend(
            page.iter()
                .map(|info| info.name.clone())
                .filter(|name| *name != from),
        );
        if page.len() < 10 {
            break;
        }
    }
    assert_eq!(seen.len(), objects as usize);
    let before = counts.written.load(Ordering::Relaxed);
    commit(&store, |tx| {
        _ = tx.split_collection("h", "i", Attributes::new())
    });
    let listed = |name| store.list(name, "", "", usize::MAX).unwrap().len();
    assert_eq!(listed("h") + listed("i"), objects as usize);
    commit(&store, |tx| _ = tx.merge_collection("h", "i"));
    assert_eq!(listed("i"), objects as usize);
    (most, counts.written.load(Ordering::Relaxed) - before)
}

#[test]
fn a_page_a_split_and_a_merge_cost_the_same_however_many_objects_there_are() {
    let (few, many) = (costs(40), costs(10_000));
    assert_eq!(few, many);
    assert!(few.0 <= 11 && few.1 < 12, "{few:?}");
}
