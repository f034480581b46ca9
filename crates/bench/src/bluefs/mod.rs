//! Measures BlueFS on a drive: bytes written, space taken, flushes, the speed of writing one SST, and the time of a
//! mount.

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

/// The parts of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Bytes written and space taken over a fill and two overwrites of a drive that is nearly full.
    Amplification,
    /// Flushes of the drive for each synced put.
    Flushes,
    /// One SST, compared with the same bytes straight to a drive of the same shape.
    Stream,
    /// Mounts of a drive with many zones and files.
    Mount,
}

impl Part {
    /// Each variant with its name and a description.
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

/// The parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the drive file, which is made for each part.
    pub drive: PathBuf,
    /// The parts to run.
    pub wanted: Vec<Part>,
    /// [`Part::Amplification`]: per cent of the drive that all keys take once.
    pub fill_percent: u8,
    /// [`Part::Amplification`]: bytes of the drive.
    pub size: u64,
    /// [`Part::Amplification`]: bytes of a zone.
    pub zone_size: u64,
    /// [`Part::Amplification`]: bytes of RocksDB's SSTs; `None` for two zones.
    pub table_size: Option<u64>,
    /// [`Part::Flushes`]: synced puts.
    pub sync_keys: u64,
    /// [`Part::Stream`]: bytes of an SST.
    pub stream_bytes: u64,
    /// [`Part::Stream`] and [`Part::Mount`]: rounds.
    pub rounds: u32,
    /// [`Part::Mount`]: zones of the drive.
    pub zones: u32,
    /// [`Part::Mount`]: files on the drive.
    pub files: u32,
}

/// A figure and its target.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Name of the figure.
    pub name: &'static str,
    /// The median of the rounds.
    pub value: f64,
    /// Unit that follows the number.
    pub unit: &'static str,
    /// The range that the value should be in, in words.
    pub target: Option<String>,
    rounds: Vec<f64>,
}

impl Figure {
    /// The figure of a single run.
    fn one(name: &'static str, value: f64, target: Option<&str>) -> Self {
        Self::median(name, "", vec![value], target)
    }

    /// The median of several rounds.
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

/// A table for people, its head first.
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

/// What all parts need: the parameters and the watch.
struct Bench<'a> {
    options: &'a Options,
    watch: &'a dyn Watch,
}

impl Bench<'_> {
    /// A place for drives of [`PROFILE`].
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
/// Among others, that a file exists where the drive would be made. Everything that was made is removed.
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
