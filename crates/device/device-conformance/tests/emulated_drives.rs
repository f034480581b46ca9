//! The conformance suite on every drive there is, bare and wrapped.

#![allow(clippy::unwrap_used)]

use device::faults::Faults;
use device::stats::Stats;
use device::trace::Trace;
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use device_conformance::{Subject, run};
use std::sync::Arc;
use zone::{Geometry, ZoneCondition, ZoneId};

fn subject<D: ZonedDevice + 'static>(
    device: D,
    break_zone: impl Fn(&D, ZoneId, ZoneCondition) + 'static,
) -> Subject {
    let device = Arc::new(device);
    let broken = Arc::clone(&device);
    Subject {
        device: Box::new(device),
        break_zone: Some(Box::new(move |zone, to| break_zone(&broken, zone, to))),
    }
}

#[test]
fn memory() {
    run(&|geometry| {
        subject(MemoryDrive::new(geometry).unwrap(), |drive, zone, to| {
            drive.set_condition(zone, to).unwrap();
        })
    });
}

#[test]
fn file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    run(&|geometry| {
        let _ = std::fs::remove_file(&path);
        subject(
            FileDrive::create(&path, &geometry, "").unwrap(),
            |drive, zone, to| {
                drive.set_condition(zone, to).unwrap();
            },
        )
    });
}

#[test]
fn power_cut() {
    run(&|geometry| {
        subject(PowerCut::new(geometry).unwrap(), |drive, zone, to| {
            drive.set_condition(zone, to).unwrap();
        })
    });
}

#[test]
fn a_drive_after_a_power_cut() {
    let restarted = |geometry: Geometry| {
        let drive = PowerCut::new(geometry).unwrap();
        drive.restart(&drive.random_crash_state(0))
    };
    run(&|geometry| {
        subject(restarted(geometry), |drive, zone, to| {
            drive.set_condition(zone, to).unwrap()
        })
    });
}

#[test]
fn all_wrappers_on_top_of_each_other() {
    run(&|geometry| {
        let memory = MemoryDrive::new(geometry).unwrap();
        let wrapped = Trace::new(Stats::new(memory), Arc::new(|_| {}));
        subject(Faults::new(wrapped), Faults::break_zone)
    });
}
