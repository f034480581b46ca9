//! A commit is readable first, and durable later: until then, a power cut takes commits from the end only.

use crate::common::*;
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Attributes, ChecksumKind, Condition, Pending, Store, Transaction};

type Model = BTreeMap<String, Vec<u8>>;

fn put_readable(store: &Store, name: &str, data: &[u8]) -> store::Result<Pending> {
    let data = written(store, data)?;
    let mut tx = Transaction::new();
    tx.put("c", name, data, Attributes::new());
    store.commit_readable(tx)
}

fn on_memory() -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (device, store)
}

#[test]
fn what_is_readable_becomes_durable_by_a_wait_a_later_commit_or_an_unmount() {
    let (_, store) = on_memory();
    let first = put_readable(&store, "first", b"1").unwrap();
    let second = put_readable(&store, "second", b"2").unwrap();
    assert_eq!(read(&store, "second").unwrap(), b"2");
    assert!(!first.is_durable() && !second.is_durable());
    second.wait().unwrap();
    assert!(first.is_durable());
    first.wait().unwrap();
    let third = put_readable(&store, "third", b"3").unwrap();
    assert!(!third.is_durable());
    put(&store, "fourth", b"4").unwrap();
    assert!(third.is_durable());
    let last = put_readable(&store, "last", b"5").unwrap();
    store.unmount().unwrap();
    assert!(last.is_durable());
    last.wait().unwrap();
}

/// A condition's answer must not be taken back by a power cut, so the commit waits for what it has read.
#[test]
fn a_commit_that_changes_nothing_waits_for_what_it_saw() {
    let (_, store) = on_memory();
    let require = || {
        let mut tx = Transaction::new();
        tx.require("c", "seen", Condition::Present);
        tx
    };
    let seen = put_readable(&store, "seen", b"1").unwrap();
    let asked = store.commit_readable(require()).unwrap();
    assert!(!seen.is_durable() && !asked.is_durable());
    store.commit(require()).unwrap();
    assert!(seen.is_durable() && asked.is_durable());
}

#[test]
fn not_more_waits_than_the_log_keeps_in_order() {
    let (_, store) = on_memory();
    let puts = (0..400).map(|n| put_readable(&store, &n.to_string(), &[7; 2000]).unwrap());
    let puts: Vec<_> = puts.collect();
    let waiting = puts.iter().filter(|put| !put.is_durable()).count();
    // 512 KiB of log records.
    assert!((1..=262).contains(&waiting), "{waiting}");
    assert!(puts.iter().is_sorted_by_key(|put| !put.is_durable()));
}

/// Replaces and removes objects, cleans, and waits now and then. Returns the contents after each commit, and the number
/// of commits known to be durable.
fn run(drive: &Arc<PowerCut>, checksum: ChecksumKind) -> (Vec<Model>, usize) {
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let (mut models, mut durable) = (vec![base()], 0);
    let mut options = options();
    options.data.checksum = checksum;
    let Ok(store) = Store::mount(device, options) else {
        return (models, durable);
    };
    let mut history = || -> store::Result<()> {
        for step in 0..8u64 {
            let mut model = models[models.len() - 1].clone();
            let (name, bytes) = (format!("o{}", step % 3), pattern(step, 200_000));
            let gone = format!("gone{step}");
            let data = written(&store, &bytes)?;
            let mut tx = Transaction::new();
            tx.put("c", &name, data, Attributes::new());
            tx.remove("c", &gone);
            model.insert(name, bytes);
            model.remove(&gone);
            models.push(model);
            let pending = store.commit_readable(tx)?;
            assert!(contents(&store) == models[models.len() - 1]);
            match step {
                // Zones of removed objects are empty and are reset.
                2 | 5 => {
                    store.seal_open_zones()?;
                    while store.clean_one()? {}
                }
                3 | 6 => {
                    pending.wait()?;
                    durable = models.len() - 1;
                }
                _ => {}
            }
        }
        Ok(())
    };
    // An error is the power cut.
    let _ = history();
    (models, durable)
}

fn base() -> Model {
    let objects = (0..8).map(|n| (format!("gone{n}"), pattern(n + 100, 400_000)));
    objects.collect()
}

#[test]
fn a_power_cut_takes_the_last_ones_only() {
    cut_everywhere(ChecksumKind::Crc32c);
}

/// Without checksums, bytes from before a zone's reset must not be taken for bytes written after it.
#[test]
fn a_power_cut_takes_the_last_ones_only_without_checksums_too() {
    cut_everywhere(ChecksumKind::None);
}

fn cut_everywhere(checksum: ChecksumKind) {
    let drive = Arc::new(PowerCut::new(geometry(48)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for (name, bytes) in base() {
        put(&store, &name, &bytes).unwrap();
    }
    store.unmount().unwrap();
    drop((store, device));
    drive.flush().unwrap();
    let copy = || {
        let one = CrashLimits {
            max_states: 1,
            ..CrashLimits::default()
        };
        Arc::new(drive.restart(&drive.crash_states(one)[0]))
    };
    let whole = copy();
    let before = whole.operation_count();
    let (models, durable) = run(&whole, checksum);
    assert_eq!((models.len(), durable), (9, 7));
    let (mut took, mut kept) = (0, 0);
    for cut in 0..=whole.operation_count() - before {
        let drive = copy();
        drive.cut_after(cut);
        let (models, durable) = run(&drive, checksum);
        let limits = CrashLimits {
            max_states: 4,
            seed: cut + (seed() << 32),
            ..CrashLimits::default()
        };
        for state in drive.crash_states(limits) {
            let store = mount(&(Arc::new(drive.image(&state)) as Arc<dyn ZonedDevice>));
            let found = contents(&store);
            let at = models.iter().rposition(|model| *model == found);
            let at = at.unwrap_or_else(|| panic!("cut at {cut}: {state:?}: no prefix"));
            assert!(at >= durable, "cut at {cut}: {state:?}: {at} of {durable}");
            kept += usize::from(at > durable);
            took += usize::from(at + 1 < models.len());
            assert_clean(&store);
        }
    }
    assert!(took > 10 && kept > 10, "{took} {kept}");
}
