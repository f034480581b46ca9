//! Bytes and commands that a mount reads: superblocks, journal and logs once, and the parts of its SSTs that RocksDB
//! needs. A log is replayed twice, first as a trial, from the bytes that BlueFS has read once.

use crate::common::*;
use device::stats::{Count, Stats};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Attributes, MountOptions, Store, Transaction};
use zone::Geometry;

const OBJECTS: u64 = 20_000;
const PUTS: u64 = 1_000;

fn put_together(store: &Store, numbers: std::ops::Range<u64>) {
    let mut tx = Transaction::new();
    for number in numbers {
        let data = written(store, &pattern(number, 100)).unwrap();
        tx.put("c", format!("{number:07}"), data, Attributes::new());
    }
    store.commit(tx).unwrap();
}

#[test]
fn a_mount_reads_what_it_needs_in_large_pieces() {
    bound_mounts(0, 2 << 20, 8 << 20);
    // Conventional zones have no write pointer, so the mount reads on after the ends: half a MiB after a journal, and
    // four MiB after a log that grew.
    bound_mounts(4, 3 << 20, 16 << 20);
}

/// Asserts that a clean mount reads at most `clean` bytes, and a mount after a kill at most `killed` bytes more than
/// the log. RocksDB reads half a MiB of each SST of level 0, of which there are more or fewer, twice after a kill. A
/// compaction that has begun by then reads some MiB more.
fn bound_mounts(conventional_zones: u32, clean: u64, killed: u64) {
    let geometry = Geometry {
        zone_size: 16 << 20,
        zone_capacity: 16 << 20,
        conventional_zones,
        ..geometry(64)
    };
    let drive = Arc::new(Stats::new(MemoryDrive::new(geometry).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let mount = |read_only: bool| -> (Store, Count) {
        let before = drive.snapshot();
        let options = MountOptions {
            read_only,
            ..options()
        };
        let store = Store::mount(device.clone(), options).unwrap();
        (store, drive.snapshot().since(&before).read)
    };
    mkfs(&device);
    let (store, _) = mount(false);
    create_collection(&store);
    for from in (0..OBJECTS).step_by(100) {
        put_together(&store, from..from + 100);
    }
    store.unmount().unwrap();
    drop(store);
    for read_only in [true, false] {
        let (store, read) = mount(read_only);
        assert!(read.operations <= 40, "{read:?}");
        assert!(read.bytes <= clean, "{read:?}");
        store.unmount().unwrap();
    }
    let (store, _) = mount(false);
    for number in OBJECTS..OBJECTS + PUTS {
        put_together(&store, number..number + 1);
    }
    let log = store.bluefs().statistics().log_bytes_written;
    drop(store);
    for read_only in [true, false] {
        let (store, read) = mount(read_only);
        assert!(log > PUTS * 4096, "{log}");
        assert!(read.operations <= 100, "{read:?}");
        assert!(read.bytes <= log + killed, "{log}: {read:?}");
        let objects = store.list("c", "", "", usize::MAX).unwrap().len() as u64;
        assert_eq!(objects, OBJECTS + PUTS);
    }
}
