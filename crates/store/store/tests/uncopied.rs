//! After a crash, rows that were in no segment summary get one after the next mount. A loss of all metadata from then
//! on loses no acknowledged object.

use crate::common::{
    Settled, contents, create_collection, geometry, mkfs, mount, options, pattern, put, seed,
    written,
};
use device::power_cut::{CrashLimits, PowerCut};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{
    FsckReport, MkfsOptions, MountOptions, Salvage, SalvageOptions, ScrubPlan, Store, Transaction,
};
use zone::{Geometry, ZoneId, ZoneKind};

type Model = BTreeMap<String, Vec<u8>>;

fn shape(zones: u32) -> Geometry {
    Geometry {
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry(zones)
    }
}

fn fresh(zones: u32) -> Arc<dyn ZonedDevice> {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(shape(zones)).unwrap());
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    store.unmount().unwrap();
    device
}

fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

fn checked(store: &Store) -> FsckReport {
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
    report
}

fn copy(store: &Store) {
    assert!(store.copy_uncopied(|_| true).unwrap());
}

/// Erases all zones but the data zones.
fn lose_metadata(device: &Arc<dyn ZonedDevice>, data: &[ZoneId]) {
    let geometry = device.geometry().clone();
    for zone in geometry.zones().filter(|zone| !data.contains(zone)) {
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let zeros = vec![0; geometry.zone_size as usize];
                device.write(geometry.start(zone), &zeros).unwrap();
            }
            _ => device.reset(zone).unwrap(),
        }
    }
}

/// Loses the metadata, and returns the objects that a salvage recovers.
fn salvaged(device: &Arc<dyn ZonedDevice>, data: &[ZoneId]) -> Model {
    lose_metadata(device, data);
    let other: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(shape(160)).unwrap());
    mkfs(&other);
    let to = mount(&other);
    let how = SalvageOptions {
        to: Some(&to),
        damaged: false,
        in_place: false,
    };
    let salvage = Salvage::scan(device.clone(), &mut |_, _| {}).unwrap();
    salvage.copy(how, &mut |_, _| {}).unwrap();
    match to.collection("c").unwrap() {
        Some(_) => contents(&to),
        None => Model::new(),
    }
}

/// Copies the rows that have no copy, and returns what a salvage recovers then.
fn copied_and_salvaged(device: &Arc<dyn ZonedDevice>, store: Store, told: &str) -> Model {
    copy(&store);
    assert_eq!(checked(&store).rows_without_copy, 0, "{told}");
    let data = data_zones(&store);
    drop(store);
    salvaged(device, &data)
}

fn data_zones(store: &Store) -> Vec<ZoneId> {
    store.zones().iter().map(|used| used.zone).collect()
}

/// A random put, removal, rename or append, too little to fill a summary.
fn change(store: &Store, model: &mut Model, random: &mut fastrand::Rng) {
    let name = |random: &mut fastrand::Rng| format!("object-{}", random.u32(..12));
    let (a, b) = (name(random), name(random));
    match random.u32(..8) {
        0 if model.contains_key(&a) => {
            remove(store, &a);
            model.remove(&a);
        }
        1 if model.contains_key(&a) && a != b => {
            let mut tx = Transaction::new();
            tx.rename(("c", &a), ("c", &b));
            store.commit(tx).unwrap();
            let bytes = model.remove(&a).unwrap();
            model.insert(b, bytes);
        }
        2 if model.contains_key(&a) => {
            let more = pattern(random.u64(..), 8192);
            let mut tx = Transaction::new();
            tx.append("c", &a, written(store, &more).unwrap());
            store.commit(tx).unwrap();
            model.get_mut(&a).unwrap().extend(more);
        }
        _ => {
            let data = pattern(random.u64(..), 4096 * random.usize(1..20));
            put(store, &a, &data).unwrap();
            model.insert(a, data);
        }
    }
}

#[test]
fn what_a_kill_left_in_no_summary_is_copied_and_salvage_finds_it() {
    for round in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed() + round);
        let (device, mut model) = (fresh(96), Model::new());
        let store = mount(&device);
        for _ in 0..random.u32(1..40) {
            change(&store, &mut model, &mut random);
        }
        // After a flush the rows are no more in the log, and their copies are not written yet.
        if round % 3 == 1 {
            store.flush().unwrap();
        }
        drop(store);
        let store = mount(&device);
        let before = checked(&store).rows_without_copy;
        assert!(before > 0, "round {round}");
        if round % 4 == 3 {
            // A change while copies are missing.
            change(&store, &mut model, &mut random);
        }
        let told = format!("round {round}");
        assert!(
            copied_and_salvaged(&device, store, &told) == model,
            "{told}"
        );
    }
}

/// With the memtable flushed and the log deleted, the rows without a copy are found by a scan of everything, which must
/// also find the removal of rows that are not there any more.
#[test]
fn what_was_removed_or_became_small_before_a_kill_does_not_come_back() {
    let (device, mut model) = (fresh(96), Model::new());
    let store = mount(&device);
    for number in 0..20 {
        let (name, data) = (format!("object-{number}"), pattern(number, 20_000));
        put(&store, &name, &data).unwrap();
        model.insert(name, data);
    }
    // The unmount writes copies of all rows.
    store.unmount().unwrap();
    let store = mount(&device);
    for number in 0..10 {
        let name = format!("object-{number}");
        remove(&store, &name);
        model.remove(&name);
    }
    put(&store, "object-10", b"small").unwrap();
    // Small data is inline, in the database alone, so salvage cannot find it.
    model.remove("object-10");
    store.flush().unwrap();
    put(&store, "last", &pattern(99, 20_000)).unwrap();
    model.insert("last".into(), pattern(99, 20_000));
    store.flush().unwrap();
    drop(store);
    let store = mount(&device);
    assert!(copied_and_salvaged(&device, store, "") == model);
}

/// The same in every state that a power cut may leave, with summaries that were written and not flushed.
#[test]
fn what_a_power_cut_left_in_no_summary_is_copied_and_salvage_finds_it() {
    let drive = Arc::new(PowerCut::new(shape(64)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let (mut random, mut model) = (fastrand::Rng::with_seed(seed()), Model::new());
    let mut states = 0;
    for step in 0..260 {
        change(&store, &mut model, &mut random);
        if step % 65 == 64 {
            store.clean_one().unwrap();
        }
        if step % 20 != 19 {
            continue;
        }
        let limits = CrashLimits {
            max_states: 4,
            seed: step + (seed() << 32),
            ..CrashLimits::default()
        };
        for state in drive.crash_states(limits) {
            states += 1;
            let image: Arc<dyn ZonedDevice> = Arc::new(drive.image(&state));
            let store = mount(&image);
            let told = format!("step {step}: {state:?}");
            assert!(copied_and_salvaged(&image, store, &told) == model, "{told}");
        }
    }
    assert!(states > 13, "{states}");
}

/// The log of the first kill is gone when the second one comes, and that of the second kill must not pass for both.
#[test]
fn two_kills_in_a_row_leave_no_row_without_a_copy() {
    let device = fresh(96);
    for name in ["first", "second"] {
        let store = mount(&device);
        put(&store, name, &pattern(1, 50_000)).unwrap();
        if name == "first" {
            // Its rows are in no log any more.
            store.flush().unwrap();
        }
        drop(store);
    }
    let store = mount(&device);
    copy(&store);
    assert_eq!(checked(&store).rows_without_copy, 0);
}

/// A short command, which mounts the store and unmounts it at once, copies the rows of the log.
#[test]
fn an_unmount_that_comes_first_copies_what_is_in_the_log() {
    let device = fresh(64);
    let store = mount(&device);
    put(&store, "a", &pattern(1, 50_000)).unwrap();
    drop(store);
    mount(&device).unmount().unwrap();
    let store = mount(&device);
    assert_eq!(checked(&store).rows_without_copy, 0);
    // If a scan is interrupted before its end, the scan after the next mount completes it.
    put(&store, "b", &pattern(2, 50_000)).unwrap();
    store.flush().unwrap();
    drop(store);
    let store = mount(&device);
    assert!(!store.copy_uncopied(|_| false).unwrap());
    store.unmount().unwrap();
    let store = mount(&device);
    assert!(checked(&store).rows_without_copy > 0);
    copy(&store);
    assert_eq!(checked(&store).rows_without_copy, 0);
}

/// A salvage names the object, and restores the bytes that lie in zones.
#[test]
fn an_object_that_begins_with_many_inline_extents_is_not_taken_for_a_removed_one() {
    for is_killed in [true, false] {
        let device = fresh(96);
        let store = mount(&device);
        for length in std::iter::repeat_n(1000, 64).chain([1 << 20]) {
            let mut tx = Transaction::new();
            tx.append("c", "log", written(&store, &pattern(1, length)).unwrap());
            store.commit(tx).unwrap();
        }
        if is_killed {
            drop(store);
        } else {
            store.unmount().unwrap();
        }
        let store = mount(&device);
        if is_killed {
            copy(&store);
        } else {
            assert!(store.scrub(true, |_| true).unwrap());
        }
        assert_eq!(checked(&store).rows_without_copy, 0);
        let data = data_zones(&store);
        store.unmount().unwrap();
        lose_metadata(&device, &data);
        let how = SalvageOptions {
            to: None,
            damaged: true,
            in_place: false,
        };
        let salvage = Salvage::scan(device, &mut |_, _| {}).unwrap();
        let damaged = salvage.copy(how, &mut |_, _| {}).unwrap().damaged;
        let names: Vec<_> = damaged.iter().map(|o| o.object.to_string()).collect();
        assert_eq!(names, ["log"], "{is_killed}");
    }
}

/// Each command mounts the store, stores one object and unmounts it, or is killed. A summary for each would take all that
/// is kept for summaries with a part of the objects; instead rows wait from one command to the next.
#[test]
fn commands_that_store_an_object_each_share_summaries() {
    const OBJECTS: u64 = 160;
    let (device, mut model) = (fresh(160), Model::new());
    let (mut most_waiting, mut blocks) = (0, 0);
    for number in 0..OBJECTS {
        let (name, data) = (format!("object-{number}"), pattern(number, 40_000));
        let store = mount(&device);
        put(&store, &name, &data).unwrap();
        model.insert(name, data);
        if number % 8 == 7 {
            // Its rows are in the log, which the next command goes through.
            drop(store);
            continue;
        }
        store.unmount().unwrap();
        let report = checked(&mount(&device));
        most_waiting = most_waiting.max(report.rows_without_copy);
        blocks = report.summaries;
    }
    println!("{most_waiting} rows waited at the most, {blocks} summaries");
    let kept = 156 * (1 << 20) / 1024 / 4096;
    assert!((4..kept).contains(&blocks), "{blocks} of {kept}");
    // Two rows an object, until they describe 1,024 times a block.
    let most = 2 * ((4 << 20) / 40_000 + 2);
    assert!(
        (2..most).contains(&most_waiting),
        "{most_waiting} of {most}"
    );
    let store = mount(&device);
    copy(&store);
    assert_eq!(checked(&store).rows_without_copy, 0);
    // What waits no longer is not written again.
    store.unmount().unwrap();
    let store = mount(&device);
    copy(&store);
    assert_eq!(checked(&store).summaries, blocks + 1);
    let data = data_zones(&store);
    drop(store);
    assert!(salvaged(&device, &data) == model);
}

/// The same where the log of a crash is gone, so that only a server compares all rows: what commands store from then on
/// waits as before.
#[test]
fn rows_wait_also_while_it_is_not_known_which_others_have_no_copy() {
    let device = fresh(160);
    let store = mount(&device);
    for number in 0..10 {
        put(
            &store,
            &format!("before-{number}"),
            &pattern(number, 40_000),
        )
        .unwrap();
    }
    store.flush().unwrap();
    drop(store);
    let lost = checked(&mount(&device)).rows_without_copy;
    let mut most_waiting = 0;
    for number in 0..160 {
        let store = mount(&device);
        put(&store, &number.to_string(), &pattern(number, 40_000)).unwrap();
        store.unmount().unwrap();
        most_waiting = most_waiting.max(checked(&mount(&device)).rows_without_copy - lost);
    }
    let most = 2 * ((4 << 20) / 40_000 + 2);
    assert!(
        (2..most).contains(&most_waiting),
        "{most_waiting} of {most}"
    );
    let store = mount(&device);
    copy(&store);
    assert_eq!(checked(&store).rows_without_copy, 0);
}

/// The same with a power cut in any command to the drive of a further one.
#[test]
fn what_waits_from_one_command_to_the_next_survives_a_power_cut() {
    let drive = Arc::new(PowerCut::new(shape(64)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    store.unmount().unwrap();
    let mut model = Model::new();
    for number in 0..12 {
        let store = mount(&device);
        put(&store, &number.to_string(), &pattern(number, 40_000)).unwrap();
        model.insert(number.to_string(), pattern(number, 40_000));
        store.unmount().unwrap();
    }
    let limits = CrashLimits {
        max_states: 2,
        seed: seed(),
        ..CrashLimits::default()
    };
    let before = drive.crash_states(limits).remove(0);
    let command = |drive: &Arc<PowerCut>| {
        let device: Arc<dyn ZonedDevice> = drive.clone();
        let Ok(store) = Store::mount(device, options()) else {
            return false;
        };
        let is_done = put(&store, "new", &pattern(99, 40_000)).is_ok();
        // A cut ends it early; what is not told is the subject.
        drop(store.unmount());
        is_done
    };
    let whole = Arc::new(drive.restart(&before));
    assert!(command(&whole));
    let (mut states, mut waited) = (0, 0);
    for cut in 0..whole.operation_count() {
        let drive = Arc::new(drive.restart(&before));
        drive.cut_after(cut);
        let is_done = command(&drive);
        for state in drive.crash_states(limits) {
            states += 1;
            let image: Arc<dyn ZonedDevice> = Arc::new(drive.image(&state));
            let store = mount(&image);
            waited += checked(&store).rows_without_copy;
            let told = format!("{cut}: {state:?}");
            let has_new = store.stat("c", "new").unwrap().is_some();
            assert!(has_new || !is_done, "{told}");
            let mut expected = model.clone();
            if has_new {
                expected.insert("new".to_owned(), pattern(99, 40_000));
            }
            let found = copied_and_salvaged(&image, store, &told);
            assert!(found == expected, "{told}");
        }
    }
    assert!(states > 10 && waited > states, "{states}, {waited}");
}

/// The bytes read to find rows without a copy do not grow with the number of old objects.
#[test]
fn only_what_changed_lately_is_looked_at() {
    let mut read = Vec::new();
    for objects in [300, 3000] {
        let drive = Arc::new(Stats::new(MemoryDrive::new(shape(96)).unwrap()));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        mkfs(&device);
        let store = mount(&device);
        create_collection(&store);
        for number in 0..objects {
            put(&store, &format!("o{number}"), &pattern(number, 5000)).unwrap();
        }
        store.unmount().unwrap();
        let store = mount(&device);
        for number in 0..20 {
            put(&store, &format!("new{number}"), &pattern(number, 5000)).unwrap();
        }
        drop(store);
        // A compaction reads, too.
        let settled = MountOptions {
            engine: Arc::new(Settled(options().engine, Duration::from_mins(10))),
            ..options()
        };
        let store = Store::mount(device.clone(), settled.clone()).unwrap();
        let before = drive.snapshot();
        copy(&store);
        read.push(drive.snapshot().since(&before).read.bytes);
        assert_eq!(checked(&store).rows_without_copy, 0);
        store.unmount().unwrap();
        // After a clean unmount, nothing is read.
        let store = Store::mount(device, settled).unwrap();
        let before = drive.snapshot();
        copy(&store);
        assert_eq!(drive.snapshot().since(&before).read.bytes, 0);
    }
    println!("{read:?} bytes read");
    assert!(read[1] < read[0] + (256 << 10), "{read:?}");
}

#[test]
fn a_store_with_threads_does_it_by_itself() {
    let drive = Arc::new(MemoryDrive::new(shape(96)).unwrap());
    let made = MkfsOptions {
        engine: options().engine,
        uuid: [7; 16],
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(drive.clone(), &made).unwrap();
    let mounted = || {
        let how = MountOptions {
            background: true,
            scrub: ScrubPlan::NEVER,
            ..MountOptions::new(kv_rocksdb::RocksDb)
        };
        Store::mount(drive.clone(), how).unwrap()
    };
    let store = mounted();
    create_collection(&store);
    put(&store, "a", &pattern(1, 50_000)).unwrap();
    drop(store);
    let store = mounted();
    // Only a failing test waits this long.
    for _ in 0..60_000 {
        if store.scrub_status().unwrap().rows_copied > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Returns when all rows have copies, made by the thread or by this call.
    copy(&store);
    assert!(store.scrub_status().unwrap().rows_copied > 0);
    assert_eq!(checked(&store).rows_without_copy, 0);
    store.unmount().unwrap();
}
