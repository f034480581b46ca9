//! `zonestore bench …`: measure against the plain device and the host's file system.

use crate::args::{BenchBluefs, BenchCommand, BenchIngest, BenchRocksdb, wanted};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail, sorted};
use crate::output::Output;
use bench::bluefs::Part;
use bench::ingest::{self, LARGE, SMALL};
use bench::rocksdb::Workload;
use bench::{Shape, Watch, bluefs, rocksdb};
use device::ShapeRequest;
use terminal::{Interrupt, Progress, human};

/// Carries out a benchmark.
pub fn run(command: BenchCommand, out: &mut Output) -> CommandResult {
    let interrupt = Interrupt::listen()?;
    match command {
        BenchCommand::Ingest(arguments) => ingest(&arguments, interrupt, out),
        BenchCommand::Rocksdb(arguments) => rocksdb(&arguments, interrupt, out),
        BenchCommand::Bluefs(arguments) => bluefs(&arguments, interrupt, out),
    }
}

/// A benchmark's progress on the terminal, and Ctrl-C.
struct Terminal(Progress, Interrupt);

impl Watch for Terminal {
    fn steps(&self, count: u64) {
        self.0.set_of(0, count);
    }

    fn measures(&self, what: String) {
        self.0.message(what);
    }

    fn step(&self) {
        self.0.advance(1);
    }

    fn is_stopped(&self) -> bool {
        self.1.is_wished()
    }
}

fn ingest(arguments: &BenchIngest, interrupt: Interrupt, out: &mut Output) -> CommandResult {
    let options = ingest::Options {
        sizes: sizes(arguments)?,
        concurrency: arguments.concurrency,
        rounds: arguments.rounds,
    };
    let drive = drive_file::open(&arguments.drive)?;
    let report = ingest::run(
        drive,
        &options,
        &Terminal(Progress::steps("measuring", Some(0)), interrupt),
    )?;
    out.table(&[0], &report.rows())?;
    let peak = report.peak_memory_bytes;
    out.line(format_args!(
        "{} objects at a time, each durable before it counts; medians of {} rounds; peak memory {}",
        report.concurrency,
        report.rounds,
        peak.map_or_else(|| "unknown".to_owned(), human)
    ))?;
    out.value(&report)
}

/// Bytes of an object, and of a round of them.
fn sizes(arguments: &BenchIngest) -> CommandResult<Vec<(u64, u64)>> {
    let mut sizes = Vec::new();
    for (option, size, total) in [
        ("--large-total", LARGE, arguments.large_total.0),
        ("--small-total", SMALL, arguments.small_total.0),
    ] {
        if total > 0 && total < size {
            let (total, size) = (human(total), human(size));
            return fail!(
                Usage, "{option} {total}: less than one object of {size}";
                "0 leaves objects of this size out"
            );
        }
        if total > 0 {
            sizes.push((size, total));
        }
    }
    if sizes.is_empty() {
        return fail!(
            Usage,
            "--large-total and --small-total are both 0: there is nothing to measure"
        );
    }
    Ok(sizes)
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
    let report = rocksdb::run(
        &options,
        &Terminal(Progress::steps("measuring", Some(0)), interrupt),
    )?;
    out.table(&[0], &report.rows())?;
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
        match arguments.buffered {
            true => "no direct I/O",
            false => "direct I/O for flushes and compactions",
        },
        report.rounds
    ))?;
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
    let figures = bluefs::run(
        &options,
        &Terminal(Progress::steps("measuring", None), interrupt),
    )?;
    out.table(&[0], &bluefs::rows(&figures))?;
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
            E::NoRoom { .. } => NoSpace,
                "take a larger drive, or fewer bytes: --large-total 512MiB --small-total 128MiB";
            E::Taken { drive, collection } => Refused,
                format!("zonestore store rm -r --yes {} {collection}", drive.display());
            E::Exists { .. } => Refused,
                "name a file that does not exist; the benchmark makes and removes it";
            E::NoDbBench => NotFound, "apt-get install rocksdb-tools";
            _ => Failed;
        }
    }
}
