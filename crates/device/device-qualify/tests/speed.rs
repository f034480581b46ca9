//! Every probe measures something, on drives of every shape.

use device::{MemoryDrive, ZonedDevice};
use device_qualify::report::{Conformance, Report, remarks};
use device_qualify::speed::{self, Options};
use runtime::Runtime;
use std::time::Duration;
use zone::{Geometry, ZoneId, ZoneKind};

fn geometry(zone_count: u32, conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 4 << 20,
        zone_capacity: 3 << 20,
        zone_count,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

#[test]
fn every_probe_measures_something() {
    let options = Options {
        zones: 4,
        most_time: Duration::from_millis(20),
    };
    for (zones, conventional, active) in [(1, 0, 0), (2, 0, 1), (5, 2, 2), (40, 4, 14), (40, 0, 0)]
    {
        let geometry = geometry(zones, conventional, active);
        let drive = MemoryDrive::new(geometry.clone()).unwrap();
        let mut told = 0;
        let speed =
            speed::measure(&drive, &Runtime::system(), options, &mut |_| told += 1).unwrap();
        assert_eq!(told, speed.len());
        for probe in [
            "write in order",
            "read in order",
            "read at random",
            "write and flush",
            "reset",
            "report",
        ] {
            assert!(
                speed.iter().any(|measured| measured.probe == probe),
                "{probe} {geometry:?}"
            );
        }
        for measured in &speed {
            assert!(
                measured.commands > 0 && measured.latency_us.is_some(),
                "{measured:?}"
            );
            assert!(
                measured.row().iter().all(|cell| !cell.contains("inf")),
                "{measured:?}"
            );
        }
        let conformance = Conformance::NotRun {
            why: "not asked for".to_owned(),
        };
        let remarks = remarks(&geometry, &conformance, &[]);
        let report = Report {
            facts: vec![("path", "a|b".into())],
            geometry,
            conformance,
            speed,
            power: Vec::new(),
            remarks,
        };
        assert_eq!(report.is_fit(), active == 0 || active >= 8);
        let text = report.to_string();
        assert!(
            text.contains("a\\|b") && text.contains("None was tried."),
            "{text}"
        );
    }
}

#[test]
fn a_drive_without_sequential_zones_has_only_its_report() {
    let options = Options {
        zones: 4,
        most_time: Duration::from_millis(20),
    };
    let drive = MemoryDrive::new(geometry(4, 4, 0)).unwrap();
    let speed = speed::measure(&drive, &Runtime::system(), options, &mut |_| ()).unwrap();
    let probes: Vec<_> = speed.iter().map(|measured| measured.probe).collect();
    assert_eq!(probes, ["report"]);
}

/// A zone that is partly written when the time is up is active.
#[test]
fn a_place_leaves_no_active_zone_to_the_next_one() {
    let options = Options {
        zones: 8,
        most_time: Duration::from_nanos(1),
    };
    for active in 1..6 {
        let drive = MemoryDrive::new(geometry(40, 4, active)).unwrap();
        speed::measure(&drive, &Runtime::system(), options, &mut |_| ()).unwrap();
        let zones = drive.report(ZoneId(0), 40).unwrap();
        assert!(!zones.iter().any(|zone| zone.condition.is_active()));
    }
}

#[test]
fn reads_at_random_are_counted_whatever_their_size() {
    let options = Options {
        zones: 4,
        most_time: Duration::from_millis(20),
    };
    let geometry = Geometry {
        block_size: 16 << 10,
        ..geometry(40, 4, 14)
    };
    let drive = MemoryDrive::new(geometry).unwrap();
    let speed = speed::measure(&drive, &Runtime::system(), options, &mut |_| ()).unwrap();
    let at_random = speed.iter().filter(|one| one.probe == "read at random");
    for (measured, at_once) in at_random.zip([1, 32]) {
        let reads = measured.bytes / (16 << 10);
        assert_eq!(
            (measured.commands * at_once, measured.requests),
            (reads, reads)
        );
        let rate = format!("{:.0} reads/s", reads as f64 / measured.seconds);
        assert_eq!(measured.row()[2], rate);
    }
}
