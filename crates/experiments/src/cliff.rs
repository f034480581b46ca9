//! The cliff in random writes that every drive-managed drive comes to, and its rate then, compared with a
//! conventional drive's.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use skylight::cliff::{Cliff, Drives, figure, random_writes};
use skylight::target::limits::Limits;
use skylight::{Model, Target};

const CONVENTIONAL: &str = "wd5000ys";
const SEAGATES: [&str; 3] = ["st5000as0011", "st8000as0002", "st4000lm016"];
/// A drive that cleans while it is written to.
const MIXED: &str = "wd40nmzw";

/// Seconds of virtual time that the figure shows.
const SHOWN_SECONDS: f64 = 4_000.0;

pub const FIGURE_3_1: Experiment = Experiment {
    id: "figure-3.1",
    title: "Random writes fall off a cliff on drive-managed drives alone",
    source: "CMU-CS-20-130, sections 3.1 and 3.4.3",
    expected: || {
        let mut all = vec![
            Expected::value(format!("{CONVENTIONAL}: last half ÷ first 3 %"), "", 1.0).part(0.05),
            Expected::range(
                format!("{CONVENTIONAL}: last half"),
                "writes/s",
                50.0,
                400.0,
            ),
        ];
        for name in SEAGATES {
            all.extend([
                Expected::at_least(format!("{name}: first 3 % ÷ conventional"), "", 2.0),
                Expected::at_most(format!("{name}: last half ÷ first 3 %"), "", 0.01),
                Expected::at_most(format!("{name}: last half ÷ conventional"), "", 0.1),
            ]);
        }
        let mixed = |what: &str| format!("{MIXED}: {what}");
        all.extend([
            Expected::at_least(mixed("first fifth ÷ conventional"), "", 1.5),
            Expected::at_most(mixed("first fifth ÷ Seagate's first"), "", 0.6),
            Expected::at_least(mixed("last half ÷ Seagate's"), "", 2.0),
            Expected::at_most(mixed("last half ÷ conventional"), "", 0.1),
            Expected::at_least(mixed("first fifth ÷ last half"), "", 20.0),
            Expected::at_most(mixed("its fall ÷ Seagate's"), "", 1.0 / 3.0),
            Expected::at_least("conventional: volatile cache on ÷ off", "", 0.97),
        ]);
        // The paper prints a figure and words; the numbers for them are ours.
        all.into_iter().map(Expected::ours).collect()
    },
    measure,
};

fn cliff(run: &mut Run<'_>, name: &str, volatile_cache: bool) -> Result<Cliff, Stopped> {
    let state = if volatile_cache { "on" } else { "off" };
    run.next(&format!("{name}, volatile cache {state}"))?;
    let limits = Limits {
        interrupted: run.interrupted.clone(),
        ..Limits::default()
    };
    let mut model = Model::named(name, run.seed)?.with_limits(limits);
    model.set_volatile_cache(volatile_cache);
    Ok(random_writes(
        &mut model,
        &mut run.random(1),
        SHOWN_SECONDS,
        20.0,
    )?)
}

fn measure(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let first = |cliff: &Cliff| cliff.rate(0.0, 0.03);
    let last = |cliff: &Cliff| cliff.rate(0.5, 1.0);
    let mut off: Drives<'_> = Vec::new();
    for name in [CONVENTIONAL, SEAGATES[0], SEAGATES[1], SEAGATES[2], MIXED] {
        off.push((name, cliff(run, name, false)?));
    }
    let mut on = vec![(CONVENTIONAL, cliff(run, CONVENTIONAL, true)?)];
    if run.figures {
        for name in [SEAGATES[0], SEAGATES[1], SEAGATES[2], MIXED] {
            on.push((name, cliff(run, name, true)?));
        }
    }
    let (conventional, seagate, mixed) = (&off[0].1, &off[1].1, &off[4].1);
    let (steady, all) = (last(conventional), conventional.rate(0.0, 1.0));
    let mut measured = vec![steady / first(conventional), steady];
    for (_, cliff) in &off[1..4] {
        let (first, last) = (first(cliff), last(cliff));
        measured.extend([first / all, last / first, last / all]);
    }
    let (begin, end) = (mixed.rate(0.0, 0.2), last(mixed));
    let (fall, sharp) = (begin / end, first(seagate) / last(seagate));
    measured.extend([begin / all, begin / first(seagate), end / last(seagate)]);
    measured.extend([end / all, fall, fall / sharp, last(&on[0].1) / steady]);
    let figure = run.figures.then(|| figure(&off, &on));
    let outcome = Outcome::from(measured);
    Ok(match figure {
        Some(figure) => outcome.with(figure),
        None => outcome,
    })
}
