//! A thin drive, which takes space on the host's disk only as it is written, when that disk is full before the drive
//! is: new data is refused while enough space is left for removals, and removals give space back to the host.

use crate::common::*;
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice};
use runtime::{Runtime, SimulatedClock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::{Error, MountOptions, Store, Transaction};
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneId, ZoneResult};

/// Space of the host's disk, and faults of the drive on it.
#[derive(Default)]
struct Disk {
    bytes: AtomicU64,
    /// Number of queries for the free bytes.
    asked: AtomicU64,
    /// Delay of each write by RocksDB's background threads, in milliseconds.
    background_delay: AtomicU64,
    /// All reads of the drive fail.
    unreadable: AtomicBool,
}

type Thin = Changed<MemoryDrive, Disk>;

fn thin(zones: u32, disk: u64) -> Arc<Thin> {
    let drive = MemoryDrive::new(geometry(zones)).unwrap();
    let change = Disk::default();
    change.set(disk);
    Arc::new(Changed { drive, change })
}

fn is_of_rocksdb() -> bool {
    std::fs::read_to_string("/proc/thread-self/comm").is_ok_and(|name| name.starts_with("rocksdb:"))
}

fn used(drive: &MemoryDrive) -> u64 {
    let geometry = drive.geometry();
    let zones = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let conventional = u64::from(geometry.conventional_zones) * geometry.zone_size;
    conventional + zones.iter().map(|zone| zone.write_pointer).sum::<u64>()
}

impl Disk {
    fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn left(&self, drive: &MemoryDrive) -> u64 {
        self.bytes
            .load(Ordering::Relaxed)
            .saturating_sub(used(drive))
    }

    fn take(
        &self,
        drive: &MemoryDrive,
        command: ZoneCommand,
        at: ByteOffset,
        bytes: usize,
    ) -> ZoneResult<()> {
        let delay = self.background_delay.load(Ordering::Relaxed);
        if delay > 0 && is_of_rocksdb() {
            std::thread::sleep(Duration::from_millis(delay));
        }
        let g = drive.geometry();
        let is_conventional = at.0 < u64::from(g.conventional_zones) * g.zone_size;
        if is_conventional || self.left(drive) >= bytes as u64 {
            return Ok(());
        }
        let source = Arc::new(io::Error::from(io::ErrorKind::StorageFull));
        Err(ZoneError::Io {
            command,
            at,
            source,
        })
    }
}

impl Change<MemoryDrive> for Disk {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        if self.unreadable.load(Ordering::Relaxed) {
            return Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(io::Error::from(io::ErrorKind::Other)),
            });
        }
        drive.read(at, buffer)
    }
    fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.take(drive, ZoneCommand::Write, at, data.len())?;
        drive.write(at, data)
    }
    fn append(&self, drive: &MemoryDrive, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let at = drive.geometry().start(zone);
        self.take(drive, ZoneCommand::Append, at, data.len())?;
        drive.append(zone, data)
    }
    fn host_free_bytes(&self, drive: &MemoryDrive) -> Option<u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Some(self.left(drive))
    }
}

/// A new store with a collection, and its simulated clock.
fn mount_with_clock(thin: &Arc<Thin>) -> (Store, Arc<SimulatedClock>) {
    let device: Arc<dyn ZonedDevice> = thin.clone();
    mkfs(&device);
    let clock = Arc::new(SimulatedClock::default());
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options()
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    (store, clock)
}

fn remove(store: &Store, name: &str) -> store::Result<()> {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx)
}

/// Stores objects of `size` bytes, numbered from `first`, until one is refused. Returns the number of the refused
/// object and the error.
fn fill(store: &Store, size: usize, first: u64) -> (u64, Error) {
    let mut next = first;
    loop {
        match put(store, &format!("{size}-{next}"), &pattern(next, size)) {
            Ok(()) => next += 1,
            Err(error) => return (next, error),
        }
    }
}

/// Fills the drive until there is no room for one more object of `size` bytes, and returns as [`fill`] does. RocksDB
/// may free some space while an object is refused; that is filled too.
fn fill_up(store: &Store, size: usize) -> (u64, Error) {
    let mut next = 0;
    for _ in 0..20 {
        let (end, error) = fill(store, size, next);
        store.flush().unwrap();
        if !store.has_room(size as u64) {
            return (end, error);
        }
        next = end;
    }
    panic!("objects are refused, and there is said to be room for them");
}

/// Bytes of object data on the drive.
fn data_bytes(store: &Store) -> u64 {
    store.zones().iter().map(|zone| zone.written_bytes).sum()
}

#[test]
fn on_a_full_host_disk_deletes_go_on_and_give_space_back() {
    for size in [300 << 10, 3000] {
        let thin = thin(192, 70 << 20);
        let device: Arc<dyn ZonedDevice> = thin.clone();
        mkfs(&device);
        let store = mount(&device);
        create_collection(&store);
        let (stored, error) = fill_up(&store, size);
        assert!(
            matches!(error, Error::HostFull { .. }) && error.is_no_space(),
            "{error}"
        );
        assert!(stored > 30);
        // The numbers are equal unless RocksDB wrote between the two queries.
        let before = thin.host_free_bytes();
        let space = store.statfs();
        let after = thin.host_free_bytes();
        assert!(before != after || space.host_free_bytes == after);
        assert!(space.available_bytes < space.capacity_bytes - space.live_bytes);
        // An upload of declared size is refused before any of it is written.
        let before = data_bytes(&store);
        assert!(matches!(
            store.writer(Some(32 << 20)),
            Err(Error::HostFull { .. })
        ));
        assert_eq!(data_bytes(&store), before);
        // Every delete goes through, across a new mount too.
        for n in 0..stored / 2 {
            remove(&store, &format!("{size}-{n}")).unwrap();
        }
        store.unmount().unwrap();
        let store = mount(&device);
        for n in stored / 2..stored {
            remove(&store, &format!("{size}-{n}")).unwrap();
        }
        let (again, _) = fill(&store, size, 0);
        // The small database still has the removals in its log, so less space is free.
        let share = if is_small() { 70 } else { 75 };
        assert!(again * 100 >= stored * share, "{again} after {stored}");
        for n in 0..again {
            let data = read(&store, &format!("{size}-{n}")).unwrap();
            assert!(data == pattern(n, size));
        }
        assert_clean(&store);
        // On a larger host disk more can be stored.
        thin.change.set(1 << 40);
        assert!(store.has_room(4 << 20));
        put(&store, "more", &pattern(1, 4 << 20)).unwrap();
        assert_clean(&store);
    }
}

/// Each log record of a removal takes a whole block on the drive and little memory. The log could use up the remaining
/// space before memtables are full and RocksDB makes writers wait, so the store has to bound it, even if memtables are
/// written out slowly.
#[test]
fn logs_of_deletes_do_not_outrun_what_writes_memtables_out() {
    let thin = thin(192, 70 << 20);
    let device: Arc<dyn ZonedDevice> = thin.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let (stored, error) = fill_up(&store, 3000);
    assert!(matches!(error, Error::HostFull { .. }), "{error}");
    thin.change.background_delay.store(100, Ordering::Relaxed);
    for n in 0..stored {
        remove(&store, &format!("3000-{n}")).unwrap();
    }
    thin.change.background_delay.store(0, Ordering::Relaxed);
    let (again, _) = fill(&store, 3000, 0);
    assert!(again * 100 >= stored * 70, "{again} after {stored}");
    assert_clean(&store);
}

#[test]
fn cleaning_needs_no_more_than_the_host_has() {
    // Half of every zone is dead, and other files fill the host's disk.
    let thin = thin(128, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    for n in 0..80 {
        put(&store, &n.to_string(), &pattern(n, 512 << 10)).unwrap();
    }
    for n in (0..80).step_by(2) {
        remove(&store, &n.to_string()).unwrap();
    }
    // More than the host has and all dead bytes would give.
    thin.change.set(used(&thin.drive) + (24 << 20));
    clock.advance(Duration::from_millis(100));
    let refused = store.writer(Some(60 << 20)).map(drop);
    assert!(
        matches!(refused, Err(Error::HostFull { .. })),
        "{refused:?}"
    );
    assert_eq!(store.clean_status().zones_cleaned, 0);
    for left in [0, 1 << 20, 6 << 20] {
        thin.change.set(used(&thin.drive) + left);
        clock.advance(Duration::from_millis(100));
        let result = put(&store, "new", &pattern(1, 256 << 10));
        assert_eq!(result.is_ok(), left == 6 << 20, "{left}: {result:?}");
        for n in (1..80).step_by(2) {
            let data = read(&store, &n.to_string()).unwrap();
            assert!(data == pattern(n, 512 << 10));
        }
        assert_clean(&store);
    }
}

/// The zone that gives most for its cost has more live data than the host's disk has space for.
#[test]
fn a_zone_that_does_not_fit_the_host_keeps_no_other_from_being_cleaned() {
    let thin = thin(128, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    let put_two = |dead: &str, live: &str, sizes: [usize; 2]| {
        put(&store, dead, &pattern(1, sizes[0])).unwrap();
        put(&store, live, &pattern(2, sizes[1])).unwrap();
        store.seal_open_zones().unwrap();
    };
    // Old: a policy of cost and benefit prefers it.
    put_two("old-dead", "old", [200 << 10, 800 << 10]);
    for n in 0..60 {
        put(&store, &n.to_string(), &pattern(n, 800 << 10)).unwrap();
        store.seal_open_zones().unwrap();
    }
    put_two("new-dead", "new", [800 << 10, 50 << 10]);
    remove(&store, "old-dead").unwrap();
    remove(&store, "new-dead").unwrap();
    store.tend().unwrap();
    let live = |store: &Store| {
        let zones = store.zones().into_iter().map(|zone| zone.live_bytes);
        zones.filter(|live| *live > 0).min().unwrap()
    };
    assert!(live(&store) < 100 << 10);
    let kept = store.statfs().host_kept_bytes;
    thin.change.set(used(&thin.drive) + kept / 2 + (400 << 10));
    clock.advance(Duration::from_millis(100));
    let before = data_bytes(&store);
    assert!(store.clean_one().unwrap());
    assert!(data_bytes(&store) + (600 << 10) < before);
    thin.change.set(1 << 40);
    assert_clean(&store);
}

/// The rest of such a zone was never written and takes no space on the host's disk: its live data would only move.
#[test]
fn on_a_full_host_disk_zones_with_dead_bytes_are_cleaned_before_those_with_unwritten_tails() {
    let thin = thin(128, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    for n in 0..8 {
        put(&store, &format!("short{n}"), &pattern(n, 100 << 10)).unwrap();
        store.seal_open_zones().unwrap();
    }
    for n in 0..8 {
        put(&store, &format!("dead{n}"), &pattern(n, 700 << 10)).unwrap();
        put(&store, &format!("live{n}"), &pattern(n, 300 << 10)).unwrap();
        store.seal_open_zones().unwrap();
    }
    for n in 0..8 {
        remove(&store, &format!("dead{n}")).unwrap();
    }
    let kept = store.statfs().host_kept_bytes;
    thin.change.set(used(&thin.drive) + kept / 2 + (600 << 10));
    clock.advance(Duration::from_millis(100));
    for _ in 0..4 {
        let before = data_bytes(&store);
        assert!(store.clean_one().unwrap());
        let gained = before.saturating_sub(data_bytes(&store));
        assert!(gained > 600 << 10, "{gained}");
    }
    thin.change.set(1 << 40);
    // Where zones are needed, tails count.
    while store.clean_one().unwrap() {}
    assert!(store.zones().len() < 8, "{:?}", store.zones());
    assert_clean(&store);
}

#[test]
fn the_host_is_asked_for_every_put_near_the_end_only() {
    let thin = thin(192, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    let asked = |puts: std::ops::Range<u64>| {
        let before = thin.change.asked.load(Ordering::Relaxed);
        for n in puts {
            put(&store, &format!("{n}"), &pattern(n, 100_000)).unwrap();
        }
        thin.change.asked.load(Ordering::Relaxed) - before
    };
    assert!(asked(0..50) <= 2);
    // Other files have taken most of the disk.
    thin.change.set(used(&thin.drive) + (100 << 20));
    clock.advance(Duration::from_millis(100));
    assert!(asked(50..100) >= 50);
}

/// When the host's disk is nearly full, the store has a memtable written out before a batch, and RocksDB reads the new
/// SST back. If that read fails, RocksDB stops all writes; the store has to notice that although no commit has returned
/// the error.
#[test]
fn a_database_that_has_stopped_before_a_batch_has_stopped_the_store() {
    if is_small() {
        return;
    }
    let thin = thin(128, 1 << 30);
    let (store, _) = mount_with_clock(&thin);
    for number in 0..20 {
        put(&store, &number.to_string(), &[1; 1000]).unwrap();
    }
    thin.change.unreadable.store(true, Ordering::Relaxed);
    let refused = (0..20).find_map(|number| {
        let left = (20 - number) << 19;
        thin.change.set(used(&thin.drive) + left);
        let mut tx = Transaction::new();
        tx.remove("c", number.to_string());
        store.commit(tx).err()
    });
    assert!(matches!(refused, Some(Error::Failed { .. })), "{refused:?}");
    assert!(store.failure().is_some());
}

/// A removal needs a little space too. The log that found none stops the writes, and what the unmount meets because of
/// that is no news: its error names the cause.
#[test]
fn an_unmount_behind_a_full_disk_names_the_full_disk() {
    let thin = thin(128, 1 << 30);
    let (store, _) = mount_with_clock(&thin);
    put(&store, "o", &[1; 1000]).unwrap();
    thin.change.set(0);
    remove(&store, "o").unwrap_err();
    thin.change.set(1 << 30);
    let failure = store.failure().unwrap();
    assert!(matches!(remove(&store, "o"), Err(Error::Failed { .. })));
    match store.unmount() {
        Err(Error::Failed { reason }) => assert_eq!(reason, failure),
        // RocksDB's close fails; not every engine's does.
        unmounted => unmounted.unwrap(),
    }
}
