//! `bench rocksdb`: Debian's db_bench on BlueFS and on the host's own file system, in alternation.
//!
//! Every round has a fresh drive and a fresh directory, on the same disk, with the same settings of
//! RocksDB; who goes first changes from round to round. A figure is the median of the rounds' ratios.

use super::db_bench::{BenchStatistics, Measurements, Place};
use super::median;
use crate::args::{BenchRocksdb, NewDrive, RocksdbWorkload as Workload};
use crate::errors::CommandResult;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    rounds: u32,
    keys: u64,
    sync_keys: u64,
    results: Vec<Figure>,
    /// Bytes written to the drive and bytes that RocksDB asked BlueFS to write, over all rounds.
    drive_bytes_written: u64,
    bluefs_bytes_asked: u64,
    drive_bytes_per_byte_asked: Option<f64>,
}

#[derive(Serialize)]
struct Figure {
    name: String,
    unit: &'static str,
    bluefs: f64,
    host: f64,
    ratio: f64,
    target: String,
    bluefs_rounds: Vec<f64>,
    host_rounds: Vec<f64>,
}

/// One call of db_bench.
struct Call {
    /// What is measured in it, in order.
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

    /// The least that BlueFS ÷ host should be.
    const fn target(self) -> f64 {
        match self {
            Self::Fillsync => 1.5,
            _ => 1.0,
        }
    }
}

/// Calls for what is wanted: one that writes, one that reads what a fill left, one that syncs.
fn calls(wanted: &[Workload], arguments: &BenchRocksdb) -> Vec<Call> {
    let mut common = vec![
        "--key_size=20".to_owned(),
        "--value_size=400".to_owned(),
        "--compression_type=none".to_owned(),
        "--seed=1".to_owned(),
        format!("--cache_size={}", arguments.cache.0),
    ];
    if !arguments.buffered {
        common.push("--use_direct_io_for_flush_and_compaction=true".to_owned());
    }
    let names = |of: &[Workload]| -> Vec<&'static str> {
        let of = of.iter().filter(|w| wanted.contains(w));
        of.map(|w| w.name()).collect()
    };
    let with = |more: &[String]| [common.as_slice(), more].concat();
    let num = format!("--num={}", arguments.num);
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
                format!("--reads={}", arguments.reads),
                format!("--threads={}", arguments.threads),
                format!("--benchmark_write_rate_limit={}", arguments.write_rate.0),
                "--histogram".to_owned(),
            ]),
            names: reads,
        });
    }
    let syncs = names(&[Workload::Fillsync]);
    if !syncs.is_empty() {
        calls.push(Call {
            // Its keys are out of a thousandth of `num`, but it writes `num` of them unless told.
            arguments: with(&[
                "--benchmarks=fillsync".to_owned(),
                format!("--num={}", arguments.sync_num.saturating_mul(1000)),
                format!("--writes={}", arguments.sync_num),
            ]),
            names: syncs,
        });
    }
    calls
}

/// Runs the benchmark.
pub fn run(arguments: &BenchRocksdb, interrupt: &Interrupt, out: &mut Output) -> CommandResult {
    let shape = NewDrive {
        profile: Some(arguments.profile.clone()),
        size: Some(arguments.size),
        zone_size: None,
        zone_capacity: None,
        conventional: None,
        max_open: None,
        max_active: None,
    };
    let place = Place::at(&arguments.drive, shape)?;
    let wanted = Workload::wanted(&arguments.only);
    let calls = calls(&wanted, arguments);
    let steps = u64::from(arguments.rounds) * calls.len() as u64 * 2;
    let progress = Progress::steps("measuring", Some(steps));
    let (mut bluefs, mut host) = (Vec::new(), Vec::new());
    let mut bytes = (0, 0);
    for round in 0..arguments.rounds {
        let (mut on_bluefs, mut on_host) = (Measurements::new(), Measurements::new());
        for call in &calls {
            let what = call.names.join(", ");
            for turn in 0..2 {
                let bluefs_now = (round + turn) % 2 == 0;
                let side = if bluefs_now { "BlueFS" } else { "the host" };
                progress.message(format!("round {}: {what} on {side}", round + 1));
                // A terminal sends Ctrl-C to db_bench as well: then this is why it failed.
                if bluefs_now {
                    let measured = place.on_bluefs(&call.names, &call.arguments);
                    interrupt.check()?;
                    let (measured, statistics) = measured?;
                    on_bluefs.extend(measured);
                    add(&mut bytes, &statistics);
                } else {
                    let measured = place.on_host(&call.names, &call.arguments);
                    interrupt.check()?;
                    on_host.extend(measured?);
                }
                progress.advance(1);
            }
        }
        bluefs.push(on_bluefs);
        host.push(on_host);
    }
    drop(progress);
    let (written, asked) = bytes;
    let report = Report {
        rounds: arguments.rounds,
        keys: arguments.num,
        sync_keys: arguments.sync_num,
        results: wanted
            .iter()
            .flat_map(|workload| figures(*workload, &bluefs, &host))
            .collect(),
        drive_bytes_written: written,
        bluefs_bytes_asked: asked,
        drive_bytes_per_byte_asked: (asked > 0).then(|| written as f64 / asked as f64),
    };
    print(&report, arguments, out)
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
    let rate = |of: &[super::db_bench::Measured]| of.iter().map(|m| m.rate).collect();
    let mut figures = vec![Figure::new(
        name.to_owned(),
        "/s",
        format!("≥ {:.2}", workload.target()),
        rate(&bluefs),
        rate(&host),
    )];
    let late = |of: &[super::db_bench::Measured]| -> Vec<f64> {
        of.iter().filter_map(|m| m.p999_micros).collect()
    };
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

fn print(report: &Report, arguments: &BenchRocksdb, out: &mut Output) -> CommandResult {
    let head = ["", "BlueFS", "host", "ratio", "target"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for figure in &report.results {
        rows.push(vec![
            figure.name.clone(),
            format!("{:.0}{}", figure.bluefs, figure.unit),
            format!("{:.0}{}", figure.host, figure.unit),
            format!("{:.2}", figure.ratio),
            figure.target.clone(),
        ]);
    }
    out.table(&[0], &rows)?;
    if let Some(ratio) = report.drive_bytes_per_byte_asked {
        out.line(format_args!(
            "{ratio:.3} bytes written to the drive for each asked of BlueFS"
        ))?;
    }
    out.line(format_args!(
        "{} keys of 20 bytes, values of 400 bytes ({} keys in fillsync), {} of block cache, {}; medians of {} \
         rounds and of their ratios",
        report.keys,
        report.sync_keys,
        arguments.cache,
        if arguments.buffered {
            "no direct I/O"
        } else {
            "direct I/O for flushes and compactions"
        },
        report.rounds
    ))?;
    out.value(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, BenchCommand, Command};
    use clap::Parser;

    fn arguments(more: &[&str]) -> BenchRocksdb {
        let line = [&["zonestore", "bench", "rocksdb"], more].concat();
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Bench(BenchCommand::Rocksdb(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wanted_is_called_for_and_nothing_else() {
        let names = |more: &[&str]| -> Vec<Vec<&str>> {
            let arguments = arguments(more);
            let wanted = Workload::wanted(&arguments.only);
            calls(&wanted, &arguments)
                .into_iter()
                .map(|c| c.names)
                .collect()
        };
        assert_eq!(
            names(&[]),
            [
                vec!["fillrandom", "overwrite"],
                vec!["readrandom", "readwhilewriting"],
                vec!["fillsync"]
            ]
        );
        assert_eq!(
            names(&["--only", "fillsync,overwrite"]),
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
