//! Hashed collections against a plain model: objects with hostile names, splits, merges, renames and clones between
//! collections, in whole transactions, through restarts.

use crate::common;
use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use kv::{Batch, Durability};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Attributes, Error, HashPrefix, HashSource, Hashed, Store, Transaction};

type Objects = BTreeMap<(u32, Vec<u8>), Vec<u8>>;
/// By name: hash range and objects. `None` is a collection in order of names, whose objects have the hash 0 here.
type Model = BTreeMap<String, (Option<Hashed>, Objects)>;

/// Two names with the same hash, found by trying.
fn colliding() -> [Vec<u8>; 2] {
    let mut seen = BTreeMap::new();
    let mut number = 0u64;
    loop {
        let name = number.to_le_bytes().to_vec();
        if let Some(other) = seen.insert(HashSource::Xxh3.hash(&name), name.clone()) {
            return [other, name];
        }
        number += 1;
    }
}

fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        &b""[..],
        b"\0",
        b"\0\0",
        b"\xff",
        b"/",
        b"a/b",
        b"\n'\"\\",
        b"\xc3",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    names.extend([vec![0xff; 4], vec![0xff; 4096], vec![0; 4096]]);
    // Names with the same first four bytes.
    names.extend([b"same1".to_vec(), b"same2".to_vec(), b"same".to_vec()]);
    names.extend(colliding());
    names.extend((0..12).map(|n| format!("object {n}").into_bytes()));
    names
}

fn hash(kind: Option<Hashed>, name: &[u8]) -> Option<u32> {
    match kind {
        None => Some(0),
        Some(hashed) => {
            let hash = hashed.source.hash(name);
            let fits = hashed.prefix.covers(hash) && !name.is_empty();
            fits.then_some(hash)
        }
    }
}

struct Case {
    random: Rng,
    names: Vec<Vec<u8>>,
    source: HashSource,
}

impl Case {
    /// Mostly a name that the collection covers.
    fn name(&mut self, model: &Model, collection: &str) -> Vec<u8> {
        let kind = model.get(collection).and_then(|(kind, _)| *kind);
        let mut name = self.random.choice(&self.names).unwrap();
        for _ in 0..8 {
            if hash(kind, name).is_some() {
                break;
            }
            name = self.random.choice(&self.names).unwrap();
        }
        name.clone()
    }

    /// Mostly a name of an object that is there.
    fn present(&mut self, model: &Model, collection: &str) -> Vec<u8> {
        let objects = model.get(collection).map(|(_, objects)| objects);
        let there = objects.and_then(|objects| self.random.choice(objects.keys()));
        match there {
            Some((_, name)) if self.random.u8(..8) > 0 => name.clone(),
            _ => self.name(model, collection),
        }
    }

    fn collection(&mut self) -> String {
        // "c" is in order of names; of the others, mostly some do not exist.
        ["c", "0", "1", "2", "3", "4"][self.random.usize(..6)].to_owned()
    }

    /// A random operation, in the transaction and in the model; `None` if it has to fail.
    fn step(&mut self, store: &Store, tx: &mut Transaction, model: &mut Model) -> Option<()> {
        let (a, b) = (self.collection(), self.collection());
        let kind = self.random.u8(..16);
        let name = match kind {
            0..6 => self.name(model, &a),
            _ => self.present(model, &a),
        };
        let other = self.name(model, &b);
        match kind {
            0..6 => {
                let bytes = pattern(self.random.u64(..), self.random.usize(..9000));
                let data = written(store, &bytes).unwrap();
                tx.put(&a, &name, data, Attributes::new());
                let (kind, objects) = model.get_mut(&a)?;
                objects.insert((hash(*kind, &name)?, name), bytes);
            }
            6..8 => {
                tx.remove(&a, &name);
                let (kind, objects) = model.get_mut(&a)?;
                objects.remove(&(hash(*kind, &name)?, name))?;
            }
            8..10 => {
                tx.rename((&a, &name), (&b, &other));
                let (kind, objects) = model.get_mut(&a)?;
                let bytes = objects.remove(&(hash(*kind, &name)?, name))?;
                let (kind, objects) = model.get_mut(&b)?;
                objects.insert((hash(*kind, &other)?, other), bytes);
            }
            10 => {
                tx.clone_object((&a, &name), (&b, &other));
                let (kind, objects) = model.get(&a)?;
                let bytes = objects.get(&(hash(*kind, &name)?, name))?.clone();
                let (kind, objects) = model.get_mut(&b)?;
                objects.insert((hash(*kind, &other)?, other), bytes);
            }
            11..13 => {
                tx.split_collection(&a, &b, Attributes::new());
                let (kind, objects) = model.get(&a)?.clone();
                let hashed = kind?;
                let (lower, upper) = hashed.prefix.halves()?;
                if model.contains_key(&b) {
                    return None;
                }
                let half = |prefix| Some(Hashed { prefix, ..hashed });
                let is_lower = |(hash, _): &(u32, Vec<u8>)| lower.covers(*hash);
                let (first, second) = objects.into_iter().partition(|(key, _)| is_lower(key));
                model.insert(a, (half(lower), first));
                model.insert(b, (half(upper), second));
            }
            13..15 => {
                tx.merge_collection(&a, &b);
                let ((gone, from), (stays, mut to)) =
                    (model.get(&a)?.clone(), model.get(&b)?.clone());
                let prefix = gone?.prefix.whole(stays?.prefix)?;
                to.extend(from);
                model.remove(&a);
                model.insert(b, (Some(Hashed { prefix, ..stays? }), to));
            }
            _ => {
                let prefix = HashPrefix::new(2, self.random.u32(..4) << 30).unwrap();
                let hashed = Hashed {
                    family: 7,
                    source: self.source,
                    prefix,
                };
                if model.get(&a).is_some_and(|(_, objects)| objects.is_empty()) {
                    tx.remove_collection(&a);
                    model.remove(&a);
                }
                tx.create_hashed_collection(&a, hashed, Attributes::new());
                let mut all = model.values().filter_map(|(kind, _)| *kind);
                if all.any(|other| other.prefix.overlaps(prefix)) || model.contains_key(&a) {
                    return None;
                }
                model.insert(a, (Some(hashed), Objects::new()));
            }
        }
        Some(())
    }
}

/// Everything, listed in pages of three.
fn found(store: &Store) -> Model {
    let mut model = Model::new();
    for collection in store.collections().unwrap() {
        let (mut objects, mut order) = (Objects::new(), Vec::new());
        let mut from = Vec::new();
        loop {
            let page = store.list(&collection.name, "", &from, 3).unwrap();
            for info in &page {
                let name = info.name.to_vec();
                let key = (hash(collection.hashed, &name).unwrap(), name);
                if order.last() != Some(&key) {
                    let bytes = read_in(store, &collection.name, &info.name).unwrap();
                    objects.insert(key.clone(), bytes);
                    order.push(key);
                }
            }
            match page.last() {
                Some(last) if page.len() == 3 => from = last.name.to_vec(),
                _ => break,
            }
        }
        assert!(order.is_sorted());
        model.insert(collection.name, (collection.hashed, objects));
    }
    model
}

fn run(source: HashSource, seed: u64) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let mut store = mount(&device);
    create_collection(&store);
    let mut model = Model::from([("c".to_owned(), (None, Objects::new()))]);
    let random = Rng::with_seed(seed + common::seed());
    let mut case = Case {
        random,
        names: names(),
        source,
    };
    let (mut done, mut most) = (0, 0);
    for round in 0..500 {
        let (mut tx, mut next) = (Transaction::new(), model.clone());
        let steps = case.random.usize(1..4);
        let works = (0..steps).all(|_| case.step(&store, &mut tx, &mut next).is_some());
        let result = store.commit(tx);
        assert_eq!(result.is_ok(), works, "{round}: {result:?}");
        if works {
            (done, model) = (done + 1, next);
        }
        most = most.max(model.len());
        if round % 16 == 0 {
            if round % 32 == 0 {
                store.unmount().unwrap();
            }
            drop(store);
            store = mount(&device);
            assert!(found(&store) == model, "after the restart in round {round}");
            assert_clean(&store);
        }
    }
    assert!(found(&store) == model);
    assert!(done > 25 && most > 3, "{done} {most}");
}

#[test]
fn collections_by_hash_are_their_model() {
    (0..4).for_each(|seed| run(HashSource::Xxh3, seed));
}

#[test]
fn collections_by_hashes_in_names_are_their_model() {
    (10..14).for_each(|seed| run(HashSource::Name, seed));
}

#[test]
fn errors_say_what_is_wrong() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let create = |name: &str, source, bits, first| {
        let hashed = Hashed {
            family: 1,
            source,
            prefix: HashPrefix::new(bits, first).unwrap(),
        };
        let mut tx = Transaction::new();
        tx.create_hashed_collection(name, hashed, Attributes::new());
        store.commit(tx)
    };
    create("low", HashSource::Name, 1, 0).unwrap();
    let error = put_in(&store, "low", b"\xffname", b"x").unwrap_err();
    let words =
        r#"object "\xffname" has the hash 0xff6e616d, which collection "low" does not cover"#;
    assert!(error.to_string().starts_with(words), "{error}");
    let error = store.stat("low", b"\xff").unwrap_err();
    assert!(matches!(error, Error::HashNotCovered { hash, .. } if hash == 0xff << 24));
    for (source, bits, first) in [(HashSource::Name, 32, 5), (HashSource::Xxh3, 1, 1 << 31)] {
        let taken = create("other", source, bits, first);
        assert!(matches!(taken, Err(Error::HashesTaken { .. })));
    }
    let commit = |fill: &dyn Fn(&mut Transaction)| {
        let mut tx = Transaction::new();
        fill(&mut tx);
        store.commit(tx)
    };
    let split = commit(&|tx| _ = tx.split_collection("c", "d", Attributes::new()));
    assert!(matches!(split, Err(Error::CannotSplit { .. })));
    let merge = commit(&|tx| _ = tx.merge_collection("low", "low"));
    assert!(matches!(merge, Err(Error::CannotMerge { .. })));
    let error = put_in(&store, "low", [b'x'; 4097], b"x").unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
    // A later operation sees what an earlier one of the transaction creates.
    let remove = commit(&|tx| _ = tx.touch("low", "a").remove_collection("low"));
    assert!(matches!(remove, Err(Error::CollectionNotEmpty { .. })));
}

#[test]
fn a_check_finds_what_cannot_be_in_a_family() {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let record = |bits, first: u32| {
        let head = [&[1, 2, bits, 2, 7, 0, 0, 0][..], &first.to_le_bytes()].concat();
        [head, vec![0; 14]].concat()
    };
    let onode = [vec![1], vec![0; 25]].concat();
    let hashed = |family: u8, hash: &[u8], name: &[u8]| {
        let family = [b'H', 0, 0, 0, family];
        [&family, hash, name].concat()
    };
    let (fs, kv) = database(&device);
    let mut batch = Batch::default();
    batch.put(b"Clow", &record(1, 0));
    batch.put(b"Cquarter", &record(2, 1 << 30));
    // In its place, under another hash, covered by no collection, in no family, and without a name.
    batch.put(&hashed(7, b"\x01a\0\0", b"\x01a"), &onode);
    batch.put(&hashed(7, b"\x02a\0\0", b"\x01a"), &onode);
    batch.put(&hashed(7, b"\xffa\0\0", b"\xffa"), &onode);
    batch.put(&hashed(8, b"\x01a\0\0", b"\x01a"), &onode);
    batch.put(&hashed(7, &[0; 4], b""), &onode);
    kv.write(&batch, Durability::Synced).unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let report = mount(&device).fsck(true, &mut |_, _| {}).unwrap();
    let expected = [
        ("collections overlap", 1),
        ("object without a collection", 4),
    ];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(
        report.errors,
        BTreeMap::from(expected),
        "{:#?}",
        report.details
    );
    assert_eq!((report.collections, report.objects), (2, 5));
}
