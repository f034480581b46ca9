//! A drive command that does not return delays only the callers that need it, and no reader of anything else. After a
//! failed flush, everything can still be read.

use crate::common::*;
use device::wrap::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::{Runtime, SimulatedClock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use store::{Attributes, Error, MountOptions, Store, Transaction};
use zone::{ZoneCommand, ZoneCondition, ZoneId};

/// Timeout; only a failing test waits this long.
const FOR_EVER: Duration = Duration::from_secs(600);
const OBJECT: usize = 300_000;
const OBJECTS: u64 = 12;

fn filled() -> (FailingDrive, Store) {
    let (drive, store) = on_failing_drive(96);
    for i in 0..OBJECTS {
        put(&store, &i.to_string(), &pattern(i, OBJECT)).unwrap();
    }
    for i in (0..OBJECTS).step_by(2) {
        let mut tx = Transaction::new();
        tx.remove("c", i.to_string());
        store.commit(tx).unwrap();
    }
    store.seal_open_zones().unwrap();
    (drive, store)
}

fn kept() -> impl Iterator<Item = u64> {
    (1..OBJECTS).step_by(2)
}

/// Asserts that `what` returns while the drive is stuck; if it does not, releases the drive.
fn comes_back(gate: &Gate, what: impl FnOnce() + Send) {
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            what();
            done.send(()).unwrap();
        });
        let came_back = is_done.recv_timeout(FOR_EVER).is_ok();
        if !came_back {
            gate.release();
        }
        assert!(came_back);
    });
}

fn all_can_be_read(store: &Store) {
    for i in kept() {
        assert!(read(store, &i.to_string()).unwrap() == pattern(i, OBJECT));
    }
    assert_eq!(store.list("c", "", "", 100).unwrap().len(), 6);
    assert!(store.stat("c", "1").unwrap().is_some());
    assert_eq!(store.collections().unwrap().len(), 1);
}

#[test]
fn a_stuck_reset_holds_up_no_read() {
    let (drive, store) = filled();
    let gate = Gate::new();
    drive.add(Plan::at(ZoneCommand::Reset, 1, Fault::Stuck(gate.clone())));
    std::thread::scope(|scope| {
        let cleaning = scope.spawn(|| store.clean_one());
        gate.wait_until_stuck(1);
        comes_back(&gate, || all_can_be_read(&store));
        comes_back(&gate, || {
            put(&store, "new", &pattern(99, OBJECT)).unwrap();
            assert!(read(&store, "new").unwrap() == pattern(99, OBJECT));
        });
        assert!(!cleaning.is_finished());
        gate.release();
        assert!(cleaning.join().unwrap().unwrap());
    });
    assert_clean(&store);
}

fn zone_of(store: &Store, drive: &Faults<MemoryDrive>, name: &str) -> ZoneId {
    let tried = store.zones().into_iter().map(|z| z.zone);
    let broken = |zone: &ZoneId| {
        drive.add(Plan::from(ZoneCommand::Read, 1, Fault::Io(io::ErrorKind::Other)).in_zone(*zone));
        let failed = read(store, name).is_err();
        drive.clear();
        failed
    };
    let found = tried.into_iter().find(broken).unwrap();
    // The reads have set zones aside, which this ends.
    store.clean_start().unwrap();
    found
}

#[test]
fn a_stuck_read_holds_up_the_reset_of_its_zone_and_no_other_read() {
    let (drive, store) = filled();
    let zone = zone_of(&store, &drive, "1");
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&store, "1"));
        gate.wait_until_stuck(1);
        // Moves the zone's objects, and waits for the reader.
        let cleaning = scope.spawn(|| while store.clean_one().unwrap() {});
        comes_back(&gate, || all_can_be_read(&store));
        comes_back(&gate, || put(&store, "new", &pattern(99, OBJECT)).unwrap());
        gate.release();
        assert!(reading.join().unwrap().unwrap() == pattern(1, OBJECT));
        cleaning.join().unwrap();
    });
    assert_clean(&store);
}

/// Writers that need zones get others.
#[test]
fn a_stuck_read_keeps_no_other_zone_from_being_cleaned() {
    let (drive, _) = filled();
    let clock = Arc::new(SimulatedClock::default());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let at_its_time = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options()
    };
    let store = Store::mount(device, at_its_time).unwrap();
    let zone = zone_of(&store, &drive, "1");
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    let capacity = store.statfs().capacity_bytes;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&store, "1"));
        gate.wait_until_stuck(1);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                clock.advance(Duration::from_secs(1));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        comes_back(&gate, || {
            for number in 0..2 * capacity / OBJECT as u64 {
                put(
                    &store,
                    &format!("new{}", number % 2),
                    &pattern(number, OBJECT),
                )
                .unwrap();
            }
        });
        assert!(!reading.is_finished());
        gate.release();
        assert!(reading.join().unwrap().unwrap() == pattern(1, OBJECT));
        is_over.store(true, Ordering::Relaxed);
    });
    assert_clean(&store);
}

#[test]
fn a_read_that_fails_waits_for_no_stuck_write() {
    let (drive, store) = filled();
    let zone = zone_of(&store, &drive, "1");
    let sealed: Vec<_> = store.zones().into_iter().map(|z| z.zone).collect();
    put(&store, "new", &pattern(98, OBJECT)).unwrap();
    let mut zones = store.zones().into_iter();
    let open = zones.find(|z| !sealed.contains(&z.zone)).unwrap().zone;
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    drive.add(Plan::at(ZoneCommand::Write, 1, stuck).in_zone(open));
    drive.add(Plan::from(ZoneCommand::Read, 1, Fault::Io(io::ErrorKind::Other)).in_zone(zone));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| put(&store, "newer", &pattern(99, OBJECT)));
        gate.wait_until_stuck(1);
        comes_back(&gate, || assert!(read(&store, "1").is_err()));
        // Read-only: the report of the store's health sets it aside.
        let other = *sealed.iter().find(|sealed| **sealed != zone).unwrap();
        drive.break_zone(other, ZoneCondition::ReadOnly);
        comes_back(&gate, || {
            let zones = store.health().unwrap().zones;
            assert!(zones.iter().any(|at_risk| at_risk.zone == other));
        });
        gate.release();
        writing.join().unwrap().unwrap();
    });
    assert!(read(&store, "newer").unwrap() == pattern(99, OBJECT));
}

#[test]
fn a_stuck_flush_holds_up_no_read() {
    let (drive, store) = filled();
    let gate = Gate::new();
    drive.add(Plan::from(
        ZoneCommand::Flush,
        1,
        Fault::Stuck(gate.clone()),
    ));
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| put(&store, "1", &pattern(50, OBJECT)));
        gate.wait_until_stuck(1);
        let collection = scope.spawn(|| {
            let mut tx = Transaction::new();
            tx.create_collection("d", Attributes::new());
            store.commit(tx)
        });
        // The object that is being replaced still has its old bytes.
        let mut old = None;
        comes_back(&gate, || all_can_be_read(&store));
        comes_back(&gate, || old = Some(store.open("c", "1").unwrap()));
        gate.release();
        replacing.join().unwrap().unwrap();
        collection.join().unwrap().unwrap();
        let mut data = vec![0; OBJECT];
        // An open reader keeps the old bytes while their zones are cleaned.
        store.seal_open_zones().unwrap();
        while store.clean_one().unwrap() {}
        let old = old.unwrap();
        assert_eq!(old.read_at(0, &mut data).unwrap(), OBJECT);
        assert!(data == pattern(1, OBJECT));
    });
    assert!(read(&store, "1").unwrap() == pattern(50, OBJECT));
    while store.clean_one().unwrap() {}
    assert_clean(&store);
}

#[test]
fn after_a_failed_flush_everything_can_be_read_and_nothing_written() {
    let (drive, store) = filled();
    drive.add(Plan::at(
        ZoneCommand::Flush,
        1,
        Fault::Io(io::ErrorKind::Other),
    ));
    for name in ["1", "new", "newer"] {
        let error = put(&store, name, &pattern(99, OBJECT)).unwrap_err();
        let Error::Failed { reason } = error else {
            panic!("{error}");
        };
        assert!(reason.contains("flush"), "{reason}");
    }
    all_can_be_read(&store);
    store.statfs();
    drop(store);
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let store = mount(&device);
    for i in kept().filter(|i| *i != 1) {
        assert!(read(&store, &i.to_string()).unwrap() == pattern(i, OBJECT));
    }
    // The failed put may have become durable or not.
    let first = read(&store, "1").unwrap();
    assert!(first == pattern(1, OBJECT) || first == pattern(99, OBJECT));
    put(&store, "new", &pattern(99, OBJECT)).unwrap();
    assert_clean(&store);
}
