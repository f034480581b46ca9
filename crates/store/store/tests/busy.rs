//! A database that refuses batches for a while, for it finds no space to compact: the store tries again and never
//! fails.

use crate::common::*;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Database, Durability, Engine, Options, ReplayFilter, Result, Scan};
use kv_log::KvLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::{Error, MountOptions, Store, Transaction};

/// The small database, which refuses as many writes as the counter says.
struct Refusing(Arc<AtomicU32>);
struct RefusingDatabase(Box<dyn Database>, Arc<AtomicU32>);

impl Engine for Refusing {
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
        Ok(Box::new(RefusingDatabase(database, self.0.clone())))
    }
}

impl Database for RefusingDatabase {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let less = |left: u32| left.checked_sub(1);
        let left = &self.1;
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Err(kv::Error::Busy {
                message: "writes are stopped".to_owned(),
            }),
            Err(_) => self.0.write(batch, durability),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        self.0.scan(lower, upper)
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

    fn stored_bytes(&self) -> u64 {
        self.0.stored_bytes()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.0.property(name)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

#[test]
fn what_the_database_does_not_take_is_tried_again_and_stops_no_store() {
    let refuse = Arc::new(AtomicU32::new(0));
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let engine = || Refusing(refuse.clone());
    let made = store::MkfsOptions {
        runtime: options().runtime,
        ..store::MkfsOptions::new(engine())
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let mounted = MountOptions {
        background: false,
        runtime: options().runtime,
        ..MountOptions::new(engine())
    };
    let store = Store::mount(device, mounted).unwrap();
    create_collection(&store);
    // Takes map numbers, which come many at a time, so that the next put writes one batch.
    put(&store, "first", &pattern(0, 100_000)).unwrap();

    refuse.store(2, Ordering::Relaxed);
    put(&store, "later", &pattern(1, 100_000)).unwrap();
    assert_eq!(refuse.load(Ordering::Relaxed), 0);

    // While all batches are refused, a put and a removal change nothing.
    refuse.store(u32::MAX, Ordering::Relaxed);
    let live = store.statfs().live_bytes;
    let refused = put(&store, "never", &pattern(2, 100_000)).unwrap_err();
    assert!(
        matches!(refused, Error::NoMetadataSpace { .. }),
        "{refused}"
    );
    let mut removal = Transaction::new();
    removal.remove("c", "later");
    assert!(store.commit(removal).is_err());
    assert_eq!((store.failure(), store.statfs().live_bytes), (None, live));

    refuse.store(0, Ordering::Relaxed);
    assert!(read(&store, "never").is_err());
    assert!(read(&store, "later").unwrap() == pattern(1, 100_000));
    put(&store, "never", &pattern(3, 100_000)).unwrap();
    assert_clean(&store);
}
