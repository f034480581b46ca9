//! What the file system costs on a drive: bytes, space, flushes, the speed of one table, and the time that a
//! mount takes.

mod amplification;
mod mount;
mod stream;

use crate::error::Result;
use crate::median::median;
use crate::place::{Place, Shape};
use crate::watch::Watch;
use device::profile;
use serde::Serialize;
use std::path::PathBuf;

const PROFILE: &str = "hm-smr-14tb";

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Bytes written and space taken over a fill and two overwrites of a drive that is nearly full.
    Amplification,
    /// Flushes of the drive for each synced put.
    Flushes,
    /// One table, against the same bytes straight to a drive of the same shape.
    Stream,
    /// Mounts of a drive with many zones and files.
    Mount,
}

impl Part {
    /// All, each with its name and what it measures.
    pub const ALL: [(&str, Self, &str); 4] = [
        (
            "amplification",
            Self::Amplification,
            "Bytes written and space taken over a fill and two overwrites of a drive that is nearly full",
        ),
        (
            "flushes",
            Self::Flushes,
            "Flushes of the drive for each synced put",
        ),
        (
            "stream",
            Self::Stream,
            "One SST, against the same bytes straight to a drive of the same shape",
        ),
        (
            "mount",
            Self::Mount,
            "Mounting 60,000 zones with 10,000 files, after a clean stop and after a crash",
        ),
    ];
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where drives are made.
    pub drive: PathBuf,
    /// What is measured.
    pub wanted: Vec<Part>,
    /// How much of the first part's drive all its keys take once, in percent.
    pub fill_percent: u8,
    /// Bytes of that drive.
    pub size: u64,
    /// Bytes of its zones.
    pub zone_size: u64,
    /// Bytes of RocksDB's tables there; two zones unless given.
    pub table_size: Option<u64>,
    /// Synced puts.
    pub sync_keys: u64,
    /// Bytes of a table of the third part.
    pub stream_bytes: u64,
    /// Rounds of the third and fourth part.
    pub rounds: u32,
    /// Zones of the drive that is mounted.
    pub zones: u32,
    /// Files on it.
    pub files: u32,
}

/// A figure and what it should be.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// The median of the rounds.
    pub value: f64,
    /// Behind the number.
    pub unit: &'static str,
    /// What it should be.
    pub target: Option<String>,
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

/// A table for people, its head in front.
pub fn rows(figures: &[Figure]) -> Vec<Vec<String>> {
    let mut rows = vec![["", "", "target"].map(str::to_owned).to_vec()];
    rows.extend(figures.iter().map(|figure| {
        vec![
            figure.name.to_owned(),
            format!("{:.3}{}", figure.value, figure.unit),
            figure.target.clone().unwrap_or_default(),
        ]
    }));
    rows
}

/// What every part needs.
struct Bench<'a> {
    options: &'a Options,
    watch: &'a dyn Watch,
}

impl Bench<'_> {
    /// A place for drives of the usual profile.
    fn place(&self, size: u64, zone_size: Option<u64>) -> Result<Place> {
        let shape = Shape {
            geometry: profile::by_name(PROFILE)?.geometry(size, zone_size)?,
            profile: PROFILE.to_owned(),
        };
        Place::at(&self.options.drive, shape)
    }
}

/// Runs the benchmark.
///
/// # Errors
/// Also that something is there already where the drive would be. What was made is removed.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Vec<Figure>> {
    let bench = Bench { options, watch };
    let mut figures = Vec::new();
    for part in &options.wanted {
        figures.extend(match part {
            Part::Amplification => amplification::amplification(&bench)?,
            Part::Flushes => amplification::flushes(&bench)?,
            Part::Stream => stream::run(&bench)?,
            Part::Mount => mount::run(&bench)?,
        });
    }
    Ok(figures)
}
