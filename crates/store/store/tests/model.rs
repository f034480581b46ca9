//! Random operations against a plain model, on drives in memory and in files, with clean and
//! unclean restarts. `ZONESTORE_CASES=n` runs more than the small budget.

use crate::common;
use crate::common::*;
use device::divided::Divided;
use device::{FileDrive, MemoryDrive, ZonedDevice};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    Attributes, ChecksumBlock, ChecksumKind, Codec, CompressionMode, Error, Store, Transaction,
};
use zone::Geometry;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u32),
    Write(u8, u16, u32),
    Append(u8, u32),
    Truncate(u8, u16),
    Remove(u8),
    Rename(u8, u8),
    Assemble(u8, u8, u8),
    Punch(u8, u16, u32),
    Clone(u8, u8),
    CloneRange(u8, u16, u16, u8, u16),
    Abandon(u32),
    Clean,
    Seal,
    Restart { clean: bool, written_as: u8 },
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 0u32..5_000,
        3 => 60_000u32..200_000,
        1 => 1_000_000u32..2_300_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..6;
    prop_oneof![
        6 => (name.clone(), size()).prop_map(|(n, s)| Step::Put(n, s)),
        3 => (name.clone(), any::<u16>(), size()).prop_map(|(n, at, s)| Step::Write(n, at, s)),
        3 => (name.clone(), size()).prop_map(|(n, s)| Step::Append(n, s)),
        2 => (name.clone(), any::<u16>()).prop_map(|(n, at)| Step::Truncate(n, at)),
        2 => name.clone().prop_map(Step::Remove),
        1 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => (name.clone(), name.clone(), name.clone()).prop_map(|(a, b, c)| Step::Assemble(a, b, c)),
        2 => (name.clone(), any::<u16>(), size()).prop_map(|(n, at, s)| Step::Punch(n, at, s)),
        1 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Clone(a, b)),
        3 => (name.clone(), any::<u16>(), any::<u16>(), name, any::<u16>())
            .prop_map(|(a, from, to, b, at)| Step::CloneRange(a, from, to, b, at)),
        1 => size().prop_map(Step::Abandon),
        2 => Just(Step::Clean),
        1 => Just(Step::Seal),
        1 => (any::<bool>(), any::<u8>())
            .prop_map(|(clean, written_as)| Step::Restart { clean, written_as }),
    ]
}

type Model = BTreeMap<String, Vec<u8>>;

fn transaction(fill: impl FnOnce(&mut Transaction)) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx
}

/// The offset at `of` / 65,535 of an object of `size` bytes.
fn part(size: usize, of: u16) -> usize {
    size * usize::from(of) / usize::from(u16::MAX)
}

fn overwrite(object: &mut Vec<u8>, at: usize, data: &[u8]) {
    object.resize(object.len().max(at + data.len()), 0);
    object[at..at + data.len()].copy_from_slice(data);
}

fn apply(store: &Store, model: &mut Model, step: &Step, seed: u64) {
    let name = |n: u8| format!("object {n}");
    let data = |s: u32| half_compressible(seed, s as usize);
    match *step {
        Step::Put(n, s) => {
            put(store, &name(n), &data(s)).unwrap();
            model.insert(name(n), data(s));
        }
        Step::Write(n, at, s) => {
            let written = written(store, &data(s)).unwrap();
            let size = model.get(&name(n)).map_or(0, Vec::len);
            let at = part(size, at);
            let result = store.commit(transaction(|tx| {
                _ = tx.write("c", name(n), at as u64, written)
            }));
            match model.get_mut(&name(n)) {
                None => assert!(matches!(result, Err(Error::NoObject { .. }))),
                Some(object) => {
                    result.unwrap();
                    overwrite(object, at, &data(s));
                }
            }
        }
        Step::Append(n, s) => {
            let written = written(store, &data(s)).unwrap();
            store
                .commit(transaction(|tx| _ = tx.append("c", name(n), written)))
                .unwrap();
            model.entry(name(n)).or_default().extend(data(s));
        }
        Step::Truncate(n, at) => {
            let Some(object) = model.get_mut(&name(n)) else {
                return;
            };
            let size = part(object.len(), at);
            store
                .commit(transaction(|tx| _ = tx.truncate("c", name(n), size as u64)))
                .unwrap();
            object.truncate(size);
        }
        Step::Remove(n) => {
            let result = store.commit(transaction(|tx| _ = tx.remove("c", name(n))));
            assert_eq!(result.is_ok(), model.remove(&name(n)).is_some());
        }
        Step::Rename(a, b) => {
            let (from, to) = (name(a), name(b));
            let tx = transaction(|tx| _ = tx.rename(("c", &from), ("c", &to)));
            if store.commit(tx).is_ok() {
                let object = model.remove(&from).unwrap();
                model.insert(to, object);
            } else {
                assert!(!model.contains_key(&from));
            }
        }
        Step::Assemble(a, b, to) => {
            if a == b {
                return;
            }
            let (first, second, to) = (name(a), name(b), name(to));
            let parts = [("c", first.as_str()), ("c", second.as_str())];
            let tx = transaction(|tx| _ = tx.assemble("c", &to, &parts, Attributes::new()));
            if store.commit(tx).is_ok() {
                let mut whole = model.remove(&first).unwrap();
                whole.extend(model.remove(&second).unwrap());
                model.insert(to, whole);
            } else {
                assert!(!(model.contains_key(&first) && model.contains_key(&second)));
            }
        }
        Step::Punch(n, at, s) => {
            let at = part(model.get(&name(n)).map_or(0, Vec::len), at);
            let tx = transaction(|tx| _ = tx.punch("c", name(n), at as u64, s.into()));
            let result = store.commit(tx);
            assert_eq!(result.is_ok(), model.contains_key(&name(n)));
            if let Some(object) = model.get_mut(&name(n)) {
                overwrite(object, at, &vec![0; s as usize]);
            }
        }
        Step::Clone(a, b) => {
            let (from, to) = (name(a), name(b));
            let tx = transaction(|tx| _ = tx.clone_object(("c", &from), ("c", &to)));
            assert_eq!(store.commit(tx).is_ok(), model.contains_key(&from));
            if let Some(object) = model.get(&from).cloned() {
                model.insert(to, object);
            }
        }
        Step::CloneRange(a, from, to, b, at) => {
            let source = model.get(&name(a)).cloned();
            let size = source.as_ref().map_or(0, Vec::len);
            let (from, to) = (part(size, from.min(to)), part(size, from.max(to)));
            let at = part(model.get(&name(b)).map_or(0, Vec::len), at);
            let range = from as u64..to as u64;
            let (first, second) = (name(a), name(b));
            let tx = transaction(|tx| {
                _ = tx.clone_range(("c", &first), range, ("c", &second), at as u64)
            });
            assert_eq!(store.commit(tx).is_ok(), source.is_some());
            if let Some(source) = source {
                overwrite(model.entry(second).or_default(), at, &source[from..to]);
            }
        }
        Step::Abandon(s) => drop(written(store, &data(s)).unwrap()),
        Step::Clean => _ = store.clean_one().unwrap(),
        Step::Seal => store.seal_open_zones().unwrap(),
        Step::Restart { .. } => unreachable!("handled by the caller"),
    }
}

/// A pattern in which every second run of 100,000 bytes repeats one byte.
fn half_compressible(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = pattern(seed, length);
    for block in bytes.chunks_mut(100_000).skip(seed as usize % 2).step_by(2) {
        let first = block[0];
        block.fill(first);
    }
    bytes
}

/// Mounts with options chosen by `number`; even numbers leave the default ones.
fn mount_writing_as(device: &Arc<dyn ZonedDevice>, number: u8) -> Store {
    let mut options = options();
    if number % 2 == 1 {
        let number = usize::from(number / 2);
        let kinds = [ChecksumKind::Crc32c, ChecksumKind::Xxh3, ChecksumKind::None];
        let codecs = [Codec::Zstd, Codec::Lz4];
        options.data.checksum = kinds[number % 3];
        options.data.checksum_block = ChecksumBlock::all().nth(number / 3 % 6).unwrap();
        options.data.compression.mode = CompressionMode::Force;
        options.data.compression.codec = codecs[number / 18 % 2];
    }
    Store::mount(device.clone(), options).unwrap()
}

fn run(device: &mut dyn FnMut() -> Arc<dyn ZonedDevice>, steps: &[Step]) {
    let first = device();
    mkfs(&first);
    let mut store = mount_writing_as(&first, (steps.len() as u8).wrapping_mul(37));
    drop(first);
    create_collection(&store);
    let mut model = Model::new();
    for (i, step) in steps.iter().enumerate() {
        if let Step::Restart { clean, written_as } = step {
            if *clean {
                store.unmount().unwrap();
            }
            drop(store);
            store = mount_writing_as(&device(), *written_as);
            assert!(contents(&store) == model, "after the restart at step {i}");
        } else {
            apply(&store, &mut model, step, i as u64);
        }
    }
    assert!(contents(&store) == model);
    assert_clean(&store);
}

fn check(name: &str, default_cases: u32, run_one: impl Fn(&[Step])) {
    let cases = std::env::var("ZONESTORE_CASES")
        .ok()
        .and_then(|v| v.parse().ok());
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(cases.unwrap_or(default_cases))
    };
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    seed[24..].copy_from_slice(&common::seed().to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    TestRunner::new_with_rng(config, rng)
        .run(&proptest::collection::vec(step(), 1..40), |steps| {
            run_one(&steps);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_store_is_its_model_on_a_drive_in_memory() {
    check("memory", 24, |steps| {
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
        run(&mut || device.clone(), steps);
    });
}

#[test]
fn the_store_is_its_model_with_zone_append_and_few_active_zones() {
    check("append", 12, |steps| {
        let geometry = Geometry {
            conventional_zones: 0,
            zone_capacity: 840 << 10,
            max_open_zones: 14,
            max_active_zones: 14,
            max_append_bytes: 128 << 10,
            // Enough zones for four streams.
            ..geometry(280)
        };
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry).unwrap());
        run(&mut || device.clone(), steps);
    });
}

#[test]
fn the_store_is_its_model_with_metadata_in_parts_of_conventional_zones() {
    check("parts", 8, |steps| {
        let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
        let divided = Arc::new(Divided::new(drive.clone(), 8).unwrap());
        // Only mkfs gets the divided drive; later mounts find the parts themselves.
        let mut first: Option<Arc<dyn ZonedDevice>> = Some(divided);
        run(&mut || first.take().unwrap_or(drive.clone()), steps);
    });
}

#[test]
fn the_store_is_its_model_on_a_drive_in_a_file() {
    check("file", 8, |steps| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.zoned");
        drop(FileDrive::create(&path, &geometry(96), "test").unwrap());
        run(&mut || Arc::new(FileDrive::open(&path).unwrap()), steps);
    });
}
