//! A store with two copies of its metadata: the space it declares, the bytes it writes, and the damage it survives.

use crate::common;
use crate::common::{contents, create_collection, geometry, options, pattern, put};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{MkfsOptions, Store};
use zone::{Geometry, ZoneCondition, ZoneKind};

fn made(geometry: Geometry, metadata_copies: u32) -> Arc<MemoryDrive> {
    let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
    make(drive.clone(), metadata_copies);
    drive
}

fn make(drive: Arc<dyn ZonedDevice>, metadata_copies: u32) {
    let made = MkfsOptions {
        engine: options().engine,
        uuid: [1; 16],
        metadata_copies: Some(metadata_copies),
        force: false,
        runtime: options().runtime,
    };
    Store::mkfs(drive, &made).unwrap();
}

/// A hard disk of 64 GiB in zones of 256 MiB, three of them conventional.
fn hard_disk() -> Geometry {
    Geometry {
        zone_size: 256 << 20,
        zone_capacity: 256 << 20,
        conventional_zones: 3,
        max_open_zones: 128,
        max_active_zones: 0,
        ..geometry(256)
    }
}

#[test]
fn two_copies_cost_a_hard_disk_no_data() {
    for copies in [1, 2] {
        let drive = made(hard_disk(), copies);
        let store = Store::mount(drive, options()).unwrap();
        let capacity = store.statfs().capacity_bytes as f64;
        let of_drive = capacity / hard_disk().capacity_bytes() as f64;
        println!("{copies} copies: {:.2} % of the drive", of_drive * 100.0);
        assert!(of_drive > 0.97, "{copies} copies: {of_drive}");
    }
}

#[test]
fn a_second_copy_costs_bytes_and_no_flush() {
    let load = |copies: u32| {
        let drive = Arc::new(Stats::new(MemoryDrive::new(geometry(200)).unwrap()));
        make(drive.clone(), copies);
        let store = Store::mount(drive.clone(), options()).unwrap();
        create_collection(&store);
        let before = drive.snapshot();
        for number in 0..3000 {
            put(&store, &format!("object {number}"), &pattern(number, 4096)).unwrap();
        }
        let cost = drive.snapshot().since(&before);
        println!("{copies} copies: {cost:?}");
        cost
    };
    let (one, two) = (load(1), load(2));
    // A second flush for each put would be 3000 more. The number of other flushes, and the bytes of compactions, depend on
    // when RocksDB's threads run.
    let flushes = one.flush.operations.abs_diff(two.flush.operations);
    assert!(flushes < 300, "{one:?}, {two:?}");
    assert!(two.bytes_written() > one.bytes_written());
    // Objects are in one copy.
    let metadata = one.bytes_written() - 3000 * 4096;
    assert!(two.bytes_written() - one.bytes_written() < metadata + 3000 * 4096 / 2);
}

/// A drive without a limit of active zones, with sixty objects in a store that has been unmounted.
fn in_two_copies(size: fn(usize) -> usize) -> (Arc<MemoryDrive>, BTreeMap<String, Vec<u8>>) {
    let geometry = Geometry {
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry(200)
    };
    let drive = made(geometry, 2);
    let store = Store::mount(drive.clone(), options()).unwrap();
    create_collection(&store);
    for number in 0..60 {
        let data = pattern(number, size(number as usize));
        put(&store, &format!("object {number}"), &data).unwrap();
    }
    let all = contents(&store);
    store.unmount().unwrap();
    (drive, all)
}

#[test]
fn any_zone_of_metadata_may_go_offline() {
    let (drive, all) = in_two_copies(|number| 3000 * (1 + number % 7));
    let fs_zones = {
        let view = bluefs::BlueFs::view(drive.clone()).unwrap();
        let report = view.report(zone::ZoneId(0), u32::MAX).unwrap();
        bluefs::BlueFs::observe(&*view, &report).unwrap().zones
    };
    let g = drive.geometry().clone();
    let of_drive = fs_zones.into_keys().map(|zone| zone.0);
    let mut lost = 0;
    for zone in of_drive
        .filter(|zone| *zone < g.zone_count)
        .map(zone::ZoneId)
    {
        let copy = drive.snapshot();
        copy.set_condition(zone, ZoneCondition::Offline).unwrap();
        lost += u32::from(g.kind(zone) == ZoneKind::Conventional);
        for _ in 0..2 {
            let store = Store::mount(Arc::new(copy.snapshot()), options())
                .unwrap_or_else(|error| panic!("zone {zone} offline: {error}"));
            assert!(contents(&store) == all, "zone {zone} offline");
            put(&store, "one more", &[1; 5000]).unwrap();
        }
    }
    assert!(lost > 0, "a conventional zone among them");
}

/// Damages 80 random blocks, one at a time. Of SSTs, BlueFS has only one checksum for the whole file.
#[test]
fn any_block_of_metadata_may_be_damaged() {
    let (drive, all) = in_two_copies(|number| 300 * (1 + number % 17));
    let view = bluefs::BlueFs::view(drive.clone()).unwrap();
    let report = view.report(zone::ZoneId(0), u32::MAX).unwrap();
    let zones = bluefs::BlueFs::observe(&*view, &report).unwrap().zones;
    let mut random = fastrand::Rng::with_seed(common::seed());
    let g = view.geometry().clone();
    let mut blocks = Vec::new();
    for zone in zones.into_keys().filter(|zone| zone.0 < g.zone_count) {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        view.read(g.start(zone), &mut bytes).unwrap();
        let used = bytes.chunks(4096).zip(0..);
        let used = used.filter(|(block, _)| block.iter().any(|byte| *byte != 0));
        blocks.extend(used.map(|(_, index)| (zone, index * 4096)));
    }
    random.shuffle(&mut blocks);
    for (zone, offset) in blocks.into_iter().take(80) {
        let damaged: Arc<dyn ZonedDevice> = Arc::new(drive.snapshot());
        let view = bluefs::BlueFs::view(damaged.clone()).unwrap();
        let end = match g.kind(zone) {
            ZoneKind::Conventional => g.capacity(zone),
            _ => view.report_zone(zone).unwrap().write_pointer,
        };
        let mut bytes = vec![0; end as usize];
        view.read(g.start(zone), &mut bytes).unwrap();
        bytes[offset as usize + random.usize(..4096)] ^= 1 << random.u8(..8);
        if g.kind(zone) != ZoneKind::Conventional {
            view.reset(zone).unwrap();
        }
        view.write(g.start(zone), &bytes).unwrap();
        let what = format!("zone {zone} at {offset}");
        for read_only in [true, false, true] {
            let options = store::MountOptions {
                read_only,
                ..options()
            };
            let store = Store::mount(damaged.clone(), options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(contents(&store) == all, "{what}");
            store.unmount().unwrap();
        }
    }
}

/// A repair removes all differences of copies that a check counts, also where a mount for writing does not look.
#[test]
fn a_repair_ends_what_a_check_finds_of_copies() {
    let (drive, all) = in_two_copies(|number| 300 * (1 + number % 17));
    let view = bluefs::BlueFs::view(drive.clone()).unwrap();
    let report = view.report(zone::ZoneId(0), u32::MAX).unwrap();
    let zones = bluefs::BlueFs::observe(&*view, &report).unwrap().zones;
    let g = drive.geometry().clone();
    let checked = |drive: &Arc<MemoryDrive>| {
        let options = store::MountOptions {
            read_only: true,
            ..options()
        };
        let store = Store::mount(drive.clone(), options).unwrap();
        assert!(contents(&store) == all);
        store.fsck(true, &mut |_, _| {}).unwrap()
    };
    assert!(checked(&drive).is_clean());
    let mut random = fastrand::Rng::with_seed(common::seed());
    let (mut found, mut offline, mut told) = (0, 0, 0);
    for zone in zones.into_keys().filter(|zone| zone.0 < g.zone_count) {
        let damaged = Arc::new(drive.snapshot());
        let written = drive.report_zone(zone).unwrap().write_pointer;
        if written == 0 || random.u8(..4) == 0 {
            damaged.set_condition(zone, ZoneCondition::Offline).unwrap();
            offline += 1;
        } else {
            let at = zone::ZoneAddress::new(zone, random.u64(..written) / 4096 * 4096);
            damaged.decay(at, 4096, |block| {
                block.iter_mut().step_by(8).for_each(|byte| *byte ^= 1);
            });
        }
        let before = checked(&damaged);
        found += u32::from(!before.is_clean());
        let agree = &mut |given_up: &[store::GivenUp]| given_up.is_empty();
        let report = Store::repair(damaged.clone(), &options(), agree, &mut |_, _| {}).unwrap();
        assert!(report.is_done, "zone {zone}: {report:?}");
        let after = checked(&damaged);
        assert!(
            after.is_clean(),
            "zone {zone}: {report:?} {:?}",
            after.details
        );
        // A mount for writing may have rewritten the damaged zone already.
        let mended = report.repaired.get("copies of metadata that differ");
        told += u32::from(mended.is_some());
    }
    assert!(
        found > 3 && offline > 0 && told > 0,
        "{found} {offline} {told}"
    );
}
