//! Objects and suffixes whose metadata is damaged, and what a repair or a salvage leaves of them.

use crate::support::{formatted, formatted_as, mount};
use bluefs::BlueFs;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability, Kv, MergeOperator};
use kv_log::KvLog;
use std::cell::Cell;
use std::sync::Arc;
use store::{Attributes, MountOptions, Salvage, SalvageOptions, Store, Transaction, Written};
use swift_drive::{Address, Ages, Error, Hashes, ObjectHash, PolicyKind, Put, SwiftDrive};
use swift_files::{FileName, Kind, Reclaim, Timestamp, Wanted};
use zone::ZoneId;
use zone_alloc::ZonePool;

const AGES: Ages = Ages {
    reclaim: Reclaim { age: 0, now: 0 },
    committing_since: u64::MAX,
};

fn address(number: u8) -> Address {
    Address {
        policy: 0,
        partition: 7,
        hash: ObjectHash::new([number; 16]),
    }
}

/// An object of the suffix 909.
fn neighbour(number: u8) -> Address {
    let mut hash = [9; 16];
    hash[0] = number;
    Address {
        policy: 0,
        partition: 7,
        hash: ObjectHash::new(hash),
    }
}

fn data() -> FileName {
    FileName {
        timestamp: Timestamp::new(1, 0).unwrap(),
        kind: Kind::Data,
    }
}

fn written(store: &Store, bytes: usize) -> Written {
    let mut writer = store.writer(Some(bytes as u64)).unwrap();
    writer.write(&vec![7; bytes]).unwrap();
    writer.finish().unwrap()
}

/// The hashes of the partition, and how many were computed.
fn hashes(swift: &SwiftDrive) -> (Hashes, usize) {
    swift.hashes(0, 7, &[], AGES).unwrap()
}

/// The hashes on a drive that never had any other objects.
fn hashes_of(objects: &[Address]) -> Hashes {
    let swift = SwiftDrive::new(mount(&formatted()));
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    for at in objects {
        swift.put(*at, data(), None, Vec::new()).unwrap();
    }
    hashes(&swift).0
}

/// Whether a key is that of an object whose name contains `part`.
fn contains(key: &[u8], part: &str) -> bool {
    key.windows(part.len())
        .any(|bytes| bytes == part.as_bytes())
}

/// The same store, in which the records of objects with these keys cannot be decoded.
fn with_damaged_records(
    store: Store,
    drive: &Arc<MemoryDrive>,
    is_hit: impl Fn(&[u8]) -> bool,
) -> Store {
    with_damaged_rows(store, drive, b'O', is_hit)
}

/// The same store, in which rows of a namespace with these keys cannot be decoded.
fn with_damaged_rows(
    store: Store,
    drive: &Arc<MemoryDrive>,
    namespace: u8,
    is_hit: impl Fn(&[u8]) -> bool,
) -> Store {
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
    for row in kv.scan(&[namespace], Some(&[namespace + 1])) {
        let (key, _) = row.unwrap();
        if is_hit(&key) {
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
    for number in 1..=3 {
        let at = address(number);
        swift.put(at, data(), None, vec![number]).unwrap();
        swift.quarantine(at, None).unwrap();
    }
    drop(swift);
    let spoiled = address(2).hash.to_string();
    let store = with_damaged_records(store, &drive, |key| contains(key, &spoiled));
    let swift = SwiftDrive::new(store);
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
        assert_eq!(
            swift.quarantined(0, 9).unwrap(),
            [(address(2), vec![data()])]
        );
    }
}

/// By it, a version that has come since is told from the one that cannot be read.
#[test]
fn the_file_that_cannot_be_read_is_named() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let posted = FileName {
        timestamp: Timestamp::new(2, 0).unwrap(),
        kind: Kind::Meta { content_type: None },
    };
    for file in [data(), posted] {
        swift.put(address(1), file, None, Vec::new()).unwrap();
    }
    drop(swift);
    let hit = posted.to_string();
    let store = with_damaged_records(store, &drive, |key| contains(key, &hit));
    let swift = SwiftDrive::new(store);
    let opened = swift.open(address(1), Wanted::default());
    let Err(Error::InFile { file, .. }) = opened else {
        panic!("no file is named");
    };
    assert_eq!(file, posted);
    // Out of the way, although its record cannot be moved: the object can be put again.
    swift.quarantine(address(1), Some(posted)).unwrap();
    assert!(swift.files(address(1)).unwrap().is_empty());
    assert!(!swift.quarantined(0, 9).unwrap().is_empty());
    let put = swift.put(address(1), data(), None, Vec::new()).unwrap();
    assert_eq!(put, Put::Done);
}

/// Only an open that asks for it would meet it.
#[test]
fn an_obsolete_file_with_a_damaged_record_keeps_nothing_from_being_put() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::ErasureCoding).unwrap();
    let fragment = |seconds, index, is_durable| FileName {
        timestamp: Timestamp::new(seconds, 0).unwrap(),
        kind: Kind::Fragment { index, is_durable },
    };
    for number in 1..3 {
        for index in [1, 3] {
            swift
                .put(address(number), fragment(1, index, true), None, Vec::new())
                .unwrap();
        }
    }
    drop(swift);
    let hit = fragment(1, 1, true).to_string();
    let store = with_damaged_records(store, &drive, |key| contains(key, &hit));
    let swift = SwiftDrive::new(store);
    let new = fragment(2, 1, false);
    swift.put(address(1), new, None, Vec::new()).unwrap();
    swift.make_durable(address(1), new).unwrap();
    assert_eq!(swift.files(address(1)).unwrap(), [fragment(2, 1, true)]);
    let tombstone = FileName {
        kind: Kind::Tombstone,
        ..new
    };
    swift.put(address(2), tombstone, None, Vec::new()).unwrap();
    assert_eq!(swift.files(address(2)).unwrap(), [tombstone]);
}

/// What is quarantined because its bytes cannot be read, too.
#[test]
fn a_file_whose_bytes_are_nowhere_is_replaced_and_removed() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    for number in 1..=3 {
        let bytes = written(&store, 100_000);
        let put = swift.put(address(number), data(), Some(bytes), Vec::new());
        assert_eq!(put.unwrap(), Put::Done);
    }
    drop(swift);
    let store = with_damaged_rows(store, &drive, b'X', |_| true);
    let swift = SwiftDrive::new(store.clone());
    let later = |kind| FileName {
        timestamp: Timestamp::new(2, 0).unwrap(),
        kind,
    };
    for (number, file) in [(1, later(Kind::Data)), (2, later(Kind::Tombstone))] {
        let bytes = (number == 1).then(|| written(&store, 100_000));
        let put = swift.put(address(number), file, bytes, Vec::new());
        assert_eq!(put.unwrap(), Put::Done);
        assert_eq!(swift.files(address(number)).unwrap(), [file]);
    }
    swift.quarantine(address(3), None).unwrap();
    assert_eq!(swift.empty_quarantine(0).unwrap(), 1);
    drop(swift);
    let store = repaired(store, &drive);
    assert!(store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
}

/// Unmounts, repairs, and mounts again.
fn repaired(store: Store, drive: &Arc<MemoryDrive>) -> Store {
    store.unmount().unwrap();
    drop(store);
    let options = MountOptions::new(KvLog);
    Store::repair(drive.clone(), &options, &mut |_| true, &mut |_, _| {}).unwrap();
    mount(drive)
}

/// The objects on a drive that was started.
fn started(store: Store) -> SwiftDrive {
    let swift = SwiftDrive::new(store);
    swift.find_suffixes(|| true).unwrap();
    swift
}

/// Otherwise no other drive would send the object again.
#[test]
fn what_a_repair_gives_up_is_in_no_hash() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    for number in 1..=2 {
        let at = neighbour(number);
        swift.put(at, data(), None, vec![number]).unwrap();
    }
    let both = hashes_of(&[neighbour(1), neighbour(2)]);
    assert_eq!(hashes(&swift), (both, 1));
    drop(swift);
    let lost = neighbour(2).hash.to_string();
    let store = with_damaged_records(store, &drive, |key| contains(key, &lost));
    let swift = SwiftDrive::new(repaired(store, &drive));
    let left = hashes_of(&[neighbour(1)]);
    assert_eq!(hashes(&swift), (left.clone(), 1));
    assert_eq!(hashes(&swift), (left, 0));
}

#[test]
fn a_damaged_suffix_keeps_no_hashes_of_others_away() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let objects = [neighbour(1), address(1), neighbour(2)];
    for at in objects {
        swift.put(at, data(), None, Vec::new()).unwrap();
    }
    let all = hashes_of(&objects);
    assert_eq!(hashes(&swift), (all.clone(), 2));
    drop(swift);
    let store = with_damaged_records(store, &drive, |key| key.ends_with(b"0000000007/909"));
    let swift = SwiftDrive::new(store.clone());
    for _ in 0..2 {
        // They cannot be kept.
        assert_eq!(hashes(&swift), (all.clone(), 1));
    }
    drop(swift);
    // The repair removes the suffix, whose objects are found again.
    let swift = started(repaired(store, &drive));
    assert_eq!(hashes(&swift), (all.clone(), 2));
    assert_eq!(hashes(&swift), (all, 0));
}

/// What its record held can be computed.
#[test]
fn objects_of_a_damaged_suffix_are_put_and_removed() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    for at in [neighbour(1), neighbour(2)] {
        swift.put(at, data(), None, Vec::new()).unwrap();
    }
    hashes(&swift);
    drop(swift);
    let store = with_damaged_records(store, &drive, |key| key.ends_with(b"0000000007/909"));
    let swift = SwiftDrive::new(store.clone());
    swift.put(neighbour(3), data(), None, Vec::new()).unwrap();
    let is_gone = swift.remove_all(neighbour(1), &[data()], None, false);
    assert!(is_gone.unwrap());
    swift.quarantine(neighbour(2), None).unwrap();
    let left = hashes_of(&[neighbour(3)]);
    assert_eq!(hashes(&swift), (left.clone(), 1));
    drop(swift);
    let swift = started(repaired(store, &drive));
    assert_eq!(hashes(&swift), (left.clone(), 1));
    assert_eq!(hashes(&swift), (left, 0));
}

/// A drive with millions of suffixes takes minutes, in which the daemon may be stopped.
#[test]
fn a_start_waits_for_no_suffixes_and_goes_on_where_the_last_one_stopped() {
    const SUFFIXES: &str = "swift-0-suffixes";
    const COUNT: usize = 1000;
    let store = mount(&formatted());
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    drop(swift);
    // As in a store of an earlier version.
    let mut transaction = Transaction::new();
    transaction.set_collection_attributes(SUFFIXES, Attributes::new());
    let hash = neighbour(1).hash;
    for partition in 0..COUNT {
        let name = format!("{partition:010}/909/{hash}/{}", data());
        transaction.touch("swift-0", &name);
    }
    store.commit(transaction).unwrap();
    let start = || SwiftDrive::new(store.clone());
    let found = || start().partitions(0, 0, usize::MAX).unwrap();
    assert!(found().is_empty());
    let asked = Cell::new(0);
    start()
        .find_suffixes(|| asked.replace(asked.get() + 1) < 2)
        .unwrap();
    let some = found().len();
    assert!(some > 0 && some < COUNT, "{some}");
    // Nothing in front of them is looked at again.
    let mut transaction = Transaction::new();
    transaction.remove(SUFFIXES, "0000000000/909");
    store.commit(transaction).unwrap();
    start().find_suffixes(|| true).unwrap();
    assert!(found().into_iter().eq(1..COUNT as u32));
    let all = start().find_suffixes(|| panic!("all were found before"));
    assert!(all.unwrap());
}

#[test]
fn suffixes_are_found_again_behind_a_salvage() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let large = written(&store, 1 << 20);
    swift
        .put(neighbour(1), data(), Some(large), Vec::new())
        .unwrap();
    hashes(&swift);
    // The bytes of a small object are in the database alone, and so is what its transaction changes besides.
    let small = written(&store, 100);
    swift
        .put(neighbour(2), data(), Some(small), Vec::new())
        .unwrap();
    drop(swift);
    store.unmount().unwrap();
    drop(store);
    let to = mount(&formatted_as([2; 16]));
    let salvage = Salvage::scan(drive, &mut |_, _| {}).unwrap();
    let options = SalvageOptions {
        to: Some(&to),
        ..SalvageOptions::default()
    };
    salvage.copy(options, &mut |_, _| {}).unwrap();
    let swift = started(to);
    assert_eq!(swift.partitions(0, 0, 9).unwrap(), [7]);
    assert_eq!(hashes(&swift), (hashes_of(&[neighbour(1)]), 1));
}
