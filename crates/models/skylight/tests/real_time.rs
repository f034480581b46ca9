//! The path of a device of the host (threads, watchdog, limits), with a model and a clock from outside:
//! what is found is what is found in virtual time, and whatever goes wrong ends in an error that says
//! so, with what was found until then.
#![allow(clippy::unwrap_used)]

mod simulated;

use drive_model::Span;
use rustix::io::Errno;
use simulated::{Delay, Fault, model, target, with};
use skylight::finding::{DriveType, Size};
use skylight::reading::{read, rows};
use skylight::target::real::Limits;
use skylight::target::{Told, Zoned};
use skylight::{Findings, Model, Options, Random, Target, TargetError, examine};
use std::sync::atomic::Ordering;

const FULL: Options = Options {
    quick: false,
    seed: 7,
};
const QUICK: Options = Options {
    quick: true,
    seed: 7,
};

fn look(
    name: &str,
    fault: Fault,
    delay: Delay,
    options: Options,
) -> (Findings, Result<(), TargetError>) {
    let drive = with(model(name), fault, delay, Told::default());
    let mut target = target(&drive, Limits::default());
    let (found, _, result) = examine(&mut target, options, &mut |_| {});
    (found, result)
}

fn kind(found: &Findings) -> Option<DriveType> {
    found.drive_type.map(|kind| kind.value)
}

fn near(found: Option<u64>, expected: Option<u64>) {
    let (found, expected) = (found.unwrap() as f64, expected.unwrap() as f64);
    assert!((found / expected - 1.0).abs() < 0.01, "{found}, {expected}");
}

#[test]
fn the_seagate_drive_is_found_out_as_in_virtual_time() {
    let name = "st5000as0011";
    let mut virtually = Model::named(name, 1).unwrap();
    let (expected, _, result) = examine(&mut virtually, FULL, &mut |_| {});
    assert_eq!(result, Ok(()));
    // It cannot be erased, so it is left alone until it has cleaned; nor can its caches be switched.
    let (found, result) = look(name, Fault::Stubborn, Delay::None, FULL);
    assert_eq!(result, Ok(()));
    assert_eq!(kind(&found), kind(&expected));
    let values = |f: &Findings| {
        (
            f.cache_type.unwrap().value,
            f.cache_place.unwrap().value,
            f.cleaning.unwrap().value,
            f.fifo.unwrap().value,
            f.circular_log.unwrap().value,
            f.mapping.unwrap().value,
            f.stream_bytes,
        )
    };
    assert_eq!(values(&found), values(&expected));
    near(found.writes_until_full, expected.writes_until_full);
    let value = |size: Option<Size>| size.map(|size| size.value);
    near(value(found.map_entries), value(expected.map_entries));
    near(value(found.cache_bytes), value(expected.cache_bytes));
    for (found, expected) in found.band_bytes.iter().zip(&expected.band_bytes) {
        near(Some(*found), Some(*expected));
    }
    println!("{} s of the drive's time", found.seconds);
    assert!(found.seconds < 86_400.0, "{} s", found.seconds);
}

#[test]
fn a_drive_that_is_smaller_than_it_says_is_told() {
    let bytes = model("seagate-cmr").blocks() * 4096;
    let end = bytes / 5 * 3;
    let (_, result) = look("seagate-cmr", Fault::Ends(end), Delay::None, QUICK);
    assert_eq!(
        result,
        Err(TargetError::Ends {
            reported: bytes,
            found: end / 4096 * 4096
        })
    );
    let (_, result) = look("seagate-cmr", Fault::Wraps(1 << 36), Delay::None, QUICK);
    let Err(TargetError::Wraps { at, found, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!((at - found) % (1 << 36), 0);
    let (_, result) = look("seagate-cmr", Fault::Forgets(1 << 36), Delay::None, QUICK);
    assert!(
        matches!(result, Err(TargetError::Forgets { .. })),
        "{result:?}"
    );
}

#[test]
fn the_systems_own_error_is_passed_on() {
    // Nothing can be read: that says nothing of the size.
    let (_, result) = look(
        "seagate-cmr",
        Fault::Error(0, Errno::NOENT),
        Delay::None,
        QUICK,
    );
    let error = result.unwrap_err();
    assert!(
        matches!(error, TargetError::Failed { at: 0, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("No such file"), "{error}");
    // A write that fails is not only «refused».
    let (_, result) = look(
        "seagate-cmr",
        Fault::Error(300, Errno::IO),
        Delay::None,
        QUICK,
    );
    let error = result.unwrap_err().to_string();
    assert!(error.contains("nput/output error"), "{error}");
}

#[test]
fn reads_that_went_through_before_an_error_say_something() {
    for (from, rates) in [(280, 0), (460, 1)] {
        let fault = Fault::Error(from, Errno::IO);
        let drive = with(model("seagate-cmr"), fault, Delay::None, Told::default());
        let mut target = target(&drive, Limits::default());
        let (found, result) = read(&mut target, 7, &mut |_| {});
        assert!(
            matches!(result, Err(TargetError::Failed { .. })),
            "{result:?}"
        );
        assert!(found.random_read_ms.is_some(), "{found:?}");
        assert!(
            found.rates.len() >= rates && found.rates.len() < 64,
            "{found:?}"
        );
        let rows = rows(&found);
        let of = |property| rows.iter().find(|row| row.property == property);
        assert!(of("Random read of 4 KiB").is_some());
        let sequential = of("Sequential read");
        assert_eq!(sequential.is_some(), !found.rates.is_empty());
        assert!(sequential.is_none_or(|row| !row.value.contains("the end")));
    }
}

/// Requests until test 11 of the Seagate drive is under way.
const LATE: u64 = 8_000;

#[test]
fn what_was_found_before_an_error_is_kept() {
    for fault in [
        Fault::Error(LATE, Errno::IO),
        Fault::Once(LATE, Errno::IO),
        Fault::Error(LATE, Errno::NODEV),
        Fault::Error(LATE, Errno::NXIO),
        Fault::Stuck(LATE),
        Fault::Short(LATE),
    ] {
        let drive = with(model("st5000as0011"), fault, Delay::None, Told::default());
        let mut target = target(&drive, Limits::default());
        let (found, _, result) = examine(&mut target, FULL, &mut |_| {});
        let error = result.unwrap_err();
        let expected = match (fault, &error) {
            (Fault::Error(_, Errno::IO) | Fault::Once(..), TargetError::Failed { .. })
            | (Fault::Short(_), TargetError::Short { .. }) => true,
            (Fault::Error(..), TargetError::Gone { what, .. }) => what == "/dev/simulated",
            (Fault::Stuck(_), TargetError::Stuck { seconds }) => *seconds == 60,
            _ => false,
        };
        assert!(expected, "{fault:?}: {error}");
        assert_eq!(kind(&found), Some(DriveType::DriveManaged), "{fault:?}");
        assert!(found.turn_ms.is_some() && found.cache_type.is_some());
        // Nothing is asked any more of one that is gone or stuck.
        if matches!(error, TargetError::Gone { .. } | TargetError::Stuck { .. }) {
            let again = skylight::target::gather(&mut target, 1, [drive_model::Request::flush()]);
            assert_eq!(again, Err(error));
        }
    }
}

#[test]
fn writes_that_fail_at_once_are_no_sign_of_zones() {
    for (from, once) in [(300, true), (300, false), (600, false)] {
        let fault = if once {
            Fault::Once(from, Errno::IO)
        } else {
            Fault::Error(from, Errno::IO)
        };
        let (found, result) = look("seagate-cmr", fault, Delay::None, QUICK);
        assert_eq!(kind(&found), None);
        assert!(
            matches!(result, Err(TargetError::Failed { .. })),
            "{result:?}"
        );
        assert!(found.turn_ms.is_some());
    }
}

#[test]
fn time_and_patience_have_an_end() {
    let drive = with(
        model("st5000as0011"),
        Fault::None,
        Delay::None,
        Told::default(),
    );
    let budget = Some(Span::from_seconds(300.0));
    let limits = Limits {
        budget,
        ..Limits::default()
    };
    let mut target = simulated::target(&drive, limits);
    let (found, _, result) = examine(&mut target, FULL, &mut |_| {});
    assert_eq!(result, Err(TargetError::TimeOver));
    assert_eq!(kind(&found), Some(DriveType::DriveManaged));
    assert!((300.0..302.0).contains(&found.seconds), "{}", found.seconds);

    let drive = with(
        model("st5000as0011"),
        Fault::None,
        Delay::None,
        Told::default(),
    );
    let limits = Limits::default();
    let interrupted = limits.interrupted.clone();
    let mut target = simulated::target(&drive, limits);
    let (found, _, result) = examine(&mut target, FULL, &mut |what| {
        interrupted.store(what.starts_with("test 3"), Ordering::Relaxed);
    });
    assert_eq!(result, Err(TargetError::Interrupted));
    assert!(found.cache_place.is_some() && found.cleaning.is_none());
}

#[test]
fn noise_is_no_finding() {
    for name in ["seagate-cmr", "st5000as0011", "ssd-15gb"] {
        for most in [0.1, 1.0, 3.0, 10.0, 30.0] {
            let noise = Delay::Noise(Random::new(3), most);
            let (found, result) = look(name, Fault::None, noise, QUICK);
            assert_eq!(result, Ok(()));
            let right = match name {
                "seagate-cmr" => DriveType::Conventional,
                "ssd-15gb" => DriveType::Flash,
                _ => DriveType::DriveManaged,
            };
            let kind = kind(&found);
            assert!(
                kind.is_none_or(|kind| kind == right),
                "{name} {most}: {kind:?}"
            );
            assert_eq!(kind.is_none(), !found.unknown.is_empty());
            if most > 2.0 {
                assert_eq!(kind, None, "{name} {most}");
            }
        }
    }
}

#[test]
fn a_device_that_is_held_to_a_rate_does_not_turn() {
    for millis in [4.0, 8.33, 11.1] {
        for name in ["ssd-15gb", "seagate-cmr"] {
            let (found, _) = look(name, Fault::None, Delay::Throttle(millis), QUICK);
            assert_ne!(
                kind(&found),
                Some(DriveType::DriveManaged),
                "{name} {millis}"
            );
            assert_ne!(kind(&found), Some(DriveType::Flash), "{name} {millis}");
        }
    }
}

#[test]
fn caches_that_cannot_be_switched_deceive_nobody() {
    for (name, right) in [
        ("seagate-cmr", DriveType::Conventional),
        ("st5000as0011", DriveType::DriveManaged),
        ("emulated-smr-1", DriveType::DriveManaged),
        ("emulated-smr-2", DriveType::DriveManaged),
        ("ssd-15gb", DriveType::Flash),
        ("hm-smr-14tb", DriveType::HostManaged),
        ("ha-smr-8tb", DriveType::HostAware),
    ] {
        // Zones that nobody has written are read without a look at the medium: as if it were flash.
        for fault in [Fault::Stubborn, Fault::None] {
            let (found, result) = look(name, fault, Delay::None, QUICK);
            assert_eq!(result, Ok(()), "{name}");
            let kind = kind(&found);
            assert!(kind.is_none_or(|kind| kind == right), "{name}: {kind:?}");
            let seen = name != "ha-smr-8tb" && fault == Fault::None;
            assert!(kind.is_some() || !seen, "{name}: {:?}", found.unknown);
        }
    }
}

#[test]
fn what_a_drive_says_of_its_zones_decides_where_its_writes_do_not() {
    let told = Told {
        zoned: Some(Zoned::HostAware),
        ..Told::default()
    };
    let drive = with(model("ha-smr-8tb"), Fault::None, Delay::None, told);
    let mut target = target(&drive, Limits::default());
    let (found, _, result) = examine(&mut target, QUICK, &mut |_| {});
    assert_eq!((kind(&found), result), (Some(DriveType::HostAware), Ok(())));
    assert_eq!(target.told(), told);
}

#[test]
fn bands_are_not_looked_for_where_times_are_uneven() {
    for (most, looked) in [(0.05, true), (0.5, true), (1.5, false)] {
        let noise = Delay::Noise(Random::new(3), most);
        let drive = with(model("st5000as0011"), Fault::None, noise, Told::default());
        let limits = Limits::default();
        let interrupted = limits.interrupted.clone();
        let mut target = simulated::target(&drive, limits);
        let (found, _, _) = examine(&mut target, FULL, &mut |what| {
            interrupted.store(what.starts_with("test 3"), Ordering::Relaxed);
        });
        let kind = kind(&found);
        assert!(
            kind == Some(DriveType::DriveManaged) || kind.is_none() && !looked,
            "{most}"
        );
        assert_eq!(found.cache_place.is_some(), looked, "{most}");
        assert_eq!(found.unknown.is_empty(), looked, "{most}");
    }
}
