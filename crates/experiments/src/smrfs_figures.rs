//! Compares the two file systems of the Caveat-Scriptor thesis with each other and with Linux's, on one disk in
//! virtual time.
//!
//! The thesis prints its figures 5.1 to 5.7 as pictures and describes them. Our file systems run without FUSE and
//! take no CPU time: the comparison is of the requests that each sends to the disk. F2FS is not in print.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::file_loads::Load;
use crate::kernel_files::{self, KernelFiles};
use crate::smrfs_bed::{Bed, DISK, Kind, MIB};
use crate::smrfs_load;
use plot::{Figure, Panel};
use smrfs::MkfsOptions;

/// The tolerance for "similar" in the thesis.
const ALIKE: f64 = 0.2;

/// Indices of the file systems in the rates.
const STRICT_APPEND: usize = 0;
const CAVEAT: usize = 1;
const EXT4: usize = 2;
const NILFS2: usize = 3;

pub const LARGE_FILES: Experiment = Experiment {
    id: "caveat-figure-5.1",
    title: "A large file is read as fast on a Caveat-Scriptor drive as in bands and on ext4 and NILFS2, and written less fast",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), figures 5.1 to 5.4",
    expected: || {
        let mut rows = Vec::new();
        for (load, number) in LARGE {
            for (part, other) in large_rows() {
                let (what, printed) = match part {
                    0 => ("written", 1),
                    1 => ("read", 0),
                    2 => ("read at random", 0),
                    _ => ("overwritten at random", 1),
                };
                let megabytes = load.work();
                let figure = number + printed;
                let what = format!(
                    "{megabytes} MB file, {what} (figure 5.{figure}): Caveat-Scriptor ÷ {}",
                    name(other)
                );
                rows.push(match (printed, other) {
                    (1, EXT4 | NILFS2) => {
                        Expected::at_most(what, "", 1.0 - ALIKE).words("significantly lower")
                    }
                    _ => Expected::value(what, "", 1.0).part(ALIKE).words("similar"),
                });
            }
        }
        rows
    },
    measure: |run| {
        let (mut measured, mut panels) = (Vec::new(), Vec::new());
        for (load, _) in LARGE {
            let rates = rates(run, load)?;
            measured
                .extend(large_rows().map(|(part, other)| rates[CAVEAT][part] / rates[other][part]));
            let title = format!("{} MB", load.work());
            let names = ["written", "read", "read at random", "overwritten at random"];
            panels.push(bars(Panel::bars(title, &names, "MB/s"), &rates));
        }
        Ok(outcome(measured, "caveat-5.1", "One large file", panels))
    },
};

/// Loads, each with the number of the first of its two figures.
const LARGE: [(Load, u32); 2] = [(Load::Large(100), 1), (Load::Large(500), 3)];

fn large_rows() -> impl Iterator<Item = (usize, usize)> {
    (0..4).flat_map(|part| [STRICT_APPEND, EXT4, NILFS2].map(|other| (part, other)))
}

pub const SMALL_FILES: Experiment = Experiment {
    id: "caveat-figure-5.5",
    title: "Small files, a mail server and a compiler do as many operations a second on either, and on ext4 and NILFS2",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), figures 5.5 to 5.7",
    expected: || {
        let words = |(load, one, other): (Load, usize, usize)| {
            let what = match load {
                Load::Small => "small files",
                Load::PostMark => "PostMark",
                _ => "compiling",
            };
            format!("{what}: {} ÷ {}", name(one), name(other))
        };
        let alike = |row| Expected::value(words(row), "", 1.0).part(ALIKE);
        let row = |row| match row {
            (Load::Small, _, STRICT_APPEND | NILFS2) => {
                Expected::at_least(words(row), "", 1.0).words("better")
            }
            (Load::Small, ..) => alike(row).words("similar"),
            _ => alike(row).words("equally"),
        };
        SMALL.map(row).to_vec()
    },
    measure: |run| {
        let loads = [Load::Small, Load::PostMark, Load::Compiling];
        let mut all = Vec::new();
        for load in loads {
            all.push(rates(run, load)?);
        }
        let measured = SMALL.iter().map(|(load, one, other)| {
            let rates = loads.iter().position(|of| of == load).map(|at| &all[at]);
            rates.map_or(f64::NAN, |rates| rates[*one][0] / rates[*other][0])
        });
        let measured = measured.collect();
        // The loads become the parts of one picture.
        let by_system: Vec<Vec<f64>> = (0..all[0].len())
            .map(|system| all.iter().map(|rates| rates[system][0]).collect())
            .collect();
        let names = ["small files", "PostMark", "compiling"];
        let panel = Panel::bars("", &names, "operations a second").logarithmic();
        let panels = vec![bars(panel, &by_system)];
        Ok(outcome(measured, "caveat-5.5", "Many files", panels))
    },
};

/// A load and the two file systems of which the thesis prints a comparison.
const SMALL: [(Load, usize, usize); 8] = [
    (Load::Small, CAVEAT, STRICT_APPEND),
    (Load::Small, CAVEAT, EXT4),
    (Load::Small, CAVEAT, NILFS2),
    (Load::PostMark, CAVEAT, STRICT_APPEND),
    (Load::PostMark, CAVEAT, EXT4),
    (Load::PostMark, CAVEAT, NILFS2),
    (Load::Compiling, CAVEAT, STRICT_APPEND),
    (Load::Compiling, EXT4, NILFS2),
];

fn name(system: usize) -> &'static str {
    match system {
        STRICT_APPEND | CAVEAT => Kind::BOTH[system].name(),
        _ => KernelFiles::ALL[system - EXT4].name(),
    }
}

/// Work a second for each part, by file system. Loads have the size of the recorded ones at each scale.
fn rates(run: &mut Run<'_>, load: Load) -> Result<Vec<Vec<f64>>, Stopped> {
    let mut all = Vec::new();
    for kind in Kind::BOTH {
        run.next(&format!("{}, {}", load.name(), kind.name()))?;
        let bed = Bed::new(run, kind, 128 * MIB, &MkfsOptions::default())?;
        all.push(smrfs_load::seconds(&bed, load, run.seed)?);
    }
    for of in KernelFiles::ALL {
        let trace = of.trace()?;
        run.next(&format!("{}, {}", load.name(), trace.origin()))?;
        all.push(kernel_files::seconds(run, &trace, load)?);
    }
    let rate = |seconds: f64| load.work() as f64 / seconds;
    let rates = all.into_iter();
    Ok(rates
        .map(|parts| parts.into_iter().map(rate).collect())
        .collect())
}

fn bars(panel: Panel, rates: &[Vec<f64>]) -> Panel {
    let all = rates.iter().enumerate();
    all.fold(panel, |panel, (system, rates)| {
        panel.points(name(system), plot::numbered(rates))
    })
}

fn outcome(
    measured: Vec<f64>,
    number: &'static str,
    title: &'static str,
    panels: Vec<Panel>,
) -> Outcome {
    Outcome::from(measured).with(Figure {
        number,
        title,
        caption: format!("{DISK} in virtual time: the disk's alone, without FUSE or processor."),
        panels,
    })
}
