//! Damage to the metadata of BlueFS: each block that begins a log record or a journal frame gets one bit flipped, or is
//! replaced by the block before it. Then all acknowledged objects are there, or a mount for writing is refused and a
//! check says why. Only the last commit before an unclean stop may be missing.
//!
//! Damage to object data: it is never returned as data, and the error names the object and the place.

use crate::common::*;
use bluefs::{BlueFs, ZoneContent};
use device::{FileDrive, MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Error, MountOptions, Store};
use zone::{ZoneAddress, ZoneCondition, ZoneId, ZoneKind};

const OBJECTS: usize = 8;

/// Copies of the drive, two for each block that begins a log record or a journal frame: one with a bit of the block
/// flipped, one with the block before it in its place.
fn damaged_copies(device: &MemoryDrive) -> Vec<Arc<MemoryDrive>> {
    let g = device.geometry().clone();
    let mut copies = Vec::new();
    for zone in g.zones() {
        let report = device.report_zone(zone).unwrap();
        let sequential = g.kind(zone) != ZoneKind::Conventional;
        let used = if sequential {
            report.write_pointer
        } else {
            64 << 10
        };
        if used == 0 {
            continue;
        }
        let mut bytes = vec![0; used as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        for at in (0..bytes.len()).step_by(4096) {
            if !bytes[at..].starts_with(b"BFWR") && !bytes[at..].starts_with(b"BFJL") {
                continue;
            }
            let mut flipped = bytes.clone();
            flipped[at + 80] ^= 4;
            let mut copied = bytes.clone();
            copied.copy_within(at.saturating_sub(4096)..at, at);
            for damaged in [flipped, copied] {
                let copy = device.snapshot();
                if sequential {
                    copy.reset(zone).unwrap();
                }
                copy.write(g.absolute(ZoneAddress::new(zone, 0)), &damaged)
                    .unwrap();
                copies.push(Arc::new(copy));
            }
        }
    }
    copies
}

fn name(i: usize) -> String {
    format!("object{i}")
}

fn has(store: &Store, count: usize) -> bool {
    (0..count).all(|i| read(store, &name(i)).is_ok_and(|data| data == pattern(i as u64, 9000)))
}

#[test]
fn acknowledged_objects_are_there_or_the_store_is_not_mounted() {
    let memory = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for i in 0..OBJECTS {
        put(&store, &name(i), &pattern(i as u64, 9000)).unwrap();
    }
    let unclean = memory.snapshot();
    store.unmount().unwrap();
    drop(store);
    for (drive, clean) in [(&unclean, false), (&*memory, true)] {
        let (mut refused, mut without_last) = (0, 0);
        for copy in damaged_copies(drive) {
            match Store::mount(copy.clone(), options()) {
                Ok(store) if has(&store, OBJECTS) => {}
                Ok(store) => {
                    assert!(!clean && has(&store, OBJECTS - 1));
                    without_last += 1;
                }
                Err(Error::BlueFs(error)) if error.is_damage() => {
                    refused += 1;
                    let read_only = MountOptions {
                        read_only: true,
                        ..options()
                    };
                    // Without `accept_damage`, a read-only mount does not return a shorter history either.
                    assert!(Store::mount(copy.clone(), read_only.clone()).is_err());
                    let accepting = MountOptions {
                        accept_damage: true,
                        ..read_only
                    };
                    match Store::mount(copy, accepting) {
                        Ok(store) => {
                            assert!(!store.damage().unwrap().is_empty());
                            assert!(!store.fsck(false, &mut |_, _| {}).unwrap().is_clean())
                        }
                        Err(error) => assert!(!matches!(error, Error::NotFormatted)),
                    }
                }
                // Damage must be found by BlueFS before RocksDB's own checks, also in the manifest, which is a log too.
                Err(error) => panic!("{error}"),
            }
        }
        println!("clean {clean}: {refused} refused, {without_last} without the last commit");
        // After an unmount the small database has no log, only a snapshot.
        let least = if clean && is_small() { 4 } else { OBJECTS };
        assert!(refused > least, "{refused}");
        assert!(without_last <= 2);
    }
}

#[test]
fn a_log_in_a_zone_that_is_offline_is_no_shorter_history() {
    let (memory, store) = on_failing_drive(40);
    let device: Arc<dyn ZonedDevice> = memory.clone();
    for i in 0..OBJECTS {
        put(&store, &name(i), &pattern(i as u64, 9000)).unwrap();
    }
    drop(store);
    let report = device.report(ZoneId(0), 40).unwrap();
    let observed = BlueFs::observe(&*device, &report).unwrap();
    let log = observed.zones.into_iter().find(|(zone, held)| {
        let is_log = matches!(held.content, ZoneContent::Wal | ZoneContent::Manifest);
        is_log && report[zone.index()].kind != ZoneKind::Conventional
    });
    memory.break_zone(log.unwrap().0, ZoneCondition::Offline);
    for read_only in [false, true] {
        let options = MountOptions {
            read_only,
            ..options()
        };
        let refused = Store::mount(device.clone(), options).map(|_| ());
        assert!(
            matches!(
                &refused,
                Err(Error::BlueFs(bluefs::Error::ZoneLost { path, .. })) if path.starts_with("/db/")
            ),
            "{refused:?}"
        );
    }
}

/// Truncates a data zone at an object or a block after its start. All commits but the last are known to be durable from
/// later records, so the objects that were hit are reported as lost, and no acknowledged commit is rolled back.
#[test]
fn data_that_is_gone_after_an_unclean_stop_takes_nothing_back() {
    let memory = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for i in 0..OBJECTS {
        put(&store, &name(i), &pattern(i as u64, 9000)).unwrap();
    }
    put(&store, "overwritten", &pattern(100, 9000)).unwrap();
    put(&store, "overwritten", &pattern(101, 9000)).unwrap();
    let mut removal = store::Transaction::new();
    removal.remove("c", name(0));
    store.commit(removal).unwrap();
    put(&store, "small", &[7; 10]).unwrap();
    put(&store, "last", &[8; 10]).unwrap();
    let unclean = memory.snapshot();
    let g = memory.geometry().clone();
    let mut tried = 0;
    for zone in g
        .zones()
        .filter(|zone| g.kind(*zone) != ZoneKind::Conventional)
    {
        let written = unclean.report_zone(zone).unwrap().write_pointer as usize;
        if written == 0 {
            continue;
        }
        let mut bytes = vec![0; written];
        unclean.read(g.start(zone), &mut bytes).unwrap();
        let places = (1..OBJECTS).map(|i| pattern(i as u64, 9000));
        let places = places.filter_map(|data| {
            let mut blocks = (0..written).step_by(4096);
            blocks.find(|at| bytes[*at..].starts_with(&data[..4096.min(written - at)]))
        });
        for cut in places.flat_map(|at| [at, at + 4096]) {
            tried += 1;
            let copy = Arc::new(unclean.snapshot());
            copy.reset(zone).unwrap();
            if cut > 0 {
                copy.write(g.start(zone), &bytes[..cut]).unwrap();
            }
            let store = Store::mount(copy, options()).unwrap();
            assert_eq!(store.stat("c", name(0)).unwrap(), None);
            assert_eq!(read(&store, "small").unwrap(), [7; 10]);
            put(&store, "new", &pattern(200, 9000)).unwrap();
            assert_eq!(read(&store, "new").unwrap(), pattern(200, 9000));
            let mut lost = 0;
            for (name, data) in (1..OBJECTS)
                .map(|i| (name(i), pattern(i as u64, 9000)))
                .chain([("overwritten".to_owned(), pattern(101, 9000))])
            {
                match read(&store, &name) {
                    Ok(found) => assert_eq!(found, data, "{name}"),
                    Err(Error::NoObject { .. }) => panic!("{name} is taken back"),
                    Err(_) => lost += 1,
                }
            }
            assert!(lost > 0);
            assert!(!store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
            // Space of the lost objects is not used for new ones: overwriting and cleaning leaves the new object
            // intact.
            for i in 1..OBJECTS {
                put(&store, &name(i), &pattern(300, 9000)).unwrap();
            }
            put(&store, "overwritten", &pattern(300, 9000)).unwrap();
            while store.clean_one().unwrap() {}
            assert_eq!(read(&store, "new").unwrap(), pattern(200, 9000));
            assert_eq!(read(&store, &name(1)).unwrap(), pattern(300, 9000));
            assert!(store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
        }
    }
    assert!(tried >= OBJECTS, "{tried}");
}

/// A flipped bit in the last put before the process was killed. As long as the host has run since, it is damage;
/// without the file that proves that, it may be a torn write, and the put is taken back.
#[test]
fn the_last_put_before_a_kill_is_not_taken_back_by_a_flipped_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.zoned");
    let open = || -> Arc<dyn ZonedDevice> { Arc::new(FileDrive::open(&path).unwrap()) };
    drop(FileDrive::create(&path, &geometry(128), "").unwrap());
    let device = open();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    // An acknowledged put with data in the same zone.
    put(&store, "beside", &pattern(3, 8192)).unwrap();
    put(&store, "o", &pattern(1, 300_000)).unwrap();
    put(&store, "o", &pattern(2, 200_000)).unwrap();
    drop((store, device));
    let mut bytes = std::fs::read(&path).unwrap();
    let first = pattern(2, 4096);
    let at = bytes.windows(4096).position(|w| w == first).unwrap();
    bytes[at + 100] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let found = |read_only| {
        let options = MountOptions {
            read_only,
            ..options()
        };
        let store = Store::mount(open(), options).unwrap();
        read(&store, "o")
    };
    assert!(matches!(found(true), Err(Error::ChecksumMismatch { .. })));
    std::fs::remove_file(folder.path().join("d.zoned.unsynced")).unwrap();
    assert_eq!(found(true).unwrap(), pattern(1, 300_000));
}

/// Puts an object twice, calls `then`, and stops uncleanly. Returns the zones that the second put has written to, each
/// with its write pointer before that put.
fn put_twice(device: &Arc<dyn ZonedDevice>, then: impl Fn(&Store)) -> Vec<(ZoneId, u64)> {
    mkfs(device);
    let store = mount(device);
    create_collection(&store);
    put(&store, "o", &pattern(1, 9000)).unwrap();
    let written = |zone| device.report_zone(zone).unwrap().write_pointer;
    let before: Vec<u64> = device.geometry().zones().map(written).collect();
    put(&store, "o", &pattern(2, 9000)).unwrap();
    then(&store);
    let zones = store.zones().into_iter().map(|zone| zone.zone);
    let zones = zones.map(|zone| (zone, before[zone.index()]));
    zones.filter(|(zone, to)| written(*zone) > *to).collect()
}

fn set_all_back(device: &dyn ZonedDevice, zones: &[(ZoneId, u64)]) {
    assert!(!zones.is_empty());
    for (zone, to) in zones {
        let start = device.geometry().start(*zone);
        let mut bytes = vec![0; *to as usize];
        if *to > 0 {
            device.read(start, &mut bytes).unwrap();
        }
        device.reset(*zone).unwrap();
        if *to > 0 {
            device.write(start, &bytes).unwrap();
        }
    }
}

/// Whether the second put is reported as lost; otherwise asserts that it was taken back.
fn is_lost(device: Arc<dyn ZonedDevice>) -> bool {
    let read_only = MountOptions {
        read_only: true,
        ..options()
    };
    let store = Store::mount(device, read_only).unwrap();
    let lost = store.health().unwrap().lost_objects;
    match read(&store, "o") {
        Ok(found) => assert_eq!((found, lost), (pattern(1, 9000), 0)),
        Err(_) => assert_eq!(lost, 1),
    }
    lost > 0
}

/// The zones of the last put go back to their write pointers before it. Only a durability mark in a later record proves
/// that the put was durable.
#[test]
fn the_last_put_is_not_taken_back_where_a_later_record_is_on_the_drive() {
    for has_later in [false, true] {
        let memory = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
        let device: Arc<dyn ZonedDevice> = memory.clone();
        let zones = put_twice(&device, |store| {
            if has_later {
                let mut other = store.bluefs().create("/other.log").unwrap();
                for _ in 0..2 {
                    other.append(b"later").unwrap();
                    other.sync().unwrap();
                }
            }
        });
        set_all_back(&*device, &zones);
        memory.power_cycle();
        // Without the later record, nothing proves that the put was durable.
        assert_eq!(is_lost(device), has_later);
    }
}

/// A drive file whose host has not restarted cannot have lost writes of a killed process, so a zone that went back is
/// damage.
#[test]
fn the_last_put_before_a_kill_is_not_taken_back_by_a_zone_that_went_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.zoned");
    drop(FileDrive::create(&path, &geometry(128), "").unwrap());
    let open = || -> Arc<dyn ZonedDevice> { Arc::new(FileDrive::open(&path).unwrap()) };
    let zones = put_twice(&open(), |_| {});
    set_all_back(&*open(), &zones);
    assert!(is_lost(open()));
    std::fs::remove_file(folder.path().join("d.zoned.unsynced")).unwrap();
    assert!(!is_lost(open()));
}

/// A store with an object whose first block has a flipped bit, and the address of that block.
fn with_a_flipped_bit() -> (Store, ZoneAddress) {
    let memory = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "o", &pattern(1, 300_000)).unwrap();
    // Unmounted cleanly: after a crash, damage to the very last batch would be taken for data that a power cut lost
    // before it was acknowledged.
    store.unmount().unwrap();
    drop(store);
    let damaged = damage_first_data_block(&memory, &pattern(1, 4096));
    (mount(&device), damaged)
}

/// Finds the block with `content` and flips one bit of it; the write pointer stays. Returns the block's address.
fn damage_first_data_block(device: &MemoryDrive, content: &[u8]) -> ZoneAddress {
    let g = device.geometry().clone();
    for zone in g.zones().skip(g.conventional_zones as usize) {
        let written = device.report_zone(zone).unwrap().write_pointer;
        let mut bytes = vec![0; written as usize];
        if written == 0 {
            continue;
        }
        device.read(g.start(zone), &mut bytes).unwrap();
        if let Some(at) = bytes.chunks(4096).position(|b| b == content) {
            bytes[at * 4096 + 100] ^= 4;
            device.reset(zone).unwrap();
            device.write(g.start(zone), &bytes).unwrap();
            return ZoneAddress::new(zone, at as u64 * 4096);
        }
    }
    panic!("the data is nowhere");
}

/// The error that health reports of the only zone that is set aside.
fn said(store: &Store) -> String {
    let mut zones = store.health().unwrap().zones;
    assert_eq!(zones.len(), 1);
    zones.remove(0).error
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_place_and_never_data() {
    let (store, damaged) = with_a_flipped_bit();
    let reader = store.open("c", "o").unwrap();
    let mut buffer = vec![0; 300_000];
    // The second read must fail too, whatever the first one left in caches.
    for _ in 0..2 {
        match reader.read_at(0, &mut buffer) {
            Err(Error::ChecksumMismatch {
                object,
                offset,
                at,
                expected,
                found,
            }) => {
                assert_eq!((object.as_str(), offset, at), ("c/o", 0, damaged));
                assert_ne!(expected, found);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(said(&store).starts_with("object \"c/o\" at byte 0"));
    let mut tail = vec![0; 10];
    assert_eq!(reader.read_at(299_990, &mut tail).unwrap(), 10);
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert_eq!(report.errors.get("checksum mismatch"), Some(&1));
}

#[test]
fn an_overwrite_or_the_cleaner_says_what_it_could_not_read() {
    let (store, damaged) = with_a_flipped_bit();
    // The overwrite has to copy the bytes of the first checksum block that it does not cover.
    let data = written(&store, &pattern(2, 62_000)).unwrap();
    let mut transaction = store::Transaction::new();
    transaction.write("c", "o", 1000, data);
    let error = store.commit(transaction).unwrap_err().to_string();
    assert!(error.starts_with("object \"c/o\" at byte"), "{error}");
    store.seal_open_zones().unwrap();
    assert!(!store.clean_one().unwrap());
    let said = said(&store);
    assert!(
        said.starts_with("object \"map 1 in front of byte 300000\""),
        "{said}"
    );
    assert!(said.contains(&damaged.to_string()), "{said}");
}
