//! `zonestore bench …`: measure against the plain device and the host's file system.

use crate::args::{
    BenchAppend, BenchBluefs, BenchCommand, BenchDamage, BenchIngest, BenchRocksdb, BenchScale,
    wanted,
};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, THREADS, fail, sorted};
use crate::output::Output;
use bench::bluefs::Part;
use bench::ingest;
use bench::rocksdb::Workload;
use bench::{Shape, Terminal, append, bluefs, damage, rocksdb, scale};
use device::ShapeRequest;
use std::time::Duration;
use terminal::{Interrupt, shell_text, shell_word};

/// Runs a benchmark.
pub fn run(command: BenchCommand, out: &mut Output) -> CommandResult {
    let interrupt = Interrupt::listen()?;
    match command {
        BenchCommand::Ingest(arguments) => ingest(&arguments, interrupt, out),
        BenchCommand::Rocksdb(arguments) => rocksdb(&arguments, interrupt, out),
        BenchCommand::Bluefs(arguments) => bluefs(&arguments, interrupt, out),
        BenchCommand::Scale(arguments) => scale(&arguments, interrupt, out),
        BenchCommand::Append(arguments) => append(&arguments, interrupt, out),
        BenchCommand::Damage(arguments) => damage(&arguments, interrupt, out),
    }
}

fn damage(arguments: &BenchDamage, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = damage::Options {
        damages: arguments.damages,
        seed: arguments.seed,
        first: arguments.first,
        two: arguments.two,
        threads: arguments.threads,
    };
    let report = damage::run(&options, &Terminal::steps(interrupt))?;
    out.table(&[0], &report.rows())?;
    for failure in &report.named {
        out.line(format_args!("{failure}"))?;
    }
    out.value(&report)?;
    match report.failures() {
        0 => Ok(()),
        failures => fail!(
            OutOfTolerance, "{failures} failures in {} damages", arguments.damages;
            "--seed {} --first NUMBER --damages 1 tries one again", arguments.seed
        ),
    }
}

fn ingest(arguments: &BenchIngest, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = ingest::Options {
        sizes: ingest::sizes(
            arguments.large_total.0,
            arguments.medium_total.0,
            arguments.small_total.0,
            arguments.tiny_total.0,
        )?,
        concurrency: arguments.concurrency,
        rounds: arguments.rounds,
        bytes_per_second: arguments
            .drive_rate
            .map(|rate| rate.0)
            .filter(|rate| *rate > 0),
    };
    let drive = drive_file::open(&arguments.drive)?;
    let report = ingest::run(drive, &options, &Terminal::steps(interrupt))?;
    out.table(&[0], &report.rows())?;
    out.table(&[0], &report.read_rows())?;
    out.line(format_args!("{}", report.conditions()))?;
    out.value(&report)
}

fn rocksdb(arguments: &BenchRocksdb, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let shape = ShapeRequest {
        profile: Some(arguments.profile.clone()),
        size: Some(arguments.size.0),
        ..ShapeRequest::default()
    };
    let options = rocksdb::Options {
        drive: arguments.drive.clone(),
        shape: Shape {
            geometry: drive_file::geometry(&shape)?,
            profile: arguments.profile.clone(),
        },
        wanted: wanted(&Workload::ALL, &arguments.only),
        keys: arguments.num,
        reads: arguments.reads,
        threads: arguments.threads,
        write_rate: arguments.write_rate.0,
        sync_keys: arguments.sync_num,
        cache_bytes: arguments.cache.0,
        buffered: arguments.buffered,
        rounds: arguments.rounds,
    };
    let report = rocksdb::run(&options, &Terminal::steps(interrupt))?;
    out.table(&[0], &report.rows())?;
    for line in report.lines(&options) {
        out.line(format_args!("{line}"))?;
    }
    out.value(&report)
}

fn bluefs(arguments: &BenchBluefs, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = bluefs::Options {
        drive: arguments.drive.clone(),
        wanted: wanted(&Part::ALL, &arguments.only),
        fill_percent: arguments.fill,
        size: arguments.size.0,
        zone_size: arguments.zone_size.0,
        table_size: arguments.table_size.map(|size| size.0),
        sync_keys: arguments.sync_num,
        stream_bytes: arguments.stream_bytes.0,
        rounds: arguments.rounds,
        zones: arguments.zones,
        files: arguments.files,
    };
    let figures = bluefs::run(&options, &Terminal::parts(interrupt))?;
    out.table(&[0], &bluefs::rows(&figures))?;
    out.value(&figures)
}

fn scale(arguments: &BenchScale, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = scale::Options {
        stages: arguments.objects.clone(),
        object_bytes: arguments.bytes.iter().map(|size| size.0).collect(),
        concurrency: arguments.concurrency,
    };
    let stages = scale::run(&options, &Terminal::steps(interrupt))?;
    out.table(&[0], &scale::rows(&stages))?;
    out.value(&stages)
}

fn append(arguments: &BenchAppend, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = append::Options {
        writers: arguments.writers.clone(),
        object_bytes: arguments.bytes.0,
        objects: arguments.objects,
        rounds: arguments.rounds,
        latency: Duration::from_micros(arguments.latency_micros),
    };
    let figures = append::run(&options, &Terminal::steps(interrupt))?;
    out.table(&[], &append::rows(&figures))?;
    out.value(&figures)
}

impl From<bench::Error> for CommandError {
    fn from(error: bench::Error) -> Self {
        use bench::Error as E;
        let error = match error {
            E::File { path, source } => return Self::file(&path, &source),
            E::Profile(error) => return error.into(),
            E::Drive(error) => return error.into(),
            E::FileDrive(error) => return error.into(),
            E::Zone(error) => return error.into(),
            E::Store(error) => return error.into(),
            E::BlueFs(error) => return error.into(),
            E::Look(error) => return error.into(),
            E::Launch(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::LessThanOne { .. } => Usage, "0 leaves objects of this size out";
            E::Nothing => Usage;
            E::NoRoom { .. } => NoSpace,
                "take a larger drive, or fewer bytes: --large-total 64MiB --medium-total 64MiB";
            E::Taken { drive, collection } => Refused,
                format!(
                    "the benchmark removes a collection of this name, and no benchmark made this one: measure on another drive; if \
                     nothing in it is needed, `zonestore store rm -r {} {}` removes it", shell_word(drive), shell_text(collection.as_bytes())
                );
            E::Exists { .. } => Refused,
                "name a file that does not exist; the benchmark makes and removes it";
            E::NoFile { .. } => Usage,
                "`zonestore drive create` makes a drive file; `zonestore drive qualify` measures a device";
            E::NoThread(_) => Failed, THREADS;
            E::NoDbBench => NotFound, "apt-get install rocksdb-tools";
            _ => Failed;
        }
    }
}
