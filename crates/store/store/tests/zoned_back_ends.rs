//! The defects for which Ceph's back end for zoned drives was removed, one test for each: a single open zone, ignored
//! lifetime hints, tails of zones that count as free, no reserve for the cleaner, a lock around allocating and writing,
//! and a greedy cleaner that begins at a quarter free.

use crate::common::*;
use device::wrap::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use store::{Attributes, Error, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneCommand, ZoneCondition, ZoneId};
use zone_alloc::{Candidate, CleaningPolicy, FreeZones, Pressure, Watermarks, ZoneView};

const OBJECT: usize = 256 << 10;
const SMALL: usize = 64 << 10;

fn on(geometry: Geometry, options: MountOptions) -> (FailingDrive, Store) {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    (drive, store)
}

fn remove(store: &Store, name: u64) {
    let mut tx = Transaction::new();
    tx.remove("c", name.to_string());
    store.commit(tx).unwrap();
}

/// Puts objects until one is refused for lack of space. Returns how many were stored.
fn fill(store: &Store) -> u64 {
    for name in 0.. {
        match put(store, &name.to_string(), &pattern(name, OBJECT)) {
            Ok(()) => {}
            Err(Error::NoSpace { .. }) => return name,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("drives have an end")
}

/// The store's zones that are open on the drive.
fn open_zones(drive: &FailingDrive, store: &Store) -> BTreeSet<ZoneId> {
    let zones = store.zones().into_iter().map(|used| used.zone);
    let is_open = |zone: &ZoneId| {
        let condition = drive.report_zone(*zone).unwrap().condition;
        matches!(
            condition,
            ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen
        )
    };
    zones.filter(is_open).collect()
}

/// Overwrites four objects often and eighty seldom; with `says`, the writers name the objects that they replace.
/// Returns the zones with data of the former, those with data of the latter, and the largest set of open zones.
fn hot_and_cold(says: bool) -> [BTreeSet<ZoneId>; 3] {
    // Enough zones for several streams.
    let (drive, store) = on(geometry(300), options());
    let put = |name: &str, seed: u64| {
        let mut writer = store.writer(Some(SMALL as u64)).unwrap();
        if says {
            writer = writer.replacing("c", name);
        }
        let before = store.zones();
        writer.write(&pattern(seed, SMALL)).unwrap();
        let mut tx = Transaction::new();
        tx.put("c", name, writer.finish().unwrap(), Attributes::new());
        store.commit(tx).unwrap();
        let is_new = |now: &store::ZoneUse| {
            let was = before.iter().find(|was| was.zone == now.zone);
            was.is_none_or(|was| was.written_bytes < now.written_bytes)
        };
        store
            .zones()
            .into_iter()
            .filter(is_new)
            .map(|now| now.zone)
            .collect::<Vec<_>>()
    };
    let [mut hot, mut cold, mut open] = [(); 3].map(|()| BTreeSet::new());
    for n in 0..240 {
        let seldom = put(&format!("cold{}", n % 80), n);
        let often: Vec<_> = (0..4).flat_map(|m| put(&format!("hot{m}"), n)).collect();
        // By then every object has been overwritten.
        if n >= 160 {
            cold.extend(seldom);
            hot.extend(often);
            let now = open_zones(&drive, &store);
            open = std::cmp::max_by_key(open, now, BTreeSet::len);
        }
    }
    [hot, cold, open]
}

#[test]
fn more_than_one_zone_is_open_at_a_time() {
    let [_, _, open] = hot_and_cold(true);
    assert!(open.len() >= 2, "{open:?}");
}

#[test]
fn what_a_writer_says_of_its_data_decides_where_it_goes() {
    let [hot, cold, _] = hot_and_cold(true);
    assert!(hot.is_disjoint(&cold), "{hot:?} and {cold:?}");
    let [hot, cold, _] = hot_and_cold(false);
    assert!(!hot.is_disjoint(&cold));
}

#[test]
fn tails_of_zones_are_not_free_before_they_are_cleaned() {
    let (_, store) = on(geometry(64), options());
    for name in 0..12 {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
        store.seal_open_zones().unwrap();
    }
    let space = store.statfs();
    let tails = 12 * ((1 << 20) - OBJECT as u64);
    assert!(space.unwritten_tail_bytes >= tails, "{space:?}");
    let taken = space.live_bytes + space.unwritten_tail_bytes;
    assert!(
        space.free_bytes + taken <= space.capacity_bytes,
        "{space:?}"
    );
    // Cleaning gives the tails back, so that all available bytes can be stored.
    let stored = (fill(&store) - 12) * OBJECT as u64;
    assert!(
        stored + (3 << 20) >= space.available_bytes,
        "{stored} of {space:?}"
    );
    assert_clean(&store);
}

#[test]
fn on_a_full_drive_the_cleaner_has_a_zone_to_move_to() {
    let (drive, store) = on(geometry(64), options());
    let count = fill(&store);
    let report = drive.report(ZoneId(0), 64).unwrap();
    let empty = report
        .iter()
        .filter(|zone| zone.condition == ZoneCondition::Empty);
    assert!(empty.count() >= 2);
    // A quarter of each zone is dead, so space is gained only by moving the rest.
    (0..count).step_by(4).for_each(|name| remove(&store, name));
    for name in (0..count).step_by(4) {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    assert!(store.clean_status().bytes_moved > 0);
    for name in 0..count {
        assert!(read(&store, &name.to_string()).unwrap() == pattern(name, OBJECT));
    }
}

#[test]
fn a_write_that_is_stuck_holds_up_no_other_where_the_drive_gives_the_place() {
    let appending = Geometry {
        conventional_zones: 0,
        max_append_bytes: 512 << 10,
        ..geometry(64)
    };
    let (drive, store) = on(appending, options());
    put(&store, "before", &pattern(1, OBJECT)).unwrap();
    let gate = Gate::new();
    let zone = open_zones(&drive, &store).pop_first().unwrap();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Append, 1, stuck).in_zone(zone));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| put(&store, "first", &pattern(2, OBJECT)));
        gate.wait_until_stuck(1);
        put(&store, "second", &pattern(3, OBJECT)).unwrap();
        gate.release();
        first.join().unwrap().unwrap();
    });
    for (name, seed) in [("before", 1), ("first", 2), ("second", 3)] {
        assert!(read(&store, name).unwrap() == pattern(seed, OBJECT));
    }
}

/// A policy that chooses the zone that was filled first, and notes its choices.
#[derive(Clone, Default, Debug)]
struct Oldest(Arc<Mutex<Vec<Candidate>>>);

impl CleaningPolicy for Oldest {
    fn choose(&self, view: ZoneView<'_>, _: Pressure) -> Option<Candidate> {
        let dead = view.zones.iter().filter(|zone| zone.live < zone.written);
        let chosen = dead.min_by_key(|zone| zone.filled_at).copied();
        self.0.lock().unwrap().extend(chosen);
        chosen
    }
}

/// Whether the cleaner cleans ahead of need with a fifth of the drive free and a dead object in each zone.
fn cleans_with_a_fifth_free(options: MountOptions) -> bool {
    let (_, store) = on(geometry(128), options);
    let objects = store.statfs().capacity_bytes / OBJECT as u64 * 8 / 10;
    for name in 0..objects {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    (0..objects)
        .filter(|name| name % 4 < 2)
        .for_each(|name| remove(&store, name));
    let before = store.zones().len();
    while store.tend().unwrap() {}
    store.zones().len() < before
}

#[test]
fn when_the_cleaner_begins_and_what_it_chooses_are_the_callers() {
    let free_zones = Watermarks {
        low: FreeZones::Percent(25),
        min: FreeZones::Percent(10),
    };
    assert!(!cleans_with_a_fifth_free(options()));
    assert!(cleans_with_a_fifth_free(MountOptions {
        free_zones,
        ..options()
    }));
    let oldest = Oldest::default();
    let policy = MountOptions {
        policy: Arc::new(oldest.clone()),
        ..options()
    };
    let (_, store) = on(geometry(64), policy);
    for name in 0..40 {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    // The first zone, the oldest, has the fewest dead bytes.
    remove(&store, 0);
    (8..40)
        .filter(|name| name % 4 > 0)
        .for_each(|name| remove(&store, name));
    let zones: BTreeSet<_> = store.zones().into_iter().map(|used| used.zone).collect();
    assert!(store.clean_one().unwrap());
    let chosen = oldest.0.lock().unwrap()[0];
    let left: BTreeSet<_> = store.zones().into_iter().map(|used| used.zone).collect();
    assert!(zones.contains(&chosen.zone) && !left.contains(&chosen.zone));
    assert_eq!(chosen.written - chosen.live, OBJECT as u64);
}
