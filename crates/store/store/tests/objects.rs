//! Each operation of the store by itself, on a drive in memory.

use crate::common::*;
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use runtime::{Runtime, SimulatedClock};
use std::sync::Arc;
use store::{Attributes, Condition, Error, MkfsOptions, Store, Transaction};
use zone::ZoneId;
use zone_alloc::ZonePool;

fn drive(zones: u32) -> Arc<dyn ZonedDevice> {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
    mkfs(&device);
    device
}

fn fresh(zones: u32) -> (Arc<dyn ZonedDevice>, Store) {
    let device = drive(zones);
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

#[test]
fn objects_of_all_sizes_come_back_after_a_clean_and_an_unclean_stop() {
    let (device, store) = fresh(128);
    let sizes = [
        0,
        1,
        4095,
        4096,
        4097,
        65_536,
        100_000,
        1 << 20,
        (3 << 20) + 17,
    ];
    for (i, size) in sizes.into_iter().enumerate() {
        put(&store, &format!("o{i}"), &pattern(i as u64, size)).unwrap();
    }
    let before = contents(&store);
    assert_eq!(before.len(), sizes.len());
    for (i, size) in sizes.into_iter().enumerate() {
        assert_eq!(before[&format!("o{i}")], pattern(i as u64, size));
    }
    assert_clean(&store);
    store.unmount().unwrap();
    assert!(matches!(put(&store, "late", b"x"), Err(Error::ReadOnly)));
    drop(store);
    let store = mount(&device);
    assert_eq!(contents(&store), before);
    put(&store, "more", b"hello").unwrap();
    drop(store); // no unmount
    let store = mount(&device);
    assert_eq!(read(&store, "more").unwrap(), b"hello");
    assert_eq!(contents(&store).len(), before.len() + 1);
    assert_clean(&store);
}

#[test]
fn ranges_read_what_they_name() {
    let (_, store) = fresh(128);
    let data = pattern(3, 2_500_000);
    put(&store, "o", &data).unwrap();
    let reader = store.open("c", "o").unwrap();
    for (from, length) in [
        (0, 1),
        (65_535, 2),
        (1 << 20, 70_000),
        (2_499_999, 10),
        (2_500_000, 4),
    ] {
        let mut buffer = vec![0; length];
        let got = reader.read_at(from, &mut buffer).unwrap();
        let expected = &data[from as usize..(from as usize + length).min(data.len())];
        assert_eq!(&buffer[..got], expected);
    }
}

#[test]
fn overwriting_in_the_middle_of_a_chunk_keeps_both_sides() {
    let (device, store) = fresh(128);
    let mut model = pattern(1, 300_000);
    put(&store, "o", &model).unwrap();
    for (i, (from, length)) in [
        (70_000, 100),
        (0, 1),
        (299_990, 50),
        (65_536, 65_536),
        (10, 250_000),
        (150_000, 5_000),
    ]
    .into_iter()
    .enumerate()
    {
        let new = pattern(100 + i as u64, length);
        let data = written(&store, &new).unwrap();
        let mut tx = Transaction::new();
        tx.write("c", "o", from as u64, data);
        store.commit(tx).unwrap();
        model.resize(model.len().max(from + length), 0);
        model[from..from + length].copy_from_slice(&new);
        assert!(read(&store, "o").unwrap() == model, "after write {i}");
        assert_clean(&store);
    }
    drop(store);
    let store = mount(&device);
    assert!(read(&store, "o").unwrap() == model);
}

#[test]
fn append_truncate_rename_assemble() {
    let (_, store) = fresh(128);
    let mut model = Vec::new();
    for i in 0..5 {
        let piece = pattern(i, 50_000 * i as usize + 10);
        let data = written(&store, &piece).unwrap();
        let mut tx = Transaction::new();
        tx.append("c", "log", data);
        store.commit(tx).unwrap();
        model.extend_from_slice(&piece);
    }
    assert!(read(&store, "log").unwrap() == model);
    for size in [400_000, 65_537, 11, 0] {
        let mut tx = Transaction::new();
        tx.truncate("c", "log", size);
        store.commit(tx).unwrap();
        model.truncate(size as usize);
        assert!(read(&store, "log").unwrap() == model);
        assert_clean(&store);
    }
    let parts = [pattern(7, 200_000), pattern(8, 3_000), pattern(9, 100_001)];
    for (i, part) in parts.iter().enumerate() {
        put(&store, &format!("part{i}"), part).unwrap();
    }
    let mut tx = Transaction::new();
    tx.assemble(
        "c",
        "whole",
        &[("c", "part0"), ("c", "part1"), ("c", "part2")],
        Attributes::new(),
    );
    store.commit(tx).unwrap();
    let mut whole = parts.concat();
    assert!(read(&store, "whole").unwrap() == whole);
    assert!(store.stat("c", "part1").unwrap().is_none());
    // A write over all three segments and beyond the end.
    let new = pattern(10, 150_000);
    let data = written(&store, &new).unwrap();
    let mut tx = Transaction::new();
    tx.write("c", "whole", 190_000, data)
        .rename(("c", "whole"), ("c", "renamed"));
    store.commit(tx).unwrap();
    whole.resize(340_000, 0);
    whole[190_000..].copy_from_slice(&new);
    assert!(read(&store, "renamed").unwrap() == whole);
    let mut tx = Transaction::new();
    tx.truncate("c", "renamed", 100_000);
    store.commit(tx).unwrap();
    assert!(read(&store, "renamed").unwrap() == whole[..100_000]);
    assert_clean(&store);
}

/// Attribute names too long for a record, and a size that overflows, are refused.
#[test]
fn what_no_record_can_hold_is_refused() {
    let (device, store) = fresh(128);
    put(&store, "a", b"a").unwrap();
    let half = u64::MAX / 2 + 2;
    for object in ["a", "b"] {
        let mut tx = Transaction::new();
        tx.touch("c", object).punch("c", object, 0, half);
        store.commit(tx).unwrap();
    }
    let long = || Attributes::from([("n".repeat(1 << 16), vec![1])]);
    let mut transactions = Vec::new();
    for what in 0..6 {
        let mut tx = Transaction::new();
        match what {
            0 => tx.set_attributes("c", "a", long()),
            1 => tx.update_attributes("c", "a", long(), &[]),
            2 => tx.set_collection_attributes("c", long()),
            3 => tx.create_collection("d", long()),
            4 => tx.put("c", "a", store.nothing().unwrap(), long()),
            _ => tx.assemble("c", "whole", &[("c", "a"), ("c", "b")], Attributes::new()),
        };
        transactions.push(tx);
    }
    for tx in transactions {
        assert!(matches!(store.commit(tx), Err(Error::Invalid { .. })));
    }
    assert_clean(&store);
    drop(store);
    let store = mount(&device);
    assert_eq!(store.list("c", "", "", 9).unwrap().len(), 2);
    // The sum of their sizes overflows.
    assert_clean(&store);
}

/// The store does not hold the zones of data written by another store or before the last mount.
#[test]
fn data_of_another_store_is_refused() {
    let ((device, store), (_, other)) = (fresh(128), fresh(128));
    let refused = |data| {
        let mut tx = Transaction::new();
        tx.put("c", "a", data, Attributes::new());
        let error = store.commit(tx).unwrap_err();
        assert!(matches!(error, Error::DataOfOther { .. }), "{error}");
    };
    refused(written(&other, &pattern(1, 200_000)).unwrap());
    let of_before = written(&store, &pattern(1, 200_000)).unwrap();
    drop(store);
    let store = mount(&device);
    let mut tx = Transaction::new();
    tx.append("c", "a", of_before);
    assert!(matches!(store.commit(tx), Err(Error::DataOfOther { .. })));
}

#[test]
fn a_transaction_happens_whole_or_not_at_all() {
    let (_, store) = fresh(128);
    put(&store, "a", b"old").unwrap();
    let data = written(&store, &pattern(1, 200_000)).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "b", data, Attributes::new())
        .remove("c", "a")
        .remove("c", "missing");
    assert!(matches!(store.commit(tx), Err(Error::NoObject { .. })));
    assert_eq!(contents(&store).keys().collect::<Vec<_>>(), ["a"]);

    let mut tx = Transaction::new();
    tx.require("c", "a", Condition::Absent).remove("c", "a");
    assert!(matches!(
        store.commit(tx),
        Err(Error::ConditionFailed { .. })
    ));
    let attributes = Attributes::from([("etag".to_owned(), b"1".to_vec())]);
    let mut tx = Transaction::new();
    tx.set_attributes("c", "a", attributes);
    store.commit(tx).unwrap();
    let is = |v: &[u8]| Condition::AttributeIs("etag".into(), v.to_vec());
    let is_missing = |name: &str| Condition::AttributeMissing(name.into());
    for wrong in [is(b"2"), is_missing("etag")] {
        let mut tx = Transaction::new();
        tx.require("c", "a", wrong).remove("c", "a");
        assert!(store.commit(tx).is_err());
    }
    let mut tx = Transaction::new();
    tx.require("c", "a", is(b"1"))
        .require("c", "a", is_missing("other"))
        .remove("c", "a");
    store.commit(tx).unwrap();
    assert!(contents(&store).is_empty());
    assert_clean(&store);
}

#[test]
fn collections_come_and_go() {
    let (device, store) = fresh(128);
    let create = |name: &str| {
        let mut tx = Transaction::new();
        tx.create_collection(name, Attributes::from([("k".to_owned(), b"v".to_vec())]));
        store.commit(tx)
    };
    create("d").unwrap();
    assert!(matches!(create("d"), Err(Error::CollectionExists { .. })));
    put(&store, "x", b"1").unwrap();
    let remove = |name: &str| {
        let mut tx = Transaction::new();
        tx.remove_collection(name);
        store.commit(tx)
    };
    assert!(matches!(remove("c"), Err(Error::CollectionNotEmpty { .. })));
    assert!(matches!(remove("nope"), Err(Error::NoCollection { .. })));
    remove("d").unwrap();
    drop(store);
    let store = mount(&device);
    let names: Vec<_> = store
        .collections()
        .unwrap()
        .into_iter()
        .map(|c| c.name)
        .collect();
    assert_eq!(names, ["c"]);
}

#[test]
fn lists_in_order_from_a_name_with_a_prefix() {
    let (_, store) = fresh(128);
    for name in ["b/2", "a", "b/1", "b/10", "c", "b", "ü"] {
        put(&store, name, b"").unwrap();
    }
    let list = |prefix, from, limit| -> Vec<String> {
        let found = store.list("c", prefix, from, limit).unwrap();
        found.into_iter().map(|o| o.name.to_string()).collect()
    };
    assert_eq!(
        list("", "", 100),
        ["a", "b", "b/1", "b/10", "b/2", "c", "ü"]
    );
    assert_eq!(list("b/", "", 100), ["b/1", "b/10", "b/2"]);
    assert_eq!(list("b/", "b/10", 1), ["b/10"]);
    assert_eq!(list("b/", "c", 9), [""; 0]);
}

#[test]
fn a_replaced_object_stays_readable_for_who_has_it_open() {
    let (device, store) = fresh(128);
    let old = pattern(1, 1_500_000);
    put(&store, "o", &old).unwrap();
    let reader = store.open("c", "o").unwrap();
    put(&store, "o", b"new").unwrap();
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    let mut data = vec![0; old.len()];
    assert_eq!(reader.read_at(0, &mut data).unwrap(), old.len());
    assert!(data == old);
    let live = store.statfs().live_bytes;
    assert!(live >= old.len() as u64);
    drop(reader);
    while store.clean_one().unwrap() {}
    assert!(store.statfs().live_bytes < 100_000);
    assert_clean(&store);
    drop(store);
    assert_clean(&mount(&device));
}

#[test]
fn an_abandoned_upload_costs_nothing_for_long() {
    let (_, store) = fresh(128);
    for i in 0..100 {
        let data = written(&store, &pattern(i, 1 << 20)).unwrap();
        drop(data);
    }
    let s = store.statfs();
    assert_eq!(s.live_bytes, 0);
    put(&store, "o", &pattern(1, 1 << 20)).unwrap();
    assert_clean(&store);
}

/// Of each shape, the smallest drive that mkfs accepts is filled with what it declares, emptied, and filled again.
#[test]
fn the_smallest_drives_that_mkfs_takes_hold_what_they_declare() {
    const PIECE: u64 = 64 << 10;
    for (copies, conventional_zones, active) in [1, 2]
        .into_iter()
        .flat_map(|copies| [0, 1, 2, 4].map(|zones| (copies, zones)))
        .flat_map(|(copies, zones)| [(copies, zones, 0), (copies, zones, 14)])
    {
        let made = MkfsOptions {
            metadata_copies: Some(copies),
            engine: options().engine,
            uuid: [1; 16],
            force: false,
            runtime: Runtime::seeded(0),
        };
        let mut device: Arc<dyn ZonedDevice>;
        let mut zones = 20;
        loop {
            device = Arc::new(
                MemoryDrive::new(zone::Geometry {
                    conventional_zones,
                    max_open_zones: active,
                    max_active_zones: active,
                    ..geometry(zones)
                })
                .unwrap(),
            );
            match Store::mkfs(device.clone(), &made) {
                Ok(_) => break,
                Err(Error::DriveTooSmall { .. }) => zones += 1,
                Err(error) => panic!("{zones}: {error}"),
            }
        }
        let shape = (copies, conventional_zones, active, zones);
        let store = mount(&device);
        create_collection(&store);
        for _ in 0..3 {
            let pieces = store.statfs().capacity_bytes / PIECE;
            assert!(pieces > 0, "{shape:?}");
            for number in 0..pieces {
                let data = vec![number as u8; PIECE as usize];
                let put = put(&store, &number.to_string(), &data);
                assert!(put.is_ok(), "{shape:?}: {number} of {pieces}, {put:?}");
            }
            for number in 0..pieces {
                let mut tx = Transaction::new();
                tx.remove("c", number.to_string());
                store.commit(tx).unwrap();
            }
        }
        store.unmount().unwrap();
    }
}

#[test]
fn mkfs_refuses_a_drive_with_a_store_and_a_small_one() {
    let device = drive(128);
    let made = |force| MkfsOptions {
        metadata_copies: Some(1),
        engine: options().engine,
        uuid: [1; 16],
        force,
        runtime: Runtime::seeded(0).with_clock(Arc::new(SimulatedClock::starting_at(77))),
    };
    let again = Store::mkfs(device.clone(), &made(false));
    assert!(
        matches!(again, Err(Error::BlueFs(bluefs::Error::NotEmpty { .. }))),
        "{again:?}"
    );
    Store::mkfs(device.clone(), &made(true)).unwrap();
    let g = device.geometry().clone();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    let read_only = bluefs::MountOptions {
        read_only: true,
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(
        device.clone(),
        Arc::new(ZonePool::new(g, &report)),
        read_only,
    )
    .unwrap();
    for name in fs.list("/db").unwrap() {
        // All times are of the given clock.
        let file = fs.metadata(&format!("/db/{name}")).unwrap();
        assert!((77..1_000).contains(&file.modified_micros), "{name}");
    }
    drop(fs);
    assert_eq!(mount(&device).uuid(), [1; 16]);
    let tiny: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(20)).unwrap());
    let result = Store::mkfs(tiny.clone(), &made(false));
    assert!(matches!(result, Err(Error::DriveTooSmall { .. })));
    assert!(matches!(
        Store::mount(tiny, options()).err(),
        Some(Error::NotFormatted)
    ));
    let small_zones = zone::Geometry {
        zone_size: 32 << 10,
        zone_capacity: 24 << 10,
        ..geometry(128)
    };
    let result = Store::mkfs(
        Arc::new(MemoryDrive::new(small_zones).unwrap()),
        &made(false),
    );
    assert!(matches!(
        result,
        Err(Error::BlueFs(bluefs::Error::Unsuitable { .. }))
    ));
}

#[test]
fn files_of_the_metadata_have_the_times_of_the_stores_clock() {
    let (device, store) = fresh(64);
    drop(store.unmount());
    let report = device.report(ZoneId(0), 64).unwrap();
    let pool = Arc::new(zone_alloc::ZonePool::new(
        device.geometry().clone(),
        &report,
    ));
    let fs = bluefs::BlueFs::mount(device, pool, bluefs::MountOptions::default()).unwrap();
    // Files of the mount: the clock of mkfs is the host's.
    let of_the_test = 1_700_000_000_000_000..1_700_000_001_000_000;
    let files = fs.list("/db").unwrap();
    let times = files
        .iter()
        .map(|name| fs.metadata(&format!("/db/{name}")).unwrap().modified_micros);
    assert!(times.filter(|time| of_the_test.contains(time)).count() > 1);
}
