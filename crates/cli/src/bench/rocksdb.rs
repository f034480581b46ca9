//! `bench rocksdb`: Debian's db_bench on BlueFS and on the host's own file system, in alternation.
//!
//! Every round has a fresh drive and a fresh directory, on the same disk; the settings of RocksDB
//! are the same on both.

use super::median;
use crate::args::{BenchRocksdb, NewDrive};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::fs_commands as fs;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations a second of each benchmark.
type Rates = BTreeMap<String, f64>;

#[derive(Serialize)]
struct Report {
    rounds: u32,
    keys: u64,
    sync_keys: u64,
    results: Vec<BenchmarkResult>,
    /// Bytes written to the drive and bytes that RocksDB asked BlueFS to write, over all rounds.
    drive_bytes_written: u64,
    bluefs_bytes_asked: u64,
    drive_bytes_per_byte_asked: Option<f64>,
}

#[derive(Serialize)]
struct BenchmarkResult {
    name: String,
    bluefs_operations_per_second: f64,
    host_operations_per_second: f64,
    ratio: f64,
    bluefs_rounds: Vec<f64>,
    host_rounds: Vec<f64>,
}

/// One call of db_bench and what is read from its output.
struct Workload {
    benchmarks: &'static [&'static str],
    arguments: Vec<String>,
}

fn workloads(arguments: &BenchRocksdb) -> [Workload; 2] {
    let common = [
        "--key_size=20",
        "--value_size=400",
        "--compression_type=none",
        "--seed=1",
    ];
    let with = |more: &[String]| {
        common
            .iter()
            .map(|&a| a.to_owned())
            .chain(more.iter().cloned())
            .collect::<Vec<_>>()
    };
    [
        Workload {
            benchmarks: &["fillrandom", "readrandom"],
            arguments: with(&[
                "--benchmarks=fillrandom,readrandom".to_owned(),
                format!("--num={}", arguments.num),
            ]),
        },
        Workload {
            benchmarks: &["fillsync"],
            // Its keys are out of a thousandth of `num`, but it writes `num` of them unless told.
            arguments: with(&[
                "--benchmarks=fillsync".to_owned(),
                format!("--num={}", arguments.sync_num.saturating_mul(1000)),
                format!("--writes={}", arguments.sync_num),
            ]),
        },
    ]
}

/// Runs the benchmark.
pub fn run(arguments: &BenchRocksdb, interrupt: &Interrupt, out: &mut Output) -> CommandResult {
    let place = Place::at(&arguments.drive)?;
    let workloads = workloads(arguments);
    let steps = u64::from(arguments.rounds) * workloads.len() as u64 * 2;
    let progress = Progress::steps("measuring", Some(steps));
    let (mut bluefs, mut host) = (Vec::<Rates>::new(), Vec::<Rates>::new());
    let mut bytes = WrittenBytes::default();
    for round in 0..arguments.rounds {
        let (mut on_bluefs, mut on_host) = (Rates::new(), Rates::new());
        for workload in &workloads {
            let what = workload.benchmarks.join(", ");
            progress.message(format!("round {}: {what} on BlueFS", round + 1));
            // A terminal sends Ctrl-C to db_bench as well: then this is why it failed.
            let measured = place.on_bluefs(workload, arguments);
            interrupt.check()?;
            let (rates, written) = measured?;
            on_bluefs.extend(rates);
            bytes.add(&written);
            progress.advance(1);
            progress.message(format!("round {}: {what} on the host", round + 1));
            let measured = place.on_host(workload);
            interrupt.check()?;
            on_host.extend(measured?);
            progress.advance(1);
        }
        bluefs.push(on_bluefs);
        host.push(on_host);
    }
    drop(progress);
    let results = workloads
        .iter()
        .flat_map(|workload| workload.benchmarks)
        .map(|name| result(name, &bluefs, &host))
        .collect();
    let report = Report {
        rounds: arguments.rounds,
        keys: arguments.num,
        sync_keys: arguments.sync_num,
        results,
        drive_bytes_written: bytes.drive,
        bluefs_bytes_asked: bytes.asked,
        drive_bytes_per_byte_asked: (bytes.asked > 0)
            .then(|| bytes.drive as f64 / bytes.asked as f64),
    };
    print(&report, out)
}

fn result(name: &str, bluefs: &[Rates], host: &[Rates]) -> BenchmarkResult {
    let rates = |rounds: &[Rates]| -> Vec<f64> {
        rounds
            .iter()
            .filter_map(|rates| rates.get(name).copied())
            .collect()
    };
    let (bluefs, host) = (rates(bluefs), rates(host));
    let ratios: Vec<f64> = bluefs.iter().zip(&host).map(|(b, h)| b / h).collect();
    BenchmarkResult {
        name: name.to_owned(),
        bluefs_operations_per_second: median(&bluefs),
        host_operations_per_second: median(&host),
        ratio: median(&ratios),
        bluefs_rounds: bluefs,
        host_rounds: host,
    }
}

/// What one run wrote, by the plug-in's own count.
#[derive(Default)]
struct WrittenBytes {
    drive: u64,
    asked: u64,
}

impl WrittenBytes {
    fn add(&mut self, other: &Self) {
        self.drive += other.drive;
        self.asked += other.asked;
    }

    /// Reads the statistics that the plug-in leaves at its unmount.
    fn read(path: &Path) -> Self {
        let value: serde_json::Value = std::fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let number = |name: &str| {
            value
                .get(name)
                .and_then(serde_json::Value::as_u64)
                .unwrap_or(0)
        };
        Self {
            drive: number("bytes_written"),
            asked: number("bytes_asked"),
        }
    }
}

/// Where the benchmark happens; all that it makes is removed in the end.
struct Place {
    drive: PathBuf,
    folder: PathBuf,
    statistics: PathBuf,
}

impl Place {
    fn at(drive: &Path) -> CommandResult<Self> {
        let beside = |suffix: &str| {
            let mut name = drive.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let folder = beside(".host");
        for path in [drive, folder.as_path()] {
            if std::fs::symlink_metadata(path).is_ok() {
                return Err(CommandError::new(
                    Exit::Refused,
                    format_args!("{}: exists already", path.display()),
                )
                .hint("name a file that does not exist; the benchmark makes and removes it"));
            }
        }
        Ok(Self {
            drive: drive.to_owned(),
            folder,
            statistics: beside(".statistics.json"),
        })
    }

    fn on_bluefs(
        &self,
        workload: &Workload,
        arguments: &BenchRocksdb,
    ) -> CommandResult<(Rates, WrittenBytes)> {
        let shape = NewDrive {
            profile: Some(arguments.profile.clone()),
            size: Some(arguments.size),
            zone_size: None,
            zone_capacity: None,
            conventional: None,
            max_open: None,
            max_active: None,
        };
        let drive = drive_file::create(&self.drive, &shape)?;
        fs::make(&drive, false)?;
        // The program opens the drive itself.
        drop(drive);
        let this = std::env::current_exe().map_err(|e| CommandError::new(Exit::Failed, e))?;
        let mut command = Command::new(this);
        command
            .arg("rocksdb")
            .arg(&self.drive)
            .args(["--", "db_bench", "--db=/db"]);
        command
            .args(&workload.arguments)
            .env("ZONESTORE_STATS", &self.statistics);
        let rates = measure(command, workload)?;
        let written = WrittenBytes::read(&self.statistics);
        let _ = std::fs::remove_file(&self.statistics);
        std::fs::remove_file(&self.drive).map_err(|e| CommandError::file(&self.drive, &e))?;
        Ok((rates, written))
    }

    fn on_host(&self, workload: &Workload) -> CommandResult<Rates> {
        let folder = &self.folder;
        std::fs::create_dir(folder).map_err(|e| CommandError::file(folder, &e))?;
        let mut command = Command::new("db_bench");
        command
            .arg(format!("--db={}", folder.display()))
            .args(&workload.arguments);
        let rates = measure(command, workload)?;
        std::fs::remove_dir_all(folder).map_err(|e| CommandError::file(folder, &e))?;
        Ok(rates)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.drive);
        let _ = std::fs::remove_file(&self.statistics);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn measure(mut command: Command, workload: &Workload) -> CommandResult<Rates> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => CommandError::new(Exit::NotFound, "db_bench: not found")
            .hint("apt-get install rocksdb-tools"),
        _ => CommandError::new(Exit::Failed, format_args!("db_bench: {error}")),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors
            .lines()
            .chain(text.lines())
            .rfind(|line| !line.trim().is_empty());
        return Err(CommandError::new(
            Exit::Failed,
            format_args!(
                "db_bench ended with {}: {}",
                output.status,
                last.unwrap_or("")
            ),
        ));
    }
    let mut rates = Rates::new();
    for name in workload.benchmarks {
        let rate = parse_rate(&text, name).ok_or_else(|| {
            CommandError::new(Exit::Failed, format_args!("db_bench did not report {name}"))
        })?;
        rates.insert((*name).to_owned(), rate);
    }
    Ok(rates)
}

/// The operations a second of a benchmark, from a line such as
/// `fillrandom   :       3.123 micros/op 320102 ops/sec 3.124 seconds …`.
fn parse_rate(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.split_once(':')
            .is_some_and(|(found, _)| found.trim() == name)
    })?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|word| word.starts_with("ops/sec"))?;
    words.get(unit.checked_sub(1)?)?.parse().ok()
}

fn print(report: &Report, out: &mut Output) -> CommandResult {
    let mut rows = vec![["", "BlueFS", "host", "ratio"].map(str::to_owned).to_vec()];
    for result in &report.results {
        rows.push(vec![
            result.name.clone(),
            format!("{:.0}/s", result.bluefs_operations_per_second),
            format!("{:.0}/s", result.host_operations_per_second),
            format!("{:.2}", result.ratio),
        ]);
    }
    out.table(&[0], &rows)?;
    if let Some(ratio) = report.drive_bytes_per_byte_asked {
        out.line(format_args!(
            "{ratio:.3} bytes written to the drive for each asked of BlueFS"
        ))?;
    }
    out.line(format_args!(
        "{} keys of 20 bytes, values of 400 bytes ({} keys in fillsync); medians of {} rounds",
        report.keys, report.sync_keys, report.rounds
    ))?;
    out.value(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_what_db_bench_prints() {
        let text = "Keys:       20 bytes each\n\
            fillrandom   :       3.123 micros/op 320102 ops/sec 3.124 seconds 1000000 operations;\n\
            DB path: [/db]\n\
            readrandom   :       2.000 micros/op 500000 ops/sec 2 seconds (632 of 1000 found)\n";
        assert_eq!(parse_rate(text, "fillrandom"), Some(320_102.0));
        assert_eq!(parse_rate(text, "readrandom"), Some(500_000.0));
        assert_eq!(parse_rate(text, "fillsync"), None);
        assert_eq!(parse_rate("fillsync : ops/sec", "fillsync"), None);
    }
}
