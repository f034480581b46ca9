//! Salvage: objects are recovered from data zones alone.

use crate::common;
use crate::common::{
    contents, create_collection, geometry, hit, mkfs, mount, pattern, put, put_in, written,
};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Attributes, Error, Salvage, SalvageOptions, SalvageReport, Store, Transaction};
use zone::{ByteOffset, ZoneId, ZoneKind};

const OBJECT: usize = 48 << 10;

fn drive(zones: u32) -> Arc<dyn ZonedDevice> {
    Arc::new(MemoryDrive::new(geometry(zones)).unwrap())
}

fn on_drive(zones: u32) -> (Arc<dyn ZonedDevice>, Store) {
    let device = drive(zones);
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

/// An empty store on another drive.
fn other() -> Store {
    let device = drive(160);
    mkfs(&device);
    mount(&device)
}

/// Erases all zones but the data zones.
fn lose_metadata(device: &Arc<dyn ZonedDevice>, data: &[ZoneId]) {
    let geometry = device.geometry().clone();
    for zone in geometry.zones() {
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let zeros = vec![0; geometry.zone_size as usize];
                device.write(geometry.start(zone), &zeros).unwrap();
            }
            _ if data.contains(&zone) => {}
            _ => device.reset(zone).unwrap(),
        }
    }
}

fn scan(device: &Arc<dyn ZonedDevice>) -> Salvage {
    Salvage::scan(device.clone(), &mut |_, _| {}).unwrap()
}

fn salvage(device: &Arc<dyn ZonedDevice>, to: &Store, damaged: bool) -> SalvageReport {
    let to = Some(to);
    let options = SalvageOptions {
        to,
        damaged,
        in_place: false,
    };
    scan(device).copy(options, &mut |_, _| {}).unwrap()
}

/// Unmounts, and returns the contents and the data zones.
fn end(store: Store) -> (BTreeMap<String, Vec<u8>>, Vec<ZoneId>) {
    let expected = contents(&store);
    let device_zones = store.zones();
    store.unmount().unwrap();
    (
        expected,
        device_zones.iter().map(|used| used.zone).collect(),
    )
}

/// Inline data is lost and reported, whether it came in the same commit or later, in a clone or in an assembled object.
#[test]
fn an_object_with_an_inline_end_comes_back_without_it_and_is_named() {
    let (device, store) = on_drive(64);
    put(&store, "whole", &pattern(1, OBJECT)).unwrap();
    put(&store, "end", &pattern(2, 500)).unwrap();
    put(&store, "appended", &pattern(3, OBJECT)).unwrap();
    let commit = |change: &dyn Fn(&mut Transaction)| {
        let mut tx = Transaction::new();
        change(&mut tx);
        store.commit(tx).unwrap();
    };
    let end = || written(&store, &pattern(4, 500)).unwrap();
    commit(&|tx| _ = tx.append("c", "appended", end()));
    commit(&|tx| _ = tx.clone_object(("c", "appended"), ("c", "cloned")));
    let parts = [("c", "whole"), ("c", "end")];
    commit(&|tx| _ = tx.assemble("c", "parts", &parts, Attributes::new()));
    commit(&|tx| _ = tx.clone_object(("c", "parts"), ("c", "copied")));
    commit(&|tx| {
        tx.remove("c", "parts");
        tx.remove("c", "appended");
    });
    store.unmount().unwrap();
    let (_, data) = self::end(mount(&device));
    lose_metadata(&device, &data);
    let report = salvage(&device, &other(), true);
    let mut named: Vec<_> = report
        .damaged
        .iter()
        .map(|damaged| {
            (
                format!("{:?}", damaged.object),
                damaged
                    .lost
                    .iter()
                    .map(|lost| lost.end - lost.start)
                    .sum::<u64>(),
            )
        })
        .collect();
    named.sort();
    assert_eq!(named.len(), 2, "{named:?}");
    assert!(
        named[0].0.contains("cloned") && named[1].0.contains("copied"),
        "{named:?}"
    );
    assert_eq!((named[0].1, named[1].1), (500, 500));
}

#[test]
fn what_was_changed_in_every_way_comes_back_as_it_was() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    for round in 0..3 {
        let (device, store) = on_drive(128);
        for _ in 0..200 {
            let name = |random: &mut fastrand::Rng| format!("object-{}", random.u32(..40));
            let (a, b) = (name(&mut random), name(&mut random));
            let size = random.usize(4096..4 * OBJECT);
            let data = written(&store, &pattern(random.u64(..), size)).unwrap();
            let mut tx = Transaction::new();
            match random.u32(..12) {
                0 => tx.remove("c", &a),
                1 => tx.rename(("c", &a), ("c", &b)),
                2 | 3 => tx.clone_object(("c", &a), ("c", &b)),
                4 => tx.append("c", &a, data),
                5 => tx.truncate("c", &a, random.u64(4096..3 * OBJECT as u64)),
                6 => tx.punch("c", &a, random.u64(..OBJECT as u64), OBJECT as u64),
                7 => tx.assemble("c", &a, &[("c", &b)], Attributes::new()),
                8 | 9 => tx.write("c", &a, random.u64(..OBJECT as u64), data),
                _ => tx.put("c", &a, data, Attributes::from([("k".into(), b.into())])),
            };
            match store.commit(tx) {
                Err(Error::NoObject { .. } | Error::Invalid { .. }) | Ok(()) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let attributes = |store: &Store| -> Vec<_> {
            let page = store.list("c", "", "", 1000).unwrap();
            page.into_iter()
                .map(|o| (o.name, o.size, o.attributes))
                .collect()
        };
        let before = attributes(&store);
        store.seal_open_zones().unwrap();
        for _ in 0..round * 6 {
            store.clean_one().unwrap();
        }
        store.unmount().unwrap();
        let (expected, data) = end(mount(&device));
        lose_metadata(&device, &data);
        let to = other();
        let report = salvage(&device, &to, false);
        assert!(report.is_whole(), "{report:#?}");
        assert_eq!(
            report.objects,
            expected.len() as u64,
            "{:#?}",
            report.lines(true)
        );
        assert!(contents(&to) == expected && attributes(&to) == before);
        assert!(to.fsck(true, &mut |_, _| {}).unwrap().is_clean());
        // A second salvage finds all objects already there.
        let again = salvage(&device, &to, false);
        assert_eq!(
            (again.objects, again.already_there),
            (report.objects, report.objects)
        );
    }
}

#[test]
fn damage_costs_the_bytes_it_hit_and_is_told() {
    let (device, store) = on_drive(96);
    for index in 0..60 {
        put(&store, &format!("o{index}"), &pattern(index, OBJECT)).unwrap();
    }
    let (expected, data) = end(store);
    lose_metadata(&device, &data);
    // One block of one of the objects is damaged.
    hit(&device, data[0], &expected["o7"][16384..20480]);

    let (to, all) = (other(), expected.len());
    let report = salvage(&device, &to, true);
    assert_eq!(
        (report.objects as usize, report.damaged.len()),
        (all - 1, 1)
    );
    let lost = &report.damaged[0];
    assert_eq!((&*lost.object, lost.size), (&b"o7"[..], OBJECT as u64));
    // The loss is rounded to checksum blocks.
    assert_eq!(lost.lost.len(), 1);
    let range = lost.lost[0].start as usize..lost.lost[0].end as usize;
    assert!(
        range.contains(&16484) && range.len() <= 128 << 10,
        "{lost:?}"
    );
    let found = contents(&to);
    assert!(!found.contains_key("o7"));
    assert!(found.iter().all(|(name, bytes)| expected[name] == *bytes));
    // It is stored apart from whole objects, with a hole.
    let mut rest = expected["o7"].clone();
    rest[range].fill(0);
    assert!(common::read_in(&to, "salvaged-damaged", "c/o7").unwrap() == rest);
}

#[test]
fn after_a_kill_every_object_is_one_that_was_there() {
    let (device, store) = on_drive(128);
    let mut random = fastrand::Rng::with_seed(common::seed());
    let mut versions: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for index in 0..2000 {
        let name = format!("o{}", random.u32(..900));
        let data = pattern(index, random.usize(4096..OBJECT / 2));
        put(&store, &name, &data).unwrap();
        versions.entry(name).or_default().push(data);
    }
    let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    // Rows that waited for a summary are in none.
    drop(store);
    lose_metadata(&device, &data);
    let to = other();
    let report = salvage(&device, &to, false);
    let found = contents(&to);
    println!(
        "{} of {}: {:#?}",
        found.len(),
        versions.len(),
        report.lines(true)
    );
    assert!(found.len() * 2 > versions.len() && report.undescribed_bytes() > 0);
    for (name, bytes) in &found {
        assert!(versions[name].contains(bytes), "{name}");
    }
}

#[test]
fn collections_of_all_kinds_come_back_and_what_has_none_is_placed() {
    use store::{HashPrefix, HashSource, Hashed};
    let (device, store) = on_drive(96);
    let mut tx = Transaction::new();
    let hashed = Hashed {
        family: 3,
        source: HashSource::Xxh3,
        prefix: HashPrefix::ALL,
    };
    tx.create_hashed_collection("h", hashed, Attributes::from([("x".into(), b"y".to_vec())]));
    tx.create_collection("empty", Attributes::new());
    store.commit(tx).unwrap();
    for index in 0..20 {
        put_in(
            &store,
            "h",
            format!("\u{fe}{index}\n"),
            &pattern(index, OBJECT),
        )
        .unwrap();
    }
    let mut tx = Transaction::new();
    tx.split_collection("h", "h1", Attributes::new());
    store.commit(tx).unwrap();
    let infos = |store: &Store| -> Vec<_> {
        let all = store.collections().unwrap().into_iter();
        all.map(|c| (c.name, c.hashed, c.attributes)).collect()
    };
    let before = infos(&store);
    let (_, data) = end(store);
    lose_metadata(&device, &data);
    let to = other();
    let report = salvage(&device, &to, false);
    assert_eq!((report.objects, report.without_collection), (20, 0));
    assert_eq!(infos(&to), before);
    let count = |name| to.list(name, "", "", 100).unwrap().len();
    assert_eq!(count("h") + count("h1"), 20);
}

#[test]
fn copies_have_the_times_of_what_they_are_copies_of() {
    let (device, store) = on_drive(64);
    put(&store, "whole", &pattern(1, OBJECT)).unwrap();
    put(&store, "holes", &pattern(2, OBJECT)).unwrap();
    let mut tx = Transaction::new();
    tx.punch("c", "holes", 4096, 4096);
    tx.set_modified("c", "whole", 5);
    tx.set_modified("c", "holes", 6);
    tx.set_collection_created("c", 7);
    store.commit(tx).unwrap();
    let (_, data) = end(store);
    lose_metadata(&device, &data);
    let to = other();
    assert_eq!(salvage(&device, &to, false).objects, 2);
    let modified = |name| to.stat("c", name).unwrap().unwrap().modified_micros;
    assert_eq!((modified("whole"), modified("holes")), (5, 6));
    assert_eq!(to.collection("c").unwrap().unwrap().created_micros, 7);
}

#[test]
fn a_drive_without_summaries_says_so() {
    let (device, store) = on_drive(64);
    store.unmount().unwrap();
    lose_metadata(&device, &[]);
    let scanned = Salvage::scan(device.clone(), &mut |_, _| {});
    assert!(matches!(scanned, Err(Error::NothingToSalvage)));
    // A block of random bytes with the magic of a summary.
    let zone = ZoneId(9);
    let mut noise = pattern(5, 8192);
    noise[..8].copy_from_slice(b"ZSSEGSUM");
    let ByteOffset(at) = device.geometry().start(zone);
    device.write(ByteOffset(at), &noise).unwrap();
    let scanned = Salvage::scan(device, &mut |_, _| {});
    assert!(matches!(scanned, Err(Error::NothingToSalvage)));
}

/// Rows of an earlier life of a zone may name places where summaries are now; these are found nevertheless.
#[test]
fn summaries_where_an_old_row_had_data_count() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(common::seed() + seed);
        let (device, store) = on_drive(64);
        let mut expected = BTreeMap::new();
        for index in 0..3000 {
            let name = format!("o{}", random.u32(..400));
            let data = pattern(index, random.usize(4096..OBJECT));
            put(&store, &name, &data).unwrap();
            expected.insert(name, data);
            store.tend().unwrap();
        }
        assert!(store.clean_status().zones_cleaned > 10);
        store.unmount().unwrap();
        let store = mount(&device);
        let checked = store.fsck(true, &mut |_, _| {}).unwrap();
        assert_eq!(checked.summaries_unreadable, 0);
        let (_, data) = end(store);
        lose_metadata(&device, &data);
        let to = other();
        let report = salvage(&device, &to, false);
        let found = contents(&to);
        println!("seed {seed}: {:#?}", report.lines(true));
        let current = found
            .iter()
            .filter(|(name, bytes)| expected[*name] == **bytes);
        // Summaries take a limited share of the space, so some rows have no copy.
        assert!(current.count() as u64 + checked.rows_without_copy >= expected.len() as u64);
    }
}

#[test]
fn an_image_of_another_store_within_an_object_is_an_object() {
    let (inner, store) = {
        let device = drive(64);
        let made = store::MkfsOptions {
            engine: common::options().engine,
            uuid: [9; 16],
            runtime: common::options().runtime,
            ..store::MkfsOptions::new(kv_rocksdb::RocksDb)
        };
        Store::mkfs(device.clone(), &made).unwrap();
        let store = mount(&device);
        (device, store)
    };
    create_collection(&store);
    for index in 0..300 {
        put(&store, &format!("inner{index}"), &pattern(index, 8192)).unwrap();
        if index % 30 == 0 {
            store.seal_open_zones().unwrap();
        }
    }
    store.unmount().unwrap();
    let mut image = vec![0; 64 << 20];
    for zone in inner.geometry().zones().skip(4) {
        let end = inner.report_zone(zone).unwrap().write_pointer as usize;
        let start = inner.geometry().start(zone);
        if end == 0 {
            continue;
        }
        inner
            .read(start, &mut image[start.0 as usize..][..end])
            .unwrap();
    }
    let (device, store) = on_drive(160);
    put(&store, "image", &image).unwrap();
    for index in 0..20 {
        put(&store, &format!("o{index}"), &pattern(index, OBJECT)).unwrap();
    }
    let (expected, data) = end(store);
    lose_metadata(&device, &data);
    let to = other();
    let report = salvage(&device, &to, false);
    assert!(report.is_whole(), "{:#?}", report.lines(true));
    assert!(contents(&to) == expected);
}

#[test]
fn what_has_no_collection_displaces_nothing() {
    let (device, store) = on_drive(96);
    // A collection that an earlier salvage may have made, and one whose row is not found below.
    let mut tx = Transaction::new();
    tx.create_collection("salvaged-damaged", Attributes::new());
    store.commit(tx).unwrap();
    put_in(&store, "salvaged-damaged", "c/a", &pattern(1, OBJECT)).unwrap();
    put(&store, "a", &pattern(2, OBJECT)).unwrap();
    let (_, data) = end(store);
    lose_metadata(&device, &data);
    hit(&device, data[0], &pattern(2, OBJECT)[8192..12288]);
    let to = other();
    let report = salvage(&device, &to, true);
    assert_eq!(report.damaged.len(), 1);
    let whole = common::read_in(&to, "salvaged-damaged", "c/a").unwrap();
    assert!(whole == pattern(1, OBJECT));
    let rest = common::read_in(&to, "salvaged-damaged-2", "c/a").unwrap();
    assert!(rest.len() == OBJECT && rest != whole);
}

#[test]
fn damaged_objects_with_long_names_are_kept_and_do_not_end_it() {
    let (device, store) = on_drive(96);
    for (seed, last) in [(1, "1"), (2, "2")] {
        let name = "x".repeat(4095) + last;
        put(&store, &name, &pattern(seed, OBJECT)).unwrap();
    }
    put(&store, "z", &pattern(3, OBJECT)).unwrap();
    let (expected, data) = end(store);
    lose_metadata(&device, &data);
    for seed in [1, 2] {
        hit(&device, data[0], &pattern(seed, OBJECT)[8192..12288]);
    }
    let to = other();
    let report = salvage(&device, &to, true);
    assert_eq!(report.damaged.len(), 2);
    assert_eq!(contents(&to)["z"], expected["z"]);
    let kept = to.list("salvaged-damaged", "c/x", "", 9).unwrap();
    assert_eq!(kept.len(), 2);
}

/// As a repair by an earlier version has made them.
#[test]
fn an_object_whose_name_is_too_long_gets_another() {
    let (device, store) = on_drive(96);
    put(&store, "o", &pattern(1, OBJECT)).unwrap();
    store.unmount().unwrap();
    drop(store);
    let (fs, kv) = common::database(&device);
    let (key, value) = kv.scan(b"O", Some(b"P")).next().unwrap().unwrap();
    let mut batch = kv::Batch::default();
    batch.put(&[&key[..5], &[b'x'; 5000]].concat(), &value);
    batch.delete(&key);
    // So that the next mount looks for rows without a copy.
    batch.put(b"Ssummaries", &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    batch.put(b"Swaiting", &[0; 4]);
    kv.write(&batch, kv::Durability::Synced).unwrap();
    kv.flush().unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let store = mount(&device);
    assert!(store.copy_uncopied(|_| true).unwrap());
    let (_, data) = end(store);
    lose_metadata(&device, &data);
    let to = other();
    assert!(salvage(&device, &to, false).is_whole());
    let found = common::contents_of(&to, "c");
    assert_eq!((found.len(), found[0].0.len()), (1, 4096));
    assert!(found[0].1 == pattern(1, OBJECT));
}

/// An image of another drive, with more summaries than the store has, was removed before any summary had its rows.
#[test]
fn summaries_of_a_removed_image_are_not_taken_for_the_stores() {
    let inner = drive(64);
    let made = store::MkfsOptions {
        engine: common::options().engine,
        uuid: [9; 16],
        runtime: common::options().runtime,
        ..store::MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(inner.clone(), &made).unwrap();
    create_collection(&mount(&inner));
    let mut zones = Vec::new();
    for round in 0..12 {
        let store = mount(&inner);
        for index in 0..20 {
            let data = pattern(1000 + round * 20 + index, 16_384);
            put(&store, &format!("{round} {index}"), &data).unwrap();
        }
        zones = store.zones().iter().map(|used| used.zone).collect();
        store.unmount().unwrap();
    }
    let (device, store) = on_drive(160);
    let mut tx = Transaction::new();
    for zone in zones {
        let mut bytes = vec![0; inner.report_zone(zone).unwrap().write_pointer as usize];
        inner
            .read(inner.geometry().start(zone), &mut bytes)
            .unwrap();
        for (part, bytes) in bytes.chunks(512 << 10).enumerate() {
            let name = format!("image {zone} {part}");
            put(&store, &name, bytes).unwrap();
            tx.remove("c", &name);
            // So that no zone has dead bytes only and is reset.
            let number = u64::from(zone.0) * 10 + part as u64;
            put(&store, &format!("o{number}"), &pattern(number, OBJECT)).unwrap();
        }
    }
    store.commit(tx).unwrap();
    let (expected, data) = end(store);
    lose_metadata(&device, &data);
    let to = other();
    let report = salvage(&device, &to, false);
    let told = serde_json::to_value(&report).unwrap();
    let count = |name: &str| told[name].as_u64().unwrap();
    assert!(count("foreign_summaries") > count("summaries"), "{told}");
    assert!(contents(&to) == expected);
}
