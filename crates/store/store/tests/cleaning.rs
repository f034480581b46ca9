//! How many bytes background cleaning moves for each byte written, and how many zones it keeps free.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use std::sync::Arc;
use store::{MountOptions, Store};
use zone_alloc::{FreeZones, Watermarks};

const OBJECT: u64 = 64 << 10;

fn mounted(free_zones: Watermarks) -> Store {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs(&device);
    let options = MountOptions {
        free_zones,
        ..options()
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    store
}

/// Number of zones that new data may take.
fn free(store: &Store) -> u64 {
    let all = store.statfs().capacity_bytes >> 20;
    all.saturating_sub(store.zones().len() as u64)
}

/// Overwrites all objects `times` times on a drive that is 70 % full, with a round of background work after each put.
/// Returns the bytes moved for each byte written, and the fewest and the most free zones in the second half.
fn overwritten(store: &Store, times: u64) -> (f64, u64, u64) {
    let objects = store.statfs().capacity_bytes / OBJECT * 7 / 10;
    let data = pattern(1, OBJECT as usize);
    for name in 0..objects {
        put(store, &name.to_string(), &data).unwrap();
    }
    let mut random = Rng::with_seed(seed());
    let (mut least, mut most) = (u64::MAX, 0);
    for n in 0..objects * times {
        put(store, &random.u64(..objects).to_string(), &data).unwrap();
        while store.tend().unwrap() {}
        if n >= objects * times / 2 {
            least = least.min(free(store));
            most = most.max(free(store));
        }
    }
    let moved = store.clean_status().bytes_moved;
    let written = objects * times * OBJECT;
    assert_clean(store);
    (moved as f64 / written as f64, least, most)
}

#[test]
fn a_zone_is_cleaned_before_somebody_waits_and_not_long_before() {
    let (moved, least, most) = overwritten(&mounted(Watermarks::default()), 3);
    assert!((1..=2).contains(&least) && most <= 3, "{least} to {most}");
    let early = Watermarks {
        low: FreeZones::Percent(20),
        min: FreeZones::Percent(10),
    };
    let (moved_early, least, _) = overwritten(&mounted(early), 3);
    assert!(least >= 8, "{least}");
    assert!(moved * 1.3 < moved_early, "{moved} and {moved_early}");
}

#[test]
fn nothing_is_cleaned_ahead_while_zones_are_free() {
    let store = mounted(Watermarks::default());
    let data = pattern(1, OBJECT as usize);
    for n in 0..64 {
        put(&store, &(n % 20).to_string(), &data).unwrap();
        assert!(!store.tend().unwrap());
    }
    assert!(store.clean_status().dirty_zones > 0);
}
