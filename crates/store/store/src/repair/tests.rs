//! A repair that is interrupted between any two changes, and begun again.

use crate::format::extent;
use crate::format::key;
use crate::format::onode::Onode;
use crate::opened::Opened;
use crate::test_drive::{self, change, options};
use crate::{Attributes, HashPrefix, HashSource, Hashed, MountOptions, Store, Transaction};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use object::Content;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneCommand};

/// Bytes of objects by collection and name.
type Objects = BTreeMap<(String, String), Vec<u8>>;

fn put(store: &Store, collection: &str, name: &str, seed: u64, length: usize) {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    let mut writer = store.writer(None).unwrap();
    writer.write(&bytes).unwrap();
    let mut tx = Transaction::new();
    tx.append(collection, name, writer.finish().unwrap());
    store.commit(tx).unwrap();
}

/// All objects that can be opened and read whole.
fn objects(store: &Store) -> Objects {
    let mut found = Objects::new();
    for collection in store.collections().unwrap() {
        let name = collection.name;
        for object in store.list(&name, "", "", usize::MAX).unwrap() {
            let Ok(reader) = store.open(&name, &object.name) else {
                continue;
            };
            let mut bytes = vec![0; object.size as usize];
            if reader.read_at(0, &mut bytes).is_ok() {
                found.insert((name.clone(), object.name.to_string()), bytes);
            }
        }
    }
    found
}

fn rows(opened: &Opened, namespace: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = opened.kv.scan(&[namespace], Some(&[namespace + 1]));
    let rows = rows.map(Result::unwrap);
    rows.map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// A store with six damaged objects, and the objects from before: four without their first extent, one whose second
/// blob ends behind the write pointer, and one behind whose end its last extent goes on. The onode of a seventh has a
/// key that it cannot have.
fn damaged() -> (Arc<MemoryDrive>, Objects) {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    let mut tx = Transaction::new();
    let hashed = Hashed {
        family: 3,
        source: HashSource::Xxh3,
        prefix: HashPrefix::ALL,
    };
    tx.create_hashed_collection("hashed", hashed, Attributes::new());
    store.commit(tx).unwrap();
    put(&store, "hashed", "elsewhere", 1, 20_000);
    for number in 0..6 {
        for part in 0..2 {
            let seed = 10 + number * 2 + part;
            put(&store, "c", &format!("o{number}"), seed, 100_000);
        }
    }
    let before = objects(&store);
    store.unmount().unwrap();
    drop(store);
    let mut last = ZoneAddress::new(zone::ZoneId(0), 0);
    change(&drive, |opened, batch| {
        let onodes = rows(opened, key::ONODE);
        for (number, (key, value)) in onodes.iter().enumerate() {
            let mut onode = Onode::decode(value).unwrap();
            let map = onode.segments[0].map;
            match number {
                0..4 => batch.delete(&key::extent(map, 100_000)),
                4 => {
                    onode.segments[0].length -= 10_000;
                    batch.put(key, &onode.encode());
                }
                _ => {
                    let row = opened.kv.get(&key::extent(map, 200_000)).unwrap().unwrap();
                    let content = extent::decode(&row).unwrap().content;
                    if let Content::Own { blob, .. } = content {
                        last = blob.fragments[0].at.unwrap();
                    }
                }
            }
        }
        let [(key, value)] = &rows(opened, key::HASHED_ONODE)[..] else {
            panic!("one object");
        };
        batch.delete(key);
        batch.put(&key::hashed_onode(3, 77, b"elsewhere"), value);
    });
    let start = drive.geometry().start(last.zone);
    let mut kept = vec![0; last.offset as usize + 69_632];
    drive.read(start, &mut kept).unwrap();
    drive.reset(last.zone).unwrap();
    drive.write(start, &kept).unwrap();
    drive.power_cycle();
    (drive, before)
}

#[test]
fn wherever_a_repair_is_interrupted_the_next_one_ends_it() {
    let (harmed, before) = damaged();
    let whole = Arc::new(harmed.snapshot());
    let report = Store::repair(whole.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap();
    assert_eq!(report.given_up.len(), 5, "{report:#?}");
    assert_eq!(report.repaired["object without a collection"], 1);
    let expected = objects(&test_drive::mount(&whole));
    let is_damaged = |(collection, _): &&(String, String)| collection == "fsck-damaged";
    assert_eq!(expected.keys().filter(is_damaged).count(), 5);
    assert!(
        expected[&("fsck-damaged".into(), "c/o5".into())][..165_536]
            == before[&("c".into(), "o5".into())][..165_536]
    );
    let mut mounted = 0;
    for kth in 1.. {
        let faulty = Arc::new(Faults::new(harmed.snapshot()));
        faulty.add(Plan::from(
            ZoneCommand::Write,
            kth,
            Fault::Io(ErrorKind::Other),
        ));
        let first = Store::repair(faulty.clone(), &options(), &mut |_| true, &mut |_, _| {});
        let read_only = MountOptions {
            read_only: true,
            ..options()
        };
        let cut = || Arc::new(faulty.inner().snapshot());
        if let Ok(store) = Store::mount(cut(), read_only) {
            for (name, bytes) in objects(&store) {
                let was = before.get(&name);
                assert!(
                    was.is_none_or(|was| was.starts_with(&bytes)),
                    "write {kth}: {name:?}"
                );
            }
        }
        // Somebody goes on without a repair.
        if let Ok(store) = Store::mount(cut(), options()) {
            mounted += 1;
            let mut tx = Transaction::new();
            tx.create_collection("new", Attributes::new());
            store.commit(tx).unwrap();
            let there = store.list("new", "", "", usize::MAX).unwrap();
            assert!(there.is_empty(), "write {kth}: {there:?}");
        }
        let drive = cut();
        let again =
            Store::repair(drive.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap();
        let is_wrong = again
            .given_up
            .iter()
            .any(|given| !given.what.starts_with("bytes "));
        assert!(!is_wrong, "write {kth}: {again:#?}");
        let store = test_drive::mount(&drive);
        assert!(objects(&store) == expected, "write {kth}");
        assert!(store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
        if faulty.struck() == 0 {
            assert!(
                first.unwrap().is_done && kth > 30 && mounted > 20,
                "{kth} {mounted}"
            );
            break;
        }
    }
}

/// The batches of a repair have no numbers, so the next mount looks for their rows everywhere, also if it is killed
/// after batches that have some.
#[test]
fn what_a_repair_changes_is_copied_to_summaries() {
    for is_killed in [false, true] {
        let (drive, _) = damaged();
        Store::repair(drive.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap();
        let mut store = test_drive::mount(&drive);
        if is_killed {
            test_drive::put(&store, "new");
            drop(store);
            store = test_drive::mount(&drive);
        }
        let checked = |store: &Store| store.fsck(true, &mut |_, _| {}).unwrap();
        assert!(checked(&store).rows_without_copy > 0);
        assert!(store.copy_uncopied(|_| true).unwrap());
        assert_eq!(checked(&store).rows_without_copy, 0, "{is_killed}");
        store.unmount().unwrap();
        // From now on, a mount has nothing to look for.
        drop(store);
        let store = test_drive::mount(&drive);
        assert!(store.inner.uncopied.lock().is_none());
    }
}
