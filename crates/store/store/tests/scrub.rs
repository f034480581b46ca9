//! The scrub: what it finds, what it writes anew, where it goes on, and that losses are told exactly.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    assert_clean, create_collection, geometry, mkfs, mount, on_failing_drive, options, pattern,
    put, seed,
};
use device::wrap::faults::{Fault, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{
    Attributes, Compression, MkfsOptions, MountOptions, Pace, ScrubPlan, ScrubStatus, Store,
    Transaction,
};
use zone::{ZoneAddress, ZoneCommand, ZoneCondition, ZoneId, ZoneKind};

fn fresh() -> (Arc<MemoryDrive>, Arc<dyn ZonedDevice>, Store) {
    let drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (drive, device, store)
}

fn all(store: &Store) {
    assert!(store.scrub(true, |_| true).unwrap());
}

/// Flips a bit in a written place of a zone with objects.
fn flip(drive: &MemoryDrive, store: &Store, random: &mut fastrand::Rng) -> ZoneAddress {
    let zones = store.zones();
    let zone = zones[random.usize(..zones.len())];
    let at = ZoneAddress::new(zone.zone, random.u64(..zone.written_bytes));
    drive.decay(at, 1, |bytes| bytes[0] ^= 1 << random.u8(..8));
    at
}

/// Bytes of each object that cannot be read, read 512 at a time; those that can be are right.
fn unreadable(store: &Store, expected: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u64>> {
    const STEP: usize = 512;
    let mut found = BTreeMap::new();
    for (name, data) in expected {
        let object = store.open("c", name).unwrap();
        for (number, part) in data.chunks(STEP).enumerate() {
            let mut bytes = vec![0; part.len()];
            let at = (number * STEP) as u64;
            match object.read_at(at, &mut bytes) {
                Ok(_) => assert!(bytes == part, "{name} at {at}"),
                Err(_) => found
                    .entry(format!("c/{name}"))
                    .or_insert_with(Vec::new)
                    .push(at),
            }
        }
    }
    found
}

/// With clones, holes, parts, compressed and inline data.
fn mixed(store: &Store, random: &mut fastrand::Rng) -> BTreeMap<String, Vec<u8>> {
    let mut expected = BTreeMap::new();
    for number in 0..40_u32 {
        let name = format!("object {number}");
        let size = 1 << random.u32(6..20);
        let data = match number % 4 {
            0 => vec![number as u8; size],
            _ => pattern(random.u64(..), size + random.usize(..5000)),
        };
        put(store, &name, &data).unwrap();
        expected.insert(name.clone(), data.clone());
        if number.is_multiple_of(5) {
            let (copy, part) = (format!("clone {number}"), data.len() as u64 / 2);
            let mut tx = Transaction::new();
            tx.clone_object(("c", &name), ("c", &copy));
            tx.truncate("c", &copy, part);
            store.commit(tx).unwrap();
            expected.insert(copy, data[..part as usize].to_vec());
        }
        if number.is_multiple_of(7) && data.len() > 9000 {
            let mut tx = Transaction::new();
            tx.punch("c", &name, 1000, 5000);
            store.commit(tx).unwrap();
            expected.get_mut(&name).unwrap()[1000..6000].fill(0);
        }
    }
    expected
}

fn round(number: u64, compression: &str) {
    let mut random = fastrand::Rng::with_seed(seed() + number);
    let (drive, device, store) = fresh();
    store.unmount().unwrap();
    let mut options = options();
    options.data.compression = compression.parse::<Compression>().unwrap();
    let store = Store::mount(device, options).unwrap();
    let expected = mixed(&store, &mut random);
    for _ in 0..random.usize(1..6) {
        flip(&drive, &store, &mut random);
    }
    if number.is_multiple_of(3) {
        let zones = store.zones();
        let zone = zones[random.usize(..zones.len())].zone;
        drive.set_condition(zone, ZoneCondition::Offline).unwrap();
    }
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    let mut named: Vec<String> = expected.keys().map(|name| format!("c/{name}")).collect();
    named.retain(|name| {
        report
            .details
            .iter()
            .any(|d| d.starts_with(&format!("{name}: ")))
    });
    assert_eq!(report.unnamed, 0);
    all(&store);
    let lost = unreadable(&store, &expected);
    // Each that shares damaged bytes, and no other.
    assert_eq!(
        named,
        lost.keys().cloned().collect::<Vec<_>>(),
        "{report:?}"
    );
    let health = store.health().unwrap();
    let mut told: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for loss in &health.losses {
        let size = expected[loss.object.strip_prefix("c/").unwrap()].len() as u64;
        let is_lost = |at: &u64| {
            let end = (at + 512).min(size);
            loss.ranges.iter().any(|r| r.start < end && *at < r.end)
        };
        let parts = (0..size).step_by(512).filter(is_lost);
        told.insert(loss.object.clone(), parts.collect());
    }
    assert_eq!(told, lost, "{number}: {health:#?}");
    assert_eq!(health.lost_objects, told.len() as u64);
    assert_eq!(health.is_healthy(), lost.is_empty(), "{health:?}");
    // What is damaged goes, and with it what is said of it.
    for object in told.keys() {
        let mut tx = Transaction::new();
        tx.remove("c", object.strip_prefix("c/").unwrap());
        store.commit(tx).unwrap();
    }
    assert_eq!(store.health().unwrap().lost_objects, 0);
    all(&store);
    assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
}

#[test]
fn losses_are_told_as_they_are() {
    for number in 0..8 {
        round(number, "none");
    }
}

#[test]
fn losses_of_compressed_objects_are_told_as_they_are() {
    for number in 0..4 {
        round(number, "force");
    }
}

#[test]
fn a_damaged_summary_is_written_anew() {
    let (drive, device, store) = fresh();
    for number in 0..300 {
        put(&store, &format!("object {number}"), &pattern(number, 5000)).unwrap();
    }
    store.unmount().unwrap();
    let store = mount(&device);
    let mut hit = 0;
    for zone in store.zones() {
        for offset in (0..zone.written_bytes).step_by(4096) {
            let at = ZoneAddress::new(zone.zone, offset);
            let mut block = vec![0; 4096];
            device
                .read(device.geometry().absolute(at), &mut block)
                .unwrap();
            if block.starts_with(b"ZSSEGSUM") {
                drive.decay(at, 100, |bytes| bytes[90] ^= 1);
                hit += 1;
                break;
            }
        }
    }
    assert!(hit > 0, "a summary was found");
    let before = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(before.summaries_unreadable > 0 && before.rows_without_copy > 0);
    all(&store);
    let after = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(after.is_clean(), "{:?}", after.details);
    assert_eq!(
        (after.summaries_unreadable, after.rows_without_copy),
        (0, 0)
    );
    assert!(store.scrub_status().unwrap().rows_copied > 0);
}

#[test]
fn a_pass_goes_on_where_it_was_left() {
    let (_, device, mut store) = fresh();
    for number in 0..60 {
        put(
            &store,
            &format!("object {number}"),
            &pattern(number, 100_000),
        )
        .unwrap();
    }
    let live: u64 = store.zones().iter().map(|zone| zone.live_bytes).sum();
    let (mut passes, mut asked) = (0, 0);
    loop {
        let mut left = 2_500_000;
        let is_done = store.scrub(true, |bytes| {
            left -= bytes.cast_signed();
            asked += bytes;
            left >= 0
        });
        passes += 1;
        let status = store.scrub_status().unwrap();
        assert!(status.metadata_micros.is_some());
        assert_eq!(
            status.data_micros.is_some(),
            is_done.as_ref().is_ok_and(|d| *d)
        );
        if is_done.unwrap() {
            break;
        }
        assert!(status.began_micros.is_some());
        store.unmount().unwrap();
        store = mount(&device);
    }
    assert!(passes > 2, "{passes}");
    let status = store.scrub_status().unwrap();
    assert!(status.bytes_read >= live - live / 20, "{status:?}, {live}");
    // A zone that was left is read from its beginning again.
    assert!(asked < 2 * live, "{asked}, {live}");
    assert_clean(&store);
}

#[test]
fn damaged_metadata_is_written_anew_by_a_thread() {
    let free = zone::Geometry {
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry(200)
    };
    let drive = Arc::new(MemoryDrive::new(free).unwrap());
    let made = MkfsOptions {
        uuid: [7; 16],
        metadata_copies: Some(2),
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(drive.clone(), &made).unwrap();
    let store = Store::mount(drive.clone(), options()).unwrap();
    create_collection(&store);
    for number in 0..200 {
        put(&store, &format!("object {number}"), &pattern(number, 1000)).unwrap();
    }
    store.unmount().unwrap();
    let options = MountOptions {
        background: true,
        scrub: ScrubPlan {
            metadata_every: Some(std::time::Duration::from_secs(3600)),
            data_every: None,
            pace: store::Pace::Full,
        },
        ..MountOptions::new(kv_rocksdb::RocksDb)
    };
    let store = Store::mount(drive.clone(), options).unwrap();
    let wait = |is_so: &dyn Fn(&store::ScrubStatus) -> bool| {
        for _ in 0..2000 {
            let status = store.scrub_status().unwrap();
            if !status.running && is_so(&status) {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{:?}", store.scrub_status());
    };
    // It was never done: it begins by itself.
    let first = wait(&|status| status.metadata_micros.is_some());
    assert_eq!(first.copies_repaired, 0);
    // A bit of each block of a table, in one zone.
    let view = bluefs::BlueFs::view(drive.clone()).unwrap();
    let report = view.report(ZoneId(0), u32::MAX).unwrap();
    let of_fs = bluefs::BlueFs::observe(&*view, &report).unwrap().zones;
    let g = drive.geometry();
    let with_data = of_fs.into_keys().find(|zone| {
        let mut head = vec![0; 4096];
        g.kind(*zone) != ZoneKind::Conventional
            && drive.report_zone(*zone).unwrap().write_pointer > 0
            && drive.read(g.start(*zone), &mut head).is_ok()
            && !head.starts_with(b"BF")
    });
    let zone = with_data.expect("a zone with a table");
    let written = drive.report_zone(zone).unwrap().write_pointer;
    drive.decay(ZoneAddress::new(zone, 0), written as usize, |bytes| {
        bytes.iter_mut().step_by(4096).for_each(|byte| *byte ^= 1);
    });
    store.scrub_start(false).unwrap();
    let status = wait(&|status| status.copies_repaired > 0);
    assert_eq!(status.metadata_lost, 0);
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.details);
}

/// A compaction that meets a damaged block fails, and no reader may ever ask for that block. Without the other copy, writes
/// end when level 0 is full.
#[test]
fn what_a_compaction_meets_has_both_copies_looked_at() {
    const LOST: &str = "m: nobody reads it";
    let free = zone::Geometry {
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry(200)
    };
    let drive = Arc::new(MemoryDrive::new(free).unwrap());
    let made = MkfsOptions {
        uuid: [7; 16],
        metadata_copies: Some(2),
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(drive.clone(), &made).unwrap();
    let mounted = |background| {
        let options = MountOptions {
            background,
            scrub: ScrubPlan::NEVER,
            ..MountOptions::new(kv_rocksdb::RocksDb)
        };
        Store::mount(drive.clone(), options).unwrap()
    };
    // Each attribute fills blocks of its own, so no other row is in a damaged one.
    let touch = |store: &Store, name: &str, seed: u64| {
        let large = Attributes::from([("large".to_owned(), pattern(seed, 40_000))]);
        let mut tx = Transaction::new();
        tx.touch("c", name).set_attributes("c", name, large);
        store.commit(tx).unwrap();
    };
    let store = mounted(false);
    create_collection(&store);
    for name in ["a", LOST, "z"] {
        touch(&store, name, 1);
    }
    store.unmount().unwrap();
    // One copy of it, in the table that the unmount has written.
    let store = mounted(false);
    let fs = store.bluefs();
    let tables = fs.list("/db").unwrap().into_iter();
    let mut damaged = 0;
    for table in tables.filter(|name| name.ends_with(".sst")) {
        for extent in fs.extents(&format!("/db/{table}")).unwrap() {
            let mut bytes = vec![0; extent.length.next_multiple_of(4096) as usize];
            let from = drive.geometry().absolute(extent.at);
            drive.read(from, &mut bytes).unwrap();
            let name = LOST.as_bytes();
            let found = bytes.windows(name.len()).position(|found| found == name);
            if let Some(at) = found {
                // Behind its key, in its value.
                let at = extent.at.offset + at as u64 + 20_000;
                let at = ZoneAddress::new(extent.at.zone, at);
                drive.decay(at, 1, |bytes| bytes[0] ^= 1);
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    store.unmount().unwrap();
    // Tables are written until there is a compaction, which fails, or finds the other copy by itself.
    let store = mounted(true);
    // Only a failing test waits for so long.
    for seed in 2..6000 {
        let status = store.scrub_status().unwrap();
        if status.copies_repaired > 0 {
            break;
        }
        touch(&store, if seed % 2 == 0 { "a" } else { "z" }, seed);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let status = store.scrub_status().unwrap();
    assert!(status.copies_repaired > 0, "{status:?}");
    assert_eq!((status.metadata_lost, status.data_micros), (0, None));
    store.unmount().unwrap();
    let store = mounted(false);
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.details);
    store.unmount().unwrap();
}

/// A drive may fail a read and do the next one: that is no damage.
#[test]
fn a_read_that_fails_once_is_made_again() {
    let (drive, store) = on_failing_drive(96);
    for index in 0..6 {
        put(&store, &format!("o{index}"), &pattern(index, 100_000)).unwrap();
    }
    let zone = store.zones()[0].zone;
    for kth in 1..=6 {
        drive.clear();
        let fault = Fault::Io(std::io::ErrorKind::Other);
        drive.add(Plan::at(ZoneCommand::Read, kth, fault).in_zone(zone));
        let before = drive.struck();
        all(&store);
        assert_eq!(drive.struck(), before + 1, "read {kth}");
        let health = store.health().unwrap();
        assert_eq!((health.lost_objects, health.is_healthy()), (0, true));
        assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
    }
}

/// Waits until the thread has come to something. Only a failing test waits for so long.
fn wait_for(store: &Store, is_so: impl Fn(&ScrubStatus) -> bool) -> ScrubStatus {
    for _ in 0..6000 {
        let status = store.scrub_status().unwrap();
        if is_so(&status) {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{:?}", store.scrub_status());
}

/// Mounted with a scrub that begins when it is asked for.
fn with_thread(device: &Arc<dyn ZonedDevice>, pace: Pace) -> Store {
    let how = MountOptions {
        background: true,
        scrub: ScrubPlan {
            pace,
            ..ScrubPlan::NEVER
        },
        ..MountOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mount(device.clone(), how).unwrap()
}

#[test]
fn a_running_scrub_is_stopped_and_goes_on_where_it_was() {
    let (drive, device, store) = fresh();
    for number in 0..100 {
        let data = pattern(number, 100_000);
        put(&store, &format!("object {number}"), &data).unwrap();
    }
    store.unmount().unwrap();
    // It would take half a minute.
    let store = with_thread(&device, Pace::Rate(600 << 10));
    store.scrub_start(true).unwrap();
    let running = wait_for(&store, |status| status.bytes_read > 0);
    assert!(running.running && running.began_micros.is_some());
    store.scrub_stop().unwrap();
    let stopped = wait_for(&store, |status| !status.running);
    assert!(!stopped.requested && stopped.data_micros.is_none());
    assert_eq!(stopped.began_micros, running.began_micros);
    let read = stopped.bytes_read;
    assert!(0 < read && read < stopped.bytes_all / 2, "{stopped:?}");
    // Asked once more, it is the same pass.
    store.scrub_start(true).unwrap();
    let again = wait_for(&store, |status| status.zone.is_some());
    assert_eq!(again.began_micros, running.began_micros);
    assert!(again.bytes_read >= read, "{again:?}");
    store.scrub_stop().unwrap();
    wait_for(&store, |status| !status.running);
    store.unmount().unwrap();
    // So it is behind a mount.
    let store = with_thread(&device, Pace::Full);
    assert_eq!(
        store.scrub_status().unwrap().began_micros,
        running.began_micros
    );
    let zones = store.zones();
    let first = zones.iter().find(|zone| zone.live_bytes > 0).unwrap();
    drive
        .set_condition(first.zone, ZoneCondition::Offline)
        .unwrap();
    store.scrub_start(true).unwrap();
    let done = wait_for(&store, |status| status.data_micros.is_some());
    // What it had read before is not read again.
    assert_eq!((done.damaged_places, done.began_micros), (0, None));
    assert!(done.bytes_read > read);
    store.scrub_start(true).unwrap();
    let next = wait_for(&store, |status| status.data_micros > done.data_micros);
    assert!(next.damaged_places > 0, "{next:?}");
    store.unmount().unwrap();
}

#[test]
fn damage_is_forgotten_with_what_it_describes_and_not_before() {
    let (drive, device, mut store) = fresh();
    let mut hit = Vec::new();
    for name in ["gone", "stays"] {
        put(&store, name, &pattern(hit.len() as u64, 700_000)).unwrap();
        store.seal_open_zones().unwrap();
        let zones = store.zones().into_iter().map(|zone| zone.zone);
        let zone = zones.max().unwrap();
        let at = ZoneAddress::new(zone, 8192);
        drive.decay(at, 1, |bytes| bytes[0] ^= 1);
        hit.push(at);
    }
    assert_ne!(hit[0].zone, hit[1].zone);
    let places = |store: &Store| store.scrub_status().unwrap().damaged_places;
    let rows = damage_rows;
    all(&store);
    assert_eq!(places(&store), 2);
    let mut tx = Transaction::new();
    tx.remove("c", "gone");
    store.commit(tx).unwrap();
    // Nobody has these bytes any more, so they are no loss; the row tells of the zone until the reset.
    assert_eq!(places(&store), 1);
    assert_eq!(rows(&store), 2);
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    // The reset took the row, without any scrub; the other one is still true, also behind a mount and a scrub.
    assert_eq!((places(&store), rows(&store)), (1, 1));
    store.unmount().unwrap();
    store = mount(&device);
    assert_eq!(places(&store), 1);
    all(&store);
    assert_eq!(places(&store), 1);
    let health = store.health().unwrap();
    let [loss] = &health.losses[..] else {
        panic!("{:?}", health.losses);
    };
    assert_eq!(loss.object, "c/stays");
    // New data in the zone that was reset are not what the row was about.
    for number in 0..60 {
        put(&store, &format!("new {number}"), &pattern(number, 300_000)).unwrap();
    }
    assert!(store.zones().iter().any(|zone| zone.zone == hit[0].zone));
    assert_eq!(store.health().unwrap().lost_objects, 1);
    // A drive that reads it again.
    drive.decay(hit[1], 1, |bytes| bytes[0] ^= 1);
    assert_eq!(places(&store), 1);
    all(&store);
    assert_eq!(places(&store), 0);
    assert_clean(&store);
}

/// A store with one copy of its metadata, and its tables.
fn with_one_copy(objects: u64) -> (Arc<MemoryDrive>, Arc<dyn ZonedDevice>) {
    let drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let made = MkfsOptions {
        engine: options().engine,
        uuid: [7; 16],
        runtime: options().runtime,
        metadata_copies: Some(1),
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let store = mount(&device);
    create_collection(&store);
    for number in 0..objects {
        put(&store, &format!("o{number}"), &pattern(number, 9000)).unwrap();
        // A table that no read takes as a whole, so that a mount passes by what is damaged in its middle.
        let large = Attributes::from([("large".to_owned(), pattern(number, 40_000))]);
        let mut tx = Transaction::new();
        tx.set_attributes("c", format!("o{number}"), large);
        store.commit(tx).unwrap();
    }
    store.unmount().unwrap();
    (drive, device)
}

/// Places at the begin of each large table: RocksDB reads the end of a table to open it.
fn in_tables(store: &Store) -> Vec<ZoneAddress> {
    let fs = store.bluefs();
    let tables = fs.list("/db").unwrap().into_iter();
    let tables = tables.filter(|name| name.ends_with(".sst"));
    let extents = tables.flat_map(|table| fs.extents(&format!("/db/{table}")).unwrap());
    let large = extents.filter(|extent| extent.length > 400_000);
    large
        .map(|e| ZoneAddress::new(e.at.zone, e.at.offset + 4096))
        .collect()
}

/// Flips a bit in each place; again, and it is as it was.
fn flip_bits(drive: &MemoryDrive, places: &[ZoneAddress]) {
    for at in places {
        drive.decay(*at, 1, |bytes| bytes[0] ^= 1);
    }
}

/// With one copy, nothing can mend a table. What a scrub has said of it, health says at any later mount, until it is so no more.
#[test]
fn what_a_scrub_finds_of_the_metadata_is_known_to_health() {
    let (drive, device) = with_one_copy(60);
    let read_only = || {
        let options = MountOptions {
            read_only: true,
            ..options()
        };
        Store::mount(device.clone(), options)
    };
    let store = mount(&device);
    assert!(store.health().unwrap().is_healthy());
    let places = in_tables(&store);
    let damaged = places.len();
    assert!(damaged > 0);
    flip_bits(&drive, &places);
    // Reading rows may meet it as well.
    let done = store.scrub(true, |_| true);
    let status = store.scrub_status().unwrap();
    assert!(
        status.metadata_lost >= damaged as u64,
        "{done:?} {status:?}"
    );
    drop(store);
    for _ in 0..2 {
        // A short table is read whole where the database opens, and refuses that: no less known.
        let Ok(store) = read_only() else { return };
        let health = store.health().unwrap();
        assert!(
            !health.is_healthy() && health.metadata.len() >= damaged,
            "{health:?}"
        );
        let words = health.metadata.join("\n");
        assert!(words.contains(".sst is damaged in all copies"), "{words}");
        assert_eq!(
            store.scrub_status().unwrap().metadata_lost,
            status.metadata_lost
        );
        assert!(health.summary().contains("damaged metadata"));
    }
    // A look that finds it again keeps it, and one that was cut short does as well.
    let store = mount(&device);
    assert!(!store.scrub(false, |_| false).unwrap());
    assert!(!store.health().unwrap().is_healthy());
    // The drive gives the right bytes again. A mount may have written other tables meanwhile.
    flip_bits(&drive, &places);
    all(&store);
    assert!(store.health().unwrap().is_healthy(), "{:?}", store.health());
    assert_eq!(store.scrub_status().unwrap().metadata_lost, 0);
    store.unmount().unwrap();
    assert!(read_only().unwrap().health().unwrap().is_healthy());
}

/// Several damages at once, of any part of the metadata: what a scrub does not mend, health tells, and what it does mend, a
/// check finds no more.
#[test]
fn several_damages_of_one_copy_are_mended_or_known_to_health() {
    for round in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed() + round);
        let (drive, device) = with_one_copy(20);
        let store = mount(&device);
        put(&store, "last", &pattern(1, 9000)).unwrap();
        let zones = store.bluefs().zones();
        for _ in 0..random.usize(2..5) {
            let (zone, _) = zones[random.usize(..zones.len())];
            let written = device.report_zone(zone).unwrap().write_pointer;
            let end = if written == 0 { 1 << 16 } else { written };
            let at = ZoneAddress::new(zone, random.u64(..end) / 4096 * 4096);
            drive.decay(at, 4096, |bytes| bytes.fill(random.u8(..)));
        }
        let done = store.scrub(true, |_| true);
        let health = store.health().unwrap();
        let report = store.fsck(true, &mut |_, _| {}).unwrap();
        let is_known = !health.is_healthy();
        assert_eq!(
            is_known,
            !report.is_clean() || done.is_err(),
            "round {round}: {done:?} {health:?} {:?}",
            report.details
        );
    }
}

/// Rows of damage, whether anybody has these bytes or not.
fn damage_rows(store: &Store) -> usize {
    let mut rows = 0;
    let which = store::Dump {
        kinds: vec![store::RecordKind::Damage],
        ..store::Dump::default()
    };
    store
        .dump(&which, &mut |_| {
            rows += 1;
            Ok::<_, store::Error>(())
        })
        .unwrap();
    rows
}

/// A zone that is offline is never reset. Once nothing is live in it, nothing that was found there is a loss any more.
#[test]
fn damage_in_an_offline_zone_is_forgotten_with_its_objects() {
    let (drive, device, store) = fresh();
    for number in 0..6 {
        put(&store, &format!("o{number}"), &pattern(number, 100_000)).unwrap();
    }
    let zone = store.zones()[0].zone;
    store.seal_open_zones().unwrap();
    drive.set_condition(zone, ZoneCondition::Offline).unwrap();
    all(&store);
    let status = store.scrub_status().unwrap();
    assert!(status.damaged_places >= 6, "{status:?}");
    let lost = store.health().unwrap().losses;
    for loss in &lost {
        let mut tx = Transaction::new();
        tx.remove("c", loss.object.strip_prefix("c/").unwrap());
        store.commit(tx).unwrap();
    }
    let is_over = |store: &Store| {
        assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
        let health = store.health().unwrap();
        assert_eq!(health.lost_objects, 0, "{health:?}");
        assert!(!health.lines().join(" ").contains("damaged run"));
    };
    is_over(&store);
    // Killed in front of anything that the store does with an empty zone.
    drop(store);
    let store = mount(&device);
    is_over(&store);
    assert_eq!(damage_rows(&store), 0);
    all(&store);
    is_over(&store);
    assert!(store.health().unwrap().is_healthy());
    store.unmount().unwrap();
}

/// The same of a zone that a mount resets: new objects in it do not go with what was said of the old ones.
#[test]
fn damage_in_front_of_a_reset_is_not_said_of_what_comes_behind_it() {
    let (drive, device, store) = fresh();
    put(&store, "old", &pattern(1, 700_000)).unwrap();
    let zone = store.zones()[0].zone;
    drive.decay(ZoneAddress::new(zone, 8192), 1, |bytes| bytes[0] ^= 1);
    all(&store);
    assert_eq!(damage_rows(&store), 1);
    let mut tx = Transaction::new();
    tx.remove("c", "old");
    store.commit(tx).unwrap();
    drop(store);
    let store = mount(&device);
    for number in 0..100 {
        put(&store, &format!("new {number}"), &pattern(number, 300_000)).unwrap();
    }
    while store.clean_one().unwrap() {}
    let health = store.health().unwrap();
    assert_eq!(health.lost_objects, 0, "{health:?}");
    assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
}

/// Who reads damaged bytes of a store that can be written to leaves a row behind, also without a scrub, and of a zone that can
/// be read no more.
#[test]
fn what_a_read_meets_is_known_at_the_next_mount() {
    for background in [false, true] {
        for is_offline in [false, true] {
            let (drive, device, store) = fresh();
            for number in 0..6 {
                put(&store, &format!("o{number}"), &pattern(number, 300_000)).unwrap();
            }
            let mut tx = Transaction::new();
            tx.clone_object(("c", "o3"), ("c", "clone"));
            store.commit(tx).unwrap();
            store.unmount().unwrap();
            let store = match background {
                true => with_thread(&device, Pace::Full),
                false => mount(&device),
            };
            let zone = store.zones()[0].zone;
            match is_offline {
                true => drive.set_condition(zone, ZoneCondition::Offline).unwrap(),
                false => {
                    let at = ZoneAddress::new(zone, 8192);
                    drive.decay(at, 1, |bytes| bytes[0] ^= 1);
                }
            }
            let mut met = Vec::new();
            for object in store.list("c", "", "", usize::MAX).unwrap() {
                let name = object.name.to_string();
                if common::read(&store, &name).is_err() {
                    met.push(format!("c/{name}"));
                }
            }
            assert!(!met.is_empty());
            // A server that is killed once it has written that down is no exception.
            let killed: Arc<dyn ZonedDevice> = match background {
                false => device.clone(),
                true => {
                    wait_for(&store, |status| status.damaged_places >= met.len() as u64);
                    Arc::new(drive.snapshot())
                }
            };
            store.unmount().unwrap();
            let options = MountOptions {
                read_only: true,
                ..options()
            };
            let store = Store::mount(killed, options).unwrap();
            let health = store.health().unwrap();
            let told: Vec<&String> = health.losses.iter().map(|loss| &loss.object).collect();
            assert_eq!(told, met.iter().collect::<Vec<_>>(), "{health:?}");
            assert!(damage_rows(&store) > 0);
            store.unmount().unwrap();
            // What goes with its object is no row for long, and a scrub finds no more than that.
            let store = mount(&device);
            let before = damage_rows(&store);
            all(&store);
            assert_eq!(store.health().unwrap().losses, health.losses);
            assert!(damage_rows(&store) >= before);
            store.unmount().unwrap();
        }
    }
}

/// The database's log for people is no loss: a scrub, a repair and health agree on that.
#[test]
fn a_damaged_text_log_is_no_loss() {
    let (drive, device) = with_one_copy(5);
    // So that there is an old one.
    mount(&device).unmount().unwrap();
    for repairs in [false, true] {
        let copy = Arc::new(drive.snapshot());
        let device: Arc<dyn ZonedDevice> = copy.clone();
        let store = mount(&device);
        let fs = store.bluefs();
        let names = fs.list("/db").unwrap().into_iter();
        let logs: Vec<String> = names.filter(|name| name.starts_with("LOG")).collect();
        assert!(
            logs.iter().any(|name| name.starts_with("LOG.old.")),
            "{logs:?}"
        );
        let mut hit = 0;
        for extent in logs
            .iter()
            .flat_map(|log| fs.extents(&format!("/db/{log}")).unwrap())
        {
            copy.decay(extent.at, 1, |bytes| bytes[0] ^= 1);
            hit += 1;
        }
        assert!(hit > 0);
        assert!(!store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
        let store = match repairs {
            true => {
                store.unmount().unwrap();
                let report = Store::repair(device.clone(), &options(), &mut |given_up| {
                    given_up.is_empty()
                });
                assert!(report.unwrap().is_done);
                mount(&device)
            }
            false => {
                all(&store);
                assert!(store.health().unwrap().is_healthy());
                assert_eq!(store.scrub_status().unwrap().metadata_lost, 0);
                // What was written to goes with the next scrub.
                store.unmount().unwrap();
                let store = mount(&device);
                all(&store);
                store
            }
        };
        assert!(store.health().unwrap().is_healthy());
        assert_eq!(store.scrub_status().unwrap().metadata_lost, 0);
        let report = store.fsck(true, &mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.details);
        store.unmount().unwrap();
    }
}

/// A server that was killed in the middle of a pass that somebody had asked for goes on with it, where it was.
#[test]
fn a_pass_that_was_cut_short_goes_on_by_itself() {
    let (_, device, store) = fresh();
    for number in 0..60 {
        put(&store, &format!("o{number}"), &pattern(number, 100_000)).unwrap();
    }
    store.unmount().unwrap();
    let how = |data_every| MountOptions {
        background: true,
        scrub: ScrubPlan {
            data_every,
            ..ScrubPlan::NEVER
        },
        ..MountOptions::new(kv_rocksdb::RocksDb)
    };
    // Nothing is due for a year.
    let store = Store::mount(device.clone(), how(None)).unwrap();
    all(&store);
    let last = store.scrub_status().unwrap().data_micros;
    let mut zones = BTreeSet::new();
    let done = store.scrub(true, |_| {
        zones.extend(store.scrub_status().unwrap().zone);
        zones.len() < 3
    });
    assert!(!done.unwrap());
    store.unmount().unwrap();
    let year = std::time::Duration::from_hours(24 * 365);
    let store = Store::mount(device.clone(), how(Some(year))).unwrap();
    let done = wait_for(&store, |status| {
        status.began_micros.is_none() && !status.running
    });
    assert!(done.data_micros > last, "{done:?}");
    store.unmount().unwrap();
}

/// What somebody has stopped is not begun by a restart, but by the plan as if a pass had ended then, and by whoever asks.
#[test]
fn a_pass_that_was_stopped_stays_so_over_restarts() {
    let (_, device, store) = fresh();
    put(&store, "o", &pattern(1, 300_000)).unwrap();
    assert!(
        !store
            .scrub(true, |_| store.scrub_status().unwrap().zone.is_none())
            .unwrap()
    );
    store.scrub_stop().unwrap();
    let stopped = store.scrub_status().unwrap();
    assert!(stopped.began_micros.is_some() && stopped.stopped_micros.is_some());
    store.unmount().unwrap();
    let with = |hours: u64| {
        let every = Some(std::time::Duration::from_hours(hours));
        let how = MountOptions {
            background: true,
            scrub: ScrubPlan {
                metadata_every: every,
                data_every: every,
                pace: Pace::Full,
            },
            ..MountOptions::new(kv_rocksdb::RocksDb)
        };
        Store::mount(device.clone(), how).unwrap()
    };
    // Of the time in which nothing is due.
    let year = 24 * 365 * 100;
    let store = with(year);
    assert_eq!(store.scrub_status().unwrap(), stopped);
    store.scrub_start(true).unwrap();
    wait_for(&store, |status| status.data_micros.is_some());
    store.scrub_stop().unwrap();
    store.unmount().unwrap();
    let store = with(year);
    assert!(store.scrub_status().unwrap().stopped_micros.is_some());
    store.scrub_start(false).unwrap();
    wait_for(&store, |status| {
        status.metadata_micros > stopped.metadata_micros
    });
    store.unmount().unwrap();
    let store = with(year);
    assert_eq!(store.scrub_status().unwrap().stopped_micros, None);
    assert!(
        !store
            .scrub(true, |_| store.scrub_status().unwrap().zone.is_none())
            .unwrap()
    );
    store.scrub_stop().unwrap();
    let stopped = store.scrub_status().unwrap();
    store.unmount().unwrap();
    // The next pass is due, and it is the same one.
    let store = with(0);
    let done = wait_for(&store, |status| status.data_micros > stopped.data_micros);
    assert!(done.stopped_micros.is_none(), "{done:?}");
    store.unmount().unwrap();
}
