//! Objects of the reported available size can be stored, however much of the drive metadata has taken, and a restart
//! does not change the reported size.

use crate::common::{create_collection, geometry, mkfs, mount, pattern, put};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Error, Store};
use zone::Geometry;

const ZONE: u64 = 1 << 20;

/// Puts objects until one is refused, at most `at_most`. Returns how many were stored.
fn fill(store: &Store, name: &str, size: usize, at_most: u64) -> u64 {
    for number in 0..at_most {
        let name = format!("{name}{number:0>200}");
        match put(store, &name, &pattern(number, size)) {
            Ok(()) => {}
            Err(Error::NoSpace { .. } | Error::NoMetadataSpace { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    at_most
}

fn restarted(device: &Arc<dyn ZonedDevice>, store: Store) -> Store {
    let before = store.statfs();
    store.unmount().unwrap();
    drop(store);
    let store = mount(device);
    let after = store.statfs();
    let moved = before.capacity_bytes.abs_diff(after.capacity_bytes);
    assert!(moved <= ZONE, "{moved}");
    let moved = before.available_bytes.abs_diff(after.available_bytes);
    assert!(moved <= ZONE, "{moved}");
    store
}

/// Stores at most `small` small objects, then large ones until the drive is full, then small ones again.
fn fill_with_both(conventional_zones: u32, small: u64) {
    const SMALL: usize = 1500;
    const LARGE: usize = 256 << 10;
    let geometry = Geometry {
        conventional_zones,
        ..geometry(96)
    };
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let small = fill(&store, "small", SMALL, small);
    let store = restarted(&device, store);
    let available = store.statfs().available_bytes;
    let large = fill(&store, "large", LARGE, u64::MAX) * LARGE as u64;
    assert!(
        large + 2 * ZONE >= available,
        "behind {small}: {large} of {available}"
    );
    let left = store.statfs().available_bytes;
    assert!(left <= 2 * ZONE, "behind {small}: {left}");
    let store = restarted(&device, store);
    // Metadata may take zones that data may not, and after that nothing is available.
    assert!(fill(&store, "more", SMALL, u64::MAX) < u64::MAX);
    assert_eq!(store.statfs().available_bytes, 0);
    let store = restarted(&device, store);
    assert_eq!(store.statfs().available_bytes, 0);
}

#[test]
fn what_is_available_can_be_put_beside_small_objects() {
    for small in [0, 20_000, u64::MAX] {
        fill_with_both(0, small);
    }
}

#[test]
fn conventional_zones_change_nothing_about_that() {
    fill_with_both(8, 5000);
}
