//! Stores that lose their metadata, and what a salvage recovers of them.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    Attributes, CollectionInfo, Compression, CompressionMode, DataOptions, Error, InPlaceOptions,
    Lost, MkfsOptions, MountOptions, Name, Plan, Salvage, SalvageOptions, SalvageReport, Store,
    Transaction,
};
use zone::{ZoneId, ZoneKind};

pub const UNPLACED: &str = "salvaged-unplaced";

pub type Drive = Arc<dyn ZonedDevice>;

pub fn mkfs_with(device: &Drive, copies: u32, uuid: [u8; 16]) {
    let made = MkfsOptions {
        engine: options().engine,
        uuid,
        metadata_copies: Some(copies),
        runtime: options().runtime,
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
}

pub fn compressing() -> MountOptions {
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

/// Writes and changes objects in every way; returns their zones.
pub fn fill(device: &Drive, random: &mut fastrand::Rng, steps: u32) -> Vec<ZoneId> {
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

pub fn change(store: &Store, random: &mut fastrand::Rng) {
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

/// Empties some of the zones without data and overwrites others, so that the drive cannot be mounted.
pub fn destroy(device: &Drive, data: &[ZoneId], random: &mut fastrand::Rng) {
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

/// Flips a bit in every `blocks` blocks: in each object, if all are of that size.
pub fn damage_each(device: &Drive, data: &[ZoneId], blocks: usize) {
    for zone in data {
        let end = device.report_zone(*zone).unwrap().write_pointer;
        let start = device.geometry().start(*zone);
        let mut bytes = vec![0; end as usize];
        device.read(start, &mut bytes).unwrap();
        for at in bytes.chunks_mut(blocks * 4096) {
            at[4096 / 2] ^= 4;
        }
        device.reset(*zone).unwrap();
        device.write(start, &bytes).unwrap();
    }
}

pub type Everything = BTreeMap<String, (Attributes, Vec<(Name, Attributes, Vec<u8>)>)>;

/// Everything but the collection of unplaced bytes.
pub fn everything(store: &Store) -> Everything {
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
pub fn assert_same(found: &Everything, expected: &Everything, what: &str) {
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

pub fn crc(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}

pub fn salvage_to(device: &Drive) -> Everything {
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

pub struct Salvaging {
    pub lost: Lost,
    pub salvage: Salvage,
    pub plan: Plan,
}

pub fn plan(device: &Drive, drop: bool, damaged: bool, n: u8) -> store::Result<Salvaging> {
    let lost = Lost::look(device, &options())?;
    let salvage = Salvage::scan(device.clone(), &mut |_, _| {})?;
    let report = salvage.copy(SalvageOptions::default(), &mut |_, _| {})?;
    let how = InPlaceOptions {
        uuid: [n; 16],
        damaged,
        drop_unplaced: drop,
    };
    let plan = salvage.plan(&lost, &report, &options(), how)?;
    Ok(Salvaging {
        lost,
        salvage,
        plan,
    })
}

impl Salvaging {
    pub fn carry_out(&self) -> store::Result<SalvageReport> {
        let (lost, plan) = (&self.lost, &self.plan);
        self.salvage
            .in_place(lost, plan, &options(), &mut |_, _| {})
    }
}

pub fn in_place(device: &Drive, drop: bool, damaged: bool, n: u8) -> store::Result<SalvageReport> {
    plan(device, drop, damaged, n)?.carry_out()
}

/// The store is clean, also after random changes.
pub fn assert_usable(store: &Store) {
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
