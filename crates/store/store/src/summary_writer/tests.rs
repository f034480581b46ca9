//! What is written while others commit, and what is counted after a failure.

use super::*;
use crate::Store;
use crate::test_drive::{changed, drive, mount, put, remove};
use device::MemoryDrive;
use device::changed::Change;
use runtime::sync::Mutex;
use zone::{ByteOffset, ZoneResult};

/// Most puts that a [`Busy`] makes.
const MOST: usize = 20;

/// For each summary that is written, another thread puts an object first.
#[derive(Default)]
struct Busy {
    store: Mutex<Option<Store>>,
    puts: Mutex<usize>,
}

impl Change<MemoryDrive> for Busy {
    fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let store = self.store.lock().clone();
        if let Some(store) = store.filter(|_| summary::begins(data)) {
            let mut puts = self.puts.lock();
            *puts += 1;
            if *puts < MOST {
                std::thread::scope(|threads| {
                    threads.spawn(|| put(&store, "beside")).join().unwrap()
                });
            }
        }
        drive.write(at, data)
    }
}

#[test]
fn a_reset_writes_no_block_for_each_commit_beside_it() {
    let (drive, store) = changed(Busy::default());
    (0..8).for_each(|n| put(&store, &n.to_string()));
    store
        .inner
        .write_summaries(store.inner.data.of(0), Why::All);
    store.seal_open_zones().unwrap();
    (0..4).for_each(|n| remove(&store, &n.to_string()));
    *drive.change.store.lock() = Some(store.clone());
    assert!(store.clean_one().unwrap());
    *drive.change.store.lock() = None;
    assert_eq!(*drive.change.puts.lock(), 1);
}

#[test]
fn a_summary_that_is_not_entered_is_not_counted() {
    let store = mount(&drive());
    put(&store, "object");
    let zone = store.zones().last().unwrap().zone;
    let mut batch = Batch::default();
    batch.put(&key::summaries(zone), &[9]);
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    let before = store.inner.freelist.summary_bytes();
    store
        .inner
        .write_summaries(store.inner.data.of(0), Why::All);
    assert!(store.inner.summaries.waiting_rows() > 0);
    assert_eq!(store.inner.freelist.summary_bytes(), before);
}
