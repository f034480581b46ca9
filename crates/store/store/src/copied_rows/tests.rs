//! What the lock of summaries is held for, and what a mount knows of rows that are in no summary.

use super::MOST_INLINE;
use crate::format::scrub::DamageRecord;
use crate::format::{extent, key, summary, waiting};
use crate::rows::onode_key;
use crate::summary_writer::Why;
use crate::{Attributes, Store, Transaction, test_drive};
use device::changed::Change;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zone::{ByteOffset, ZoneAddress, ZoneCommand, ZoneError, ZoneResult};

/// Looks before each read whether the lock of a store's summaries is held.
#[derive(Default)]
struct Looks {
    store: Mutex<Option<Store>>,
    held: Mutex<Vec<bool>>,
}

impl Change<MemoryDrive> for Looks {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        if let Some(store) = &*self.store.lock().unwrap() {
            let is_held = store.inner.summaries.writing.try_lock().is_none();
            self.held.lock().unwrap().push(is_held);
        }
        drive.read(at, buffer)
    }
}

/// A read that does not return would stop the resets of all zones, and so all writes.
#[test]
fn nothing_is_read_from_the_drive_under_the_lock_of_summaries() {
    let (device, store) = test_drive::changed(Looks::default());
    test_drive::put(&store, "a");
    let inner = store.inner.clone();
    inner.write_summaries(inner.data.of(0), Why::All);
    let zone = store.zones().first().unwrap().zone;
    let damage = DamageRecord {
        length: 4096,
        is_mismatch: false,
        found_micros: 1,
    };
    let mut batch = Batch::default();
    batch.put(&key::damage(ZoneAddress::new(zone, 0)), &damage.encode());
    let kv = inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    *device.change.store.lock().unwrap() = Some(store.clone());
    inner.drop_lost_summaries(zone).unwrap();
    let read_by_scrub = device.change.held.lock().unwrap().len();
    assert!(read_by_scrub > 0);
    test_drive::remove(&store, "a");
    store.seal_open_zones().unwrap();
    assert!(inner.reset_zone(zone).unwrap());
    *device.change.store.lock().unwrap() = None;
    let held = device.change.held.lock().unwrap();
    assert!(held.len() > read_by_scrub);
    assert!(held.iter().all(|is_held| !is_held), "{held:?}");
}

/// Changes the row of the keys that wait, or another one, behind the back of a mounted store, and unmounts it.
fn set(store: &Store, key: &[u8], value: &[u8]) {
    let mut batch = Batch::default();
    batch.put(key, value);
    let kv = store.inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
}

#[test]
fn keys_of_another_version_stay_until_all_rows_were_looked_at() {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    set(&store, key::SUPER_WAITING, &[2, 0, 0, 0]);
    store.unmount().unwrap();
    for _ in 0..2 {
        let store = test_drive::mount(&drive);
        assert!(store.inner.uncopied.lock().any);
        store.unmount().unwrap();
    }
    let store = test_drive::mount(&drive);
    assert!(store.copy_uncopied(|_| true).unwrap());
    store.unmount().unwrap();
    let store = test_drive::mount(&drive);
    assert!(!store.inner.uncopied.lock().any);
}

/// Fails reads of summaries, while it is set.
#[derive(Default)]
struct Unread(AtomicBool);

impl Change<MemoryDrive> for Unread {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)?;
        if self.0.load(Ordering::Relaxed) && summary::begins(buffer) {
            return Err(ZoneError::PowerLost {
                command: ZoneCommand::Read,
            });
        }
        Ok(())
    }
}

#[test]
fn keys_whose_rows_could_not_be_read_stay_for_the_next_mount() {
    for commits in [false, true] {
        let (device, store) = test_drive::changed(Unread::default());
        test_drive::put(&store, "a");
        test_drive::put(&store, "b");
        let inner = &store.inner;
        inner.write_summaries(inner.data.of(0), Why::All);
        store.unmount().unwrap();
        let store = test_drive::mount(&device);
        let kv = store.inner.kv().unwrap();
        let rows = |first: u8| {
            kv.scan(&[first], Some(&[first + 1]))
                .map(|row| row.unwrap().0)
        };
        let noted: BTreeSet<_> = rows(key::ONODE).collect();
        let both = noted.iter().cloned().chain(rows(key::SUMMARIES)).collect();
        drop(kv);
        set(&store, key::SUPER_WAITING, &waiting::encode(&both));
        store.unmount().unwrap();
        device.change.0.store(true, Ordering::Relaxed);
        let store = test_drive::mount(&device);
        if commits {
            test_drive::put(&store, "new");
        }
        store.unmount().unwrap();
        device.change.0.store(false, Ordering::Relaxed);
        let store = test_drive::mount(&device);
        let uncopied = store.inner.uncopied.lock();
        let logged = uncopied.logged.as_ref().unwrap();
        let rows: Vec<_> = logged.rows().collect();
        assert!(uncopied.any || noted.iter().all(|key| rows.contains(&key.as_slice())));
    }
}

/// Counts reads of summaries.
#[derive(Default)]
struct ReadsOfSummaries(AtomicU64);

impl Change<MemoryDrive> for ReadsOfSummaries {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)?;
        let reads = u64::from(summary::begins(buffer));
        self.0.fetch_add(reads, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_deep_check_reads_each_summary_once() {
    let (device, store) = test_drive::changed(ReadsOfSummaries::default());
    for name in ["a", "b"] {
        test_drive::put(&store, name);
        let inner = &store.inner;
        inner.write_summaries(inner.data.of(0), Why::All);
    }
    let read = || device.change.0.load(Ordering::Relaxed);
    let before = read();
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean() && report.summaries > 1, "{report:?}");
    assert_eq!(read() - before, report.summaries);
}

/// Fails writes of one block, which are those of summaries, while it is set.
#[derive(Default)]
struct NoSummaries(AtomicBool);

impl Change<MemoryDrive> for NoSummaries {
    fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        if self.0.load(Ordering::Relaxed) && summary::begins(data) {
            return Err(ZoneError::Io {
                command: ZoneCommand::Write,
                at,
                source: Arc::new(io::ErrorKind::StorageFull.into()),
            });
        }
        drive.write(at, data)
    }
}

#[test]
fn rows_of_a_reset_zone_that_found_no_place_are_found_after_a_kill() {
    let (device, store) = test_drive::changed(NoSummaries::default());
    let mut tx = Transaction::new();
    tx.create_collection("d", Attributes::new());
    store.commit(tx).unwrap();
    test_drive::put(&store, "a");
    let inner = store.inner.clone();
    inner.write_summaries(inner.data.of(0), Why::All);
    let used = store.zones();
    let zone = used.iter().find(|used| used.live_bytes > 0).unwrap().zone;
    test_drive::remove(&store, "a");
    inner.write_summaries(inner.moved.of(0), Why::All);
    store.seal_open_zones().unwrap();
    device.change.0.store(true, Ordering::Relaxed);
    assert!(inner.reset_zone(zone).unwrap());
    // The log goes back to the record that this commit follows.
    test_drive::put(&store, "b");
    drop((store, inner));
    device.change.0.store(false, Ordering::Relaxed);
    let store = test_drive::mount(&device);
    assert!(store.copy_uncopied(|_| true).unwrap());
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert_eq!(report.rows_without_copy, 0);
}

/// Commits wait while an object's rows are looked at, and a scrub that a damaged one ended would copy no others.
#[test]
fn few_rows_of_an_object_are_looked_at_and_none_decoded() {
    let store = test_drive::mount(&test_drive::drive());
    let append = |count| {
        let mut tx = Transaction::new();
        for _ in 0..count {
            let mut writer = store.writer(None).unwrap();
            writer.write(b"x").unwrap();
            tx.append("c", "log", writer.finish().unwrap());
        }
        store.commit(tx).unwrap();
    };
    let inner = &store.inner;
    let onode = onode_key(&inner.collections()["c"].kind, "c", b"log").unwrap();
    let wants_copy = || {
        let value = inner.kv().unwrap().get(&onode).unwrap().unwrap();
        inner.wants_copy(&onode, &value).unwrap()
    };
    append(MOST_INLINE);
    assert!(!wants_copy());
    let kv = inner.kv().unwrap();
    let mut rows = kv.scan(&[key::EXTENT], Some(&[key::EXTENT + 1]));
    let first = rows.next().unwrap().unwrap().0;
    assert_eq!(rows.count(), MOST_INLINE - 1);
    drop(kv);
    set(&store, &first, &[extent::INLINE]);
    assert!(!wants_copy());
    append(1);
    assert!(wants_copy());
}
