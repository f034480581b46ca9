//! The space that an empty drive declares can be filled, whatever was on it before, while RocksDB compacts.

use crate::common::{create_collection, geometry, mkfs, options, put};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Error, MountOptions, Store, Transaction};
use zone::Geometry;

fn on_drive(zone_mib: u64, zones: u32, conventional_zones: u32) -> Store {
    let geometry = Geometry {
        zone_size: zone_mib << 20,
        zone_capacity: zone_mib << 20,
        conventional_zones,
        ..geometry(zones)
    };
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry).unwrap());
    mkfs(&device);
    let options = MountOptions {
        background: true,
        ..options()
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    store
}

/// A name of 300 bytes, for rows as long as S3's.
fn name(number: u64) -> String {
    format!("{number:0>300}")
}

/// Puts objects until one is refused, at most `at_most`; returns their number.
fn fill(store: &Store, size: usize, at_most: u64) -> u64 {
    // Zeros cost no memory.
    let data = vec![0; size];
    for number in 0..at_most {
        match put(store, &name(number), &data) {
            Ok(()) => {}
            Err(Error::NoSpace { .. } | Error::NoMetadataSpace { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    at_most
}

fn remove(store: &Store, count: u64) {
    for number in 0..count {
        let mut tx = Transaction::new();
        tx.remove("c", name(number));
        store.commit(tx).unwrap();
    }
}

fn fill_again_and_again(store: &Store) {
    const LARGE: usize = 128 << 10;
    let declared = store.statfs().available_bytes;
    for _ in 0..2 {
        let large = fill(store, LARGE, u64::MAX);
        let stored = large * LARGE as u64;
        assert!(stored * 100 >= declared * 99, "{stored} of {declared}");
        remove(store, large);
        assert_eq!(store.statfs().available_bytes, declared);
        // Metadata grows into zones that were left to data.
        let small = fill(store, 2000, declared / 8 / 2000);
        remove(store, small);
        assert_eq!(store.statfs().available_bytes, declared);
    }
}

#[test]
fn with_a_few_conventional_zones() {
    fill_again_and_again(&on_drive(8, 64, 12));
    fill_again_and_again(&on_drive(2, 256, 3));
}

#[test]
fn without_conventional_zones() {
    fill_again_and_again(&on_drive(4, 128, 0));
}
