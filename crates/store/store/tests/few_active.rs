//! A drive with as few active zones as a store takes, stopped again and again without an unmount.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_clean, contents, create_collection, geometry, mkfs, mount, pattern, put};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Store, Transaction};
use zone::{Geometry, ZoneCommand};

fn drive(conventional_zones: u32, max_active_zones: u32) -> Arc<dyn ZonedDevice> {
    let geometry = Geometry {
        conventional_zones,
        max_active_zones,
        max_open_zones: max_active_zones,
        ..geometry(120)
    };
    Arc::new(MemoryDrive::new(geometry).unwrap())
}

#[test]
fn a_store_that_was_stopped_anywhere_is_mounted_and_written_to() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    for conventional in [0, 3] {
        let device = drive(conventional, 8);
        mkfs(&device);
        let mut store = mount(&device);
        create_collection(&store);
        let mut model = BTreeMap::new();
        for round in 0..25u64 {
            for step in 0..random.u64(5..120) {
                let name = format!("o{}", random.u8(..60));
                if random.u8(..6) == 0 {
                    let mut tx = Transaction::new();
                    tx.remove_if_present("c", &name);
                    store.commit(tx).unwrap();
                    model.remove(&name);
                    continue;
                }
                let size = [100, 2_000, 4_000, 5_000, 300_000, 900_000][random.usize(..6)];
                let bytes = pattern(round * 1000 + step, size);
                put(&store, &name, &bytes).unwrap();
                model.insert(name, bytes);
            }
            if random.u8(..4) == 0 {
                store.flush().unwrap();
            }
            drop(store);
            store = mount(&device);
            assert!(contents(&store) == model, "round {round}");
        }
        assert_clean(&store);
    }
}

#[test]
fn fewer_are_refused_before_anything_is_written() {
    let device = drive(3, 7);
    let made = store::MkfsOptions {
        engine: common::options().engine,
        ..store::MkfsOptions::new(kv_log::KvLog)
    };
    let error = Store::mkfs(device.clone(), &made).unwrap_err();
    assert!(error.to_string().contains("active zones is 7"), "{error}");
    let report = device.report(zone::ZoneId(0), 120).unwrap();
    assert!(
        report
            .iter()
            .all(|zone| zone.condition != zone::ZoneCondition::Closed)
    );
}

/// Each begins a journal, and may leave zones with its first blocks, which are nobody's at the next mount.
#[test]
fn mounts_in_which_writes_fail_take_no_active_zones_from_the_next() {
    for (copies, active) in [(1, 8), (2, 14)] {
        let small = Geometry {
            zone_size: 512 << 10,
            zone_capacity: 268 << 10,
            conventional_zones: 0,
            max_open_zones: active,
            max_active_zones: active,
            ..geometry(160)
        };
        let drive = Arc::new(Faults::new(MemoryDrive::new(small).unwrap()));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        common::mkfs_in_copies(&device, Some(copies));
        let mut store = mount(&device);
        create_collection(&store);
        for kth in 1..20 {
            put(&store, &format!("o{kth}"), &pattern(kth, 20_000)).unwrap();
            drop(store);
            for attempt in 0..3 {
                // The drive does them, and says that it has not: a connection that breaks.
                let fault = Fault::Torn { bytes: 1 << 20 };
                drive.add(Plan::from(ZoneCommand::Write, kth + attempt, fault));
                drop(Store::mount(device.clone(), common::options()));
                drive.clear();
            }
            store = Store::mount(device.clone(), common::options())
                .unwrap_or_else(|error| panic!("{copies} copies, {kth}: {error}"));
        }
        let whole = (1..20).map(|kth| (format!("o{kth}"), pattern(kth, 20_000)));
        assert!(contents(&store) == whole.collect());
        assert_clean(&store);
    }
}
