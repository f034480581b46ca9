//! Debian's db_bench on BlueFS and on the host's own file system, in alternation.
//!
//! Every round has a fresh drive and a fresh directory, on the same disk, with the same settings of RocksDB; BlueFS
//! and the host go first in turn. A figure is the median of the rounds' ratios.

use crate::db_bench::{BenchStatistics, Measured, Measurements};
use crate::error::Result;
use crate::median::median;
use crate::place::{Place, Shape};
use crate::watch::Watch;
use serde::Serialize;
use std::path::PathBuf;

/// Benchmarks of db_bench that can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Writes random keys into an empty database.
    Fillrandom,
    /// Writes random keys into a database that has them already.
    Overwrite,
    /// Reads random keys.
    Readrandom,
    /// Reads random keys while another thread writes.
    Readwhilewriting,
    /// Puts, each of which is synced.
    Fillsync,
}

impl Workload {
    /// Each variant with its name and a description.
    pub const ALL: [(&str, Self, &str); 5] = [
        (
            "fillrandom",
            Self::Fillrandom,
            "Random keys into an empty database",
        ),
        (
            "overwrite",
            Self::Overwrite,
            "Random keys into one that has them already",
        ),
        ("readrandom", Self::Readrandom, "Random keys out of it"),
        (
            "readwhilewriting",
            Self::Readwhilewriting,
            "The same while somebody writes",
        ),
        (
            "fillsync",
            Self::Fillsync,
            "Puts that are synced one by one",
        ),
    ];
}

/// The parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the drive file, which is made for each run.
    pub drive: PathBuf,
    /// Geometry and profile of the drive.
    pub shape: Shape,
    /// The workloads to run.
    pub wanted: Vec<Workload>,
    /// Keys of the database.
    pub keys: u64,
    /// Reads of each reader.
    pub reads: u64,
    /// Threads that read.
    pub threads: u32,
    /// Bytes a second that readwhilewriting writes; 0 for no limit.
    pub write_rate: u64,
    /// Puts of fillsync.
    pub sync_keys: u64,
    /// Bytes of RocksDB's block cache.
    pub cache_bytes: u64,
    /// Whether RocksDB uses the page cache instead of direct I/O for flushes and compactions.
    pub buffered: bool,
    /// Rounds on BlueFS, and as many on the host's file system.
    pub rounds: u32,
}

/// The results.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Rounds on BlueFS, and as many on the host's file system.
    pub rounds: u32,
    /// Keys of the database.
    pub keys: u64,
    /// Puts of fillsync.
    pub sync_keys: u64,
    /// One or two figures of each workload.
    pub results: Vec<Figure>,
    /// Bytes written to the drive, over all rounds.
    pub drive_bytes_written: u64,
    /// Bytes that RocksDB asked BlueFS to write, over all rounds.
    pub bluefs_bytes_asked: u64,
    /// Bytes written to the drive ÷ bytes asked of BlueFS; `None` if none were asked.
    pub drive_bytes_per_byte_asked: Option<f64>,
}

impl Report {
    /// Conditions and write amplification, which the table does not contain; one line each.
    pub fn lines(&self, options: &Options) -> Vec<String> {
        let asked = self
            .drive_bytes_per_byte_asked
            .map(|ratio| format!("{ratio:.3} bytes written to the drive for each asked of BlueFS"));
        let direct = match options.buffered {
            true => "no direct I/O",
            false => "direct I/O for flushes and compactions",
        };
        let conditions = format!(
            "{} keys of 20 bytes, values of 400 bytes ({} keys in fillsync), {} of block cache, {direct}; medians of \
             {} rounds and of their ratios",
            self.keys,
            self.sync_keys,
            zone::Bytes(options.cache_bytes),
            self.rounds
        );
        asked.into_iter().chain([conditions]).collect()
    }

    /// A table for people, its head first.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let head = ["", "BlueFS", "host", "ratio", "target"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.results.iter().map(|figure| {
            vec![
                figure.name.clone(),
                format!("{:.0}{}", figure.bluefs, figure.unit),
                format!("{:.0}{}", figure.host, figure.unit),
                format!("{:.2}", figure.ratio),
                figure.target.clone(),
            ]
        }));
        rows
    }
}

/// One number of a workload: medians of the rounds and of their ratios.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// The workload, with the percentile if the figure is a latency.
    pub name: String,
    /// Unit that follows the numbers.
    pub unit: &'static str,
    /// On BlueFS.
    pub bluefs: f64,
    /// On the host's file system.
    pub host: f64,
    /// BlueFS ÷ host.
    pub ratio: f64,
    /// The range that the ratio should be in, in words.
    pub target: String,
    bluefs_rounds: Vec<f64>,
    host_rounds: Vec<f64>,
}

/// One call of db_bench.
struct Call {
    /// Workloads that are measured in this call, in order.
    names: Vec<&'static str>,
    arguments: Vec<String>,
}

impl Workload {
    const fn name(self) -> &'static str {
        match self {
            Self::Fillrandom => "fillrandom",
            Self::Overwrite => "overwrite",
            Self::Readrandom => "readrandom",
            Self::Readwhilewriting => "readwhilewriting",
            Self::Fillsync => "fillsync",
        }
    }

    /// The least ratio BlueFS ÷ host that is wanted.
    const fn target(self) -> f64 {
        match self {
            Self::Fillsync => 1.5,
            _ => 1.0,
        }
    }
}

/// The calls that cover the wanted workloads: one that writes, one that fills and then reads, one that syncs.
fn calls(options: &Options) -> Vec<Call> {
    let mut common = vec![
        "--key_size=20".to_owned(),
        "--value_size=400".to_owned(),
        "--compression_type=none".to_owned(),
        "--seed=1".to_owned(),
        format!("--cache_size={}", options.cache_bytes),
    ];
    if !options.buffered {
        common.push("--use_direct_io_for_flush_and_compaction=true".to_owned());
    }
    let names = |of: &[Workload]| -> Vec<&'static str> {
        let of = of.iter().filter(|w| options.wanted.contains(w));
        of.map(|w| w.name()).collect()
    };
    let with = |more: &[String]| [common.as_slice(), more].concat();
    let num = format!("--num={}", options.keys);
    let mut calls = Vec::new();
    let writes = names(&[Workload::Fillrandom, Workload::Overwrite]);
    if !writes.is_empty() {
        calls.push(Call {
            arguments: with(&["--benchmarks=fillrandom,overwrite".to_owned(), num.clone()]),
            names: writes,
        });
    }
    let reads = names(&[Workload::Readrandom, Workload::Readwhilewriting]);
    if !reads.is_empty() {
        calls.push(Call {
            arguments: with(&[
                format!(
                    "--benchmarks=fillrandom,waitforcompaction,{}",
                    reads.join(",")
                ),
                num,
                format!("--reads={}", options.reads),
                format!("--threads={}", options.threads),
                format!("--benchmark_write_rate_limit={}", options.write_rate),
                "--histogram".to_owned(),
            ]),
            names: reads,
        });
    }
    let syncs = names(&[Workload::Fillsync]);
    if !syncs.is_empty() {
        calls.push(Call {
            // Keys of fillsync are below `num` ÷ 1000, but it would write `num` of them without `--writes`.
            arguments: with(&[
                "--benchmarks=fillsync".to_owned(),
                format!("--num={}", options.sync_keys.saturating_mul(1000)),
                format!("--writes={}", options.sync_keys),
            ]),
            names: syncs,
        });
    }
    calls
}

/// Runs the benchmark.
///
/// # Errors
/// Among others, that a file exists where the drive would be made. Everything that was made is removed.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Report> {
    let place = Place::at(&options.drive, options.shape.clone())?;
    let calls = calls(options);
    watch.steps(u64::from(options.rounds) * calls.len() as u64 * 2);
    let (mut bluefs, mut host) = (Vec::new(), Vec::new());
    let mut bytes = (0, 0);
    for round in 0..options.rounds {
        let (mut on_bluefs, mut on_host) = (Measurements::new(), Measurements::new());
        for call in &calls {
            let what = call.names.join(", ");
            for turn in 0..2 {
                let bluefs_now = (round + turn) % 2 == 0;
                let side = if bluefs_now { "BlueFS" } else { "the host" };
                watch.measures(format!("round {}: {what} on {side}", round + 1));
                // Ctrl-C at a terminal also ends db_bench: the interruption is reported then, not the failure of
                // db_bench.
                if bluefs_now {
                    let measured = place.on_bluefs(&call.names, &call.arguments);
                    watch.check()?;
                    let (measured, statistics) = measured?;
                    on_bluefs.extend(measured);
                    add(&mut bytes, &statistics);
                } else {
                    let measured = place.on_host(&call.names, &call.arguments);
                    watch.check()?;
                    on_host.extend(measured?);
                }
                watch.step();
            }
        }
        bluefs.push(on_bluefs);
        host.push(on_host);
    }
    let (written, asked) = bytes;
    Ok(Report {
        rounds: options.rounds,
        keys: options.keys,
        sync_keys: options.sync_keys,
        results: options
            .wanted
            .iter()
            .flat_map(|workload| figures(*workload, &bluefs, &host))
            .collect(),
        drive_bytes_written: written,
        bluefs_bytes_asked: asked,
        drive_bytes_per_byte_asked: (asked > 0).then(|| written as f64 / asked as f64),
    })
}

fn add((written, asked): &mut (u64, u64), statistics: &BenchStatistics) {
    *written += statistics.number("bytes_written");
    *asked += statistics.number("bytes_asked");
}

fn figures(workload: Workload, bluefs: &[Measurements], host: &[Measurements]) -> Vec<Figure> {
    let name = workload.name();
    let rounds = |of: &[Measurements]| -> Vec<_> {
        of.iter()
            .filter_map(|round| round.get(name).copied())
            .collect()
    };
    let (bluefs, host) = (rounds(bluefs), rounds(host));
    let rate = |of: &[Measured]| of.iter().map(|m| m.rate).collect();
    let mut figures = vec![Figure::new(
        name.to_owned(),
        "/s",
        format!("≥ {:.2}", workload.target()),
        rate(&bluefs),
        rate(&host),
    )];
    let late = |of: &[Measured]| -> Vec<f64> { of.iter().filter_map(|m| m.p999_micros).collect() };
    if workload == Workload::Readwhilewriting {
        figures.push(Figure::new(
            format!("{name} p99.9"),
            " µs",
            "≤ 1.00".to_owned(),
            late(&bluefs),
            late(&host),
        ));
    }
    figures
}

impl Figure {
    fn new(
        name: String,
        unit: &'static str,
        target: String,
        bluefs_rounds: Vec<f64>,
        host_rounds: Vec<f64>,
    ) -> Self {
        let pairs = bluefs_rounds.iter().zip(&host_rounds);
        let ratios: Vec<f64> = pairs.map(|(b, h)| b / h).collect();
        Self {
            name,
            unit,
            bluefs: median(&bluefs_rounds),
            host: median(&host_rounds),
            ratio: median(&ratios),
            target,
            bluefs_rounds,
            host_rounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::profile;

    #[test]
    fn what_is_wanted_is_called_for_and_nothing_else() {
        let profile = profile::by_name("test-small").unwrap();
        let names = |wanted: &[Workload]| -> Vec<Vec<&str>> {
            let options = Options {
                drive: PathBuf::new(),
                shape: Shape {
                    geometry: profile.geometry(16 << 20, None).unwrap(),
                    profile: profile.name.to_owned(),
                },
                wanted: wanted.to_vec(),
                keys: 1,
                reads: 1,
                threads: 1,
                write_rate: 1,
                sync_keys: 1,
                cache_bytes: 1,
                buffered: false,
                rounds: 1,
            };
            calls(&options).into_iter().map(|c| c.names).collect()
        };
        use Workload as W;
        assert_eq!(
            names(&[
                W::Fillrandom,
                W::Overwrite,
                W::Readrandom,
                W::Readwhilewriting,
                W::Fillsync
            ]),
            [
                vec!["fillrandom", "overwrite"],
                vec!["readrandom", "readwhilewriting"],
                vec!["fillsync"]
            ]
        );
        assert_eq!(
            names(&[W::Fillsync, W::Overwrite]),
            [["overwrite"], ["fillsync"]]
        );
    }

    #[test]
    fn a_figure_is_the_median_of_the_ratios_of_rounds() {
        let figure = Figure::new(
            String::new(),
            "",
            String::new(),
            vec![1.0, 4.0, 30.0],
            vec![2.0, 1.0, 10.0],
        );
        assert_eq!((figure.bluefs, figure.host, figure.ratio), (4.0, 2.0, 3.0));
    }
}
