//! The background cleaner keeps its pace and hours, and a writer that needs a zone never waits for them.

use crate::common::*;
use runtime::SimulatedClock;
use std::sync::Arc;
use std::time::Duration;
use store::{CleanerChange, FreeZones, MountOptions, Pace, Reason, Store, Watermarks};

const OBJECT: usize = 128 << 10;
const MIB: u64 = 1 << 20;

/// A store on a simulated clock, half of whose objects are dead.
fn half_dead(objects: u64, options: MountOptions) -> (Store, Arc<SimulatedClock>) {
    let (store, clock) = on_a_still_clock(options);
    for name in 0..objects {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    for name in (0..objects).filter(|name| name % 2 == 0) {
        let mut tx = store::Transaction::new();
        tx.remove("c", name.to_string());
        store.commit(tx).unwrap();
    }
    (store, clock)
}

fn paced(pace: &str) -> MountOptions {
    MountOptions {
        pace: pace.parse().unwrap(),
        ..options()
    }
}

fn change(store: &Store, pace: &str) {
    store.clean_change(CleanerChange {
        pace: Some(pace.parse().unwrap()),
        ..CleanerChange::default()
    });
}

#[test]
fn a_rate_is_kept_and_the_rest_of_the_time_is_told() {
    let (store, clock) = half_dead(160, paced("2MiB/s"));
    store.clean_start().unwrap();
    let before = store.clean_status();
    assert_eq!(before.bytes_per_second, None);
    let expected = before.seconds_left.unwrap();
    assert_eq!(expected, before.dirty_live_bytes.div_ceil(2 * MIB));
    let began = runtime::Clock::now(&*clock);
    while store.tend().unwrap() {}
    let took = (runtime::Clock::now(&*clock) - began).as_secs_f64();
    let after = store.clean_status();
    let moved = after.bytes_moved as f64 / (2 * MIB) as f64;
    assert!((0.95..1.05).contains(&(took / moved)), "{took} for {moved}");
    assert!(
        took > 0.8 * expected as f64 && took < 1.2 * expected as f64,
        "{took} of {expected}"
    );
    assert!(after.bytes_per_second.is_some_and(|rate| rate < 3 * MIB));
    assert_eq!((after.dirty_live_bytes, after.seconds_left), (0, Some(0)));
    assert_clean(&store);
}

#[test]
fn it_gives_way_between_pieces_of_half_a_mib_and_says_how_far_it_is() {
    let (store, _) = half_dead(160, paced("full"));
    store.clean_start().unwrap();
    let (mut last, mut calls) = (0, 0);
    store
        .tend_with(&mut |_| {
            let status = store.clean_status();
            let zone = status.in_hand.unwrap();
            assert_eq!(zone.why, Reason::Asked);
            assert!(zone.moved_bytes - last <= 512 << 10, "{zone:?}");
            assert!(zone.moved_bytes <= zone.live_bytes);
            last = zone.moved_bytes;
            // A reader is not blocked.
            read(&store, "1").unwrap();
            calls += 1;
        })
        .unwrap();
    assert!(calls > 6 && last > 0, "{calls} calls, {last} bytes");
    assert_eq!(store.clean_status().in_hand, None);
}

#[test]
fn an_idle_pace_waits_for_users_and_a_new_pace_counts_at_once() {
    let (store, clock) = half_dead(160, paced("idle:200ms"));
    store.clean_start().unwrap();
    let (mut waited, mut reads) = (0, 0);
    store
        .tend_with(&mut |moment| {
            if moment.is_zero() {
                assert!(waited > 0, "it waits first");
                return;
            }
            waited += 1;
            if reads < 50 {
                // A read every 100 ms for five seconds: never idle for 200 ms.
                clock.advance(Duration::from_millis(100));
                read(&store, "1").unwrap();
                reads += 1;
                assert_eq!(store.clean_status().bytes_moved, 0);
                assert!(store.clean_status().in_hand.unwrap().waits);
            } else {
                change(&store, "full");
            }
        })
        .unwrap();
    assert_eq!(reads, 50);
    assert_eq!(store.clean_status().pace, Pace::Full);
    assert_eq!(store.clean_status().zones_cleaned, 1);
}

#[test]
fn a_stop_leaves_the_zone_in_hand_behind_what_was_copied() {
    let (store, _) = half_dead(160, paced("1MiB/s"));
    store.clean_start().unwrap();
    let mut calls = 0;
    let did = store.tend_with(&mut |_| {
        calls += 1;
        if calls == 5 {
            store.clean_stop();
        }
    });
    assert!(!did.unwrap());
    let stopped = store.clean_status();
    assert_eq!(stopped.zones_cleaned, 0);
    assert!(stopped.bytes_moved > 0 && stopped.in_hand.is_none());
    assert!(!store.tend().unwrap());
    assert_clean(&store);
    // Objects that were moved are not moved again.
    store.clean_start().unwrap();
    while store.tend().unwrap() {}
    let moved = store.clean_status().bytes_moved;
    assert!(moved <= 80 * OBJECT as u64, "{moved}");
    assert_clean(&store);
}

#[test]
fn whoever_needs_a_zone_does_not_wait_for_the_pace() {
    // Never idle for an hour, and never urgent: the thread has chosen a zone and waits.
    let options = MountOptions {
        background: true,
        free_zones: "0..2".parse().unwrap(),
        ..paced("idle:1h")
    };
    let (store, clock) = half_dead(160, options);
    let objects = store.statfs().available_bytes * 8 / 10 / OBJECT as u64;
    for round in 0..4 {
        for name in 0..objects {
            clock.advance(Duration::from_millis(1));
            let name = format!("again {name}");
            put(&store, &name, &pattern(round, OBJECT)).unwrap();
        }
    }
    assert!(store.clean_status().zones_cleaned > 100);
    // An unmount ends the waiting thread at once.
    store.clean_start().unwrap();
    store.unmount().unwrap();
}

#[test]
fn outside_of_its_hours_only_what_is_urgent_is_cleaned() {
    let many = Watermarks {
        low: FreeZones::Percent(50),
        min: FreeZones::Count(1),
    };
    let options = MountOptions {
        hours: "22:00-06:00".parse().unwrap(),
        free_zones: many,
        ..options()
    };
    let (store, clock) = half_dead(500, options);
    let minute = u64::from(runtime::Clock::minute_of_day(&*clock));
    let until = |hour: u64| Duration::from_secs((hour * 60 + 1440 - minute) % 1440 * 60);
    let noon = until(12);
    clock.advance(noon);
    assert!(!store.clean_status().is_in_hours);
    assert!(!store.tend().unwrap());
    clock.advance(Duration::from_secs(11 * 3600));
    assert!(store.clean_status().is_in_hours);
    let mut why = None;
    store
        .tend_with(&mut |_| why = store.clean_status().in_hand.map(|zone| zone.why))
        .unwrap();
    assert_eq!(why, Some(Reason::Ahead));
    // A requested run is not bound to the hours.
    clock.advance(Duration::from_secs(12 * 3600));
    assert!(!store.tend().unwrap());
    store.clean_start().unwrap();
    assert!(store.tend().unwrap());
}
