//! Measures how much a persistent cache takes before it is cleaned, and shows that it is a circular log.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::{end, millis, random_writes};
use drive_model::layer::LayerShape;
use drive_model::{DiskDrive, Lba, Profile, Request, Time};
use plot::{Figure, LATENCY, Panel, numbered, thinned};
use skylight::statistics::mean;

const DRIVE: &str = "st5000as0011";

/// Blocks of a write, queue depth, and writes until cleaning begins.
const UNTIL_CLEANING: [(u32, usize, f64); 5] = [
    (1, 1, 22_800.0),
    (1, 31, 182_270.0),
    (16, 31, 182_231.0),
    (32, 31, 137_496.0),
    (64, 31, 67_830.0),
];

/// Writes of one block until cleaning begins, for the emulated drives.
const EMULATED: [(&str, f64); 3] = [
    ("emulated-smr-1", 9_175_056.0),
    ("emulated-smr-2", 2_464_153.0),
    ("emulated-smr-3", 9_175_056.0),
];

/// An emulated drive with about the share `part` of its cache, and the exact share. A set-associative drive has fewer
/// cache bands; a fully associative one keeps that share of the whole drive.
fn emulated(run: &Run<'_>, name: &str, part: f64) -> Result<(DiskDrive, f64), Stopped> {
    let mut profile = Profile::named(name)?;
    let part = match &mut profile.layer {
        LayerShape::SetAssociative(layer) => {
            let all = f64::from(layer.cache_bands);
            layer.cache_bands = (all * part).ceil() as u32;
            f64::from(layer.cache_bands) / all
        }
        LayerShape::FullyAssociative(layer) => {
            let zone = u64::from(layer.zone_data_bands) * u64::from(layer.band_blocks) * 4096;
            let zones = profile.capacity_bytes.div_ceil(zone);
            let kept = ((zones as f64 * part).ceil() as u64).max(1);
            profile.capacity_bytes = profile.capacity_bytes.min(kept * zone);
            kept as f64 / zones as f64
        }
        _ => 1.0,
    };
    let mut drive = profile.drive(run.seed)?;
    drive.set_volatile_cache(false);
    drive.set_look_ahead(false);
    Ok((drive, part))
}

/// Counts random writes until the drive begins to clean.
fn until_cleaning(
    run: &Run<'_>,
    drive: &mut DiskDrive,
    (blocks, depth): (u32, usize),
    at_once: usize,
) -> Result<f64, Stopped> {
    let (mut random, many) = (run.random(77), drive.blocks() - u64::from(blocks));
    let (mut count, mut now) = (0, Time::START);
    while drive.statistics().cleaning.bands == 0 {
        let writes = (0..at_once).map(|_| Request::write(Lba(random.below(many)), blocks));
        now = end(&run.ask(drive, now, depth, writes)?);
        count += at_once;
    }
    Ok(count as f64)
}

pub const TABLE_2_2: Experiment = Experiment {
    id: "table-2.2",
    title: "Random writes until the persistent cache is full",
    source: "CMU-CS-20-130, section 2.4.6, tests 6 and 7",
    expected: || {
        let row = |(blocks, depth, writes)| {
            let what = format!("{DRIVE}: {} KiB, {depth} at a time", blocks * 4);
            Expected::value(what, "writes", writes).part(0.03)
        };
        let emulated = |(name, writes)| {
            let what = format!("{name}: 4 KiB, 1 at a time");
            Expected::value(what, "writes", writes).part(0.06)
        };
        let mut all = UNTIL_CLEANING.map(row).to_vec();
        all.extend(EMULATED.map(emulated));
        all
    },
    measure: |run| {
        let mut measured = Vec::new();
        for (blocks, depth, _) in UNTIL_CLEANING {
            run.next(&format!("{} KiB, {depth} at a time", blocks * 4))?;
            let mut drive = run.disk(DRIVE)?;
            measured.push(until_cleaning(run, &mut drive, (blocks, depth), depth)?);
        }
        // Their maps are of blocks: a share of the cache takes the same share of the writes.
        let part = run.scale.0.clamp(0.05, 1.0);
        for (name, _) in EMULATED {
            run.next(name)?;
            let (mut drive, part) = emulated(run, name, part)?;
            let writes = until_cleaning(run, &mut drive, (1, 1), 256)?;
            measured.push(writes / part);
        }
        Ok(measured.into())
    },
};

/// Number of writes, and number of blocks in the pool that they are drawn from.
const WRITES: u64 = 26_000;
const POOL: u64 = 10_000;
/// Writes by which cleaning has begun.
const CLEANS: usize = 23_000;

pub const FIGURE_2_16: Experiment = Experiment {
    id: "figure-2.16",
    title: "Stale blocks at the tail of a circular log are free (figures 2.16 to 2.18)",
    source: "CMU-CS-20-130, section 2.4.7, tests 9 and 10",
    expected: || {
        vec![
            Expected::value(
                "10,000 blocks three times in one order: bands cleaned",
                "",
                0.0,
            ),
            Expected::at_least("out of a pool of 10,000: bands cleaned", "", 100.0).ours(),
            Expected::value("out of a pool, once it cleans: mean write", "ms", 100.0).by(50.0),
            Expected::value("across the drive, once it cleans: mean write", "ms", 500.0).by(250.0),
        ]
    },
    measure: circular_log,
};

fn circular_log(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let write = |lba: &u64| Request::write(Lba(*lba), 1);
    let mut panel = Panel::new("", "operation", LATENCY).logarithmic();
    run.next("the same order three times")?;
    let mut drive = run.disk(DRIVE)?;
    let (mut random, blocks) = (run.random(21), drive.blocks());
    let pool: Vec<u64> = (0..POOL).map(|_| random.below(blocks)).collect();
    let repeated = (0..3).flat_map(|_| pool.iter().map(write));
    let all = millis(&run.ask(&mut drive, Time::START, 1, repeated)?);
    panel = panel.points("in one order", thinned(&numbered(&all)).0);
    let mut measured = vec![drive.statistics().cleaning.bands as f64];

    run.next("out of a pool")?;
    let mut drive = run.disk(DRIVE)?;
    let chosen = (0..WRITES).map(|_| write(&pool[random.below(POOL) as usize]));
    let all = millis(&run.ask(&mut drive, Time::START, 1, chosen)?);
    panel = panel.points("out of a pool", thinned(&numbered(&all)).0);
    measured.extend([
        drive.statistics().cleaning.bands as f64,
        mean(&all[CLEANS..]),
    ]);

    run.next("across the drive")?;
    let mut drive = run.disk(DRIVE)?;
    let writes = random_writes(&mut random, blocks, WRITES);
    let all = millis(&run.ask(&mut drive, Time::START, 1, writes)?);
    panel = panel.points("across the drive", thinned(&numbered(&all)).0);
    measured.push(mean(&all[CLEANS..]));
    Ok(Outcome::from(measured).with(Figure {
        number: "2.16",
        title: "Random writes of 4 KiB, one at a time, until the cache is cleaned",
        caption: format!("{DRIVE}: extremes of many writes in a row."),
        panels: vec![panel],
    }))
}
