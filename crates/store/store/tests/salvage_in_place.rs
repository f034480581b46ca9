//! The index of a store made again on the drive itself, from its data zones alone.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use device::power_cut::{CrashState, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    Attributes, CollectionInfo, Compression, CompressionMode, DataOptions, Error, InPlaceOptions,
    Lost, MkfsOptions, MountOptions, Name, Plan, Salvage, SalvageOptions, SalvageReport, Store,
    Transaction,
};
use zone::{Geometry, ZoneId, ZoneKind};

const UNPLACED: &str = "salvaged-unplaced";

type Drive = Arc<dyn ZonedDevice>;

fn mkfs_with(device: &Drive, copies: u32, uuid: [u8; 16]) {
    let made = MkfsOptions {
        engine: options().engine,
        uuid,
        metadata_copies: Some(copies),
        runtime: options().runtime,
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
}

fn compressing() -> MountOptions {
    let compression = Compression {
        mode: CompressionMode::Force,
        ..Compression::default()
    };
    MountOptions {
        data: DataOptions {
            compression,
            ..DataOptions::default()
        },
        ..options()
    }
}

/// Objects of many sizes that were changed in every way; answers the zones with their data.
fn fill(device: &Drive, random: &mut fastrand::Rng, steps: u32) -> Vec<ZoneId> {
    let store = mount(device);
    create_collection(&store);
    let mut tx = Transaction::new();
    tx.create_collection("other", Attributes::from([("k".into(), b"v".to_vec())]));
    store.commit(tx).unwrap();
    store.unmount().unwrap();
    for round in 0..4 {
        let how = if round % 2 == 0 {
            options()
        } else {
            compressing()
        };
        let store = Store::mount(device.clone(), how).unwrap();
        for _ in 0..steps / 4 {
            change(&store, random);
        }
        store.seal_open_zones().unwrap();
        store.clean_one().unwrap();
        store.unmount().unwrap();
    }
    let store = mount(device);
    let zones = store.zones().iter().map(|used| used.zone).collect();
    store.unmount().unwrap();
    zones
}

fn change(store: &Store, random: &mut fastrand::Rng) {
    let collection = ["c", "other"][random.usize(..2)];
    let name = |random: &mut fastrand::Rng| format!("object-{}", random.u32(..30));
    let (a, b) = (name(random), name(random));
    let size = random.usize(4096..200_000);
    let mut bytes = pattern(random.u64(..), size);
    bytes[size / 2..].fill(3);
    let data = written(store, &bytes).unwrap();
    let mut tx = Transaction::new();
    match random.u32(..12) {
        0 => tx.remove(collection, &a),
        1 => tx.rename((collection, &a), (collection, &b)),
        2 | 3 => tx.clone_object(("c", &a), ("other", &b)),
        4 => tx.append(collection, &a, data),
        5 => tx.truncate(collection, &a, random.u64(4096..150_000)),
        6 => tx.punch(collection, &a, random.u64(..50_000), 50_000),
        7 => tx.assemble(collection, &a, &[(collection, &b)], Attributes::new()),
        8 | 9 => tx.write(collection, &a, random.u64(..50_000), data),
        _ => {
            let attributes = Attributes::from([("k".into(), b.into())]);
            tx.put(collection, &a, data, attributes)
        }
    };
    match store.commit(tx) {
        Err(Error::NoObject { .. } | Error::Invalid { .. }) | Ok(()) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Some of the zones without data are emptied, others overwritten, and none can be mounted from.
fn destroy(device: &Drive, data: &[ZoneId], random: &mut fastrand::Rng) {
    let geometry = device.geometry().clone();
    for zone in geometry.zones().filter(|zone| !data.contains(zone)) {
        let start = geometry.start(zone);
        let is_ring = zone.0 < 2 || zone.0 + 2 >= geometry.drive_zones();
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let mut bytes = vec![0; geometry.zone_size as usize];
                if random.bool() {
                    random.fill(&mut bytes);
                }
                device.write(start, &bytes).unwrap();
            }
            _ if is_ring || random.u8(..3) == 0 => device.reset(zone).unwrap(),
            _ if device.report_zone(zone).unwrap().write_pointer == 0 => {}
            _ if random.bool() => {
                let written = device.report_zone(zone).unwrap().write_pointer as usize;
                let mut noise = vec![0; written];
                random.fill(&mut noise);
                device.reset(zone).unwrap();
                device.write(start, &noise).unwrap();
            }
            _ => {}
        }
    }
    device.flush().unwrap();
}

type Everything = BTreeMap<String, (Attributes, Vec<(Name, Attributes, Vec<u8>)>)>;

/// All but what nothing described.
fn everything(store: &Store) -> Everything {
    let own = |info: &CollectionInfo| info.name != UNPLACED;
    let all = store.collections().unwrap().into_iter().filter(own);
    all.map(|c| {
        let objects = store.list(&c.name, "", "", usize::MAX).unwrap().into_iter();
        let objects = objects.map(|o| {
            let bytes = read_in(store, &c.name, &o.name).unwrap();
            (o.name, o.attributes, bytes)
        });
        (c.name.clone(), (c.attributes, objects.collect()))
    })
    .collect()
}

#[track_caller]
fn assert_same(found: &Everything, expected: &Everything, what: &str) {
    let names = |all: &Everything| -> Vec<String> {
        let all = all.iter();
        all.flat_map(|(c, (_, objects))| {
            let objects = objects.iter();
            objects.map(move |(name, attributes, bytes)| {
                format!("{c}/{name} {} {} {attributes:?}", bytes.len(), crc(bytes))
            })
        })
        .collect()
    };
    let (mine, theirs) = (names(found), names(expected));
    let missing: Vec<_> = theirs.iter().filter(|n| !mine.contains(n)).collect();
    let more: Vec<_> = mine.iter().filter(|n| !theirs.contains(n)).collect();
    assert!(
        found == expected,
        "{what}: missing {missing:#?}, more {more:#?}"
    );
}

fn crc(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(7, |sum, byte| sum * 31 % 1_000_000_007 + u64::from(*byte))
}

fn salvage_to(device: &Drive) -> Everything {
    let other: Drive = Arc::new(MemoryDrive::new(geometry(200)).unwrap());
    mkfs_with(&other, 1, [9; 16]);
    let store = mount(&other);
    let salvage = Salvage::scan(device.clone(), &mut |_, _| {}).unwrap();
    let options = SalvageOptions {
        to: Some(&store),
        ..SalvageOptions::default()
    };
    salvage.copy(options, &mut |_, _| {}).unwrap();
    everything(&store)
}

struct Salvaging {
    lost: Lost,
    salvage: Salvage,
    plan: Plan,
}

fn plan(device: &Drive, drop_unplaced: bool) -> store::Result<Salvaging> {
    let lost = Lost::look(device, &options())?;
    let salvage = Salvage::scan(device.clone(), &mut |_, _| {})?;
    let report = salvage.copy(SalvageOptions::default(), &mut |_, _| {})?;
    let plan = salvage.plan(&lost, &report, drop_unplaced)?;
    Ok(Salvaging {
        lost,
        salvage,
        plan,
    })
}

fn in_place(device: &Drive, drop: bool, damaged: bool, n: u8) -> store::Result<SalvageReport> {
    let Salvaging {
        lost,
        salvage,
        plan,
    } = plan(device, drop)?;
    let how = InPlaceOptions {
        uuid: [n; 16],
        damaged,
    };
    salvage.in_place(&lost, plan, &options(), how, &mut |_, _| {})
}

/// The store is as whole as any.
fn assert_usable(store: &Store) {
    assert_clean(store);
    let mut random = fastrand::Rng::with_seed(99);
    if store.collection("other").unwrap().is_none() {
        let mut tx = Transaction::new();
        tx.create_collection("other", Attributes::new());
        store.commit(tx).unwrap();
    }
    for _ in 0..30 {
        change(store, &mut random);
    }
    assert_clean(store);
    assert!(store.scrub(true, |_| true).unwrap());
    assert_eq!(store.health().unwrap().lost_objects, 0);
}

#[test]
fn it_gives_what_a_copy_gives() {
    for round in 0..4_u8 {
        let mut random = fastrand::Rng::with_seed(seed() + u64::from(round));
        let device: Drive = Arc::new(MemoryDrive::new(geometry(160)).unwrap());
        mkfs_with(&device, 1 + u32::from(round % 2), [7; 16]);
        let data = fill(&device, &mut random, 240);
        let before = everything(&mount(&device));
        destroy(&device, &data, &mut random);
        let expected = salvage_to(&device);
        // What the database alone had of some objects is lost to both.
        let count = |all: &Everything| all.values().map(|(_, o)| o.len()).sum::<usize>();
        assert!(count(&expected) * 10 > count(&before) * 8);
        in_place(&device, round % 3 == 2, false, 100 + round).unwrap();
        let store = mount(&device);
        assert_same(&everything(&store), &expected, &format!("round {round}"));
        assert_eq!(store.uuid(), [7; 16]);
        assert_usable(&store);
        store.unmount().unwrap();
        // The summaries are this store's as before.
        let store = mount(&device);
        let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
        store.unmount().unwrap();
        destroy(&device, &data, &mut random);
        let expected = salvage_to(&device);
        in_place(&device, true, false, 200 + round).unwrap();
        let store = mount(&device);
        assert_same(
            &everything(&store),
            &expected,
            &format!("round {round}, again"),
        );
        assert_clean(&store);
    }
}

#[test]
fn a_kill_at_any_write_leaves_what_the_same_command_ends() {
    let limits = Geometry { ..geometry(160) };
    let drive = Arc::new(PowerCut::new(limits).unwrap());
    let device: Drive = drive.clone();
    let mut random = fastrand::Rng::with_seed(seed());
    mkfs_with(&device, 1, [7; 16]);
    let data = fill(&device, &mut random, 80);
    destroy(&device, &data, &mut random);
    let expected = salvage_to(&device);
    let restart = |from: &PowerCut, choice: &CrashState| Arc::new(from.restart(choice));
    let whole = drive.random_crash_state(0);

    let through = restart(&drive, &whole);
    let device: Drive = through.clone();
    in_place(&device, false, false, 1).unwrap();
    let writes = through.operation_count();
    let step = (writes / 40).max(1);
    println!("{writes} operations");
    for cut in (0..writes).step_by(step as usize) {
        let killed = restart(&drive, &whole);
        killed.cut_after(cut);
        let device: Drive = killed.clone();
        in_place(&device, false, false, 2).unwrap_err();
        let again = restart(&killed, &killed.random_crash_state(cut));
        let device: Drive = again.clone();
        match in_place(&device, false, false, 3) {
            Ok(_) => {}
            // All was done.
            Err(Error::StillOpens) => {}
            Err(error) => panic!("cut {cut}: {error}"),
        }
        let store = mount(&device);
        assert_same(&everything(&store), &expected, &format!("cut {cut}"));
        assert_clean(&store);
    }
}

#[test]
fn a_store_that_opens_is_refused_and_so_is_a_mount_of_half_of_one() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let mut random = fastrand::Rng::with_seed(seed());
    fill(&device, &mut random, 20);
    let refused = Lost::look(&device, &options());
    assert!(matches!(refused, Err(Error::StillOpens)));
    let (fs, kv) = database(&device);
    let mut batch = kv::Batch::default();
    batch.put(b"Ssalvage", &1_u64.to_le_bytes());
    kv.write(&batch, kv::Durability::Synced).unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let refused = Store::mount(device.clone(), options());
    assert!(matches!(refused, Err(Error::SalvageUnfinished)));
    let before = salvage_to(&device);
    in_place(&device, false, false, 1).unwrap();
    assert!(everything(&mount(&device)) == before);
}

/// Changes a bit of the block with these bytes.
fn hit(device: &Drive, zone: ZoneId, wanted: &[u8]) {
    let start = device.geometry().start(zone);
    let end = device.report_zone(zone).unwrap().write_pointer;
    let mut bytes = vec![0; end as usize];
    device.read(start, &mut bytes).unwrap();
    let block = bytes.chunks(4096).position(|block| block == wanted);
    bytes[block.unwrap() * 4096 + 100] ^= 4;
    device.reset(zone).unwrap();
    device.write(start, &bytes).unwrap();
}

#[test]
fn what_is_not_placed_stays_on_the_drive_until_somebody_gives_it_up() {
    for drop_unplaced in [false, true] {
        let device: Drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
        mkfs_with(&device, 1, [7; 16]);
        let store = mount(&device);
        create_collection(&store);
        for index in 0..30 {
            put(&store, &format!("o{index}"), &pattern(index, 100_000)).unwrap();
        }
        store.unmount().unwrap();
        // In no summary, and removed.
        let store = mount(&device);
        let newest = pattern(77, 3 << 20);
        put(&store, "newest", &newest).unwrap();
        let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
        drop(store);
        hit(&device, data[0], &pattern(3, 100_000)[4096..8192]);
        destroy(&device, &data, &mut fastrand::Rng::with_seed(1));

        let report = in_place(&device, drop_unplaced, true, 5).unwrap();
        assert_eq!((report.damaged.len(), report.is_whole()), (1, false));
        let store = mount(&device);
        assert_clean(&store);
        assert_eq!(store.stat("c", "o3").unwrap(), None);
        let rest = read_in(&store, "salvaged-damaged", "c/o3").unwrap();
        assert!(rest[65_536..] == pattern(3, 100_000)[65_536..]);
        let kept = contents_of(&store, UNPLACED);
        let has = |wanted: &[u8]| {
            let mut blocks = kept.iter().flat_map(|(_, bytes)| bytes.chunks(4096));
            blocks.any(|block| block == wanted)
        };
        let wanted = newest.chunks(4096).filter(|wanted| has(wanted)).count();
        match drop_unplaced {
            false => assert_eq!(wanted, newest.len() / 4096),
            // But for what lies beside that which had to be copied.
            true => assert!(wanted < newest.len() / 8192, "{wanted}"),
        }
        // Given up, it is free like anything else.
        let mut tx = Transaction::new();
        for (name, _) in &kept {
            tx.remove(UNPLACED, name);
        }
        store.commit(tx).unwrap();
        assert_usable(&store);
    }
}

#[test]
fn a_drive_without_room_for_new_metadata_is_left_as_it_is() {
    let drive = Arc::new(PowerCut::new(geometry(64)).unwrap());
    let device: Drive = drive.clone();
    mkfs_with(&device, 1, [7; 16]);
    let store = mount(&device);
    create_collection(&store);
    let mut index = 0;
    while put(&store, &format!("o{index}"), &pattern(index, 300_000)).is_ok() {
        index += 1;
    }
    store.unmount().unwrap();
    let geometry = device.geometry().clone();
    // All zones are written to, and no superblock is left.
    for zone in geometry.zones() {
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let zeros = vec![0; geometry.zone_size as usize];
                device.write(geometry.start(zone), &zeros).unwrap();
            }
            _ if zone.0 + 2 >= geometry.drive_zones() => device.reset(zone).unwrap(),
            _ if device.report_zone(zone).unwrap().write_pointer == 0 => {
                device
                    .write(geometry.start(zone), &pattern(1, 8192))
                    .unwrap();
                device.finish(zone).unwrap();
            }
            _ => {}
        }
    }
    let before = drive.operation_count();
    let refused = plan(&device, false);
    assert!(matches!(refused, Err(Error::NoRoomForMetadata { .. })));
    assert_eq!(drive.operation_count(), before);
    let expected = salvage_to(&device);
    let report = in_place(&device, true, false, 1).unwrap();
    let store = mount(&device);
    assert!(everything(&store) == expected, "{:#?}", report.lines(true));
    assert_clean(&store);
}
