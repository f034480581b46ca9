//! A client's cleaning job: it is told what was done for it, ends when another client stops the cleaner, and does not
//! delay other jobs.

use crate::common::*;
use device::wrap::faults::{Fault, Gate, Plan};
use store::{CleanerChange, CleaningReport, CleaningWork, Reason, Store, Transaction};
use zone::ZoneCommand;

const OBJECT: usize = 300_000;

/// A store of objects `0..objects` without those that `goes` selects.
fn with_dead(objects: u64, goes: impl Fn(u64) -> bool) -> (FailingDrive, Store) {
    let (drive, store) = on_failing_drive(96);
    for i in 0..objects {
        put(&store, &i.to_string(), &pattern(i, OBJECT)).unwrap();
    }
    for i in (0..objects).filter(|i| goes(*i)) {
        let mut tx = Transaction::new();
        tx.remove("c", i.to_string());
        store.commit(tx).unwrap();
    }
    store.seal_open_zones().unwrap();
    (drive, store)
}

#[test]
fn each_zone_counts_for_whoever_asked_for_it() {
    let (_, store) = with_dead(24, |i| i % 2 == 0);
    let job = store.clean_status().job;
    let mut report = CleaningReport::default();
    assert!(report.add(store.clean_step(job).unwrap()));
    assert_eq!(report.did.zones_cleaned, 1);
    // Another client's request, in between.
    store.clean_start().unwrap();
    assert!(store.tend().unwrap());
    assert!(report.add(store.clean_step(job).unwrap()));
    assert_eq!((report.did.zones_cleaned, report.zones.len()), (2, 2));
    while store.tend().unwrap() {}
    assert!(!report.add(store.clean_step(job).unwrap()));
    let status = store.clean_status();
    let mut all = report.did;
    all += status.started;
    assert!(all.zones_cleaned > 3 && status.started.bytes_moved > 0);
    let (zones_cleaned, bytes_moved) = (status.zones_cleaned, status.bytes_moved);
    let bytes_freed = status.bytes_freed;
    let totals = CleaningWork {
        zones_cleaned,
        bytes_moved,
        bytes_freed,
    };
    assert_eq!(all, totals);
    assert_clean(&store);
}

#[test]
fn a_step_resets_one_zone_even_of_those_without_live_bytes() {
    let (_, store) = with_dead(24, |_| true);
    let dead = store.clean_status().dirty_zones;
    assert!(dead > 4, "{dead}");
    let step = store.clean_step(store.clean_status().job).unwrap();
    assert_eq!(step.did.zones_cleaned, 1);
    assert!(step.zone.is_some() && step.did.bytes_moved == 0);
    assert_eq!(store.clean_status().dirty_zones, dead - 1);
}

#[test]
fn a_stop_ends_the_jobs_that_there_are_in_the_middle_of_a_zone_and_no_later_one() {
    let (drive, store) = with_dead(24, |i| i % 2 == 0);
    let job = store.clean_status().job;
    let gate = Gate::new();
    // The first read of a zone of objects: threads of RocksDB may read those of the metadata meanwhile.
    for used in store.zones() {
        let stuck = Fault::Stuck(gate.clone());
        drive.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(used.zone));
    }
    let step = std::thread::scope(|scope| {
        let cleaning = scope.spawn(|| store.clean_step(job).unwrap());
        gate.wait_until_stuck(1);
        store.clean_stop();
        gate.release();
        cleaning.join().unwrap()
    });
    assert!(step.stopped && step.zone.is_none());
    assert_eq!(step.did.zones_cleaned, 0);
    let again = store.clean_step(job).unwrap();
    assert!(again.stopped && again.did == CleaningWork::default());
    let later = store.clean_step(store.clean_status().job).unwrap();
    assert!(!later.stopped && later.zone.is_some());
    assert_clean(&store);
}

#[test]
fn where_zones_are_short_that_is_the_reason_whatever_was_asked_for() {
    let (_, store) = with_dead(24, |i| i % 2 == 0);
    store.clean_start().unwrap();
    let mut seen = Vec::new();
    store
        .tend_with(&mut |_| {
            let status = store.clean_status();
            seen.extend(status.in_hand.map(|zone| zone.why));
            // More free zones than the drive has.
            store.clean_change(CleanerChange {
                free_zones: Some("5000..5000".parse().unwrap()),
                ..CleanerChange::default()
            });
        })
        .unwrap();
    assert_eq!(seen[0], Reason::Asked);
    assert_eq!(seen.last(), Some(&Reason::Urgent));
    let status = store.clean_status();
    let all = status.data_zones;
    let most = (all * 9).div_ceil(10);
    let words = format!("5000..5000 ({most}..{most} of {all}, ");
    assert!(status.held_to().contains(&words), "{}", status.held_to());
}
