//! The conformance suite on every drive there is, bare and wrapped.

#![allow(clippy::unwrap_used)]

use device::faults::Faults;
use device::stats::Stats;
use device::trace::Trace;
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use device_conformance::{Subject, run};
use std::sync::Arc;
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind};

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

/// Where zones are smaller than what a case writes, that is said.
#[test]
fn zones_of_any_size_are_tried_as_far_as_they_go() {
    for capacity in 1..=16_u64 {
        for max_append_blocks in [0, 4] {
            let geometry = Geometry {
                block_size: 4096,
                zone_size: capacity.next_power_of_two() * 4096,
                zone_capacity: capacity * 4096,
                zone_count: 16,
                conventional_zones: 2,
                conventional_parts: 1,
                sequential_kind: ZoneKind::SequentialWriteRequired,
                max_open_zones: 0,
                max_active_zones: 0,
                max_append_bytes: max_append_blocks * 4096,
            };
            let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
            let tried = device_conformance::run_on(drive);
            assert_eq!(tried.is_ok(), capacity >= 12, "{capacity}: {tried:?}");
        }
    }
}
