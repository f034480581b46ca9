//! Scrub of the metadata: damage to one copy is repaired from the other; damage to all copies is reported by `store
//! health` until it is gone.

use super::all;
use crate::common::{Settled, create_collection, geometry, mount, options, pattern, put, seed};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, MkfsOptions, MountOptions, ScrubPlan, Store, Transaction};
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// A drive with `objects` objects in a store that has one copy of its metadata, in SSTs.
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
        let name = format!("o{number}");
        put(&store, &name, &pattern(number, 9000)).unwrap();
        set_attributes(&store, &[(&name, 40_000)]);
    }
    store.unmount().unwrap();
    (drive, device)
}

/// Sets attributes of the given sizes on several objects, in one batch.
fn set_attributes(store: &Store, sizes: &[(&str, usize)]) {
    let mut tx = Transaction::new();
    for (name, bytes) in sizes {
        let large = Attributes::from([("large".to_owned(), pattern(1, *bytes))]);
        tx.set_attributes("c", *name, large);
    }
    store.commit(tx).unwrap();
}

/// Addresses in the rows of objects with `LARGE` bytes of attributes, which neither opening nor mounting reads: RocksDB
/// reads 512 KiB at the end of an SST to open it, and a mount reads some of the first rows.
fn in_tables(store: &Store) -> Vec<ZoneAddress> {
    let fs = store.bluefs();
    let tables = fs.list("/db").unwrap().into_iter();
    let tables = tables.filter(|name| name.ends_with(".sst"));
    let extents = tables.flat_map(|table| fs.extents(&format!("/db/{table}")).unwrap());
    let large = extents.filter(|extent| extent.length > LARGE as u64);
    large
        .map(|e| ZoneAddress::new(e.at.zone, e.at.offset + 65_536))
        .collect()
}

const LARGE: usize = 900_000;

/// Flips a bit at each address; a second call restores the bytes.
fn flip_bits(drive: &MemoryDrive, places: &[ZoneAddress]) {
    for at in places {
        drive.decay(*at, 1, |bytes| bytes[0] ^= 1);
    }
}

/// A drive without a limit of active zones, formatted with two copies of the metadata.
fn with_two_copies() -> Arc<MemoryDrive> {
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
    drive
}

#[test]
fn damaged_metadata_is_written_anew_by_a_thread() {
    let drive = with_two_copies();
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
        // Only a failing test waits this long.
        for _ in 0..60_000 {
            let status = store.scrub_status().unwrap();
            if !status.running && is_so(&status) {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{:?}", store.scrub_status());
    };
    // No metadata scrub was ever done, so one is due and begins by itself.
    let first = wait(&|status| status.metadata_micros.is_some());
    assert_eq!(first.copies_repaired, 0);
    // Damages a bit of each block of an SST in one zone.
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

/// A compaction that meets a damaged block fails, even if no reader ever asks for that block, and writes stop when
/// level 0 is full. So the store has the files of the compaction checked and repaired from the other copy.
#[test]
fn what_a_compaction_meets_has_both_copies_looked_at() {
    const LOST: &str = "m: nobody reads it";
    let drive = with_two_copies();
    let mounted = |background| {
        let options = MountOptions {
            background,
            scrub: ScrubPlan::NEVER,
            ..MountOptions::new(kv_rocksdb::RocksDb)
        };
        Store::mount(drive.clone(), options).unwrap()
    };
    // Each attribute fills blocks of its own, so that no other row is in a damaged block.
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
    // Damages one copy of the row of `LOST`, in the SST that the unmount has written.
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
                // 20,000 bytes after its key, in its value.
                let at = extent.at.offset + at as u64 + 20_000;
                let at = ZoneAddress::new(extent.at.zone, at);
                drive.decay(at, 1, |bytes| bytes[0] ^= 1);
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    store.unmount().unwrap();
    // SSTs are written until there is a compaction. It fails, or reads the other copy.
    let store = mounted(true);
    // Only a failing test waits this long.
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

/// With one copy, an SST cannot be repaired. Health reports at every later mount what a scrub has found, until a scrub
/// finds it readable again.
#[test]
fn what_a_scrub_finds_of_the_metadata_is_known_to_health() {
    let (drive, device) = with_one_copy(2);
    let mount_and_settle = |read_only, patience| {
        let options = MountOptions {
            read_only,
            runtime: options().runtime,
            ..MountOptions::new(Settled(Arc::new(kv_rocksdb::RocksDb), patience))
        };
        Store::mount(device.clone(), options)
    };
    let mount = || mount_and_settle(false, Duration::from_mins(1));
    let read_only = || mount_and_settle(true, Duration::ZERO);
    let store = mount().unwrap();
    assert!(store.health().unwrap().is_healthy());
    // Two rows in one SST, the second large and beyond the first block.
    set_attributes(&store, &[("o0", 40_000), ("o1", LARGE)]);
    store.unmount().unwrap();
    let store = mount().unwrap();
    let places = in_tables(&store);
    let damaged = places.len();
    assert!(damaged > 0);
    flip_bits(&drive, &places);
    // The scrub may fail if it meets the damage while it reads rows.
    let done = store.scrub(true, |_| true);
    let status = store.scrub_status().unwrap();
    assert!(
        status.metadata_lost >= damaged as u64,
        "{done:?} {status:?}"
    );
    drop(store);
    for _ in 0..2 {
        let store = read_only().unwrap();
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
    // The record of the damage survives a scrub that ends early.
    let store = mount_and_settle(false, Duration::from_secs(2)).unwrap();
    assert!(!store.scrub(false, |_| false).unwrap());
    assert!(!store.health().unwrap().is_healthy());
    // The drive returns the right bytes again. The mount may have written other SSTs meanwhile.
    flip_bits(&drive, &places);
    all(&store);
    assert!(store.health().unwrap().is_healthy(), "{:?}", store.health());
    assert_eq!(store.scrub_status().unwrap().metadata_lost, 0);
    store.unmount().unwrap();
    assert!(read_only().unwrap().health().unwrap().is_healthy());
}

/// The repair reads no row from such a file.
#[test]
fn a_repair_names_a_file_that_is_damaged_in_all_copies() {
    let (drive, device) = with_one_copy(2);
    let store = mount(&device);
    let fs = store.bluefs();
    let files = fs.list("/db").unwrap().into_iter();
    let file = files.filter(|name| name.starts_with("OPTIONS")).max();
    let path = format!("/db/{}", file.unwrap());
    let at = fs.extents(&path).unwrap()[0].at;
    store.unmount().unwrap();
    drop(store);
    flip_bits(&drive, &[ZoneAddress::new(at.zone, at.offset + 100)]);
    let repaired = Store::repair(device, &options(), &mut |_| true, &mut |_, _| {}).unwrap();
    assert_eq!(repaired.lost_files, [path]);
}

/// Health reads rows to name what is lost; if one of these rows is damaged, it reports that.
#[test]
fn health_names_a_row_that_it_cannot_read() {
    let (drive, device) = with_one_copy(5);
    let without_cache = MountOptions {
        block_cache_bytes: 0,
        ..options()
    };
    let store = Store::mount(device, without_cache).unwrap();
    assert!(store.health().unwrap().is_healthy());
    let fs = store.bluefs();
    let tables = fs.list("/db").unwrap().into_iter();
    for table in tables.filter(|name| name.ends_with(".sst")) {
        for extent in fs.extents(&format!("/db/{table}")).unwrap() {
            drive.decay(extent.at, extent.length as usize, |bytes| {
                bytes.chunks_mut(4096).for_each(|block| block[100] ^= 1);
            });
        }
    }
    let status = store.scrub_status().unwrap();
    assert!(status.metadata_lost > 0, "{status:?}");
    let health = store.health().unwrap();
    let words = health.metadata.join("\n");
    assert!(words.contains("checksum mismatch"), "{health:?}");
}

/// Several damages at once, anywhere in the metadata: health reports whatever the scrub does not repair, and a check
/// finds nothing of what it does repair.
#[test]
fn several_damages_of_one_copy_are_mended_or_known_to_health() {
    let mut compared = 0;
    for round in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed() + round);
        let (drive, device) = with_one_copy(20);
        let store = mount(&device);
        put(&store, "last", &pattern(1, 9000)).unwrap();
        // Without the text logs, which a scrub deletes if they are damaged.
        let files = || {
            let mut files = store.bluefs().list("/db").unwrap();
            files.retain(|name| !name.starts_with("LOG"));
            files
        };
        let before = files();
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
        if files() != before {
            // A thread of RocksDB has deleted the log or manifest of the mount before: damage to these may be known to one
            // of the two only.
            continue;
        }
        compared += 1;
        let is_known = !health.is_healthy();
        assert_eq!(
            is_known,
            !report.is_clean() || done.is_err(),
            "round {round}: {done:?} {health:?} {:?}",
            report.details
        );
    }
    assert!(compared > 0);
}

/// RocksDB's text log is not part of the data: scrub, repair and health do not count damage to it as a loss.
#[test]
fn a_damaged_text_log_is_no_loss() {
    let (drive, device) = with_one_copy(5);
    // A second mount, so that there is an old text log too.
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
                let agree = &mut |given_up: &[store::GivenUp]| given_up.is_empty();
                let report = Store::repair(device.clone(), &options(), agree, &mut |_, _| {});
                assert!(report.unwrap().is_done);
                mount(&device)
            }
            false => {
                all(&store);
                assert!(store.health().unwrap().is_healthy());
                assert_eq!(store.scrub_status().unwrap().metadata_lost, 0);
                // The text log that is open is dealt with by a scrub after the next mount.
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
