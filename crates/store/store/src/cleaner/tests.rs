use super::*;
use crate::test_drive::{drive, geometry, mount, options, put};
use crate::{MkfsOptions, MountOptions, Store};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Plan};
use kv_log::KvLog;
use runtime::{Clock, SimulatedClock};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use zone::{Geometry, ZoneCommand, ZoneCondition};
use zone_alloc::Greedy;

fn cleaner() -> Cleaner {
    Cleaner::new(Arc::new(Greedy), true, (0, 0), Runtime::seeded(1))
}

#[test]
fn who_waits_for_a_zone_goes_on_after_the_first_that_was_enough() {
    let (cleaner, full) = (cleaner(), AtomicBool::new(true));
    let first = cleaner.turn(|| full.load(SeqCst)).unwrap();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| cleaner.turn(|| full.load(SeqCst)).is_none()))
            .collect();
        full.store(false, SeqCst);
        drop(first);
        assert!(waiting.into_iter().all(|waited| waited.join().unwrap()));
    });
    // The turn is free now.
    assert!(cleaner.turn(|| true).is_some());
}

#[test]
fn what_dies_adds_up_until_all_zones_have_been_looked_at() {
    let cleaner = cleaner();
    cleaner.after_commit(40, false);
    assert!(cleaner.wait_for_work(|| false));
    assert_eq!(cleaner.asked().died, 40);
    cleaner.after_commit(60, false);
    assert!(cleaner.wait_for_work(|| false));
    let asked = cleaner.asked();
    assert_eq!(asked.died, 100);
    cleaner.after_commit(5, false);
    cleaner.found_nothing(asked);
    assert!(cleaner.wait_for_work(|| false));
    assert_eq!(cleaner.asked().died, 5);
    cleaner.cleaned();
    assert!(cleaner.wait_for_work(|| false), "there may be another zone");
    // Of two rounds at the same time, the other one has taken these bytes off already.
    let (one, other) = (cleaner.asked(), cleaner.asked());
    cleaner.found_nothing(one);
    cleaner.found_nothing(other);
    cleaner.after_commit(6, false);
    assert!(cleaner.wait_for_work(|| false));
    assert_eq!(cleaner.asked().died, 6);
}

/// A round finds nothing; before it records that, a user removes objects and asks again.
#[test]
fn a_start_is_not_forgotten_with_the_one_before() {
    let cleaner = cleaner();
    cleaner.start();
    let asked = cleaner.asked();
    cleaner.start();
    cleaner.found_nothing(asked);
    assert!(cleaner.asked().requested);
    let asked = cleaner.asked();
    cleaner.found_nothing(asked);
    assert!(!cleaner.asked().requested);
}

/// Otherwise, the cleaner's thread would begin again at once, for ever.
#[test]
fn a_round_that_fails_before_it_cleans_is_over() {
    let store = mount(&drive());
    let inner = &store.inner;
    store.clean_start().unwrap();
    inner.open_maps.doom([7]);
    // Without a database, no map is purged.
    let kv = inner.kv.write().take();
    assert!(store.tend().is_err());
    *inner.kv.write() = kv;
    inner.cleaner.failed();
    assert!(!store.clean_status().requested);
}

/// It is not the drive's time.
#[test]
fn a_wait_for_the_turn_lengthens_no_pause_between_finishes() {
    let clock = Arc::new(SimulatedClock::default());
    let drive = Arc::new(Faults::new(drive()));
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options()
    };
    let store = Store::mount(drive.clone(), options).unwrap();
    let fault = Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Finish, 1, fault));
    put(&store, "first");
    store.seal_open_zones().unwrap();
    let inner = &store.inner;
    let turn = inner.cleaner.turn(|| true).unwrap();
    std::thread::scope(|scope| {
        let retry = scope.spawn(|| inner.finish_again(Duration::MAX));
        while inner.cleaner.state.lock().in_need == 0 {
            std::thread::yield_now();
        }
        clock.advance(Duration::from_secs(60));
        drop(turn);
        retry.join().unwrap();
    });
    let due_at = inner.freelist.unfinished().due_at().unwrap();
    assert!(due_at > clock.now() && due_at < clock.now() + Duration::from_secs(1));
}

/// One of two writers that the drive's limit refuses finishes a zone for both.
#[test]
fn a_write_goes_on_in_the_active_zone_that_another_thread_has_freed() {
    let few = Geometry {
        max_open_zones: 8,
        max_active_zones: 8,
        ..geometry(96, 4)
    };
    let drive = Arc::new(Faults::new(MemoryDrive::new(few).unwrap()));
    Store::mkfs(drive.clone(), &MkfsOptions::new(KvLog)).unwrap();
    let clock = Arc::new(SimulatedClock::default());
    let options = MountOptions {
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..options()
    };
    let store = Store::mount(drive.clone(), options).unwrap();
    let write = || -> crate::Result<()> {
        let mut writer = store.writer(None)?;
        writer.write(&[7; 100_000])?;
        writer.finish().map(drop)
    };
    let fault = || Fault::Io(ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Finish, 1, fault()));
    while write().is_ok() {
        store.seal_open_zones().unwrap();
    }
    drive.clear();
    drive.add(Plan::from(ZoneCommand::Finish, 2, fault()));
    clock.advance(Duration::from_secs(1));
    let inner = &store.inner;
    let turn = inner.cleaner.turn(|| true).unwrap();
    std::thread::scope(|scope| {
        let writers = [(); 2].map(|()| scope.spawn(write));
        while inner.cleaner.state.lock().in_need < 2 {
            std::thread::yield_now();
        }
        drop(turn);
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
    });
    assert!(!inner.freelist.unfinished().is_empty());
}

/// A put makes no bytes dead, so that the cleaner's thread would sleep on.
#[test]
fn a_write_that_has_found_a_zone_read_only_wakes_the_cleaner_with_its_commit() {
    let drive = drive();
    let store = mount(&drive);
    let cleaner = &store.inner.cleaner;
    put(&store, "first");
    assert!(
        cleaner.wait_for_work(|| false),
        "after the mount, it looks at all"
    );
    cleaner.asked();
    let has_news = || cleaner.state.lock().has_news();
    put(&store, "second");
    assert!(!has_news());
    for zone in store.zones() {
        let read_only = ZoneCondition::ReadOnly;
        drive.set_condition(zone.zone, read_only).unwrap();
    }
    put(&store, "elsewhere");
    assert!(has_news());
}
