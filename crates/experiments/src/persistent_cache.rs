//! How much a persistent cache takes before it is cleaned, and that it is a circular log.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::{end, millis, random_writes};
use drive_model::{Lba, Request, Time};
use plot::{Figure, LATENCY, Panel, numbered, thinned};
use skylight::statistics::mean;

const DRIVE: &str = "st5000as0011";

/// Blocks of a write, how many at a time, and operations until cleaning begins.
const UNTIL_CLEANING: [(u32, usize, f64); 5] = [
    (1, 1, 22_800.0),
    (1, 31, 182_270.0),
    (16, 31, 182_231.0),
    (32, 31, 137_496.0),
    (64, 31, 67_830.0),
];

pub const TABLE_2_2: Experiment = Experiment {
    id: "table-2.2",
    title: "Random writes until the persistent cache is full",
    source: "CMU-CS-20-130, section 2.4.6, tests 6 and 7",
    expected: || {
        let row = |(blocks, depth, writes)| {
            let what = format!("{DRIVE}: {} KiB, {depth} at a time", blocks * 4);
            Expected::value(what, "writes", writes).part(0.03)
        };
        UNTIL_CLEANING.map(row).to_vec()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for (blocks, depth, _) in UNTIL_CLEANING {
            run.next(&format!("{} KiB, {depth} at a time", blocks * 4))?;
            let mut drive = run.disk(DRIVE)?;
            let (mut random, many) = (run.random(77), drive.blocks() - u64::from(blocks));
            let (mut count, mut now) = (0, Time::START);
            while drive.statistics().cleaning.bands == 0 {
                let writes = (0..depth).map(|_| Request::write(Lba(random.below(many)), blocks));
                now = end(&run.ask(&mut drive, now, depth, writes)?);
                count += depth;
            }
            measured.push(count as f64);
        }
        Ok(measured.into())
    },
};

/// Writes, and blocks of a pool that they come from.
const WRITES: u64 = 26_000;
const POOL: u64 = 10_000;
/// Cleaning has begun by then.
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
            Expected::at_least("out of a pool of 10,000: bands cleaned", "", 100.0),
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
