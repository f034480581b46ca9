//! Space for metadata while the cleaner has none for itself.

use super::*;
use crate::format::key;
use crate::summary_writer::{Why, read_places};
use crate::test_drive::changed_database::Calls;
use crate::test_drive::{changed, drive, mount, options_with, put, remove};
use crate::{Attributes, Store, Transaction};
use device::MemoryDrive;
use device::changed::Change;
use kv::Database;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::thread;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::Purpose;

/// Refuses the next write.
#[derive(Default)]
struct RefusesOne(AtomicBool);

impl Calls for RefusesOne {
    fn write(
        &self,
        database: &dyn Database,
        batch: &Batch,
        durability: Durability,
    ) -> kv::Result<()> {
        if self.0.swap(false, Ordering::Relaxed) {
            let message = "writes are stopped".to_owned();
            return Err(kv::Error::Busy { message });
        }
        database.write(batch, durability)
    }
}

/// Compactions gain something each time, because others remove rows meanwhile.
#[derive(Default)]
struct Gains(OnceLock<Store>);

impl Calls for Gains {
    fn settle(&self, _: &dyn Database, _: Duration) -> kv::Result<bool> {
        let inner = &self.0.get().unwrap().inner;
        inner.garbage.fetch_add(1000, Ordering::Relaxed);
        Ok(true)
    }
}

#[test]
fn a_put_that_does_not_fit_is_refused_while_others_remove() {
    let gains = Arc::<Gains>::default();
    let store = Store::mount(drive(), options_with(&gains)).unwrap();
    assert!(gains.0.set(store.clone()).is_ok());
    store.inner.garbage.fetch_add(1000, Ordering::Relaxed);
    let refused = store.inner.check_fits(1 << 40);
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
}

#[test]
fn a_commit_beside_an_unmount_is_refused_and_no_failure() {
    let store = mount(&drive());
    let database = store.inner.kv.write().take();
    let refused = store.inner.reserve_numbers();
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    assert_eq!(store.failure(), None);
    *store.inner.kv.write() = database;
    store.unmount().unwrap();
}

#[test]
fn rows_that_belong_to_no_commit_are_written_at_the_second_try() {
    let (drive, refusing) = (drive(), Arc::<RefusesOne>::default());
    let store = Store::mount(drive.clone(), options_with(&refusing)).unwrap();
    let inner = &store.inner;
    let refused = |ask: &dyn Fn() -> Result<()>| {
        refusing.0.store(true, Ordering::Relaxed);
        ask().unwrap();
        assert!(!refusing.0.load(Ordering::Relaxed), "nothing was written");
    };
    // None is reserved yet.
    refused(&|| inner.take_number().map(drop));
    put(&store, "object");
    refused(&|| {
        inner.write_summaries(inner.data.of(0), Why::All);
        assert_eq!(inner.summaries.waiting_rows(), 0);
        Ok(())
    });
    refused(&|| inner.tell_all_copied());
    let worn_out = ZoneId(90);
    refused(&|| {
        let write = |batch: &Batch| inner.write_rows(batch, Durability::Synced);
        inner.retired.learn(vec![worn_out], write)
    });
    let kv = inner.kv().unwrap();
    assert!(kv.get(key::SUPER_RETIRED).unwrap().is_some());
    let zone = store.zones()[0].zone;
    let damaged = read_places(&kv, zone).unwrap()[0];
    let at = ZoneAddress::new(zone, u64::from(damaged.0) * 4096);
    drive.decay(at, 1, |bytes| bytes[0] ^= 1);
    refused(&|| inner.drop_lost_summaries(zone));
    assert!(!read_places(&kv, zone).unwrap().contains(&damaged));
}

/// A zone that is in memory and not in the record would be left out of all later records.
#[test]
fn a_worn_out_zone_whose_record_was_not_written_is_new_the_next_time() {
    let store = mount(&drive());
    let inner = &store.inner;
    let learn = |written: Result<()>| inner.retired.learn(vec![ZoneId(90)], |_| written);
    learn(Err(Error::Incomplete)).unwrap_err();
    let mut writes = 0;
    let write = |_: &Batch| {
        writes += 1;
        Ok(())
    };
    inner.retired.learn(vec![ZoneId(90)], write).unwrap();
    assert_eq!(writes, 1);
}

#[test]
fn a_cleaner_without_a_zone_keeps_no_removed_rows_from_being_compacted() {
    let store = mount(&drive());
    (0..8).for_each(|n| put(&store, &n.to_string()));
    store.seal_open_zones().unwrap();
    (0..4).for_each(|n| remove(&store, &n.to_string()));
    let inner = &store.inner;
    while inner.pool.take(Purpose::Cleaning).is_some() {}
    inner.garbage.store(1000, Ordering::Relaxed);
    let admitted = inner.admit_metadata(0);
    assert!(
        matches!(admitted, Err(Error::NoMetadataSpace { .. })),
        "{admitted:?}"
    );
    assert_eq!(inner.garbage.load(Ordering::Relaxed), 0);
}

/// Free bytes of the host's disk, and how often somebody asked for them.
#[derive(Default)]
struct Disk {
    free: AtomicU64,
    asked: AtomicU64,
}

impl Change<MemoryDrive> for Disk {
    fn host_free_bytes(&self, _: &MemoryDrive) -> Option<u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Some(self.free.load(Ordering::Relaxed))
    }
}

/// What another thread has taken to purge it counts as neither doomed nor dead until its batch is written.
#[test]
fn a_put_on_a_full_host_waits_for_a_purge_under_way() {
    // So few that no answer is used twice.
    let enough = 512 << 20;
    let disk = Disk::default();
    disk.free.store(enough, Ordering::Relaxed);
    let (drive, store) = changed(disk);
    let (disk, maps) = (&drive.change, &store.inner.open_maps);
    maps.doom([77]);
    let (map, _) = maps.take_doomed().unwrap();
    disk.free.store(0, Ordering::Relaxed);
    let before = disk.asked.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let put = scope.spawn(|| store.inner.check_fits(1000));
        // It has found the disk full, and asked for what is free.
        while disk.asked.load(Ordering::Relaxed) < before + 2 {
            thread::yield_now();
        }
        disk.free.store(enough, Ordering::Relaxed);
        maps.end_purge(map, None);
        put.join().unwrap().unwrap();
    });
    disk.free.store(0, Ordering::Relaxed);
    let refused = store.inner.check_fits(1000);
    assert!(
        matches!(refused, Err(Error::HostFull { .. })),
        "{refused:?}"
    );
}

/// A put purges no more than it needs.
#[test]
fn a_put_takes_over_a_purge_that_another_one_leaves_half_way() {
    let size = 16 << 20;
    let store = mount(&drive());
    let inner = &store.inner;
    let mut writer = store.writer(None).unwrap();
    writer.write(&vec![7; size]).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "large", writer.finish().unwrap(), Attributes::new());
    store.commit(tx).unwrap();
    let reader = store.open("c", "large").unwrap();
    remove(&store, "large");
    drop(reader);
    let (map, purged) = inner.open_maps.take_doomed().unwrap();
    let wanted = inner.data_capacity() - size as u64 / 2;
    let asked = AtomicU64::new(0);
    let fits = |capacity| {
        asked.fetch_add(1, Ordering::Relaxed);
        inner.freelist.fits(wanted, capacity)
    };
    assert!(!fits(inner.data_capacity()));
    thread::scope(|scope| {
        let put = scope.spawn(|| inner.find_space(wanted, fits));
        // It has found nothing to purge.
        while asked.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
        inner.open_maps.end_purge(map, Some(purged));
        put.join().unwrap().unwrap();
    });
}

/// The cleaner's thread may have found nothing to purge while a put had one of the maps.
#[test]
fn a_put_that_leaves_removed_objects_to_the_cleaner_wakes_it() {
    let store = mount(&drive());
    for name in ["first", "second"] {
        put(&store, name);
        let reader = store.open("c", name).unwrap();
        remove(&store, name);
        drop(reader);
    }
    let inner = &store.inner;
    inner.cleaner.asked();
    inner.purge_in_need(|| false).unwrap();
    assert!(inner.cleaner.asked().nudged);
    inner.purge_in_need(|| false).unwrap();
    assert!(!inner.cleaner.asked().nudged);
}
