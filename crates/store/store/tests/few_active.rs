//! A drive with the fewest active zones that a store accepts, stopped again and again without an unmount: left-over
//! active zones never keep the next mount from writing.

use crate::common;
use crate::common::{
    FailingDrive, assert_clean, contents, create_collection, geometry, mkfs, mount, pattern, put,
};
use device::faults::{Fault, Faults, Plan};
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use runtime::{Clock, Runtime, SimulatedClock};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use store::{Error, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneId};

fn drive(conventional_zones: u32, max_active_zones: u32) -> Arc<dyn ZonedDevice> {
    let geometry = Geometry {
        conventional_zones,
        max_active_zones,
        max_open_zones: max_active_zones,
        ..geometry(120)
    };
    Arc::new(MemoryDrive::new(geometry).unwrap())
}

#[test]
fn a_store_that_was_stopped_anywhere_is_mounted_and_written_to() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    for conventional in [0, 3] {
        let device = drive(conventional, 8);
        mkfs(&device);
        let mut store = mount(&device);
        create_collection(&store);
        let mut model = BTreeMap::new();
        for round in 0..25u64 {
            for step in 0..random.u64(5..120) {
                let name = format!("o{}", random.u8(..60));
                if random.u8(..6) == 0 {
                    let mut tx = Transaction::new();
                    tx.remove_if_present("c", &name);
                    store.commit(tx).unwrap();
                    model.remove(&name);
                    continue;
                }
                let size = [100, 2_000, 4_000, 5_000, 300_000, 900_000][random.usize(..6)];
                let bytes = pattern(round * 1000 + step, size);
                put(&store, &name, &bytes).unwrap();
                model.insert(name, bytes);
            }
            if random.u8(..4) == 0 {
                store.flush().unwrap();
            }
            drop(store);
            store = mount(&device);
            assert!(contents(&store) == model, "round {round}");
        }
        assert_clean(&store);
    }
}

#[test]
fn fewer_are_refused_before_anything_is_written() {
    let device = drive(3, 7);
    let made = store::MkfsOptions {
        engine: common::options().engine,
        ..store::MkfsOptions::new(kv_log::KvLog)
    };
    let error = Store::mkfs(device.clone(), &made).unwrap_err();
    assert!(error.to_string().contains("active zones is 7"), "{error}");
    let report = device.report(zone::ZoneId(0), 120).unwrap();
    assert!(
        report
            .iter()
            .all(|zone| zone.condition != zone::ZoneCondition::Closed)
    );
}

/// A failed mount begins a journal and may leave zones with the first blocks of it, which no later mount owns.
#[test]
fn mounts_in_which_writes_fail_take_no_active_zones_from_the_next() {
    for (copies, active) in [(1, 8), (2, 14)] {
        let small = Geometry {
            zone_size: 512 << 10,
            zone_capacity: 268 << 10,
            conventional_zones: 0,
            max_open_zones: active,
            max_active_zones: active,
            ..geometry(160)
        };
        let drive = Arc::new(Faults::new(MemoryDrive::new(small).unwrap()));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        common::mkfs_in_copies(&device, Some(copies));
        let mut store = mount(&device);
        create_collection(&store);
        for kth in 1..20 {
            put(&store, &format!("o{kth}"), &pattern(kth, 20_000)).unwrap();
            drop(store);
            for attempt in 0..3 {
                // The drive carries out the write and returns an error, as a broken connection does.
                let fault = Fault::Torn { bytes: 1 << 20 };
                drive.add(Plan::from(ZoneCommand::Write, kth + attempt, fault));
                drop(Store::mount(device.clone(), common::options()));
                drive.clear();
            }
            store = Store::mount(device.clone(), common::options())
                .unwrap_or_else(|error| panic!("{copies} copies, {kth}: {error}"));
        }
        let whole = (1..20).map(|kth| (format!("o{kth}"), pattern(kth, 20_000)));
        assert!(contents(&store) == whole.collect());
        assert_clean(&store);
    }
}

/// Each would hold one of the drive's active zones until the next mount.
#[test]
fn zones_that_could_not_be_finished_are_finished_later() {
    let small = Geometry {
        max_open_zones: 8,
        max_active_zones: 8,
        ..geometry(120)
    };
    let drive = Arc::new(Faults::new(MemoryDrive::new(small).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    let active = || {
        let is_active = |zone: ZoneId| device.report_zone(zone).unwrap().condition.is_active();
        let zones = store.zones();
        zones.iter().filter(|used| is_active(used.zone)).count()
    };
    for kth in 0..3 {
        put(&store, &format!("o{kth}"), &pattern(kth, 20_000)).unwrap();
        drive.add(Plan::at(
            ZoneCommand::Finish,
            1,
            Fault::Io(ErrorKind::Other),
        ));
        store.seal_open_zones().unwrap();
        assert_eq!(active(), 1);
        store.tend().unwrap();
        assert_eq!(active(), 0);
    }
}

/// A store on a drive that finishes no zone.
fn without_finishes(active: u32) -> (FailingDrive, Store, Arc<SimulatedClock>) {
    let small = Geometry {
        max_open_zones: active,
        max_active_zones: active,
        ..geometry(120)
    };
    let drive = Arc::new(Faults::new(MemoryDrive::new(small).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let clock = Arc::new(SimulatedClock::default());
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..common::options()
    };
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Finish, 1, fault));
    (drive, store, clock)
}

fn leave_a_zone(store: &Store, kth: u64) -> store::Result<()> {
    put(store, &format!("o{kth}"), &pattern(kth, 20_000))?;
    store.seal_open_zones()
}

/// Writers that need a zone wait as long as a round does.
#[test]
fn a_round_of_the_cleaner_tries_one_zone_that_cannot_be_finished() {
    let (drive, store, clock) = without_finishes(14);
    (0..4).for_each(|kth| leave_a_zone(&store, kth).unwrap());
    drive.clear();
    // A timeout of the kernel.
    let half_a_minute = Duration::from_secs(30);
    let its = clock.clone();
    let slow = Arc::new(move |_: ZoneCommand| its.advance(half_a_minute));
    drive.add(Plan::from(ZoneCommand::Finish, 1, Fault::Slow(slow)));
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Finish, 1, fault));
    let began = clock.now();
    store.tend().unwrap();
    let took = clock.now() - began;
    assert!(took <= half_a_minute, "{took:?}");
    // The pause is ten times as long.
    for _ in 0..8 {
        clock.advance(half_a_minute);
        store.tend().unwrap();
    }
    let took = clock.now() - began;
    assert!(took < 10 * half_a_minute, "{took:?}");
}

#[test]
fn a_put_that_needs_an_active_zone_waits_for_no_pause() {
    let (drive, store, clock) = without_finishes(8);
    let refused = (0..20).find_map(|kth| leave_a_zone(&store, kth).err());
    assert!(matches!(refused, Some(Error::Drive(_))), "{refused:?}");
    // The pauses become longer than a minute.
    for _ in 0..12 {
        clock.advance(Duration::from_secs(64));
        store.tend().unwrap();
    }
    drive.clear();
    clock.advance(Duration::from_secs(1));
    put(&store, "late", &pattern(99, 20_000)).unwrap();
}

/// The cleaner's own write is refused, too, and cleaning may be what a put waits for.
#[test]
fn cleaning_that_needs_an_active_zone_waits_for_no_pause() {
    let (drive, store, clock) = without_finishes(8);
    let refused = (0..20).find_map(|kth| {
        let dead = put(&store, &format!("dead{kth}"), &pattern(kth, 20_000));
        dead.and_then(|()| leave_a_zone(&store, kth)).err()
    });
    assert!(matches!(refused, Some(Error::Drive(_))), "{refused:?}");
    let mut tx = Transaction::new();
    (0..20).for_each(|kth| _ = tx.remove_if_present("c", format!("dead{kth}")));
    store.commit(tx).unwrap();
    // The pauses become longer than a minute.
    for _ in 0..12 {
        clock.advance(Duration::from_secs(64));
        store.tend().unwrap();
    }
    drive.clear();
    clock.advance(Duration::from_secs(1));
    assert!(store.clean_one().unwrap());
}

/// After a power cut, full zones of unfinished uploads may be partly written ones: as many active zones without an
/// owner as the drive allows.
#[test]
fn uploads_that_a_power_cut_ends_take_no_active_zones_from_the_next_mount() {
    for active in [13, 14, 16, 20] {
        let geometry = Geometry {
            zone_size: 512 << 10,
            zone_capacity: 512 << 10,
            max_open_zones: active,
            max_active_zones: active,
            ..geometry(200)
        };
        let drive = Arc::new(PowerCut::new(geometry).unwrap());
        let device: Arc<dyn ZonedDevice> = drive.clone();
        common::mkfs_in_copies(&device, Some(2));
        let store = mount(&device);
        create_collection(&store);
        put(&store, "stored", &pattern(1, 20_000)).unwrap();
        let upload = || {
            let mut writer = store.writer(None).unwrap();
            writer.write(&vec![7; 8 << 20]).unwrap();
            writer.finish().unwrap()
        };
        let _under_way = [(); 3].map(|()| upload());
        for seed in 0..10 {
            let context = format!("{active} active zones, state {seed}");
            let left: Arc<dyn ZonedDevice> =
                Arc::new(drive.restart(&drive.random_crash_state(seed)));
            let store = Store::mount(left, common::options())
                .unwrap_or_else(|error| panic!("{context}: {error}"));
            put(&store, "more", b"more").unwrap();
            let all = [("stored", pattern(1, 20_000)), ("more", b"more".to_vec())];
            let all = all.map(|(name, bytes)| (name.to_owned(), bytes));
            assert!(contents(&store) == BTreeMap::from(all), "{context}");
            assert_clean(&store);
        }
    }
}

/// Imitates failed mounts: writes the first block of a journal and 15 blocks after it to as many empty zones as may be
/// active. Returns the number of these zones.
fn leave_journals(image: &dyn ZonedDevice) -> usize {
    let geometry = image.geometry().clone();
    let mut block = vec![0; geometry.block_size as usize];
    let report = image.report(ZoneId(0), geometry.zone_count).unwrap();
    let begins_a_journal = |zone: &&zone::ZoneDescriptor| {
        let at = geometry.absolute(ZoneAddress::new(zone.id, 0));
        zone.condition.is_active()
            && image.read(at, &mut block).is_ok()
            && block.starts_with(b"BFJL")
    };
    if report.iter().find(begins_a_journal).is_none() {
        return 0;
    }
    let mut left = block;
    left.resize(16 << 12, 0);
    // Starts in the middle of the drive, for the last zones may have superblocks.
    let empty = report[60..]
        .iter()
        .filter(|zone| zone.condition == ZoneCondition::Empty);
    empty
        .take_while(|zone| image.write(geometry.start(zone.id), &left).is_ok())
        .count()
}

/// A mount finishes the zones of left-over journals to have active zones. If it finished a zone with objects and
/// stopped, the next mount could not tell that bytes of an object are missing: the write pointer is the witness, for
/// checksums after durable data are not read. The test cuts the power during the put and during the mount.
#[test]
fn a_mount_among_left_journals_that_stops_hides_nothing_that_a_power_cut_has_lost() {
    let objects = [("first", pattern(1, 4096)), ("second", pattern(2, 60_000))];
    let geometry = drive(0, 9).geometry().clone();
    let mut most_left = 0;
    for commands in 0.. {
        let drive = Arc::new(PowerCut::new(geometry.clone()).unwrap());
        let device: Arc<dyn ZonedDevice> = drive.clone();
        mkfs(&device);
        let store = mount(&device);
        create_collection(&store);
        put(&store, objects[0].0, &objects[0].1).unwrap();
        // RocksDB deletes the log of the mount before in a thread of its own; the zone of this log would stay active.
        let active = || {
            let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
            let active = report.iter().filter(|zone| zone.condition.is_active());
            active.count()
        };
        for _ in 0..10_000 {
            if active() <= 7 {
                break;
            }
            // A zone is reset when the deletion in it is durable.
            store.bluefs().sync_metadata().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        drive.cut_after(commands);
        let put_second = put(&store, objects[1].0, &objects[1].1);
        drop(store);
        let states = |drive: &PowerCut, max_states| {
            drive.crash_states(CrashLimits {
                max_states,
                ..CrashLimits::default()
            })
        };
        for state in states(&drive, 16) {
            for mounting in 0..8 {
                let context = format!("cut after {commands} and {mounting}, {state:?}");
                let stopped = Arc::new(drive.restart(&state));
                most_left = most_left.max(leave_journals(&*stopped));
                stopped.flush().unwrap();
                stopped.cut_after(mounting);
                let device: Arc<dyn ZonedDevice> = stopped.clone();
                drop(Store::mount(device, common::options()));
                for state in states(&stopped, 4) {
                    let device: Arc<dyn ZonedDevice> = Arc::new(stopped.image(&state));
                    let store = Store::mount(device, common::options())
                        .unwrap_or_else(|error| panic!("{context}: {error}"));
                    let found = contents(&store);
                    let there = found.len();
                    assert!(there == 2 || there == 1 && put_second.is_err(), "{context}");
                    let expected = objects[..there].iter();
                    let expected =
                        expected.map(|(name, bytes)| ((*name).to_owned(), bytes.clone()));
                    assert!(found == expected.collect(), "{context}");
                    assert_clean(&store);
                }
            }
        }
        if put_second.is_ok() {
            break;
        }
    }
    // Together with the zone of the objects, one more than the store may have active.
    assert!(most_left > 1, "{most_left}");
}
