//! Long sequential writes that bypass the persistent cache, and blocks that a power cut tears.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::end;
use drive_model::{Lba, ModelStatistics, Request, Span, Time};

const DRIVE: &str = "st5000as0011";

pub const STREAMING: Experiment = Experiment {
    id: "test-15",
    title: "Long sequential writes go straight to their bands",
    source: "CMU-CS-20-130, section 3.4.3, test 15",
    expected: || {
        vec![
            Expected::at_least("2,000 MiB: bands streamed", "", 50.0).ours(),
            Expected::at_least("2,000 MiB: rate", "MB/s", 120.0).words("full throughput"),
            // Entries are of half tracks, two of which hold nothing of the host's.
            Expected::at_least("7 MiB: blocks written besides the host's", "", 513.0)
                .words("not streamed"),
            Expected::value("8 MiB: blocks written besides the host's", "", 0.0).words("streamed"),
        ]
    },
    measure: |run| {
        run.next("2,000 MiB")?;
        let (long, at) = sequential(run, 2_000)?;
        run.next("7 and 8 MiB")?;
        let extra = |mib: u32| -> Result<f64, Stopped> {
            let written = sequential(run, mib)?.0.medium.written_blocks;
            Ok(written as f64 - f64::from(mib) * 256.0)
        };
        let rate = 2_000.0 * 1.048576 / at.seconds();
        let streamed = long.cleaning.streamed_bands as f64;
        Ok(vec![streamed, rate, extra(7)?, extra(8)?].into())
    },
};

/// Writes `mib` MiB with the volatile cache on. Returns the statistics of the drive, and when all was on the medium.
fn sequential(run: &Run<'_>, mib: u32) -> Result<(ModelStatistics, Time), Stopped> {
    let mut drive = run.disk(DRIVE)?;
    drive.set_volatile_cache(true);
    let place = |n: u32| Lba((1 << 28) + u64::from(n) * 256);
    let writes = (0..mib).map(|n| Request::write(place(n), 256));
    let done = run.ask(&mut drive, Time::START, 1, writes)?;
    let last = drive.submit(Request::flush(), end(&done));
    Ok((drive.statistics(), last.at))
}

const CUTS: u64 = 10;

pub const TORN_WRITES: Experiment = Experiment {
    id: "test-13",
    title: "A power cut tears a band that is being overwritten, with static mapping only",
    source: "CMU-CS-20-130, section 2.4.11, test 13",
    expected: || {
        let what = |name| format!("{name}: cuts of {CUTS} with unreadable blocks");
        vec![
            Expected::at_least(what(DRIVE), "", 6.0).words("torn"),
            Expected::value(format!("{DRIVE}: unreadable behind an overwrite"), "", 0.0),
            Expected::value(what("wd40nmzw"), "", 0.0).ours(),
            Expected::value(what("emulated-smr-3"), "", 0.0).ours(),
        ]
    },
    measure: |run| {
        let (seagate, still) = torn(run, DRIVE)?;
        let (wd, _) = torn(run, "wd40nmzw")?;
        let (emulated, _) = torn(run, "emulated-smr-3")?;
        Ok(Outcome::from(vec![seagate, still, wd, emulated]))
    },
};

/// Counts the cuts after which blocks cannot be read, and the blocks that cannot even after an overwrite.
fn torn(run: &mut Run<'_>, name: &str) -> Result<(f64, f64), Stopped> {
    let mut drive = run.disk(name)?;
    let mut now = Time::START;
    let (mut torn, mut still) = (0.0, 0.0);
    for cut in 0..CUTS {
        run.next(&format!("{name}: cut {} of {CUTS}", cut + 1))?;
        drive.set_volatile_cache(true);
        let offset = 1_000_000 + cut * 500_000;
        let stop = now + Span::from_millis(9_000.0 + 137.0 * cut as f64);
        let mut lba = offset;
        while now < stop {
            now = drive.submit(Request::write(Lba(lba), 256), now).at;
            lba += 256;
        }
        drive.power_cut(now);
        now += Span::from_seconds(5.0);
        let mut failed = Vec::new();
        for lba in lba.saturating_sub(40_000)..lba {
            let done = drive.submit(Request::read(Lba(lba), 1), now);
            now = done.at;
            if done.result.is_err() {
                failed.push(Lba(lba));
            }
        }
        torn += f64::from(!failed.is_empty());
        drive.set_volatile_cache(false);
        for lba in failed.into_iter().take(3) {
            now = drive.submit(Request::write(lba, 1), now).at;
            let again = drive.submit(Request::read(lba, 1), now);
            now = again.at;
            still += f64::from(again.result.is_err());
        }
    }
    Ok((torn, still))
}
