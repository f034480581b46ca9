//! `bench bluefs`: what the file system costs on a drive: bytes, space, flushes, the speed of one
//! SST, and the time that a mount takes.

mod amplification;
mod mount;
mod stream;

use super::db_bench::Place;
use super::median;
use crate::args::{BenchBluefs, BluefsPart as Part, NewDrive};
use crate::errors::CommandResult;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size::Size;
use serde::Serialize;

/// A figure and what it should be.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    target: Option<String>,
    /// What it is the median of.
    rounds: Vec<f64>,
}

impl Figure {
    /// Of one run.
    fn one(name: &'static str, value: f64, target: Option<&str>) -> Self {
        Self::median(name, "", vec![value], target)
    }

    /// The median of several.
    fn median(
        name: &'static str,
        unit: &'static str,
        rounds: Vec<f64>,
        target: Option<&str>,
    ) -> Self {
        Self {
            name,
            value: median(&rounds),
            unit,
            target: target.map(str::to_owned),
            rounds,
        }
    }
}

/// What every part has at hand.
struct Bench<'a> {
    arguments: &'a BenchBluefs,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

impl Bench<'_> {
    /// A place for drives of the usual profile.
    fn place(&self, size: u64, zone_size: Option<u64>) -> CommandResult<Place> {
        let shape = NewDrive {
            profile: Some("hm-smr-14tb".to_owned()),
            size: Some(Size(size)),
            zone_size: zone_size.map(Size),
            zone_capacity: None,
            conventional: None,
            max_open: None,
            max_active: None,
        };
        Place::at(&self.arguments.drive, shape)
    }
}

/// Runs the benchmark.
pub fn run(arguments: &BenchBluefs, interrupt: &Interrupt, out: &mut Output) -> CommandResult {
    let all = [
        Part::Amplification,
        Part::Flushes,
        Part::Stream,
        Part::Mount,
    ];
    let wanted = all.into_iter().filter(|part| {
        let only = &arguments.only;
        only.is_empty() || only.contains(part)
    });
    let progress = Progress::steps("measuring", None);
    let bench = Bench {
        arguments,
        interrupt,
        progress: &progress,
    };
    let mut figures = Vec::new();
    for part in wanted {
        figures.extend(match part {
            Part::Amplification => amplification::amplification(&bench)?,
            Part::Flushes => amplification::flushes(&bench)?,
            Part::Stream => stream::run(&bench)?,
            Part::Mount => mount::run(&bench)?,
        });
    }
    drop(progress);
    let head = ["", "", "target"].map(str::to_owned).to_vec();
    let rows = figures.iter().map(|figure| {
        vec![
            figure.name.to_owned(),
            format!("{:.3}{}", figure.value, figure.unit),
            figure.target.clone().unwrap_or_default(),
        ]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    out.table(&[0], &rows)?;
    out.value(&figures)
}
