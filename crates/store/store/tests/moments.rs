//! A moment (a consistent view of the store) keeps SSTs that were replaced since it began. If writes need their space,
//! the moment is given up before any write is refused.

use crate::common::{assert_clean, create_collection, geometry, pattern};
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use store::{Error, MkfsOptions, MountOptions, ScrubPlan, Store, Transaction};

/// Each object gets attributes of a tenth of a zone. All of them twice, and once more for a compaction, are more than
/// the drive has.
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
    // Without data and without a cleaner, only the metadata can need zones.
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
        // Dropped when the round ends or an assertion fails, so that the reader never loops for ever.
        let (goes_on, is_over) = channel::<()>();
        thread::scope(|scope| {
            let store = &store;
            let reader = scope.spawn(move || {
                store.at_moment(|moment| {
                    begun.send(()).unwrap();
                    // Checks the moment before each read, as a backup does.
                    while let Err(TryRecvError::Empty) = is_over.try_recv() {
                        moment.watch().check()?;
                        moment.open("c", format!("o{}", round % OBJECTS))?;
                        thread::yield_now();
                    }
                    // It may have been given up and the round ended since this thread's last turn.
                    moment.watch().check()?;
                    Ok::<(), Error>(())
                })
            });
            has_begun.recv().unwrap();
            let goes_on = goes_on;
            // No write is refused.
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
