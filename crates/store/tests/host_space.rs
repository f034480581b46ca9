//! A drive that takes its space on the host's disk as it is written, and a host's disk that is full
//! before the drive is: new data is refused while there is enough left for deletes, and what is
//! deleted comes back to the host.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use device::pace::Clock;
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{Error, MountOptions, Store, Transaction};
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId, ZoneResult};

/// A drive on a disk with so many bytes for it and everything else.
struct Thin {
    drive: MemoryDrive,
    disk: AtomicU64,
    /// How often the host has been asked what is left.
    asked: AtomicU64,
}

impl Thin {
    fn new(zones: u32, disk: u64) -> Arc<Self> {
        Arc::new(Self {
            drive: MemoryDrive::new(geometry(zones)).unwrap(),
            disk: AtomicU64::new(disk),
            asked: AtomicU64::new(0),
        })
    }

    fn free(&self) -> u64 {
        let disk = self.disk.load(Ordering::Relaxed);
        disk.saturating_sub(self.used())
    }

    fn used(&self) -> u64 {
        let geometry = self.drive.geometry();
        let zones = self.drive.report(ZoneId(0), geometry.zone_count).unwrap();
        let conventional = u64::from(geometry.conventional_zones) * geometry.zone_size;
        conventional + zones.iter().map(|zone| zone.write_pointer).sum::<u64>()
    }

    fn take(&self, command: ZoneCommand, at: ByteOffset, bytes: usize) -> ZoneResult<()> {
        let is_conventional =
            at.0 < u64::from(self.geometry().conventional_zones) * self.geometry().zone_size;
        if is_conventional || self.free() >= bytes as u64 {
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

impl ZonedDevice for Thin {
    fn geometry(&self) -> &Geometry {
        self.drive.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.drive.report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.drive.read(at, buffer)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.take(ZoneCommand::Write, at, data.len())?;
        self.drive.write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.take(ZoneCommand::Append, self.geometry().start(zone), data.len())?;
        self.drive.append(zone, data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.open(zone)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.close(zone)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.finish(zone)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.reset(zone)
    }
    fn host_memory(&self) -> Option<&device::file::HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        self.drive.flush()
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Some(self.free())
    }
}

/// Time that passes when it is told to.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
    fn wait_until(&self, moment: Duration) {
        self.0.store(moment.as_millis() as u64, Ordering::Relaxed);
    }
}

/// A new store with a collection, and its clock, in milliseconds.
fn mount_with_clock(thin: &Arc<Thin>) -> (Store, Arc<Hand>) {
    let device: Arc<dyn ZonedDevice> = thin.clone();
    mkfs(&device);
    let clock = Arc::new(Hand::default());
    let options = MountOptions {
        uptime: clock.clone(),
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

/// Stores objects of `size` bytes, the first with number `first`, until one is refused: the number
/// of that one, and why.
fn fill(store: &Store, size: usize, first: u64) -> (u64, Error) {
    let mut next = first;
    loop {
        match put(store, &format!("{size}-{next}"), &pattern(next, size)) {
            Ok(()) => next += 1,
            Err(error) => return (next, error),
        }
    }
}

/// Fills the drive until there is no room for one more object of `size` bytes. RocksDB may give some
/// of the disk back while one is being refused; that is then filled too.
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
        let thin = Thin::new(192, 70 << 20);
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
        // Unless RocksDB is at work at this moment.
        let before = thin.host_free_bytes();
        let space = store.statfs();
        let after = thin.host_free_bytes();
        assert!(before != after || space.host_free_bytes == after);
        assert!(space.available_bytes < space.capacity_bytes - space.live_bytes);
        // Said of the whole object, before any of it is written.
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
        assert!(again >= stored * 3 / 4, "{again} after {stored}");
        for n in 0..again {
            let data = read(&store, &format!("{size}-{n}")).unwrap();
            assert!(data == pattern(n, size));
        }
        assert_clean(&store);
        // The disk gets larger: so does what can be stored.
        thin.disk.store(1 << 40, Ordering::Relaxed);
        assert!(store.has_room(4 << 20));
        put(&store, "more", &pattern(1, 4 << 20)).unwrap();
        assert_clean(&store);
    }
}

#[test]
fn cleaning_needs_no_more_than_the_host_has() {
    // Half of every zone dies, and somebody else fills the disk.
    let thin = Thin::new(128, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    for n in 0..80 {
        put(&store, &n.to_string(), &pattern(n, 512 << 10)).unwrap();
    }
    for n in (0..80).step_by(2) {
        remove(&store, &n.to_string()).unwrap();
    }
    for left in [0, 1 << 20, 6 << 20] {
        thin.disk.store(thin.used() + left, Ordering::Relaxed);
        clock.0.fetch_add(100, Ordering::Relaxed);
        let result = put(&store, "new", &pattern(1, 256 << 10));
        assert_eq!(result.is_ok(), left == 6 << 20, "{left}: {result:?}");
        for n in (1..80).step_by(2) {
            let data = read(&store, &n.to_string()).unwrap();
            assert!(data == pattern(n, 512 << 10));
        }
        assert_clean(&store);
    }
}

#[test]
fn the_host_is_asked_for_every_put_near_the_end_only() {
    let thin = Thin::new(192, 1 << 40);
    let (store, clock) = mount_with_clock(&thin);
    let asked = |puts: std::ops::Range<u64>| {
        let before = thin.asked.load(Ordering::Relaxed);
        for n in puts {
            put(&store, &format!("{n}"), &pattern(n, 100_000)).unwrap();
        }
        thin.asked.load(Ordering::Relaxed) - before
    };
    assert!(asked(0..50) <= 2);
    // Others have taken it meanwhile.
    thin.disk
        .store(thin.used() + (100 << 20), Ordering::Relaxed);
    clock.0.fetch_add(100, Ordering::Relaxed);
    assert!(asked(50..100) >= 50);
}
