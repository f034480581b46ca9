use super::*;

fn structure(profile: Profile, seed: u64) -> Found {
    let mut model = Model::new(profile, seed).unwrap();
    model.set_volatile_cache(false);
    model.set_look_ahead(false);
    let mut random = Random::new(seed);
    let turn_ms = turn(&mut model, &mut random).unwrap().unwrap();
    let seen = t14_zone_structure::workload(&mut model, turn_ms, &mut random).unwrap();
    t14_zone_structure::infer(&seen)
}

/// A disk of random geometry under one of the layers, and whether its surfaces differ.
fn disk(seed: u64) -> (Profile, bool) {
    let mut random = Random::new(seed * 2 + 1);
    let r = &mut random;
    let name = [
        "seagate-cmr",
        "st5000as0011",
        "emulated-smr-1",
        "emulated-smr-3",
    ];
    let mut profile = Profile::named(name[(seed % 4) as usize]).unwrap();
    let long = r.below(2) == 0;
    let differ = r.below(4) != 0;
    let shape = &mut profile.shape;
    let tracks = u64::from(shape.heads) * u64::from(shape.cylinders);
    shape.heads = between(r, 2, 12) as u32;
    shape.cylinders = (tracks / u64::from(shape.heads) * 105 / 100) as u32;
    shape.recording_zones = between(r, 8, 24) as u32;
    let stroke = if long {
        between(r, 2_000, 12_000)
    } else {
        between(r, 10, 200)
    };
    shape.stroke_tracks = stroke as u32;
    shape.stroke =
        [Stroke::Alternating, Stroke::Inwards, Stroke::TowardsMiddle][r.below(3) as usize];
    shape.track_skew_us = 1_000.0;
    shape.head_skew_us = 1_600.0;
    let density = |_| 0.95 + r.below(1_000) as f64 / 10_000.0;
    shape.head_density = (0..shape.heads).map(density).collect();
    // The mean density stays 1.
    let mean = shape.head_density.iter().sum::<f64>() / f64::from(shape.heads);
    shape.head_density.iter_mut().for_each(|d| *d /= mean);
    if !differ {
        shape.head_density = Vec::new();
    }
    // All zones of the same width, or narrower inwards, or narrower with one stroke each.
    let narrowing = r.below(3);
    if narrowing > 0 {
        shape.innermost_zone_width = between(r, 30, 100) as f64 / 100.0;
    }
    if narrowing == 2 && long {
        shape.recording_zones = shape.cylinders / shape.stroke_tracks;
        shape.stroke_tracks = shape.cylinders;
    }
    if r.below(2) == 0 {
        shape.serpentine_part = between(r, 5, 40) as f64 / 100.0;
    }
    (profile, differ)
}

#[test]
fn surfaces_and_directions_are_told_right_or_not_at_all() {
    let (mut told, mut could) = (0, 0);
    let mut record = Record::default();
    let first = number("SKYLIGHT_SEED", 1);
    for seed in first..first + number("SKYLIGHT_DRIVES", 20) {
        let (profile, differ) = disk(seed);
        let shape = profile.shape.clone();
        let blocks = profile.capacity_bytes / BLOCK_BYTES;
        let found = structure(profile, seed);
        could += u32::from(differ);
        told += u32::from(differ && found.surfaces.is_some());
        record.add_one(seed, "surfaces", found.surfaces, &Some(shape.heads));
        let way = match shape.stroke {
            Stroke::Alternating => None,
            Stroke::Inwards => Some(Shingling::Inwards),
            Stroke::TowardsMiddle => Some(Shingling::TowardsMiddle),
        };
        record.add_one(seed, "direction", found.shingling, &way);
        if let Some(serpentine) = found.serpentine_middle {
            let there = serpentine_middle(&shape, blocks).contains(&serpentine.value);
            let is = Some(if there {
                serpentine.value
            } else {
                !serpentine.value
            });
            record.add_one(seed, "strokes at the MD", found.serpentine_middle, &is);
        }
    }
    println!("{told} told of {could} with surfaces that differ");
    let wrong = record.verdict();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(told * 10 > could * 7, "{told} of {could}");
}

/// On short tracks, a read of a part takes longer than a change to the next track. Strokes that were not seen for
/// that reason were averaged, and then looked like two surfaces.
#[test]
fn surfaces_under_short_tracks_are_counted_or_not_said() {
    let mut told = 0;
    for seed in 0..6 {
        let mut profile = Profile::named("seagate-cmr").unwrap();
        profile.capacity_bytes = 500_000_000_000;
        let shape = &mut profile.shape;
        shape.rpm = 4_200;
        shape.heads = 10;
        shape.cylinders = 180_000;
        (shape.outer_track_blocks, shape.inner_track_blocks) = (110, 60);
        shape.stroke_tracks = 10 + 37 * seed as u32;
        (shape.track_skew_us, shape.head_skew_us) = (600.0, 1_600.0);
        let mut random = Random::new(seed);
        let density = |_| 0.95 + random.below(1_000) as f64 / 10_000.0;
        shape.head_density = (0..shape.heads).map(density).collect();
        let mean = shape.head_density.iter().sum::<f64>() / f64::from(shape.heads);
        shape.head_density.iter_mut().for_each(|d| *d /= mean);
        profile.seek.track_to_track_ms = 0.3;
        profile.seek.write_settle_ms = 0.1;
        let found = structure(profile, seed).surfaces;
        assert!(
            found.is_none_or(|found| found.value == 10),
            "{seed}: {found:?}"
        );
        told += u32::from(found.is_some());
    }
    assert!(told >= 4, "{told}");
}
