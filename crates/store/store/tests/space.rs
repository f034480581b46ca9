//! Drives that are filled completely and cleaned: the reported space is right, and removals and puts always make
//! progress.

use crate::common::*;
use device::changed::{Change, Changed};
use device::divided::Divided;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::{Error, Store, Transaction};
use zone::{ByteOffset, Geometry, ZoneResult};

fn fresh(zones: u32) -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
    mkfs(&device);
    mounted(device)
}

/// A drive of the same size in zones twice as large; the conventional ones are divided into two parts each.
fn fresh_divided(zones: u32) -> (Arc<dyn ZonedDevice>, Store) {
    let whole = Geometry {
        zone_size: 2 << 20,
        zone_capacity: 2 << 20,
        conventional_zones: 8,
        ..geometry(zones / 2)
    };
    let drive = Arc::new(MemoryDrive::new(whole).unwrap());
    let divided: Arc<dyn ZonedDevice> = Arc::new(Divided::new(drive.clone(), 2).unwrap());
    mkfs(&divided);
    mounted(drive)
}

fn mounted(device: Arc<dyn ZonedDevice>) -> (Arc<dyn ZonedDevice>, Store) {
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

#[test]
fn what_statfs_promises_can_be_stored_and_no_more() {
    for (_, store) in [fresh(96), fresh_divided(96)] {
        store_what_is_promised(&store);
    }
}

fn store_what_is_promised(store: &Store) {
    let mut stored = 0u64;
    let available = store.statfs().available_bytes;
    let error = loop {
        match put(store, &format!("o{stored}"), &pattern(stored, 256 << 10)) {
            Ok(()) => stored += 256 << 10,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    // Metadata may have grown by up to 3 MiB of zones meanwhile.
    assert!(stored + (3 << 20) >= available, "{stored} of {available}");
    assert!(stored <= available);
    let s = store.statfs();
    assert!(s.available_bytes < 256 << 10);
    // Removals succeed on a full drive, and their space can be used again.
    remove(store, "o0");
    remove(store, "o262144");
    put(store, "again", &pattern(1, 512 << 10)).unwrap();
    assert_clean(store);
}

#[test]
fn a_full_drive_takes_overwrites_for_ever() {
    let (device, store) = fresh(96);
    let mut model = BTreeMap::new();
    let objects = store.statfs().available_bytes / (100 << 10) * 85 / 100;
    let mut state = 5u64;
    for i in 0..objects * 4 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let name = if i < objects {
            i
        } else {
            (state >> 33) % objects
        };
        put(&store, &name.to_string(), &pattern(i, 100 << 10)).unwrap();
        model.insert(name.to_string(), i);
    }
    for (name, seed) in &model {
        assert!(read(&store, name).unwrap() == pattern(*seed, 100 << 10));
    }
    let status = store.clean_status();
    assert!(status.zones_cleaned > 0 && status.bytes_moved > 0);
    assert_clean(&store);
    drop(store);
    let store = mount(&device);
    for (name, seed) in &model {
        assert!(read(&store, name).unwrap() == pattern(*seed, 100 << 10));
    }
    assert_clean(&store);
}

/// Asserts the identities that [`store::Statfs`] documents, and values that no user should ever see.
fn assert_consistent(store: &Store) -> store::Statfs {
    let s = store.statfs();
    assert!(s.live_bytes <= s.capacity_bytes, "{s:?}");
    assert!(s.inline_bytes <= s.live_bytes, "{s:?}");
    assert!(
        s.available_bytes <= s.capacity_bytes - s.live_bytes - s.pinned_bytes,
        "{s:?}"
    );
    let parts = s.live_bytes + s.pinned_bytes + s.dead_bytes + s.free_bytes;
    assert_eq!(s.capacity_bytes, parts, "{s:?}");
    s
}

#[test]
fn what_an_upload_has_written_is_pinned_until_it_is_committed_or_given_up() {
    let (_, store) = fresh(96);
    for is_given_up in [true, false] {
        let before = assert_consistent(&store);
        let mut writer = store.writer(None).unwrap();
        writer.write(&pattern(1, 3 << 20)).unwrap();
        let during = assert_consistent(&store);
        assert_eq!(during.pinned_bytes, 3 << 20);
        assert_eq!(during.available_bytes + (3 << 20), before.available_bytes);
        if is_given_up {
            drop(writer);
            assert_eq!(assert_consistent(&store).live_bytes, before.live_bytes);
        } else {
            let mut tx = Transaction::new();
            tx.put("c", "o", writer.finish().unwrap(), Default::default());
            store.commit(tx).unwrap();
            assert_eq!(assert_consistent(&store).live_bytes, 3 << 20);
        }
        assert_eq!(assert_consistent(&store).pinned_bytes, 0);
    }
}

/// Regression test: metadata of removed objects used to stay until RocksDB happened to compact it, and zones with few
/// live bytes were not given back, so that each round had room for less than the one before.
#[test]
fn small_objects_can_fill_a_drive_again_and_again() {
    fill_with_small_objects(fresh(96));
}

#[test]
fn small_objects_can_outgrow_divided_conventional_zones_again_and_again() {
    fill_with_small_objects(fresh_divided(96));
}

fn fill_with_small_objects((device, store): (Arc<dyn ZonedDevice>, Store)) {
    let size = 2000;
    let empty = assert_consistent(&store);
    let mut first = 0;
    for round in 0..3 {
        let mut count = 0;
        let error = loop {
            match put(&store, &format!("small{count:06}"), &pattern(count, size)) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
            if count % (4000 / rounds()) == 0 {
                let s = assert_consistent(&store);
                assert_eq!(s.inline_bytes, count * size as u64);
            }
        };
        assert!(matches!(error, Error::NoMetadataSpace { .. }), "{error}");
        let full = assert_consistent(&store);
        // The small database needs as much space again for a snapshot of all rows; compactions that run while the drive
        // is full take some more.
        let largest = full.drive_bytes / size as u64 / if is_small() { 2 } else { 1 };
        assert!(
            count * 100 > largest * 43,
            "round {round}: {count} of {largest}"
        );
        first = first.max(count);
        assert!(
            count * 10 > first * 8,
            "round {round}: {count} after {first}"
        );
        for i in 0..count {
            remove(&store, &format!("small{i:06}"));
        }
        assert!(contents(&store).is_empty());
        assert_eq!(assert_consistent(&store).live_bytes, 0);
        put(&store, "o", &pattern(1, 4096)).unwrap();
        remove(&store, "o");
        assert_clean(&store);
    }
    let mut large = 0;
    while put(&store, &format!("large{large}"), &pattern(large, 1 << 20)).is_ok() {
        large += 1;
    }
    let s = assert_consistent(&store);
    assert!(
        s.live_bytes * 10 > empty.capacity_bytes * 8,
        "{large}: {s:?}"
    );
    assert_clean(&store);
    drop(store);
    let store = mount(&device);
    assert_eq!(store.statfs().live_bytes, s.live_bytes);
    assert_clean(&store);
}

#[test]
fn the_background_cleaner_obeys() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let options = store::MountOptions {
        background: true,
        ..options()
    };
    let store = Store::mount(device.clone(), options).unwrap();
    create_collection(&store);
    store.clean_stop();
    for i in 0..40 {
        put(&store, &format!("o{i}"), &pattern(i, 700_000)).unwrap();
    }
    for i in (0..40).step_by(2) {
        remove(&store, &format!("o{i}"));
    }
    let before = store.clean_status();
    assert!(!before.automatic && before.zones_cleaned == 0 && before.dirty_zones > 10);
    store.clean_start().unwrap();
    while store.clean_status().requested {
        std::thread::yield_now();
    }
    let after = store.clean_status();
    assert!(
        after.zones_cleaned > 10 && after.dirty_zones <= 3,
        "{after:?}"
    );
    for i in (1..40).step_by(2) {
        assert!(read(&store, &format!("o{i}")).unwrap() == pattern(i, 700_000));
    }
    store.unmount().unwrap();
    assert_clean(&mount(&device));
}

#[test]
fn readers_and_writers_go_on_while_the_cleaner_moves_things() {
    let (_, store) = fresh(96);
    for i in 0..24 {
        put(&store, &format!("keep{i}"), &pattern(i, 500_000)).unwrap();
        put(&store, &format!("drop{i}"), &pattern(i, 900_000)).unwrap();
    }
    std::thread::scope(|scope| {
        let cleaning = scope.spawn(|| {
            let mut cleaned = 0;
            for i in 0..24 {
                remove(&store, &format!("drop{i}"));
                cleaned += u32::from(store.clean_one().unwrap());
            }
            cleaned
        });
        for reader in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..40u64 {
                    let i = (round * 7 + reader) % 24;
                    assert!(read(store, &format!("keep{i}")).unwrap() == pattern(i, 500_000));
                }
            });
        }
        let store = &store;
        scope.spawn(move || {
            for i in 0..30 {
                put(store, "hot", &pattern(i, 300_000)).unwrap();
            }
        });
        assert!(cleaning.join().unwrap() > 5);
    });
    assert_clean(&store);
}

/// Delays the next read until the given function has returned in another thread, or for 20,000 yields.
#[derive(Default)]
struct HeldUp(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Change<MemoryDrive> for HeldUp {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let meanwhile = self.0.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            let other = std::thread::spawn(meanwhile);
            for _ in 0..20_000 {
                if other.is_finished() {
                    break;
                }
                std::thread::yield_now();
            }
        }
        drive.read(at, buffer)
    }
}

#[test]
fn a_zone_is_not_reset_under_a_reader_that_knows_a_place_in_it() {
    let held_up = Arc::new(Changed {
        drive: MemoryDrive::new(geometry(96)).unwrap(),
        change: HeldUp::default(),
    });
    let device: Arc<dyn ZonedDevice> = held_up.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "dead", &pattern(1, 700_000)).unwrap();
    put(&store, "read", &pattern(2, 200_000)).unwrap();
    remove(&store, "dead");
    store.seal_open_zones().unwrap();
    let (done, cleaned) = std::sync::mpsc::channel();
    let other = store.clone();
    *held_up.change.0.lock().unwrap() = Some(Box::new(move || {
        done.send(other.clean_one()).unwrap();
    }));
    // The cleaner moves the object after the reader has looked up its place and before it reads there.
    assert!(read(&store, "read").unwrap() == pattern(2, 200_000));
    assert!(cleaned.recv().unwrap().unwrap());
    assert!(read(&store, "read").unwrap() == pattern(2, 200_000));
    assert_clean(&store);
}

/// A slow upload has a piece in nearly every zone that is filled meanwhile. These zones are cleaned nevertheless, so
/// that twice the capacity can be written.
#[test]
fn a_slow_upload_does_not_keep_the_zones_that_it_touches() {
    let large_zones = Geometry {
        zone_size: 4 << 20,
        zone_capacity: 4 << 20,
        ..geometry(48)
    };
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(large_zones).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let capacity = store.statfs().capacity_bytes as usize;
    let keep: Vec<_> = (0..8).map(|i| format!("keep{i}")).collect();
    for (i, name) in (0..).zip(&keep) {
        put(&store, name, &pattern(i, 500_000)).unwrap();
    }
    let slow_data = pattern(77, capacity / 4);
    let mut slow = store.writer(None).unwrap();
    let mut gone = store.writer(None).unwrap();
    let (mut written, mut sent) = (0, 0);
    for i in 0.. {
        put(&store, &format!("hot{}", i % 4), &pattern(i, 900_000)).unwrap();
        written += 900_000;
        let now = (written / 8).min(slow_data.len());
        slow.write(&slow_data[sent..now]).unwrap();
        gone.write(&slow_data[sent..now]).unwrap();
        sent = now;
        if sent == slow_data.len() {
            break;
        }
    }
    assert!(written >= 2 * capacity, "{written} of {capacity}");
    drop(gone);
    let s = assert_consistent(&store);
    let data = slow.finish().unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "slow", data, store::Attributes::new());
    store.commit(tx).unwrap();
    while store.clean_one().unwrap() {}
    assert!(store.statfs().live_bytes >= s.live_bytes);
    drop(store);
    let store = mount(&device);
    assert!(read(&store, "slow").unwrap() == slow_data);
    for (i, name) in (0..).zip(&keep) {
        assert!(read(&store, name).unwrap() == pattern(i, 500_000));
    }
    assert_clean(&store);
}

/// An object that was removed while it was read waits for the purge. The put that has it purged reserves its space once.
#[test]
fn a_put_for_which_something_is_purged_reserves_once() {
    let (_, store) = fresh(40);
    let mut count = 0;
    while put(&store, &format!("n{count}"), &pattern(count, 500_000)).is_ok() {
        count += 1;
    }
    assert_eq!(store.statfs().pinned_bytes, 0);
    let reader = store.open("c", "n0").unwrap();
    remove(&store, "n0");
    drop(reader);
    put(&store, "again", &pattern(0, 300_000)).unwrap();
    assert_eq!(store.statfs().pinned_bytes, 0);
}
