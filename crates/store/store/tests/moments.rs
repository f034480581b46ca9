//! A moment keeps tables of the metadata that were replaced since, and is given up before anybody is refused for that.

use crate::common::{assert_clean, create_collection, geometry, pattern};
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use store::{Error, MkfsOptions, MountOptions, ScrubPlan, Store, Transaction};

/// Attributes of a tenth of a zone each: all of them twice, and once more for a compaction, are more than the drive has.
const OBJECTS: u64 = 200;
const ROUNDS: u64 = 10;

fn rewrite(store: &Store, round: u64) -> store::Result<()> {
    for number in 0..OBJECTS {
        let large = pattern(round * OBJECTS + number, 100_000);
        let mut tx = Transaction::new();
        tx.set_attributes(
            "c",
            format!("o{number}"),
            [("large".to_owned(), large)].into(),
        );
        store.commit(tx)?;
    }
    Ok(())
}

#[test]
fn a_moment_goes_before_metadata_is_refused() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    let made = MkfsOptions {
        uuid: [7; 16],
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
    // No data is written, and nobody cleans: only the metadata can be what needs zones.
    let options = MountOptions {
        background: false,
        scrub: ScrubPlan::NEVER,
        ..MountOptions::new(RocksDb)
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    for number in 0..OBJECTS {
        let mut tx = Transaction::new();
        tx.touch("c", format!("o{number}"));
        store.commit(tx).unwrap();
    }
    rewrite(&store, 0).unwrap();
    for round in 1..4 {
        let (begun, has_begun) = channel();
        // Dropped when this is through, also by a failed assertion: nobody reads for ever then.
        let (goes_on, is_over) = channel::<()>();
        thread::scope(|scope| {
            let store = &store;
            let reader = scope.spawn(move || {
                store.at_moment(|moment| {
                    begun.send(()).unwrap();
                    // As a backup does, which asks in front of each thing that it reads.
                    while let Err(TryRecvError::Empty) = is_over.try_recv() {
                        moment.watch().check()?;
                        moment.open("c", format!("o{}", round % OBJECTS))?;
                        thread::yield_now();
                    }
                    Ok::<(), Error>(())
                })
            });
            has_begun.recv().unwrap();
            let goes_on = goes_on;
            // Nothing of it is refused.
            for times in 0..ROUNDS {
                if reader.is_finished() {
                    break;
                }
                rewrite(store, round * 1000 + times).unwrap();
            }
            drop(goes_on);
            let read = reader.join().unwrap();
            assert!(matches!(read, Err(Error::MomentGivenUp)), "{read:?}");
        });
    }
    assert_clean(&store);
    store.unmount().unwrap();
}
