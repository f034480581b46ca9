//! A cluster holds the background cleaner back, for a limited time, and never a writer that needs a zone.

use crate::common::*;
use runtime::SimulatedClock;
use std::sync::Arc;
use std::time::Duration;
use store::{
    CleanerChange, ClusterTurn, FreeZones, MountOptions, Reason, Store, Watermarks, ZoneInHand,
};

const OBJECT: usize = 128 << 10;

/// A store on a simulated clock, with a lot to clean ahead of need.
fn untidy(options: MountOptions) -> (Store, Arc<SimulatedClock>) {
    let (store, clock) = on_a_still_clock(options);
    half_dead(&store);
    (store, clock)
}

fn half_dead(store: &Store) {
    for name in 0..500 {
        put(store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    for name in (0..500).step_by(2) {
        remove(store, &name.to_string());
    }
}

fn remove(store: &Store, name: &str) {
    let mut tx = store::Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

fn ahead() -> MountOptions {
    MountOptions {
        free_zones: Watermarks {
            low: FreeZones::Percent(90),
            min: FreeZones::Count(1),
        },
        ..options()
    }
}

fn say(store: &Store, turn_seconds: u32, hold_seconds: u32) {
    store.clean_turn(ClusterTurn::new(turn_seconds, hold_seconds).unwrap());
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Puts make no bytes dead, and those that died before were too few zones ago.
#[test]
fn a_drive_that_only_new_objects_fill_asks_for_its_turn() {
    let low = FreeZones::Percent(50);
    let (store, _) = on_a_still_clock(MountOptions {
        free_zones: Watermarks {
            low,
            min: FreeZones::Count(1),
        },
        ..options()
    });
    for name in 0..100 {
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
    }
    (0..100)
        .step_by(2)
        .for_each(|name| remove(&store, &name.to_string()));
    assert!(!store.tend().unwrap());
    say(&store, 0, 300);
    let mut name = 1000;
    while !store.clean_status().waits_for_turn {
        let status = store.clean_status();
        assert!(status.free_now * 3 > status.data_zones, "{status:?}");
        put(&store, &name.to_string(), &pattern(name, OBJECT)).unwrap();
        store.tend().unwrap();
        name += 1;
    }
}

#[test]
fn a_held_cleaner_says_that_it_waits_and_a_turn_or_silence_lets_it_go_on() {
    let (store, clock) = untidy(ahead());
    let held = |store: &Store| {
        let cleaned = store.clean_status().zones_cleaned;
        assert!(!store.tend().unwrap());
        assert_eq!(store.clean_status().zones_cleaned, cleaned);
        store.clean_status()
    };
    assert!(!store.clean_status().waits_for_turn);
    say(&store, 0, 10);
    let status = held(&store);
    assert!(status.waits_for_turn && status.is_held() && !status.is_urgent);
    assert_eq!((status.turn_seconds, status.hold_seconds), (0, 10));
    assert!(status.spare_zones > 0);
    assert_eq!(
        status.lines()[0],
        "cleaner: held back while other drives of the cluster clean, for 10 s at most"
    );

    say(&store, 5, 20);
    let status = store.clean_status();
    assert!(!status.waits_for_turn && !status.is_held());
    assert!(store.tend().unwrap());
    // The turn ends after 5 s, and the hold of 20 s is renewed before it ends.
    clock.advance(seconds(5));
    assert!(held(&store).waits_for_turn);
    clock.advance(seconds(14));
    say(&store, 0, 10);
    clock.advance(seconds(9));
    assert!(held(&store).waits_for_turn);

    // Without a renewal, the hold ends.
    clock.advance(seconds(1));
    assert!(store.tend().unwrap());
    assert_eq!(store.clean_status().hold_seconds, 0);
    say(&store, 0, 300);
    held(&store);
    say(&store, 0, 0);
    assert!(store.tend().unwrap());
    assert_clean(&store);
}

#[test]
fn a_zone_in_hand_is_left_behind_what_was_copied_when_the_turn_ends() {
    let (store, clock) = untidy(ahead());
    say(&store, 10, 60);
    let mut calls = 0;
    let is_done = store.tend_with(&mut |_| {
        calls += 1;
        assert_eq!(
            store.clean_status().in_hand.map(|zone| zone.why),
            Some(Reason::Ahead)
        );
        if calls == 5 {
            clock.advance(seconds(10));
        }
    });
    assert!(!is_done.unwrap());
    let left = store.clean_status();
    assert!(left.bytes_moved > 0 && left.in_hand.is_none());
    assert_eq!(left.zones_cleaned, 0);
    // A zone whose live bytes had all been copied by then is reset without a turn.
    while store.tend().unwrap() {}
    let held = store.clean_status();
    assert!(held.waits_for_turn);
    assert_eq!(held.bytes_moved, left.bytes_moved);
    say(&store, 10, 60);
    assert!(store.tend().unwrap());
    assert!(store.clean_status().bytes_moved > left.bytes_moved);
    assert_clean(&store);
}

#[test]
fn what_is_urgent_is_not_held_back() {
    let (store, _) = untidy(ahead());
    say(&store, 0, 60);
    assert!(!store.tend().unwrap());
    store.clean_change(CleanerChange {
        free_zones: Some("90%..90%".parse().unwrap()),
        ..CleanerChange::default()
    });
    let status = store.clean_status();
    assert!(status.is_urgent && !status.is_held());
    assert_eq!(status.spare_zones, 0);
    let mut why = None;
    let look = &mut |_| why = store.clean_status().in_hand.map(|zone| zone.why);
    assert!(store.tend_with(look).unwrap());
    assert_eq!(why, Some(Reason::Urgent));
}

#[test]
fn zones_without_live_data_are_reset_whoever_has_the_turn() {
    let (store, _) = untidy(ahead());
    say(&store, 0, 60);
    for name in (1..500).step_by(2) {
        remove(&store, &name.to_string());
    }
    assert!(store.tend().unwrap());
    while store.tend().unwrap() {}
    let status = store.clean_status();
    assert!(status.zones_cleaned > 5);
    assert_eq!(status.bytes_moved, 0);
    assert!(!status.waits_for_turn, "what is left is the open zone");
    assert_clean(&store);
}

#[test]
fn what_somebody_asks_for_is_not_held_back() {
    let (store, _) = untidy(ahead());
    say(&store, 0, 60);
    assert!(!store.tend().unwrap());
    assert!(store.clean_one().unwrap());
    store.clean_start().unwrap();
    while store.tend().unwrap() {}
    assert_eq!(store.clean_status().dirty_zones, 0);
    assert_clean(&store);
}

/// Overwrites 90 % of the available space ten times. Returns the number of zones that were cleaned.
fn overwritten(background: bool, hold_seconds: u32) -> u64 {
    let options = MountOptions {
        background,
        ..ahead()
    };
    let (store, _) = untidy(options);
    let objects = store.statfs().available_bytes * 9 / 10 / OBJECT as u64;
    say(&store, 0, hold_seconds);
    for round in 0..10 {
        for name in 0..objects {
            // Every put succeeds, although the hold never ends: the clock stands still.
            put(&store, &format!("again {name}"), &pattern(round, OBJECT)).unwrap();
        }
    }
    let cleaned = store.clean_status().zones_cleaned;
    assert_eq!(store.clean_status().hold_seconds, hold_seconds);
    assert_clean(&store);
    cleaned
}

#[test]
fn no_put_fails_for_a_hold_that_never_ends() {
    for background in [false, true] {
        for hold_seconds in [300, 0] {
            assert!(overwritten(background, hold_seconds) > 100);
        }
    }
}

#[test]
fn the_thread_leaves_its_zone_when_its_turn_ends() {
    let options = MountOptions {
        background: true,
        pace: "1MiB/s".parse().unwrap(),
        ..ahead()
    };
    let (store, clock) = on_a_still_clock(options);
    say(&store, 10, 300);
    half_dead(&store);
    let waits = |zone: ZoneInHand| zone.waits;
    while !store.clean_status().in_hand.is_some_and(waits) {
        std::thread::yield_now();
    }
    clock.advance(seconds(10));
    while !store.clean_status().waits_for_turn {
        std::thread::yield_now();
    }
    assert_eq!(store.clean_status().in_hand, None);
    store.unmount().unwrap();
}

#[test]
fn the_thread_hears_of_a_turn() {
    let options = MountOptions {
        background: true,
        ..ahead()
    };
    let (store, _) = untidy(options);
    store.clean_start().unwrap();
    while store.clean_status().dirty_zones > 0 {
        std::thread::yield_now();
    }
    say(&store, 0, 300);
    for name in (1..500).step_by(4) {
        remove(&store, &name.to_string());
    }
    while !store.clean_status().waits_for_turn {
        std::thread::yield_now();
    }
    let before = store.clean_status().zones_cleaned;
    say(&store, 300, 300);
    while store.clean_status().zones_cleaned == before {
        std::thread::yield_now();
    }
    store.unmount().unwrap();
}
