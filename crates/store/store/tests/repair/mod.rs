//! `Store::repair`: rows of the database are removed, moved, exchanged and made undecodable. Afterwards the store can
//! be mounted, a check finds nothing, and every object that can be read has its own bytes.

mod planted;

use crate::common::*;
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use kv::{Batch, Durability};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use store::{
    Attributes, GivenUp, HashPrefix, HashSource, Hashed, MountOptions, RepairReport, RepairStep,
    Store, Transaction,
};
use zone::ZoneCommand;

type Row = (Vec<u8>, Vec<u8>);
/// Bytes of objects by collection and name.
type Objects = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// A drive with everything that a store may hold: objects of all sizes by name and by hash, clones, holes, assembled
/// objects, omap keys.
fn drive() -> (MemoryDrive, Objects) {
    let memory = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let mut tx = Transaction::new();
    tx.create_collection("d", Attributes::new());
    for (name, prefix) in [("low", "0*"), ("high", "1*")] {
        let hashed = Hashed {
            family: 3,
            source: HashSource::Xxh3,
            prefix: prefix.parse::<HashPrefix>().unwrap(),
        };
        tx.create_hashed_collection(name, hashed, Attributes::new());
    }
    store.commit(tx).unwrap();
    for (seed, size) in [0, 10, 3000, 5000, 70_000, 300_000, 1_500_000]
        .into_iter()
        .enumerate()
    {
        put_in(&store, "c", format!("o{seed}"), &pattern(seed as u64, size)).unwrap();
    }
    for seed in 0..12_u32 {
        let name = format!("hashed {seed}").into_bytes();
        let is_high = HashSource::Xxh3.hash(&name) >> 31 == 1;
        let collection = if is_high { "high" } else { "low" };
        put_in(
            &store,
            collection,
            &name,
            &pattern(seed.into(), 900 * seed as usize),
        )
        .unwrap();
    }
    let mut tx = Transaction::new();
    tx.clone_object(("c", "o5"), ("d", "clone"));
    tx.clone_range(("c", "o6"), 65_536..400_000, ("d", "part"), 0);
    tx.punch("c", "o4", 8192, 20_000);
    tx.omap_set(
        "c",
        "o1",
        (0..9_u8).map(|n| (vec![n], vec![n; 20])).collect(),
    );
    tx.touch("d", "keys");
    tx.omap_set(
        "d",
        "keys",
        (0..9_u8).map(|n| (vec![n], vec![n; 20])).collect(),
    );
    store.commit(tx).unwrap();
    for part in ["p1", "p2"] {
        put(&store, part, &pattern(99, 80_000)).unwrap();
    }
    let mut tx = Transaction::new();
    tx.assemble("d", "whole", &[("c", "p1"), ("c", "p2")], Attributes::new());
    tx.write(
        "c",
        "o6",
        1_000_000,
        written(&store, &pattern(7, 100_000)).unwrap(),
    );
    store.commit(tx).unwrap();
    let objects = objects(&store);
    store.unmount().unwrap();
    drop(store);
    (memory.snapshot(), objects)
}

/// All objects that can be read, and their bytes.
fn objects(store: &Store) -> Objects {
    let mut found = Objects::new();
    for collection in store.collections().unwrap() {
        for object in store.list(&collection.name, "", "", usize::MAX).unwrap() {
            // A damaged size may be huge; the object is a hole of that size then.
            if object.size > 1 << 30 {
                continue;
            }
            if let Ok(bytes) = read_in(store, &collection.name, &object.name) {
                found.insert((collection.name.clone(), object.name.to_vec()), bytes);
            }
        }
    }
    found
}

fn rows(device: &Arc<dyn ZonedDevice>, of: &[u8]) -> Vec<Row> {
    let (fs, kv) = database(device);
    let rows = kv.scan(b"", None).map(Result::unwrap);
    let rows = rows.filter(|(key, _)| of.contains(&key[0]) && !key.starts_with(b"Sformat"));
    let rows = rows.collect();
    drop((kv, fs));
    rows
}

fn write(device: &Arc<dyn ZonedDevice>, batch: &Batch) {
    let (fs, kv) = database(device);
    kv.write(batch, Durability::Synced).unwrap();
    kv.flush().unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
}

fn delete_extents(device: &Arc<dyn ZonedDevice>) {
    let mut batch = Batch::default();
    for (key, _) in rows(device, b"X") {
        batch.delete(&key);
    }
    write(device, &batch);
}

fn repair(device: &Arc<dyn ZonedDevice>) -> RepairReport {
    Store::repair(device.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap()
}

fn count(store: &Store) -> BTreeMap<String, u64> {
    store.fsck(false, &mut |_, _| {}).unwrap().errors
}

fn assert_repaired(device: &Arc<dyn ZonedDevice>, what: &str) -> Store {
    let again = repair(device);
    assert!(
        again.given_up.is_empty() && again.repaired.is_empty(),
        "{what}: {again:#?}"
    );
    let store = Store::mount(device.clone(), options()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(count(&store), BTreeMap::new(), "{what}");
    store
}

/// Damages one row: removes it, truncates it or makes it undecodable. None of this makes bytes of one object those of
/// another.
fn harm(rows: &[Row], random: &mut Rng, batch: &mut Batch) -> String {
    let (key, value) = &rows[random.usize(..rows.len())];
    let words = key.escape_ascii();
    match random.u8(..3) {
        0 => {
            batch.delete(key);
            format!("{words} removed")
        }
        1 => {
            let length = random.usize(..value.len().max(1));
            batch.put(key, &value[..length]);
            format!("{words} cut to {length}")
        }
        _ => {
            let mut value = value.clone();
            value.extend(b"more");
            batch.put(key, &value);
            format!("{words} longer")
        }
    }
}

#[test]
fn rows_that_are_missing_or_undecodable() {
    let (whole, before) = drive();
    let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let all = rows(&device, b"COHXBGZMTYS");
    let mut random = Rng::with_seed(seed());
    for trial in 0..60 {
        let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
        let mut batch = Batch::default();
        let harms = if trial < all.len() { 1 + trial % 4 } else { 1 };
        let harmed: Vec<_> = (0..harms)
            .map(|_| harm(&all, &mut random, &mut batch))
            .collect();
        let what = harmed.join(", ");
        write(&device, &batch);
        let report = repair(&device);
        assert!(report.is_done, "{what}");
        let store = assert_repaired(&device, &what);
        let after = objects(&store);
        for (name, bytes) in &after {
            if let Some(before) = before.get(name) {
                assert!(before == bytes, "{what}: {name:?}");
            }
        }
        // The report names every object that is missing.
        let told = |(collection, name): &(String, Vec<u8>)| {
            let name = format!("/{}", name.escape_ascii());
            let named = |given: &GivenUp| {
                given.name.ends_with(&name)
                    || given.name == *collection
                    || given.name.starts_with("?/")
            };
            report.given_up.iter().any(named)
        };
        for name in before.keys().filter(|name| !after.contains_key(name)) {
            let unnamed = format!("{:?}", report.given_up);
            // An object whose collection's record is lost is in a collection of another name.
            let elsewhere = after
                .iter()
                .any(|(there, bytes)| there.1 == name.1 && bytes == &before[name]);
            let row_is_gone = what.contains(&name.1.escape_ascii().to_string());
            assert!(
                told(name) || elsewhere || row_is_gone,
                "{what}: {name:?} {unnamed}"
            );
        }
        // The store takes new objects, and no number of an existing record is given out again.
        create(&store, &format!("new {trial}"));
        assert_eq!(count(&store), BTreeMap::new(), "{what}");
        store.unmount().unwrap();
    }
}

fn create(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.create_collection(name, Attributes::new());
    store.commit(tx).unwrap();
    for seed in 0..3 {
        let data = pattern(seed, 50_000);
        put_in(store, name, format!("o{seed}"), &data).unwrap();
        assert!(read_in(store, name, format!("o{seed}")).unwrap() == data);
    }
}

/// Random damage: bits are flipped, and values and keys are exchanged among rows of a kind. Objects may then have any
/// bytes, but repair, check and reads must end.
#[test]
fn rows_with_any_content() {
    let (whole, _) = drive();
    let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let mut random = Rng::with_seed(seed() + 1);
    let all = rows(&device, b"COHXBGZMTYS");
    for _ in 0..60 {
        let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
        let (mut batch, mut harmed) = (Batch::default(), Vec::new());
        for _ in 0..random.usize(1..4) {
            let (key, value) = &all[random.usize(..all.len())];
            let others: Vec<_> = all.iter().filter(|(other, _)| other[0] == key[0]).collect();
            let other = others[random.usize(..others.len())];
            match random.u8(..4) {
                0 if !value.is_empty() => {
                    let mut value = value.clone();
                    let at = random.usize(..value.len());
                    value[at] ^= 1 << random.u8(..8);
                    batch.put(key, &value);
                    harmed.push(format!("{} bit in {at}", key.escape_ascii()));
                }
                1 => {
                    batch.put(key, &other.1);
                    harmed.push(format!(
                        "{} as {}",
                        key.escape_ascii(),
                        other.0.escape_ascii()
                    ));
                }
                2 => {
                    let mut key = key.clone();
                    let at = random.usize(..key.len());
                    if at > 0 {
                        key[at] ^= 1 << random.u8(..8);
                    }
                    batch.put(&key, value);
                    harmed.push(format!("{} copied", key.escape_ascii()));
                }
                _ => {
                    batch.delete(key);
                    harmed.push(format!("{} removed", key.escape_ascii()));
                }
            }
        }
        write(&device, &batch);
        repair(&device);
        let store = assert_repaired(&device, &harmed.join(", "));
        // Reads and puts may fail, but must end. If the damage made the highest number, there is no next one.
        objects(&store);
        put_in(&store, "c", "new", &pattern(1, 70_000)).ok();
        assert_eq!(count(&store), BTreeMap::new(), "{harmed:?}");
        store.unmount().unwrap();
    }
}

#[test]
fn a_repair_tells_what_it_is_at() {
    let (whole, _) = drive();
    let device: Arc<dyn ZonedDevice> = Arc::new(whole);
    let store = mount(&device);
    let mut tx = Transaction::new();
    let keys = (0..2000_u32).map(|key| (key.to_be_bytes().to_vec(), Vec::new()));
    tx.omap_set("c", "o0", keys.collect());
    store.commit(tx).unwrap();
    store.unmount().unwrap();
    let mut told: Vec<(RepairStep, u64)> = Vec::new();
    let progress = &mut |step, done| told.push((step, done));
    Store::repair(device, &options(), &mut |_| true, progress).unwrap();
    let mut steps: Vec<_> = told.iter().map(|(step, _)| *step).collect();
    steps.dedup();
    use RepairStep::{Changing, Comparing, Looking};
    assert_eq!(steps, [Looking, Changing, Comparing]);
    for step in steps {
        let done = told.iter().filter(|(of, _)| *of == step);
        let done: Vec<_> = done.map(|(_, done)| *done).collect();
        assert!(done.is_sorted(), "{step:?} {done:?}");
        let most = done.last().copied().unwrap_or(0);
        assert!(step == Changing || most >= 1024, "{step:?} {most}");
    }
}

#[test]
fn a_repair_that_is_cut_off_is_begun_again() {
    let (whole, before) = drive();
    let harmed = Arc::new(whole);
    let source: Arc<dyn ZonedDevice> = harmed.clone();
    let mut batch = Batch::default();
    for (key, _) in rows(&source, b"CGZY") {
        batch.delete(&key);
    }
    write(&source, &batch);
    for kth in 1.. {
        let faulty = Arc::new(Faults::new(harmed.snapshot()));
        let device: Arc<dyn ZonedDevice> = faulty.clone();
        faulty.add(Plan::from(
            ZoneCommand::Write,
            kth,
            Fault::Io(ErrorKind::Other),
        ));
        let first = Store::repair(device.clone(), &options(), &mut |_| true, &mut |_, _| {});
        let struck = faulty.struck();
        faulty.clear();
        let done = repair(&device);
        assert!(done.is_done);
        let store = assert_repaired(&device, &format!("write {kth}"));
        let bytes: Vec<_> = objects(&store).into_values().collect();
        assert!(
            before.values().all(|before| bytes.contains(before)),
            "write {kth}"
        );
        if struck == 0 {
            assert!(first.unwrap().is_done);
            assert!(kth > 3, "{kth}");
            break;
        }
    }
}

#[test]
fn damaged_objects_whose_names_come_out_the_same_are_both_kept() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    let mut tx = Transaction::new();
    for name in ["a", "a/b"] {
        tx.create_collection(name, Attributes::new());
    }
    store.commit(tx).unwrap();
    put_in(&store, "a", "b/c", &pattern(1, 50_000)).unwrap();
    put_in(&store, "a/b", "c", &pattern(2, 60_000)).unwrap();
    store.unmount().unwrap();
    drop(store);
    delete_extents(&device);
    assert_eq!(repair(&device).given_up.len(), 2);
    let store = assert_repaired(&device, "all extents");
    let kept = store.list("fsck-damaged", "", "", usize::MAX).unwrap();
    let sizes: Vec<_> = kept.iter().map(|o| (o.name.to_string(), o.size)).collect();
    let (one, other) = ("a/b/c".to_owned(), "a/b/c-2".to_owned());
    assert_eq!(sizes, [(one, 50_000), (other, 60_000)]);
}

#[test]
fn a_damaged_object_with_a_long_name_is_kept_under_one_that_works() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for last in ["1", "2"] {
        put(&store, &("x".repeat(4095) + last), &pattern(1, 50_000)).unwrap();
    }
    store.unmount().unwrap();
    drop(store);
    delete_extents(&device);
    assert_eq!(repair(&device).given_up.len(), 2);
    let store = assert_repaired(&device, "all extents");
    let kept = store.list("fsck-damaged", "c/x", "", usize::MAX).unwrap();
    assert_eq!(kept.len(), 2);
    for object in kept {
        let mut tx = Transaction::new();
        tx.remove("fsck-damaged", &object.name);
        store.commit(tx).unwrap();
    }
}

/// A zone whose write pointer went back loses only the bytes after it and those under the same checksums. All other
/// bytes stay readable through a repair, and later puts succeed.
#[test]
fn a_zone_that_went_back_costs_no_more_than_it_had() {
    const STEP: usize = 4096;
    let (whole, before) = drive();
    let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let store = mount(&device);
    let zones: Vec<_> = store
        .zones()
        .iter()
        .map(|z| (z.zone, z.written_bytes))
        .collect();
    store.unmount().unwrap();
    let mut kept = 0;
    for (zone, written) in zones {
        for part in [0, 1, 2] {
            let to = written * part / 3 / 4096 * 4096;
            let what = format!("zone {zone} of {written} back to {to}");
            let drive = Arc::new(whole.snapshot());
            let device: Arc<dyn ZonedDevice> = drive.clone();
            set_back(&drive, zone, to);
            let reads = MountOptions {
                read_only: true,
                ..options()
            };
            let store = Store::mount(device.clone(), reads).unwrap();
            let mut readable = BTreeMap::new();
            for ((collection, name), data) in &before {
                let object = store.open(collection, name).unwrap();
                let parts = data.chunks(STEP).enumerate().map(|(number, part)| {
                    let mut found = vec![0; part.len()];
                    let is_read = object.read_at((number * STEP) as u64, &mut found).is_ok();
                    assert!(!is_read || found == part, "{what}");
                    is_read
                });
                readable.insert((collection, name), parts.collect::<Vec<_>>());
            }
            // A check without reading data names these objects too.
            let report = store.fsck(false, &mut |_, _| {}).unwrap();
            let is_seen = report.errors.contains_key("extent above the write pointer");
            assert!(is_seen, "{what}: {report:?}");
            let is_named = |collection: &String, name: &Vec<u8>| {
                let name = format!("{collection}/{}: ", String::from_utf8_lossy(name));
                report.details.iter().any(|words| words.starts_with(&name))
            };
            for ((collection, name), parts) in &readable {
                let is_whole = parts.iter().all(|is_read| *is_read);
                assert!(is_whole || is_named(collection, name), "{what}: {report:?}");
            }
            assert_eq!(report.unnamed, 0, "{what}");
            store.unmount().unwrap();
            repair(&device);
            let store = assert_repaired(&device, &what);
            for ((collection, name), parts) in readable {
                let data = &before[&(collection.clone(), name.clone())];
                let is_whole = parts.iter().all(|is_read| *is_read);
                let damaged = [collection.as_bytes(), b"/", name].concat();
                let object = store.open(collection, name);
                assert!(object.is_ok() || !is_whole, "{what}");
                let object = object.or_else(|_| store.open("fsck-damaged", &damaged));
                let object = object.unwrap();
                for (number, part) in data.chunks(STEP).enumerate().filter(|(n, _)| parts[*n]) {
                    let mut found = vec![0; part.len()];
                    let read = object.read_at((number * STEP) as u64, &mut found);
                    read.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(found == part, "{what}: {collection} {number}");
                    kept += u32::from(!is_whole);
                }
            }
            for number in 0..20 {
                put(&store, &format!("new {number}"), &pattern(number, 200_000)).unwrap();
            }
            let health = store.health().unwrap();
            assert_eq!(health.lost_objects, 0, "{what}: {health:?}");
            store.unmount().unwrap();
        }
    }
    assert!(kept > 50, "{kept}");
}
