//! Cost of a page of a listing in hash order, in rows read, and of a split and a merge, in changes written: the same
//! with few objects and with many.

use crate::common::*;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Cursor, Database, Durability, Engine, Options, ReplayFilter, Result, Scan};
use kv_log::KvLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{
    Attributes, HashPrefix, HashSource, Hashed, MkfsOptions, MountOptions, Store, Transaction,
};

/// Rows that scans have read, and changes that batches have written.
#[derive(Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
}

/// The small database with [`Counts`].
struct Counting(Arc<Counts>);
struct CountedDatabase(Box<dyn Database>, Arc<Counts>);
struct CountedScan<'a>(Scan<'a>, &'a Counts);

impl Engine for Counting {
    fn name(&self) -> &'static str {
        KvLog.name()
    }

    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Box<dyn Database>> {
        let database = KvLog.open(fs, directory, options, filter)?;
        Ok(Box::new(CountedDatabase(database, self.0.clone())))
    }
}

impl Database for CountedDatabase {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let changes = batch.changes().count() as u64;
        self.1.written.fetch_add(changes, Ordering::Relaxed);
        self.0.write(batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        Box::new(CountedScan(self.0.scan(lower, upper), &self.1))
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn compact(&self) -> Result<()> {
        self.0.compact()
    }

    fn settle(&self, patience: Duration) -> Result<bool> {
        self.0.settle(patience)
    }

    fn flush_bytes(&self) -> u64 {
        self.0.flush_bytes()
    }

    fn stored_bytes(&self) -> u64 {
        self.0.stored_bytes()
    }

    fn is_compacting(&self) -> bool {
        self.0.is_compacting()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.0.property(name)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
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
    let engine = || Arc::new(Counting(counts.clone()));
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
