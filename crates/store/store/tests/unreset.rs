//! Resets that fail for a while: the zones count as unusable, and come back into use when resets succeed again.

use crate::common::*;
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use runtime::{Runtime, SimulatedClock};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Error, MkfsOptions, MountOptions, Store, Transaction};
use zone::ZoneCommand;

const OBJECT: usize = 300_000;

fn mount_at(device: &Arc<dyn ZonedDevice>, clock: &Arc<SimulatedClock>) -> Store {
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options()
    };
    Store::mount(device.clone(), options).unwrap()
}

fn failing(drive: &FailingDrive) {
    let fault = Fault::Io(std::io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Reset, 1, fault));
}

fn remove(store: &Store, name: &str) -> store::Result<()> {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx)
}

/// Puts and removes objects until a call is refused, or until the drive has been filled `times` times; true in the
/// second case.
fn churn(store: &Store, times: u64) -> bool {
    let objects = times * store.statfs().capacity_bytes / OBJECT as u64;
    (0..objects).all(|i| match put(store, "next", &pattern(i, OBJECT)) {
        Ok(()) => remove(store, "next").is_ok(),
        Err(error) => {
            assert!(error.is_no_space(), "{error}");
            false
        }
    })
}

#[test]
fn zones_of_objects_come_back() {
    let (drive, store) = on_failing_drive(96);
    let device: Arc<dyn ZonedDevice> = drive.clone();
    drop(store);
    let clock = Arc::new(SimulatedClock::default());
    let store = mount_at(&device, &clock);
    put(&store, "kept", &pattern(1, OBJECT)).unwrap();
    let before = store.statfs();
    failing(&drive);
    assert!(!churn(&store, 3));
    let refused = store.statfs();
    assert!(refused.unusable_bytes > 64 << 20, "{refused:?}");
    assert!(refused.available_bytes < before.available_bytes / 2);
    drive.clear();
    // A mount tries all pending resets again, and a mounted store does after a while.
    let again = Arc::new(drive.inner().snapshot());
    again.power_cycle();
    let again = mount_at(&(again as Arc<dyn ZonedDevice>), &clock);
    assert!(churn(&again, 3), "{refused:?}");
    clock.advance(Duration::from_secs(1));
    assert!(churn(&store, 3), "{refused:?}");
    for store in [again, store] {
        let now = store.statfs();
        // Zones of the metadata are not needed yet, and without a background thread their resets are not tried again.
        assert!(now.unusable_bytes <= 8 << 20, "{}", now.unusable_bytes);
        assert!(read(&store, "kept").unwrap() == pattern(1, OBJECT));
        assert_clean(&store);
    }
}

/// A mount replays the log into new SSTs before the store knows its own zones, so BlueFS has to have reset its free
/// zones by then.
#[test]
fn a_store_full_of_metadata_mounts_when_the_drive_has_recovered() {
    let flash = profile::by_name("zns-zn540").unwrap();
    let geometry = flash.geometry(152 << 19, Some(512 << 10)).unwrap();
    let drive: FailingDrive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let made = MkfsOptions {
        metadata_copies: Some(2),
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let store = Store::mount(device, MountOptions::new(RocksDb)).unwrap();
    create_collection(&store);
    let mut random = fastrand::Rng::with_seed(seed());
    let mut names = Vec::new();
    let touch = |names: &mut Vec<String>, random: &mut fastrand::Rng| {
        let name = format!("{:08x}", random.u32(..));
        let row = |n: u32, random: &mut fastrand::Rng| {
            let value = (0..60).map(|_| random.u8(..)).collect();
            (format!("row{n:07}").into_bytes(), value)
        };
        let rows = (0..random.u32(1..1500)).map(|n| row(n, random)).collect();
        let mut tx = Transaction::new();
        tx.touch("c", &name).omap_set("c", &name, rows);
        let done = store.commit(tx);
        if done.is_ok() {
            names.push(name);
        }
        done
    };
    for _ in 0..4 {
        while touch(&mut names, &mut random).is_ok() {}
    }
    failing(&drive);
    let until = Instant::now() + Duration::from_secs(3);
    // Only a failing test waits this long.
    let most = Instant::now() + Duration::from_secs(600);
    while Instant::now() < until || drive.struck() == 0 && Instant::now() < most {
        // A refused change leaves no trace.
        let done = match random.u8(..3) {
            n if n == 0 || names.is_empty() => touch(&mut names, &mut random),
            _ => {
                let name = names.swap_remove(random.usize(..names.len()));
                remove(&store, &name).inspect_err(|_| names.push(name))
            }
        };
        assert!(
            done.as_ref().map_or_else(Error::is_no_space, |()| true),
            "{done:?}"
        );
    }
    assert!(drive.struck() > 0);
    let crashed = drive.inner().snapshot();
    crashed.power_cycle();
    let again = mount(&(Arc::new(crashed) as Arc<dyn ZonedDevice>));
    names.sort_unstable();
    let found = again.list("c", "", "", usize::MAX).unwrap();
    let found = found.iter().map(|object| object.name.to_string());
    assert_eq!(found.collect::<Vec<_>>(), names);
    // And it takes removals again.
    again.remove_all("c", &names).unwrap();
    assert_clean(&again);
}
