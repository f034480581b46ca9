//! Measures what cleaning costs the two file systems of the Caveat-Scriptor thesis.

use crate::expected::Expected;
use crate::experiment::{Experiment, Run, Stopped};
use crate::smrfs_bed::{Bed, Kind, MIB};
use caveat::{Sizes, Step, Workload};
use runtime::HashSet;
use smrfs::{MkfsOptions, ROOT};

pub const CLEANING: Experiment = Experiment {
    id: "caveat-cleaning",
    title: "Files come and go at 80 %: bands are cleaned, a Caveat-Scriptor drive cleans implicitly or nearly so",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), section 5.3 and chapter 6",
    expected: || {
        let row = |removed: &str, how: &str| {
            format!("{removed} removed, {how}: bytes to the drive ÷ of users")
        };
        vec![
            Expected::value(row("mostly the oldest", "strict append"), "", 1.0)
                .part(0.02)
                .ours(),
            Expected::value(row("mostly the oldest", "Caveat-Scriptor"), "", 1.0)
                .part(0.02)
                .ours(),
            Expected::at_least(row("any", "strict append"), "", 1.02).ours(),
            Expected::at_most(
                "any removed: the same, Caveat-Scriptor that is cleaned when full ÷ strict append",
                "",
                1.0,
            )
            .ours(),
        ]
    },
    measure: |run| {
        let mut measured = Vec::new();
        // The oldest but for one in twenty: as in table 5.1, where Caveat-Scriptor fits without cleaning; and then so that it does not.
        for (percent, clean_when_full) in [(5, false), (100, true)] {
            for kind in Kind::BOTH {
                run.next(&format!("{}, {percent} % of any age", kind.name()))?;
                measured.push(aging(run, kind, percent, clean_when_full)?);
            }
        }
        measured[3] /= measured[2];
        Ok(measured.into())
    },
};

/// Bytes of data written to the drive ÷ bytes that users wrote, after the first fill with files of the thesis's sizes to
/// 80 % of the drive. A file is removed only when it is on the drive, so that each byte is written once at least.
fn aging(
    run: &mut Run<'_>,
    kind: Kind,
    percent: u8,
    clean_when_full: bool,
) -> Result<f64, Stopped> {
    let options = MkfsOptions {
        clean_when_full: clean_when_full && matches!(kind, Kind::Caveat),
        ..MkfsOptions::default()
    };
    let bed = Bed::new(run, kind, 4 * MIB, &options)?;
    let fs = &bed.fs;
    let drive = 60 * 4 * MIB;
    let work = Workload::new(Sizes::thesis(), drive / 10 * 8, 4096, run.seed);
    let mut work = work.with_random_removals(percent);
    let data = vec![9; 4 * MIB as usize];
    let (mut left, mut before) = (run.scaled(40_000, 12_000), None);
    let mut unsynced = HashSet::default();
    while left > 0 {
        if before.is_none() && work.is_steady() {
            fs.sync()?;
            before = Some(fs.space());
        }
        left -= u64::from(before.is_some());
        match work.step() {
            Some(Step::Create { file, bytes }) => {
                let ino = bed.make(ROOT, file, libc::S_IFREG)?;
                fs.write(ino, 0, &data[..bytes as usize])?;
                unsynced.insert(file);
            }
            Some(Step::Remove { file }) => {
                if unsynced.contains(&file) {
                    fs.sync()?;
                    unsynced.clear();
                }
                fs.unlink(ROOT, file.to_string().as_bytes())?;
            }
            None => break,
        }
        if left % 200 == 0 {
            fs.sync()?;
            unsynced.clear();
            if run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
        }
    }
    fs.sync()?;
    let (after, before) = (
        fs.space(),
        before.ok_or_else(|| Stopped::Store {
            reason: "the load never got steady".into(),
        })?,
    );
    let device = after.device_bytes - before.device_bytes;
    let users = after.written_bytes - before.written_bytes;
    Ok(device as f64 / users as f64)
}
