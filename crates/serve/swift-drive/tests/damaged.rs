//! Quarantined objects whose metadata is damaged.

use crate::support::{formatted, mount};
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability, Kv, MergeOperator};
use kv_log::KvLog;
use std::sync::Arc;
use store::Store;
use swift_drive::{Address, Error, ObjectHash, PolicyKind, SwiftDrive};
use swift_files::{FileName, Kind, Timestamp};
use zone::ZoneId;
use zone_alloc::ZonePool;

fn address(number: u8) -> Address {
    Address {
        policy: 0,
        partition: 7,
        hash: ObjectHash::new([number; 16]),
    }
}

/// The same store, in which the records of objects whose names contain `part` cannot be decoded.
fn with_damaged_records(store: Store, drive: &Arc<MemoryDrive>, part: &str) -> Store {
    store.unmount().unwrap();
    drop(store);
    let geometry = drive.geometry();
    let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs = BlueFs::mount(drive.clone(), pool, bluefs::MountOptions::default()).unwrap();
    let options = kv::Options {
        merge: [b'Z', b'S'].map(|p| (p, MergeOperator::AddI64s)).to_vec(),
        ..kv::Options::default()
    };
    let kv = Kv::open(&KvLog, &fs, "/db", &options, None).unwrap();
    let mut batch = Batch::default();
    for row in kv.scan(b"O", Some(b"P")) {
        let (key, _) = row.unwrap();
        if key
            .windows(part.len())
            .any(|bytes| bytes == part.as_bytes())
        {
            batch.put(&key, b"?");
        }
    }
    assert!(!batch.is_empty());
    kv.write(&batch, Durability::Synced).unwrap();
    kv.flush().unwrap();
    drop((kv, fs));
    mount(drive)
}

#[test]
fn a_damaged_object_keeps_no_other_quarantined() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let data = FileName {
        timestamp: Timestamp::new(1, 0).unwrap(),
        kind: Kind::Data,
    };
    for number in 1..=3 {
        let at = address(number);
        swift.put(at, data, None, vec![number]).unwrap();
        swift.quarantine(at, None).unwrap();
    }
    drop(swift);
    let spoiled = address(2).hash.to_string();
    let swift = SwiftDrive::new(with_damaged_records(store, &drive, &spoiled));
    // Each time: what is damaged does not go away.
    for gone in [2, 0] {
        let refused = swift.empty_quarantine(0).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains(&spoiled) && said.contains("`store fsck --repair`"),
            "{said}"
        );
        let Error::NotEmptied { removed, left, .. } = refused else {
            panic!("{said}");
        };
        assert_eq!((removed, left), (gone, 1));
        assert_eq!(swift.quarantined(0, 9).unwrap(), [(address(2), vec![data])]);
    }
}
