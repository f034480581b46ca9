//! Models as zoned devices.
#![allow(clippy::unwrap_used)]

use device::conformance::{Subject, run};
use device::pace::Clock;
use device::{MemoryDrive, ZonedDevice};
use drive_model::{
    FlashProfile, Model, Profile, Timed, TimedError, VirtualClock, ZonedDisk, profile,
};
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
        device: Box::new(Timed::in_memory(disk(geometry), VirtualClock::default()).unwrap()),
        break_zone: None,
    });
}

/// Runs something and says how much virtual time it took.
fn took<D: ZonedDevice>(drive: &Timed<D, VirtualClock>, run: impl FnOnce()) -> Duration {
    let before = drive.clock().now();
    run();
    drive.clock().now() - before
}

#[test]
fn commands_take_the_models_time_and_keep_their_data() {
    let model = profile::model("zns-zn540", 1).unwrap();
    let drive = Timed::in_memory(model, VirtualClock::default()).unwrap();
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
    let drive = Timed::in_memory(model, VirtualClock::default()).unwrap();
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
    let clock = VirtualClock::default;
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
