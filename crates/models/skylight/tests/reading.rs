//! Findings from reads, compared with the profile of the drive.

use drive_model::Profile;
use skylight::finding::DriveType;
use skylight::reading::{Readings, read, rows};
use skylight::track::Track;
use skylight::{Model, Target};

fn readings(name: &str) -> Readings {
    let mut model = Model::named(name, 1).unwrap();
    let blocks = model.blocks();
    let (found, result) = read(&mut model, 7, &mut |_| {});
    assert_eq!(result, Ok(()));
    assert_eq!(model.blocks(), blocks);
    found
}

fn near(found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() < part, "{found}, {expected}");
}

#[test]
fn turns_tracks_and_skew_are_the_profiles() {
    for name in ["seagate-cmr", "wd5000ys", "hua72303", "st5000as0011"] {
        let profile = Profile::named(name).unwrap();
        let found = readings(name);
        near(
            found.turn_ms.unwrap(),
            60e3 / f64::from(profile.shape.rpm),
            1e-3,
        );
        assert_eq!(found.drive_type, None, "a disk is not more than that");
        let first = found.tracks.first().unwrap();
        near(
            first.bytes as f64,
            f64::from(profile.shape.outer_track_blocks) * 4096.0,
            0.02,
        );
        near(first.skew_ms, profile.shape.track_skew_us / 1e3, 0.1);
        assert!(found.rates[0].1 > found.rates[63].1);
        let seeks: Vec<f64> = found.seeks_ms.iter().map(|(_, millis)| *millis).collect();
        assert!(seeks[0] < seeks[6] && seeks[6] < seeks[8], "{seeks:?}");
    }
}

#[test]
fn flash_has_none() {
    let found = readings("ssd-15gb");
    assert_eq!(found.drive_type.unwrap().value, DriveType::Flash);
    assert_eq!(found.turn_ms, None);
    assert!(found.tracks.is_empty() && found.seeks_ms.is_empty());
}

#[test]
fn a_track_is_called_by_where_it_is() {
    let mut found = readings("seagate-cmr");
    let (one, count) = (found.tracks[0], found.rates.len());
    let at = |part: usize| found.rates[part].0 / 4096 * 4096;
    let track = |at| Track { at, ..one };
    found.tracks = [0, count / 2, count - 2].map(at).map(track).to_vec();
    let named = |found: &Readings| -> Vec<&str> {
        let all = rows(found).into_iter().map(|row| row.property);
        all.filter(|property| property.starts_with("Track"))
            .collect()
    };
    assert_eq!(named(&found), ["Track at the start", "Track at the end"]);
    found.tracks.remove(0);
    assert_eq!(named(&found), ["Track at the end"]);
    found.tracks.remove(1);
    assert!(named(&found).is_empty(), "that in the middle is neither");
}
