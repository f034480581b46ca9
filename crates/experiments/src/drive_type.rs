//! Random writes tell drives apart, and show how a journal's entries are laid out.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::{end, millis};
use drive_model::{Lba, Request, Time};
use plot::{Figure, LATENCY, Panel, numbered};
use skylight::statistics::{median, quantile};

pub const FIGURE_2_4: Experiment = Experiment {
    id: "figure-2.4",
    title: "Latency of random writes tells drives apart",
    source: "CMU-CS-20-130, section 2.4.3, test 1",
    expected: || {
        let mut all = Vec::new();
        for name in ["emulated-smr-1", "emulated-smr-3"] {
            all.push(Expected::value(format!("{name}: median"), "ms", 10.0).by(0.5));
            let spread = format!("{name}: first to last decile");
            all.push(Expected::at_most(spread, "ms", 1.0).words("fixed"));
        }
        let within = |what: &str| format!("emulated-smr-1, within 40 MiB: {what}");
        all.extend([
            Expected::value(within("median"), "ms", 10.0).by(0.5).ours(),
            Expected::at_most(within("first to last decile"), "ms", 1.0).ours(),
        ]);
        all.extend([
            Expected::at_most("emulated-smr-2: median", "ms", 1.0),
            Expected::at_least("seagate-cmr: first to last decile", "ms", 5.0).words("varying"),
            Expected::value("st5000as0011: median", "ms", 25.0).by(0.5),
            Expected::range("st5000as0011: first write", "ms", 41.0, 52.0),
            Expected::value("st5000as0011: 240th write", "ms", 325.0).by(25.0),
            Expected::value("st5000as0011: farthest of the others", "ms", 25.0).by(1.0),
        ]);
        all
    },
    measure: figure_2_4,
};

/// Blocks of the region of random writes: 1 GiB in print. Of a set-associative drive that is 26 cache bands («a mod n»),
/// and its writes do not take the one turn each of figure 2.4; within a band they do.
const PRINTED: u64 = 1 << 18;
const BAND: u64 = 10_240;

fn figure_2_4(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let mut panel = Panel::new("", "operation", LATENCY).logarithmic();
    let mut latencies = |name: &str, region: u64| -> Result<Vec<f64>, Stopped> {
        run.next(name)?;
        let places = run.random(5).shuffled(region);
        let writes = places.iter().take(256);
        let writes = writes.map(|lba| Request::write(Lba(*lba), 1));
        let all = millis(&run.ask(&mut run.disk(name)?, Time::START, 1, writes)?);
        if region == PRINTED {
            panel = panel.clone().points(name, numbered(&all));
        }
        Ok(all)
    };
    let spread = |all: &[f64]| quantile(&all[1..], 0.9) - quantile(&all[1..], 0.1);
    let mut measured = Vec::new();
    for name in ["emulated-smr-1", "emulated-smr-3"] {
        let all = latencies(name, PRINTED)?;
        measured.extend([median(&all), spread(&all)]);
    }
    let within = latencies("emulated-smr-1", BAND)?;
    measured.extend([median(&within), spread(&within)]);
    measured.push(median(&latencies("emulated-smr-2", PRINTED)?));
    measured.push(spread(&latencies("seagate-cmr", PRINTED)?));
    let seagate = latencies("st5000as0011", PRINTED)?;
    // The map is merged before the 240th write, and the next entry lies elsewhere.
    let others = [&seagate[1..239], &seagate[241..]].concat();
    let typical = 25.4;
    let off = |ms: &f64| (ms - typical).abs();
    let farthest = others.into_iter().max_by(|a, b| off(a).total_cmp(&off(b)));
    measured.extend([median(&seagate), seagate[0], seagate[239]]);
    measured.push(farthest.unwrap_or(f64::NAN));
    Ok(Outcome::from(measured).with(Figure {
        number: "2.4",
        title: "Latency of random writes",
        caption: "256 blocks of 4 KiB in random order, one at a time.".into(),
        panels: vec![panel],
    }))
}

pub const FIGURE_2_6: Experiment = Experiment {
    id: "figure-2.6",
    title: "Journal entries are seen when they are read back in the written order",
    source: "CMU-CS-20-130, section 2.4.3",
    expected: || {
        vec![
            Expected::value("256 writes, one at a time", "s", 6.539).part(0.1),
            Expected::value("written one at a time: median read", "ms", 5.0).by(0.3),
            Expected::value("256 writes, 31 at a time", "s", 0.216).part(0.25),
            Expected::value("written 31 at a time: median read", "ms", 10.0).by(0.3),
        ]
    },
    measure: |run| {
        let places = run.random(9).shuffled(1 << 18);
        let places = &places[..256];
        let mut measured = Vec::new();
        for depth in [1, 31] {
            run.next(&format!("{depth} at a time"))?;
            let mut drive = run.disk("st5000as0011")?;
            let writes = places.iter().map(|lba| Request::write(Lba(*lba), 1));
            let written = run.ask(&mut drive, Time::START, depth, writes)?;
            let reads = places.iter().map(|lba| Request::read(Lba(*lba), 1));
            let read = run.ask(&mut drive, end(&written), 1, reads)?;
            measured.push(end(&written).seconds());
            measured.push(median(&millis(&read)));
        }
        Ok(measured.into())
    },
};

/// Blocks of a write, and half tracks of the entries that hold 31 of them. In print, entries grow between 26 and 28,
/// 54 and 56, 82 and 84 KiB; in blocks of 4 KiB, that is after 24, 52 and 80.
const HALF_TRACKS: [(u32, f64); 7] = [
    (1, 5.0),
    (6, 5.0),
    (7, 6.0),
    (13, 6.0),
    (14, 7.0),
    (20, 7.0),
    (21, 8.0),
];

pub const FIGURE_2_7: Experiment = Experiment {
    id: "figure-2.7",
    title: "Journal entries grow in half tracks",
    source: "CMU-CS-20-130, section 2.4.3",
    expected: || {
        let row = |(blocks, half_tracks)| {
            let what = format!("writes of {} KiB, 31 at a time: entry", blocks * 4);
            Expected::value(what, "half tracks", half_tracks).by(0.5)
        };
        HALF_TRACKS.map(row).to_vec()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for (blocks, _) in HALF_TRACKS {
            run.next(&format!("{} KiB", blocks * 4))?;
            let mut drive = run.disk("st5000as0011")?;
            let (mut random, many) = (run.random(3), drive.blocks() - 64);
            let writes = (0..31 * 6).map(|_| Request::write(Lba(random.below(many)), blocks));
            let all = millis(&run.ask(&mut drive, Time::START, 31, writes)?);
            // Half a turn at 5,900 rpm.
            measured.push(median(&all[31..]) / 5.085);
        }
        Ok(measured.into())
    },
};
