//! Power cuts: every pair of operations is cut at every command that changes the drive, and states that the cut may
//! leave are mounted and compared with a model: acknowledged operations are there, and the one in flight is whole or
//! absent. `ZONESTORE_CRASH_STATES=n` sets the number of states for each cut.

use crate::common;
use crate::common::*;
use device::divided::Divided;
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Attributes, HashPrefix, HashSource, Hashed, Omap, Store, Transaction};

type Model = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    PutSmall,
    PutLarge,
    Overwrite,
    Append,
    Delete,
    Rename,
    Assemble,
    Clone,
    Omap,
    /// Splits and merges hashed collections.
    Regroup,
    Clean,
    Flush,
    /// Writes a segment summary; only as the last operation of a history.
    Unmount,
}

const ALL: [Op; 12] = [
    Op::PutSmall,
    Op::PutLarge,
    Op::Overwrite,
    Op::Append,
    Op::Delete,
    Op::Rename,
    Op::Assemble,
    Op::Clone,
    Op::Omap,
    Op::Regroup,
    Op::Clean,
    Op::Flush,
];

/// Applies an operation to the store, if there is one, and to the model. Object names contain `step`, so that every
/// operation can follow every other.
fn apply(store: Option<&Store>, model: &mut Model, op: Op, step: u64) -> store::Result<()> {
    let (small, large) = (pattern(step, 3_000), pattern(step + 50, 150_000));
    let commit = |fill: &dyn Fn(&mut Transaction) -> store::Result<()>| match store {
        Some(store) => {
            let mut tx = Transaction::new();
            fill(&mut tx)?;
            store.commit(tx)
        }
        None => Ok(()),
    };
    let data = |bytes: &[u8]| store.map(|s| written(s, bytes)).transpose();
    let source = ["a", "b"][step as usize % 2];
    match op {
        Op::PutSmall | Op::PutLarge => {
            let mut bytes = if op == Op::PutSmall { small } else { large };
            let name = format!("new{step}");
            // Half of the data just written is punched out again in the same transaction.
            let cut = bytes.len() / 2;
            if let Some(store) = store {
                let data = written(store, &bytes)?;
                let mut tx = Transaction::new();
                tx.put("c", &name, data, Attributes::new())
                    .punch("c", &name, 0, cut as u64);
                store.commit(tx)?;
            }
            bytes[..cut].fill(0);
            model.insert(name, bytes);
        }
        Op::Overwrite => {
            let data = data(&small)?;
            if let (Some(store), Some(data)) = (store, data) {
                let mut tx = Transaction::new();
                tx.write("c", "big", 60_000, data);
                store.commit(tx)?;
            }
            model.get_mut("big").unwrap()[60_000..63_000].copy_from_slice(&small);
        }
        Op::Append => {
            let data = data(&large)?;
            if let (Some(store), Some(data)) = (store, data) {
                let mut tx = Transaction::new();
                tx.append("c", "big", data);
                store.commit(tx)?;
            }
            model.get_mut("big").unwrap().extend(large);
        }
        Op::Delete => {
            let name = format!("victim{step}");
            commit(&|tx| {
                tx.remove("c", &name);
                Ok(())
            })?;
            model.remove(&name);
        }
        Op::Rename => {
            let to = format!("moved{step}");
            commit(&|tx| {
                tx.rename(("c", source), ("c", &to));
                Ok(())
            })?;
            let bytes = model.remove(source).unwrap();
            model.insert(to, bytes);
        }
        Op::Assemble => {
            let parts = [format!("part{step}0"), format!("part{step}1")];
            commit(&|tx| {
                let names = [("c", parts[0].as_str()), ("c", parts[1].as_str())];
                tx.assemble("c", "big", &names, Attributes::new());
                Ok(())
            })?;
            let whole = parts
                .iter()
                .flat_map(|p| model.remove(p).unwrap())
                .collect();
            model.insert("big".into(), whole);
        }
        Op::Clone => {
            let to = format!("clone{step}");
            commit(&|tx| {
                tx.clone_object(("c", "big"), ("c", &to))
                    .punch("c", "big", 5_000, 1_000)
                    .clone_range(("c", &to), 0..30_000, ("c", "big"), 30_000);
                Ok(())
            })?;
            let big = model.get_mut("big").unwrap();
            let old = big.clone();
            big[5_000..6_000].fill(0);
            big.resize(big.len().max(60_000), 0);
            big[30_000..60_000].copy_from_slice(&old[..30_000]);
            model.insert(to, old);
        }
        Op::Clean => {
            if let Some(store) = store {
                store.seal_open_zones()?;
                store.clean_one()?;
                store.clean_one()?;
            }
        }
        Op::Flush => {
            if let Some(store) = store {
                store.flush()?;
            }
        }
        // The model has the omap's values as the object's bytes, so a half-applied omap differs from it.
        Op::Omap => {
            let name = format!("omap{step}");
            let rows: Omap = (0u8..9).map(|n| (vec![n], vec![n; 300])).collect();
            commit(&|tx| {
                tx.touch("c", &name);
                tx.omap_set("c", &name, rows.clone());
                tx.omap_remove_range("c", &name, &[3][..]..&[7][..]);
                Ok(())
            })?;
            model.insert(name, [0, 1, 2, 7, 8].map(|n| [n; 300]).concat());
        }
        Op::Regroup => {
            let [whole, upper] = [format!("whole{step}"), format!("upper{step}")];
            let [low, high] = [format!("low{step}"), format!("high{step}")];
            commit(&|tx| {
                tx.split_collection(&whole, &upper, Attributes::new())
                    .merge_collection(&high, &low)
                    .rename((&low, "é"), (&upper, "û"));
                Ok(())
            })?;
            let object = model.remove(&format!("{high}/é")).unwrap();
            model.insert(format!("{upper}/û"), object);
            let object = model.remove(&format!("{whole}/é")).unwrap();
            model.insert(format!("{upper}/é"), object);
        }
        Op::Unmount => {
            if let Some(store) = store {
                store.unmount()?;
            }
        }
    }
    Ok(())
}

/// Creates the hashed collections of a step: a whole one, and the two halves of another family.
fn add_families(store: &Store, step: u32) {
    let mut tx = Transaction::new();
    for (name, bits, first) in [("whole", 0, 0), ("low", 1, 0), ("high", 1, 1 << 31)] {
        let hashed = Hashed {
            family: 2 * step + u32::from(bits),
            source: HashSource::Name,
            prefix: HashPrefix::new(bits, first).unwrap(),
        };
        tx.create_hashed_collection(&format!("{name}{step}"), hashed, Attributes::new());
    }
    store.commit(tx).unwrap();
}

fn base_model() -> Model {
    let mut model = Model::new();
    for (i, (name, size)) in [
        ("a", 70_000),
        ("b", 900),
        ("big", 400_000),
        ("victim0", 200_000),
        ("victim1", 2_000),
        ("part00", 66_000),
        ("part01", 10),
        ("part10", 5_000),
        ("part11", 90_000),
        ("whole0/a", 20),
        ("whole0/é", 70_000),
        ("high0/é", 7_000),
        ("whole1/é", 6_000),
        ("high1/é", 50),
    ]
    .into_iter()
    .enumerate()
    {
        model.insert(name.to_owned(), pattern(i as u64 + 1000, size));
    }
    model
}

/// A drive with the base objects and some dead bytes, everything flushed, after a restart.
fn base_drive(zones: u32, (conventional, parts): (u32, u32)) -> PowerCut {
    let mut geometry = geometry(zones);
    geometry.conventional_zones = conventional;
    let drive = Arc::new(PowerCut::new(geometry).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let divided: Arc<dyn ZonedDevice> = Arc::new(Divided::new(drive.clone(), parts).unwrap());
    mkfs(&divided);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "gone", &pattern(9, 300_000)).unwrap();
    (0..2).for_each(|step| add_families(&store, step));
    for (name, bytes) in base_model() {
        let (collection, object) = name.split_once('/').unwrap_or(("c", &name));
        put_in(&store, collection, object, &bytes).unwrap();
    }
    let mut tx = Transaction::new();
    tx.remove("c", "gone");
    store.commit(tx).unwrap();
    store.unmount().unwrap();
    drop(store);
    drive.flush().unwrap();
    copy(&drive)
}

fn copy(drive: &PowerCut) -> PowerCut {
    let states = drive.crash_states(CrashLimits {
        max_states: 1,
        ..CrashLimits::default()
    });
    drive.restart(&states[0])
}

/// Runs a history. Returns the model as acknowledged, the model with the operation in flight applied too, and the
/// drive's command count after each completed operation.
fn run(drive: &Arc<PowerCut>, history: &[Op]) -> (Model, Model, Vec<u64>) {
    let mut acknowledged = base_model();
    let mut done = Vec::new();
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let Ok(store) = Store::mount(device, options()) else {
        return (acknowledged.clone(), acknowledged, done);
    };
    for (step, op) in history.iter().enumerate() {
        let mut next = acknowledged.clone();
        apply(None, &mut next, *op, step as u64).unwrap();
        match apply(Some(&store), &mut acknowledged.clone(), *op, step as u64) {
            Ok(()) => acknowledged = next,
            Err(_) => return (acknowledged, next, done),
        }
        done.push(drive.operation_count());
    }
    (acknowledged.clone(), acknowledged, done)
}

fn check(
    image: MemoryDrive,
    acknowledged: &Model,
    in_flight: &Model,
    context: &dyn Fn() -> String,
) {
    let device: Arc<dyn ZonedDevice> = Arc::new(image);
    let store = Store::mount(device, options()).unwrap_or_else(|e| panic!("{}: {e}", context()));
    let mut found = contents(&store);
    for collection in store.collections().unwrap() {
        for (object, bytes) in contents_of(&store, &collection.name) {
            if collection.name != "c" {
                found.insert(format!("{}/{object}", collection.name), bytes);
            }
        }
    }
    for (name, bytes) in found
        .iter_mut()
        .filter(|(name, _)| name.starts_with("omap"))
    {
        let rows = store.omap("c", name, &[], usize::MAX).unwrap();
        bytes.extend(rows.into_iter().flat_map(|(_, value)| value));
    }
    if found != *acknowledged && found != *in_flight {
        let size = |(name, bytes): (&String, &Vec<u8>)| (name.clone(), bytes.len());
        let sizes = |m: &Model| m.iter().map(size).collect::<Vec<_>>();
        panic!(
            "{}\nfound {:?}\nacknowledged {:?}\nin flight {:?}",
            context(),
            sizes(&found),
            sizes(acknowledged),
            sizes(in_flight)
        );
    }
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{}: {:#?}", context(), report.details);
    put(&store, "afterwards", b"still works").unwrap();
    let report = store.bluefs().check(true).unwrap();
    assert!(report.is_clean(), "{}: {:#?}", context(), report.details);
}

/// Length of the longest prefix that a history has in common with an earlier one.
fn shared(histories: &[Vec<Op>], index: usize) -> usize {
    let same = |other: &Vec<Op>| {
        histories[index]
            .iter()
            .zip(other)
            .take_while(|(a, b)| a == b)
            .count()
    };
    histories[..index].iter().map(same).max().unwrap_or(0)
}

/// Cuts each history at every command and checks the states after the cut. Returns the number of crash points and of
/// states.
///
/// `conventional` is the number of conventional zones and of parts of each. Cuts within the prefix that a history
/// shares with an earlier one are skipped, for they were checked there.
fn enumerate(histories: &[Vec<Op>], zones: u32, conventional: (u32, u32)) -> (usize, usize) {
    let max_states = std::env::var("ZONESTORE_CRASH_STATES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(3);
    let base = base_drive(zones, conventional);
    let (points, states, next) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(history) = histories.get(index) else {
                        return;
                    };
                    let shared = shared(histories, index);
                    let whole = Arc::new(copy(&base));
                    let before = whole.operation_count();
                    let (_, _, done) = run(&whole, history);
                    let operations = whole.operation_count() - before;
                    let first = shared.checked_sub(1).map_or(0, |last| done[last] - before);
                    for cut in first..=operations {
                        let drive = Arc::new(copy(&base));
                        drive.cut_after(cut);
                        let (acknowledged, in_flight, done) = run(&drive, history);
                        // The database's threads may have sent commands at other times in this run, so that the cut is
                        // within the shared prefix.
                        if done.len() < shared {
                            continue;
                        }
                        points.fetch_add(1, Ordering::Relaxed);
                        let limits = CrashLimits {
                            max_states,
                            seed: cut + (common::seed() << 32),
                            ..CrashLimits::default()
                        };
                        for state in drive.crash_states(limits) {
                            states.fetch_add(1, Ordering::Relaxed);
                            let context = || format!("{history:?}, cut at {cut}: {state:?}");
                            check(drive.image(&state), &acknowledged, &in_flight, &context);
                        }
                    }
                }
            });
        }
    });
    (points.into_inner(), states.into_inner())
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_else_is_half_there() {
    let histories: Vec<Vec<Op>> = ALL
        .iter()
        .flat_map(|a| ALL.iter().map(move |b| vec![*a, *b]))
        .collect();
    let (points, states) = enumerate(&histories, 40, (4, 1));
    println!(
        "{} histories, {points} crash points, {states} post-crash states",
        histories.len()
    );
    assert!(states > points && points > histories.len() * 4);
}

#[test]
fn the_same_without_conventional_zones() {
    let histories = [vec![Op::PutLarge, Op::Clean], vec![Op::Assemble, Op::Flush]];
    let (points, states) = enumerate(&histories, 40, (0, 1));
    println!(
        "{} histories, {points} crash points, {states} post-crash states",
        histories.len()
    );
    assert!(states > points);
}

#[test]
fn the_same_with_metadata_in_parts_of_conventional_zones() {
    let histories = [
        vec![Op::PutLarge, Op::Clean],
        vec![Op::Assemble, Op::Flush],
        vec![Op::Overwrite, Op::Flush, Op::Unmount],
    ];
    let (points, states) = enumerate(&histories, 40, (4, 8));
    println!("{points} crash points, {states} post-crash states");
    assert!(states > points);
}

#[test]
fn a_cut_in_front_of_or_behind_a_summary_costs_no_object() {
    let last = [Op::PutLarge, Op::Rename, Op::Clean];
    let histories = last.map(|op| vec![Op::Overwrite, op, Op::Unmount]);
    let (points, states) = enumerate(&histories, 40, (4, 1));
    println!("{points} crash points, {states} post-crash states");
    assert!(states > points);
}
