use super::*;

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
    // The drive cannot be erased, so Skylight waits until it has cleaned; nor can its caches be switched.
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
        near(*found, *expected);
    }
    println!("{} s of the drive's time", found.seconds);
    assert!(found.seconds < 86_400.0, "{} s", found.seconds);
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
