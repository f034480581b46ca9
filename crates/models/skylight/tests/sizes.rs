//! Sizes that are not reached because another limit comes first, and caches whose bands are shared.

use drive_model::profile::LayerShape;
use drive_model::{BLOCK_BYTES, Profile};
use skylight::finding::{Bound, Size};
use skylight::{Findings, Model, Options, examine};

const MIB: u64 = 256;

/// Examines a drive of a profile, with a tenth of its capacity and another layer.
fn found(name: &str, change: impl FnOnce(&mut LayerShape)) -> Findings {
    let mut profile = Profile::named(name).unwrap();
    profile.capacity_bytes /= 10;
    change(&mut profile.layer);
    let mut model = Model::new(profile, 1).unwrap();
    let options = Options {
        quick: false,
        seed: 7,
    };
    let (findings, _, result) = examine(&mut model, options, &mut |_| {});
    assert_eq!(result, Ok(()));
    findings
}

fn seagate(cache_half_tracks: u32, map_extents: u32) -> Findings {
    found("st5000as0011", |layer| {
        let LayerShape::Seagate(shape) = layer else {
            panic!("{layer:?}")
        };
        shape.cache_half_tracks = cache_half_tracks;
        shape.map_extents = map_extents;
    })
}

fn near(found: Option<Size>, at_least: Option<Bound>, expected: u64) {
    let found = found.unwrap();
    let off = found.value as f64 / expected as f64 - 1.0;
    assert!(off.abs() < 0.01, "{found:?}, {expected}");
    assert_eq!(found.at_least, at_least, "{found:?}");
}

/// The profile's cache takes 16.8 GiB; with writes of 256 KiB the map is full after 9.
#[test]
fn a_map_that_is_full_first_is_not_taken_for_the_cache() {
    let found = seagate(114_000, 36_864);
    near(found.map_entries, None, 36_864);
    near(found.cache_bytes, None, 4_398_000 * BLOCK_BYTES);
}

/// 4,400 entries of 31 writes; the map of the profile has 182,250.
#[test]
fn a_journal_that_is_full_first_is_not_taken_for_the_map() {
    let found = seagate(22_000, 182_250);
    near(found.map_entries, Some(Bound::Journal), 4_400 * 31);
    let size = found.cache_bytes.unwrap();
    assert_eq!(size.at_least, Some(Bound::Journal), "{size:?}");
    assert!(size.value < 4_398_000 * BLOCK_BYTES, "{size:?}");
}

/// With 2.5 data bands for each of the cache's, an even fill stalls at five sixths of it.
#[test]
fn shared_cache_bands_are_counted_whatever_the_remainder() {
    for thousandths in [2_500, 20_050] {
        let mut all = 0;
        let found = found("emulated-smr-1", |layer| {
            let LayerShape::SetAssociative(shape) = layer else {
                panic!("{layer:?}")
            };
            shape.band_blocks = 40 * MIB as u32;
            let data_bands = 390_000_000_000 / BLOCK_BYTES / (40 * MIB);
            shape.cache_bands = (data_bands * 1_000 / thousandths) as u32;
            all = u64::from(shape.cache_bands) * 40 * MIB;
        });
        near(found.cache_bytes, None, all * BLOCK_BYTES);
        let shared = found.data_bands_per_cache_band.unwrap();
        let off = shared * 1e3 / thousandths as f64 - 1.0;
        assert!(off.abs() < 0.01, "{thousandths}: {shared}");
    }
}

/// Two bands that were cleaned in the time by which a pause grew looked like one.
#[test]
fn bands_that_are_cleaned_sooner_than_a_pause_grows_are_told_apart() {
    let found = found("emulated-smr-2", |layer| {
        let LayerShape::SetAssociative(shape) = layer else {
            panic!("{layer:?}")
        };
        shape.band_blocks = 8 * MIB as u32;
        shape.idle_before_cleaning_ms = Some(2_000.0);
    });
    assert_eq!(found.band_bytes, [Some(8 << 20); 3]);
    let ms = found.band_cleaning_ms.unwrap();
    assert!(ms < 200.0, "{ms}");
}
