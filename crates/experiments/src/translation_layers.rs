//! Compares translation layers with their closed forms: random writes of one block for each band that is cleaned.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::{end, random_writes};
use drive_model::profile::LayerShape;
use drive_model::{DiskDrive, Profile, ProfileError, Time};

/// Set-associative layers: data bands for each cache band, blocks of a band.
const SETS: [(u64, u32); 4] = [(10, 64), (10, 256), (40, 256), (100, 128)];
/// Fully associative layers: data bands, cache bands, blocks of a band.
const FULLY: [(u32, u32, u32); 2] = [(6_000, 61, 512), (8_000, 81, 256)];
/// Circular logs: entries of one block, tracks of a band.
const LOGS: [(u32, u32); 3] = [(500, 40), (2_000, 40), (2_000, 10)];

pub const CLOSED_FORMS: Experiment = Experiment {
    id: "translation-layers",
    title: "Writes that a cache absorbs for each band that is cleaned",
    source: "closed forms: K ÷ (A·(1 − (1 − 1/A)^K)) set-associative, 1 + C/B fully associative",
    expected: || {
        let mut all = Vec::new();
        for (associated, blocks) in SETS {
            let (a, k) = (associated as f64, f64::from(blocks));
            let form = k / (a * (1.0 - (1.0 - 1.0 / a).powf(k)));
            let what = format!("set-associative, A {a}, K {k}: ÷ closed form of {form:.2}");
            all.push(what);
        }
        // A cache band is freed as a whole, while the last one fills: so C is the content of the others. The form
        // ignores blocks that are written again while they are in the cache, so the cache has to be small.
        for (bands, cache_bands, blocks) in FULLY {
            all.push(format!(
                "fully associative, {bands} bands, {cache_bands} of {blocks} blocks as cache: ÷ closed form"
            ));
        }
        for (entries, tracks) in LOGS {
            all.push(format!(
                "circular log of {entries}, bands of {tracks} tracks: ÷ closed form"
            ));
        }
        let row = |what| Expected::value(what, "", 1.0).part(0.02).ours();
        all.into_iter().map(row).collect()
    },
    measure,
};

/// A small drive without a volatile cache.
fn small(name: &str, bands: u64, band_blocks: u64) -> Result<Profile, ProfileError> {
    let mut profile = Profile::named(name)?;
    profile.capacity_bytes = bands * band_blocks * 4096;
    profile.electronics.volatile_cache_bytes = 0;
    Ok(profile)
}

/// Writes single blocks until `warm` bands have been cleaned, then until `count` more have been. Returns the writes
/// for each of these.
fn writes_per_band(
    run: &Run<'_>,
    mut drive: DiskDrive,
    warm: u64,
    count: u64,
) -> Result<f64, Stopped> {
    let (mut random, blocks) = (run.random(99), drive.blocks());
    let (mut now, mut begin, mut writes) = (Time::START, None, 0u64);
    loop {
        let bands = drive.statistics().cleaning.bands;
        match begin {
            None if bands >= warm => begin = Some((bands, writes)),
            Some((from, at)) if bands >= from + count => {
                return Ok((writes - at) as f64 / (bands - from) as f64);
            }
            _ => {}
        }
        let batch = random_writes(&mut random, blocks, 64);
        now = end(&run.ask(&mut drive, now, 31, batch)?);
        writes += 64;
    }
}

fn measure(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let mut measured = Vec::new();
    for (associated, blocks) in SETS {
        run.next(&format!("set-associative, {associated} of {blocks}"))?;
        let cache_bands = 16;
        let mut profile = small("emulated-smr-1", associated * cache_bands, blocks.into())?;
        if let LayerShape::SetAssociative(shape) = &mut profile.layer {
            (shape.band_blocks, shape.cache_bands) = (blocks, cache_bands as u32);
        }
        let (a, k) = (associated as f64, f64::from(blocks));
        let form = k / (a * (1.0 - (1.0 - 1.0 / a).powf(k)));
        let found = writes_per_band(run, profile.drive(run.seed)?, 2_000, 20_000)?;
        measured.push(found / form);
    }
    for (bands, cache_bands, blocks) in FULLY {
        run.next(&format!("fully associative, {bands} bands"))?;
        let mut profile = small("emulated-smr-3", bands.into(), blocks.into())?;
        if let LayerShape::FullyAssociative(shape) = &mut profile.layer {
            shape.band_blocks = blocks;
            shape.zone_data_bands = bands;
            shape.zone_cache_bands = cache_bands;
            shape.zone_free_bands = 4;
            shape.idle_before_cleaning_ms = None;
        }
        let form = 1.0 + f64::from((cache_bands - 1) * blocks) / f64::from(bands);
        let drive = profile.drive(run.seed)?;
        measured.push(writes_per_band(run, drive, 4 * u64::from(bands), 24_000)? / form);
    }
    for (entries, band_tracks) in LOGS {
        run.next(&format!("circular log of {entries}"))?;
        measured.push(circular_log(run, entries, band_tracks)?);
    }
    Ok(measured.into())
}

fn circular_log(run: &Run<'_>, entries: u32, band_tracks: u32) -> Result<f64, Stopped> {
    let mut profile = small("st5000as0011", 1_000, 20_480)?;
    profile.shape.head_density = Vec::new();
    profile.shape.inner_track_blocks = profile.shape.outer_track_blocks;
    if let LayerShape::Seagate(shape) = &mut profile.layer {
        (shape.cache_half_tracks, shape.band_tracks) = (entries * 5, band_tracks);
    }
    let band_blocks = u64::from(band_tracks * profile.shape.outer_track_blocks);
    let mut drive = profile.drive(run.seed)?;
    let blocks = drive.blocks();
    let mut random = run.random(3);
    let warm = random_writes(&mut random, blocks, u64::from(entries) * 4);
    let now = end(&run.ask(&mut drive, Time::START, 1, warm)?);
    let before = drive.statistics().cleaning.bands;
    let count = 60_000;
    run.ask(
        &mut drive,
        now,
        1,
        random_writes(&mut random, blocks, count),
    )?;
    let found = count as f64 / (drive.statistics().cleaning.bands - before) as f64;
    Ok(found / (1.0 + f64::from(entries) / (blocks as f64 / band_blocks as f64)))
}
