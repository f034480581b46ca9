//! Where an interrupted pass resumes, what stops it, and which read errors are no damage.

use super::{all, fresh, wait_for, with_plan, with_thread};
use crate::common::{assert_clean, mount, on_failing_drive, pattern, put};
use device::wrap::faults::{Fault, Plan};
use std::collections::BTreeSet;
use store::{Pace, ScrubPlan};
use zone::{ZoneCommand, ZoneCondition};

#[test]
fn a_pass_goes_on_where_it_was_left() {
    let (_, device, mut store) = fresh();
    for number in 0..60 {
        put(
            &store,
            &format!("object {number}"),
            &pattern(number, 100_000),
        )
        .unwrap();
    }
    let live: u64 = store.zones().iter().map(|zone| zone.live_bytes).sum();
    let (mut passes, mut asked) = (0, 0);
    loop {
        let mut left = 2_500_000;
        let is_done = store.scrub(true, |bytes| {
            left -= bytes.cast_signed();
            asked += bytes;
            left >= 0
        });
        passes += 1;
        let status = store.scrub_status().unwrap();
        assert!(status.metadata_micros.is_some());
        assert_eq!(
            status.data_micros.is_some(),
            is_done.as_ref().is_ok_and(|d| *d)
        );
        if is_done.unwrap() {
            break;
        }
        assert!(status.began_micros.is_some());
        store.unmount().unwrap();
        store = mount(&device);
    }
    assert!(passes > 2, "{passes}");
    let status = store.scrub_status().unwrap();
    assert!(status.bytes_read >= live - live / 20, "{status:?}, {live}");
    // A zone is read again from its start.
    assert!(asked < 2 * live, "{asked}, {live}");
    assert_clean(&store);
}

#[test]
fn a_running_scrub_is_stopped_and_goes_on_where_it_was() {
    let (drive, device, store) = fresh();
    for number in 0..600 {
        let data = pattern(number, 100_000);
        put(&store, &format!("object {number}"), &data).unwrap();
    }
    store.unmount().unwrap();
    // At this rate the pass would take more than a minute and a half.
    let store = with_thread(&device, Pace::Rate(600 << 10));
    store.scrub_start(true).unwrap();
    let running = wait_for(&store, |status| status.bytes_read > 0);
    assert!(running.running && running.began_micros.is_some());
    store.scrub_stop().unwrap();
    let stopped = wait_for(&store, |status| !status.running);
    assert!(!stopped.requested && stopped.data_micros.is_none());
    assert_eq!(stopped.began_micros, running.began_micros);
    let read = stopped.bytes_read;
    assert!(0 < read && read < stopped.bytes_all / 2, "{stopped:?}");
    // Requested again, it is the same pass.
    store.scrub_start(true).unwrap();
    let again = wait_for(&store, |status| status.zone.is_some());
    assert_eq!(again.began_micros, running.began_micros);
    assert!(again.bytes_read >= read, "{again:?}");
    store.scrub_stop().unwrap();
    wait_for(&store, |status| !status.running);
    store.unmount().unwrap();
    // The pass is kept through a mount.
    let store = with_thread(&device, Pace::Full);
    assert_eq!(
        store.scrub_status().unwrap().began_micros,
        running.began_micros
    );
    let zones = store.zones();
    let first = zones.iter().find(|zone| zone.live_bytes > 0).unwrap();
    drive
        .set_condition(first.zone, ZoneCondition::Offline)
        .unwrap();
    store.scrub_start(true).unwrap();
    let done = wait_for(&store, |status| status.data_micros.is_some());
    // Zones that it has read before are not read again.
    assert_eq!((done.damaged_places, done.began_micros), (0, None));
    assert!(done.bytes_read > read);
    store.scrub_start(true).unwrap();
    let next = wait_for(&store, |status| status.data_micros > done.data_micros);
    assert!(next.damaged_places > 0, "{next:?}");
    store.unmount().unwrap();
}

/// A requested pass that a kill of the server has interrupted resumes after the mount, although none is due.
#[test]
fn a_pass_that_was_cut_short_goes_on_by_itself() {
    let (_, device, store) = fresh();
    for number in 0..60 {
        put(&store, &format!("o{number}"), &pattern(number, 100_000)).unwrap();
    }
    store.unmount().unwrap();
    let with = |data_every| {
        let never = ScrubPlan::NEVER;
        with_plan(
            &device,
            ScrubPlan {
                data_every,
                ..never
            },
        )
    };
    // No pass is due.
    let store = with(None);
    all(&store);
    let last = store.scrub_status().unwrap().data_micros;
    let mut zones = BTreeSet::new();
    let done = store.scrub(true, |_| {
        zones.extend(store.scrub_status().unwrap().zone);
        zones.len() < 3
    });
    assert!(!done.unwrap());
    store.unmount().unwrap();
    let year = std::time::Duration::from_hours(24 * 365);
    let store = with(Some(year));
    let done = wait_for(&store, |status| {
        status.began_micros.is_none() && !status.running
    });
    assert!(done.data_micros > last, "{done:?}");
    store.unmount().unwrap();
}

/// A pass that was stopped is not resumed by a restart, but when the next pass is due, counted from the stop, or on
/// request.
#[test]
fn a_pass_that_was_stopped_stays_so_over_restarts() {
    let (_, device, store) = fresh();
    put(&store, "o", &pattern(1, 300_000)).unwrap();
    assert!(
        !store
            .scrub(true, |_| store.scrub_status().unwrap().zone.is_none())
            .unwrap()
    );
    store.scrub_stop().unwrap();
    let stopped = store.scrub_status().unwrap();
    assert!(stopped.began_micros.is_some() && stopped.stopped_micros.is_some());
    store.unmount().unwrap();
    let with = |hours: u64| {
        let every = Some(std::time::Duration::from_hours(hours));
        let plan = ScrubPlan {
            metadata_every: every,
            data_every: every,
            pace: Pace::Full,
        };
        with_plan(&device, plan)
    };
    // No pass is due.
    let year = 24 * 365 * 100;
    let store = with(year);
    assert_eq!(store.scrub_status().unwrap(), stopped);
    store.scrub_start(true).unwrap();
    wait_for(&store, |status| status.data_micros.is_some());
    store.scrub_stop().unwrap();
    store.unmount().unwrap();
    let store = with(year);
    assert!(store.scrub_status().unwrap().stopped_micros.is_some());
    store.scrub_start(false).unwrap();
    wait_for(&store, |status| {
        status.metadata_micros > stopped.metadata_micros
    });
    store.unmount().unwrap();
    let store = with(year);
    assert_eq!(store.scrub_status().unwrap().stopped_micros, None);
    assert!(
        !store
            .scrub(true, |_| store.scrub_status().unwrap().zone.is_none())
            .unwrap()
    );
    store.scrub_stop().unwrap();
    let stopped = store.scrub_status().unwrap();
    store.unmount().unwrap();
    // A pass is due, and resumes the stopped one.
    let store = with(0);
    let done = wait_for(&store, |status| status.data_micros > stopped.data_micros);
    assert!(done.stopped_micros.is_none(), "{done:?}");
    store.unmount().unwrap();
}

/// A read that fails once is repeated, and is no damage.
#[test]
fn a_read_that_fails_once_is_made_again() {
    let (drive, store) = on_failing_drive(96);
    for index in 0..6 {
        put(&store, &format!("o{index}"), &pattern(index, 100_000)).unwrap();
    }
    let zone = store.zones()[0].zone;
    for kth in 1..=6 {
        drive.clear();
        let fault = Fault::Io(std::io::ErrorKind::Other);
        drive.add(Plan::at(ZoneCommand::Read, kth, fault).in_zone(zone));
        let before = drive.struck();
        all(&store);
        assert_eq!(drive.struck(), before + 1, "read {kth}");
        let health = store.health().unwrap();
        assert_eq!((health.lost_objects, health.is_healthy()), (0, true));
        assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
    }
}
