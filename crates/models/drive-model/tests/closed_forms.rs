//! The translation layers against their closed forms (yardsticks: drive-managed SMR).
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use drive_model::profile::LayerShape;
use drive_model::{Drive, Profile, Time};

/// Random single-block writes one at a time for `warm` cleanings of a band, then writes for each of
/// the next `count`.
fn writes_per_band(drive: &mut Drive, warm: u64, count: u64) -> f64 {
    let mut random = Random(99);
    let blocks = drive.blocks();
    let mut now = Time::START;
    let mut begin = None;
    let mut writes = 0u64;
    loop {
        let bands = drive.statistics().cleaning.bands;
        match begin {
            None if bands >= warm => begin = Some((bands, writes)),
            Some((from, at)) if bands >= from + count => {
                return (writes - at) as f64 / (bands - from) as f64;
            }
            _ => {}
        }
        let batch = random_writes(&mut random, blocks, 64);
        now = end(&run(drive, now, 31, batch));
        writes += 64;
    }
}

fn small(name: &str, bands: u64, band_blocks: u64) -> Profile {
    let mut profile = Profile::named(name).unwrap();
    profile.capacity_bytes = bands * band_blocks * 4096;
    profile.electronics.volatile_cache_bytes = 0;
    profile
}

/// K / (A·(1 − (1 − 1/A)^K)) writes for each band, A data bands sharing a cache band of K blocks.
#[test]
fn a_set_associative_cache_absorbs_what_its_closed_form_says() {
    for (associated, blocks) in [(10u64, 64u32), (10, 256), (40, 256), (100, 128)] {
        let cache_bands = 16;
        let mut profile = small("emulated-smr-1", associated * cache_bands, blocks.into());
        let LayerShape::SetAssociative(shape) = &mut profile.layer else {
            panic!("another layer");
        };
        shape.band_blocks = blocks;
        shape.cache_bands = cache_bands as u32;
        let (a, k) = (associated as f64, f64::from(blocks));
        let expected = k / (a * (1.0 - (1.0 - 1.0 / a).powf(k)));
        let mut drive = profile.drive(1).unwrap();
        let found = writes_per_band(&mut drive, 2_000, 20_000);
        let off = found / expected - 1.0;
        assert!(off.abs() < 0.02, "A {a}, K {k}: {found}, {expected}");
    }
}

/// 1 + C/B writes for each band, C blocks of cache over B bands. A cache band is given back as a
/// whole, while the last one fills: C is what the others hold. The form knows nothing of blocks that
/// are written again while they are in the cache, so the cache has to be small.
#[test]
fn a_fully_associative_cache_absorbs_what_its_closed_form_says() {
    for (bands, cache_bands, blocks) in [(6_000u32, 61u32, 512u32), (8_000, 81, 256)] {
        let mut profile = small("emulated-smr-3", bands.into(), blocks.into());
        let LayerShape::FullyAssociative(shape) = &mut profile.layer else {
            panic!("another layer");
        };
        shape.band_blocks = blocks;
        shape.zone_data_bands = bands;
        shape.zone_cache_bands = cache_bands;
        shape.zone_free_bands = 4;
        shape.idle_before_cleaning_ms = None;
        let expected = 1.0 + f64::from((cache_bands - 1) * blocks) / f64::from(bands);
        let mut drive = profile.drive(1).unwrap();
        let found = writes_per_band(&mut drive, 4 * u64::from(bands), 24_000);
        let off = found / expected - 1.0;
        assert!(
            off.abs() < 0.02,
            "B {bands}, {cache_bands} of {blocks}: {found}, {expected}"
        );
    }
}

/// The same of Seagate's: C entries of one block each.
#[test]
fn a_circular_log_absorbs_what_its_closed_form_says() {
    for (entries, band_tracks) in [(500u32, 40u32), (2_000, 40), (2_000, 10)] {
        let mut profile = small("st5000as0011", 1_000, 20_480);
        profile.shape.head_density = Vec::new();
        profile.shape.inner_track_blocks = profile.shape.outer_track_blocks;
        let LayerShape::Seagate(shape) = &mut profile.layer else {
            panic!("another layer");
        };
        shape.cache_half_tracks = entries * 5;
        shape.band_tracks = band_tracks;
        let band_blocks = u64::from(band_tracks * profile.shape.outer_track_blocks);
        let mut drive = profile.drive(1).unwrap();
        let bands = drive.blocks() as f64 / band_blocks as f64;
        let mut random = Random(3);
        let mut now = Time::START;
        let mut writes = |drive: &mut Drive, count: u64| {
            let blocks = drive.blocks();
            now = end(&run(
                drive,
                now,
                1,
                random_writes(&mut random, blocks, count),
            ));
        };
        writes(&mut drive, u64::from(entries) * 4);
        let before = drive.statistics().cleaning.bands;
        let count = 60_000;
        writes(&mut drive, count);
        let found = count as f64 / (drive.statistics().cleaning.bands - before) as f64;
        let expected = 1.0 + f64::from(entries) / bands;
        let off = found / expected - 1.0;
        assert!(
            off.abs() < 0.02,
            "{entries} entries, {bands} bands: {found}, {expected}"
        );
    }
}
