//! A database that refuses batches or flushes for a while, for it finds no space to compact: the store tries again and
//! never fails.

use crate::common::changed_database::{Calls, Changed};
use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Database, Durability, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use store::{Error, MountOptions, Store, Transaction};
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// How many writes, flushes and closes are refused.
#[derive(Default)]
struct Refused {
    /// Writes that pass before others are refused.
    before: AtomicU32,
    writes: AtomicU32,
    flushes: AtomicU32,
    closes: AtomicU32,
    /// Whether the database has stopped for good.
    is_stopped: AtomicBool,
}

fn refuse(left: &AtomicU32) -> Result<()> {
    let less = |left: u32| left.checked_sub(1);
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(_) => Err(kv::Error::Busy {
            message: "writes are stopped".to_owned(),
        }),
        Err(_) => Ok(()),
    }
}

impl Calls for Refused {
    fn write(&self, database: &dyn Database, batch: &Batch, durability: Durability) -> Result<()> {
        if refuse(&self.before).is_ok() {
            refuse(&self.writes)?;
        }
        database.write(batch, durability)
    }

    fn flush(&self, database: &dyn Database) -> Result<()> {
        refuse(&self.flushes)?;
        if self.is_stopped.load(Ordering::Relaxed) {
            let message = "the flush has failed".to_owned();
            return Err(kv::Error::Stopped { message });
        }
        database.flush()
    }

    fn close(&self, database: Box<dyn Database>) -> Result<()> {
        refuse(&self.closes)?;
        database.close()
    }
}

fn mount_refusing(device: &Arc<dyn ZonedDevice>, refused: &Arc<Refused>) -> Store {
    let options = MountOptions {
        background: false,
        runtime: options().runtime,
        ..MountOptions::new(Changed(refused.clone()))
    };
    Store::mount(device.clone(), options).unwrap()
}

/// A new store with a collection.
fn new_store() -> (Arc<dyn ZonedDevice>, Arc<Refused>, Store) {
    let (_, device, refused, store) = new_drive();
    (device, refused, store)
}

fn new_drive() -> (Arc<MemoryDrive>, Arc<dyn ZonedDevice>, Arc<Refused>, Store) {
    let refused = Arc::new(Refused::default());
    let drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let made = store::MkfsOptions {
        runtime: options().runtime,
        ..store::MkfsOptions::new(Changed(refused.clone()))
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let store = mount_refusing(&device, &refused);
    create_collection(&store);
    (drive, device, refused, store)
}

#[test]
fn a_reset_and_the_numbers_of_a_put_are_tried_again() {
    let (device, refused, store) = new_store();
    (0..8).for_each(|n| put(&store, &n.to_string(), &pattern(n, 100_000)).unwrap());
    store.seal_open_zones().unwrap();
    let mut tx = Transaction::new();
    for n in 0..8 {
        tx.remove("c", n.to_string());
    }
    store.commit(tx).unwrap();
    // Purges what was removed.
    store.tend().unwrap();
    refused.writes.store(1, Ordering::Relaxed);
    assert!(store.clean_one().unwrap());
    assert_eq!(refused.writes.load(Ordering::Relaxed), 0);
    store.unmount().unwrap();

    let store = mount_refusing(&device, &refused);
    refused.writes.store(1, Ordering::Relaxed);
    put(&store, "first", &pattern(1, 100_000)).unwrap();
    assert_eq!(refused.writes.load(Ordering::Relaxed), 0);
    assert_clean(&store);
}

/// A drive whose store was unmounted after it got two objects.
fn with_objects() -> Arc<MemoryDrive> {
    let (drive, _, _, store) = new_drive();
    for (name, seed) in [("first", 1), ("last", 2)] {
        put(&store, name, &pattern(seed, 100_000)).unwrap();
    }
    store.unmount().unwrap();
    drive
}

/// Mounts a copy of the drive and calls `ask`, again and again, and each time refuses another write once: first of those
/// of the mount, then of those of `ask`.
fn each_write_is_tried_again(drive: &MemoryDrive, ask: impl Fn(&Store)) {
    for before in 0.. {
        let device: Arc<dyn ZonedDevice> = Arc::new(drive.snapshot());
        let refused = Arc::new(Refused::default());
        refused.before.store(before, Ordering::Relaxed);
        refused.writes.store(1, Ordering::Relaxed);
        let store = mount_refusing(&device, &refused);
        ask(&store);
        if refused.writes.load(Ordering::Relaxed) > 0 {
            assert!(before > 0, "there is no write");
            break;
        }
    }
}

/// Flips a bit of each block with object data or a segment summary for which `is_hit` is true; returns how many there
/// were.
fn damage(drive: &MemoryDrive, is_hit: impl Fn(&[u8]) -> bool) -> usize {
    let geometry = drive.geometry().clone();
    let mut hit = 0;
    for told in drive.report(ZoneId(0), geometry.zone_count).unwrap() {
        if geometry.kind(told.id) == ZoneKind::Conventional {
            continue;
        }
        for offset in (0..told.write_pointer).step_by(4096) {
            let at = ZoneAddress::new(told.id, offset);
            let mut block = vec![0; 4096];
            drive.read(geometry.absolute(at), &mut block).unwrap();
            if is_hit(&block) {
                drive.decay(at, 100, |bytes| bytes[90] ^= 1);
                hit += 1;
            }
        }
    }
    hit
}

/// The scrub records the damage to an object, drops a summary that is damaged and copies its rows to another.
#[test]
fn what_a_scrub_writes_is_tried_again() {
    let drive = with_objects();
    let data = pattern(2, 100_000);
    let is_hit = |block: &[u8]| *block == data[..4096] || block.starts_with(b"ZSSEGSUM");
    assert_eq!(damage(&drive, is_hit), 2);
    each_write_is_tried_again(&drive, |store| {
        assert!(store.scrub(true, |_| true).unwrap());
        assert_eq!(store.scrub_status().unwrap().damaged_places, 1);
        assert_eq!(store.health().unwrap().losses[0].object, "c/last");
        let report = store.fsck(true, &mut |_, _| {}).unwrap();
        let copies = (report.summaries_unreadable, report.rows_without_copy);
        assert_eq!(copies, (0, 0));
    });
    each_write_is_tried_again(&with_objects(), |store| {
        store.scrub_stop().unwrap();
        store.scrub_start(false).unwrap();
        assert_eq!(store.scrub_status().unwrap().stopped_micros, None);
    });
}

/// The mount records that the objects are lost, the put reserves numbers, and the unmount writes a summary.
#[test]
fn what_a_mount_finds_lost_and_what_summaries_need_is_tried_again() {
    let drive = with_objects();
    let data = pattern(1, 100_000);
    let geometry = drive.geometry().clone();
    let mut zones = geometry.zones();
    let zone = zones.find(|zone| {
        let mut block = vec![0; 4096];
        let read = drive.read(geometry.start(*zone), &mut block);
        read.is_ok() && block == data[..4096]
    });
    set_back(&drive, zone.unwrap(), 8192);
    each_write_is_tried_again(&drive, |store| {
        assert_eq!(store.health().unwrap().lost_objects, 2);
        put(store, "new", &pattern(3, 100_000)).unwrap();
        store.unmount().unwrap();
    });
}

#[test]
fn an_unmount_whose_flush_failed_can_be_made_again() {
    let (device, refused, store) = new_store();
    put(&store, "object", &pattern(1, 100_000)).unwrap();
    refused.flushes.store(u32::MAX, Ordering::Relaxed);
    (0..2).for_each(|_| assert!(store.unmount().is_err()));
    refused.flushes.store(0, Ordering::Relaxed);
    (0..2).for_each(|_| store.unmount().unwrap());
    let store = mount_refusing(&device, &refused);
    assert!(read(&store, "object").unwrap() == pattern(1, 100_000));
}

/// What the database has not written out may be gone.
#[test]
fn an_unmount_behind_one_that_could_not_close_the_database_fails_too() {
    let (device, refused, store) = new_store();
    put(&store, "object", &pattern(1, 100_000)).unwrap();
    refused.closes.store(1, Ordering::Relaxed);
    let first = store.unmount().unwrap_err();
    for _ in 0..2 {
        let again = store.unmount().unwrap_err();
        assert!(again.to_string().contains(&first.to_string()), "{again}");
    }
    assert!(store.failure().is_none() && read(&store, "object").is_err());
    drop(store);
    let store = mount_refusing(&device, &refused);
    assert!(read(&store, "object").unwrap() == pattern(1, 100_000));
    store.unmount().unwrap();
}

#[test]
fn a_database_that_has_stopped_is_closed_by_the_second_unmount() {
    let (device, refused, store) = new_store();
    put(&store, "object", &pattern(1, 100_000)).unwrap();
    refused.is_stopped.store(true, Ordering::Relaxed);
    assert!(store.unmount().is_err());
    assert!(store.failure().is_some() && read(&store, "object").is_ok());
    (0..2).for_each(|_| store.unmount().unwrap());
    assert!(read(&store, "object").is_err());
    refused.is_stopped.store(false, Ordering::Relaxed);
    let store = mount_refusing(&device, &refused);
    assert!(read(&store, "object").unwrap() == pattern(1, 100_000));
}

#[test]
fn what_the_database_does_not_take_is_tried_again_and_stops_no_store() {
    let (_, refused, store) = new_store();
    let refuse = &refused.writes;
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
