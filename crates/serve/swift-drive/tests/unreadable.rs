//! Rows of the database that cannot be read.

use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use std::sync::Arc;
use store::{Attributes, MkfsOptions, MountOptions, Store, Transaction};
use swift_drive::{PolicyKind, SwiftDrive};
use zone::{ZoneAddress, ZoneId};
use zone_alloc::ZonePool;

const PARTITIONS: u32 = 3000;
const FILES: &str = "swift-0";
const SUFFIXES: &str = "swift-0-suffixes";

fn mount(drive: &Arc<MemoryDrive>) -> store::Result<Store> {
    let options = MountOptions {
        background: false,
        ..MountOptions::new(RocksDb)
    };
    Store::mount(drive.clone(), options)
}

/// A drive with one suffix and one file in each partition and one copy of its metadata, as an earlier version left it: all
/// suffixes have to be looked for. The attributes do not compress, so that the SST is too large to be read as a whole where
/// it is opened.
fn with_partitions() -> Arc<MemoryDrive> {
    let profile = profile::by_name("test-small").unwrap();
    let geometry = profile.geometry(128 << 20, None).unwrap();
    let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
    let options = MkfsOptions {
        metadata_copies: Some(1),
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(drive.clone(), &options).unwrap();
    let store = mount(&drive).unwrap();
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    drop(swift);
    let mut random = fastrand::Rng::with_seed(1);
    for from in (0..PARTITIONS).step_by(100) {
        let mut transaction = Transaction::new();
        for partition in from..from + 100 {
            let suffix = format!("{partition:010}/abc");
            let file = format!("{suffix}/{:032x}/1402464677.04188.data", 0xabc);
            for (collection, name) in [(SUFFIXES, suffix), (FILES, file)] {
                let mut value = vec![0; 900];
                random.fill(&mut value);
                let attributes = Attributes::from([("hashes".to_owned(), value)]);
                transaction.touch(collection, &name);
                transaction.set_attributes(collection, &name, attributes);
            }
        }
        store.commit(transaction).unwrap();
    }
    let mut transaction = Transaction::new();
    transaction.set_collection_attributes(SUFFIXES, Attributes::new());
    store.commit(transaction).unwrap();
    store.unmount().unwrap();
    drive
}

/// Every 64 KiB of all SSTs: a byte of one block of four.
fn sst_blocks(drive: &Arc<MemoryDrive>) -> Vec<ZoneAddress> {
    let geometry = drive.geometry().clone();
    let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry, &report));
    let options = bluefs::MountOptions {
        read_only: true,
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(drive.clone(), pool, options).unwrap();
    let tables = fs.list("/db").unwrap().into_iter();
    let tables = tables.filter(|name| name.ends_with(".sst"));
    let extents = tables.flat_map(|name| fs.extents(&format!("/db/{name}")).unwrap());
    let blocks = extents.flat_map(|extent| {
        let offsets = (0..extent.length).step_by(64 << 10);
        offsets.map(move |at| ZoneAddress::new(extent.at.zone, extent.at.offset + at))
    });
    blocks.collect()
}

/// The store of a drive with a damaged byte there.
fn damaged_at(drive: &MemoryDrive, at: ZoneAddress) -> store::Result<Store> {
    let copy = drive.snapshot();
    copy.decay(at, 1, |byte| byte[0] ^= 1);
    mount(&Arc::new(copy))
}

/// Where a damaged byte fails the listing of a collection. The database does not open without some of the blocks, and
/// others have no names.
fn places(drive: &Arc<MemoryDrive>, collection: &str) -> impl Iterator<Item = ZoneAddress> {
    sst_blocks(drive).into_iter().filter(move |at| {
        let store = damaged_at(drive, *at);
        store.is_ok_and(|store| store.list(collection, "", "", usize::MAX).is_err())
    })
}

/// Replication and reconstruction begin with them.
#[test]
fn partitions_behind_rows_that_cannot_be_read_are_listed() {
    let drive = with_partitions();
    let at = places(&drive, SUFFIXES).nth(1).unwrap();
    let swift = SwiftDrive::new(damaged_at(&drive, at).unwrap());
    let found = swift.partitions(0, 0, usize::MAX).unwrap();
    assert!(found.is_sorted());
    let count = PARTITIONS as usize;
    assert!(
        found.len() > count - 500 && found.len() < count,
        "{found:?}"
    );
    assert_eq!(found.last(), Some(&(PARTITIONS - 1)));
}

/// Otherwise nothing would replicate those whose names could not be read for a moment.
#[test]
fn suffixes_that_could_not_be_looked_for_are_looked_for_again() {
    let drive = with_partitions();
    for collection in [FILES, SUFFIXES] {
        let at = places(&drive, collection).nth(1).unwrap();
        let copy = Arc::new(drive.snapshot());
        copy.decay(at, 1, |byte| byte[0] ^= 1);
        let store = mount(&copy).unwrap();
        let knows_all = || {
            // Passed over, which is no error.
            let has_all = SwiftDrive::new(store.clone())
                .find_suffixes(|| true)
                .unwrap();
            let suffixes = store.collection(SUFFIXES).unwrap().unwrap();
            assert_eq!(has_all, suffixes.attributes.contains_key("revision"));
            has_all
        };
        assert!(!knows_all(), "{collection}");
        copy.decay(at, 1, |byte| byte[0] ^= 1);
        assert!(knows_all(), "{collection}");
    }
}
