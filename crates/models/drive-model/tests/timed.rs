//! Models as zoned devices.

use device::{MemoryDrive, ZonedDevice};
use device_conformance::{Subject, run};
use drive_model::flash::ManagementShape;
use drive_model::{FlashProfile, Model, Profile, Timed, TimedError, ZonedDisk, profile};
use proptest::prelude::*;
use runtime::{Clock, SimulatedClock};
use std::time::Duration;
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneId};

/// A disk with the zones that are asked for, on mechanics with room for them.
fn disk(geometry: Geometry) -> Box<dyn Model> {
    let mut profile = Profile::named("seagate-cmr").unwrap();
    profile.capacity_bytes = geometry.size_bytes();
    let drive = profile.drive(1).unwrap();
    Box::new(ZonedDisk::new(drive, geometry).unwrap())
}

#[test]
fn a_timed_drive_is_as_strict_as_the_rule_book() {
    run(&|geometry| Subject {
        device: Box::new(Timed::in_memory(disk(geometry), SimulatedClock::default()).unwrap()),
        break_zone: None,
    });
}

/// Runs something and says how much virtual time it took.
fn took<D: ZonedDevice>(drive: &Timed<D, SimulatedClock>, run: impl FnOnce()) -> Duration {
    let before = drive.clock().now();
    run();
    drive.clock().now() - before
}

#[test]
fn commands_take_the_models_time_and_keep_their_data() {
    let model = profile::model("zns-zn540", 1).unwrap();
    let drive = Timed::in_memory(model, SimulatedClock::default()).unwrap();
    let zone = ZoneId(7);
    let start = drive.geometry().start(zone);
    let us = |micros| Duration::from_nanos((micros * 1e3) as u64);
    let written = took(&drive, || drive.write(start, &[1; 4096]).unwrap());
    assert!(written > us(11.7) && written < us(11.8), "{written:?}");
    let appended = took(&drive, || {
        let at = drive.append(zone, &[2; 4096]).unwrap();
        assert_eq!(at, ByteOffset(start.0 + 4096));
    });
    assert!(appended > us(15.2) && appended < us(15.3), "{appended:?}");
    let mut back = [0; 8192];
    drive.read(start, &mut back).unwrap();
    assert_eq!((back[0], back[8191]), (1, 2));
    let finished = took(&drive, || drive.finish(zone).unwrap());
    assert!(finished > us(900e3) && finished < us(910e3), "{finished:?}");
    let reset = took(&drive, || drive.reset(zone).unwrap());
    assert!(reset > us(1.5e3) && reset < us(1.7e3), "{reset:?}");
    // What is refused takes no time, and the model does not hear of it.
    let refused = took(&drive, || {
        drop(drive.append(ZoneId(904), &[0; 4096]).unwrap_err())
    });
    assert_eq!(refused, Duration::ZERO);
    assert_eq!(drive.with_model(|model| model.statistics().writes), 2);
    let zones = drive.with_model(|model| model.zones().unwrap().report(zone, 1));
    assert_eq!(zones, drive.report(zone, 1).unwrap());
    assert_eq!(zones[0].condition, ZoneCondition::Empty);
}

#[test]
fn reads_that_come_at_once_take_less_time() {
    let model = profile::model("hm-smr-14tb", 1).unwrap();
    let drive = Timed::in_memory(model, SimulatedClock::default()).unwrap();
    let zone = |n: u32| drive.geometry().start(ZoneId(n * 1_000 + 1_000));
    for n in 0..16 {
        drive.write(zone(n), &[n as u8; 4096]).unwrap();
    }
    drive.flush().unwrap();
    let mut buffers = [[0u8; 4096]; 16];
    let single = took(&drive, || {
        for (n, buffer) in (0..).zip(&mut buffers) {
            drive.read(zone(n * 7 % 16), buffer).unwrap();
        }
    });
    let mut reads: Vec<_> = (0..)
        .zip(&mut buffers)
        .map(|(n, buffer)| (zone(n * 7 % 16), &mut buffer[..]))
        .collect();
    let together = took(&drive, || drive.read_many(&mut reads).unwrap());
    assert!(together < single * 3 / 4, "{together:?} {single:?}");
    assert_eq!(buffers[3][0], 5);
}

#[test]
fn model_and_data_have_to_match() {
    let clock = SimulatedClock::default;
    let plain = Box::new(Profile::named("seagate-cmr").unwrap().drive(1).unwrap());
    assert_eq!(
        Timed::in_memory(plain, clock()).unwrap_err(),
        TimedError::NoZones
    );
    let model = || Box::new(FlashProfile::named("zns-zn540").unwrap().drive().unwrap());
    let geometry = model().zones().unwrap().geometry().clone();
    let other = Geometry {
        zone_count: 3,
        ..geometry.clone()
    };
    let other = MemoryDrive::new(other).unwrap();
    let error = Timed::new(other, model(), clock()).unwrap_err();
    assert_eq!(error, TimedError::OtherGeometry);
    let used = MemoryDrive::new(geometry).unwrap();
    used.append(ZoneId(5), &[0; 4096]).unwrap();
    let error = Timed::new(used, model(), clock()).unwrap_err();
    assert_eq!(error, TimedError::NotNew { zone: ZoneId(5) });
}

/// Eight zones of twelve blocks, four of them active at a time, program units of three blocks.
fn small_zns() -> Box<dyn Model> {
    let mut profile = FlashProfile::named("zns-zn540").unwrap();
    let flash = &mut profile.flash;
    (flash.channels, flash.dies_per_channel, flash.planes) = (1, 2, 1);
    (flash.page_bytes, flash.programs_per_block) = (4096, 2);
    if let ManagementShape::Zoned(zones) = &mut profile.management {
        (zones.zones, zones.zone_size_bytes) = (8, 16 * 4096);
        (zones.max_open_zones, zones.max_active_zones) = (3, 4);
        zones.max_append_bytes = 8 * 4096;
    }
    Box::new(profile.drive().unwrap())
}

proptest! {
    /// The model and a drive in memory allow and refuse the same, and say the same of their zones.
    #[test]
    fn a_zns_model_goes_in_step_with_a_drive(
        steps in prop::collection::vec((0..7u8, 0u32..8, 1usize..9), 1..200),
    ) {
        let drive = Timed::in_memory(small_zns(), SimulatedClock::default()).unwrap();
        let mut byte = 0u8;
        for (command, zone, blocks) in steps {
            let zone = ZoneId(zone);
            let start = drive.geometry().start(zone).0;
            let at = ByteOffset(start + drive.report_zone(zone).unwrap().write_pointer);
            byte = byte.wrapping_add(1);
            let data = vec![byte; blocks * 4096];
            let before = drive.clock().now();
            let done = match command {
                0 => drive.open(zone),
                1 => drive.close(zone),
                2 => drive.finish(zone),
                3 => drive.reset(zone),
                4 => drive.read(ByteOffset(start), &mut data.clone()),
                5 => drive.append(zone, &data).map(drop),
                _ => drive.write(at, &data),
            };
            prop_assert_eq!(done.is_ok(), drive.clock().now() > before);
            let model = drive.with_model(|model| model.zones().unwrap().report(ZoneId(0), 8));
            prop_assert_eq!(model, drive.report(ZoneId(0), 8).unwrap());
        }
        let flash = drive.with_model(|model| model.statistics());
        prop_assert!(flash.flash.programmed_blocks <= flash.written_blocks + flash.flash.padded_blocks);
    }
}
