//! Fragmented reads show where the cache is: the arm goes to and fro between it and the data.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::{end, millis};
use drive_model::{Lba, Request, Time};
use skylight::statistics::mean;

const DRIVES: [&str; 4] = [
    "emulated-smr-1",
    "st5000as0011",
    "emulated-smr-3",
    "emulated-smr-2",
];

/// The mean read of a region with every other block in flash, in ms: each of the others takes a turn of 10.17 ms.
const HALF_A_TURN: f64 = 10.17 / 2.0;

pub const FIGURE_2_8: Experiment = Experiment {
    id: "figure-2.8",
    title: "Fragmented reads show where the cache is",
    source: "CMU-CS-20-130, section 2.4.4, test 2",
    expected: || {
        let difference = |what: &str| Expected::at_least(format!("mean read, {what}"), "ms", 0.0);
        let near = |what: &str| {
            let what = format!("mean read, emulated-smr-3 (many places): {what}");
            Expected::value(what, "ms", 0.0).by(1.5).words("the same")
        };
        let flash = |place: &str| {
            let what = format!("mean read, emulated-smr-2 (flash): {place}");
            Expected::value(what, "ms", HALF_A_TURN)
                .by(0.6)
                .words("a turn or nothing")
        };
        vec![
            difference("emulated-smr-1 (inner diameter): outer − middle"),
            difference("emulated-smr-1 (inner diameter): middle − inner"),
            difference("st5000as0011 (outer diameter): middle − outer"),
            difference("st5000as0011 (outer diameter): inner − middle"),
            near("outer − inner"),
            near("outer − middle"),
            flash("outer"),
            flash("middle"),
            flash("inner"),
        ]
    },
    measure,
};

fn measure(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let mut means = [[0.0; 3]; DRIVES.len()];
    for (name, means) in DRIVES.into_iter().zip(&mut means) {
        run.next(name)?;
        for (part, mean) in (0..).zip(means) {
            *mean = fragmented(run, name, part)?;
        }
    }
    let [
        [a_out, a_mid, a_in],
        [b_out, b_mid, b_in],
        [c_out, c_mid, c_in],
        flash,
    ] = means;
    let mut measured = vec![a_out - a_mid, a_mid - a_in, b_mid - b_out, b_in - b_mid];
    measured.extend([c_out - c_in, c_out - c_mid]);
    measured.extend(flash);
    Ok(measured.into())
}

/// The mean latency, in milliseconds, of fragmented reads at the outer diameter (0), in the middle (1), or at the
/// inner one (2). The angle between cache and data is a matter of chance, so nine regions are read.
fn fragmented(run: &Run<'_>, name: &str, part: u64) -> Result<f64, Stopped> {
    let mut drive = run.disk(name)?;
    let mut now = Time::START;
    let mut all = Vec::new();
    for region in 0..9 {
        let first = (drive.blocks() - 500_000) / 2 * part + region * 41_000;
        let writes = (0..512).map(|n| Request::write(Lba(first + 2 * n), 1));
        let written = run.ask(&mut drive, now, 31, writes)?;
        let reads = (0..1024).map(|n| Request::read(Lba(first + n), 1));
        let read = run.ask(&mut drive, end(&written), 1, reads)?;
        now = end(&read);
        all.extend(millis(&read));
    }
    Ok(mean(&all))
}
