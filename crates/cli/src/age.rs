//! `zonestore age`: creates and removes files in a directory of any file system. A note in the directory records how
//! many operations are done, so that an interrupted run continues.

use crate::args::AgeArguments;
use crate::errors::{CommandError, CommandResult, fail};
use crate::local_file;
use crate::output::Output;
use caveat::{Sizes, Step, Workload};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use terminal::{Interrupt, Progress, count, human};

/// Name of the note in the aged directory.
const STATE: &str = ".zonestore-age";
/// Number of operations between two updates of the note.
const NOTE_EVERY: u64 = 256;
/// Bytes of one write.
const PIECE: usize = 64 << 10;
/// Sizes of files on most file systems are multiples of this.
const UNIT: u64 = 4096;

/// Ages a directory.
pub fn run(arguments: &AgeArguments, out: &mut Output) -> CommandResult {
    let directory = &arguments.directory;
    let shown = directory.display();
    let text = arguments.sizes.as_deref().map(local_file::text);
    let text = text.transpose()?;
    let sizes = match &text {
        None => Sizes::thesis(),
        Some(text) => match text.parse() {
            Ok(sizes) => sizes,
            Err(error) => return fail!(Usage, "--sizes: {error}"),
        },
    };
    // A file takes whole units.
    if sizes.largest().div_ceil(UNIT) > arguments.bytes.0 / UNIT {
        let largest = human(sizes.largest());
        return fail!(Usage, "--bytes: a file of {largest} does not fit"; "give more, or smaller --sizes");
    }
    fs::create_dir_all(directory).map_err(|error| CommandError::folder(directory, &error))?;
    // A run with other parameters would find files that it did not create.
    let run = json!({
        "version": 1, "seed": arguments.seed, "bytes": arguments.bytes.0,
        "random_removals": arguments.random_removals, "sizes": text,
    });
    let note = Note {
        path: directory.join(STATE),
        run,
    };
    let done = note.read()?;
    if done.is_none() && fs::read_dir(directory)?.next().is_some() {
        return fail!(Refused, "{shown}: is not empty"; "name a new directory");
    }
    if done.is_none() {
        note.write(0)?;
    }
    let done = done.unwrap_or(0);
    if done > arguments.operations {
        return fail!(
            Refused, "{shown}: {done} operations are done already"; "give that many --operations or more, or name a new directory"
        );
    }
    let mut workload = Workload::new(sizes, arguments.bytes.0, UNIT, arguments.seed)
        .with_random_removals(arguments.random_removals);
    let interrupt = Interrupt::listen()?;
    let progress = Progress::steps("ageing", Some(arguments.operations));
    let (mut made, mut removed, mut written, mut n) = (0, 0, 0, 0);
    while n < arguments.operations {
        let Some(step) = workload.step() else { break };
        n += 1;
        progress.advance(1);
        if n <= done {
            continue;
        }
        match step {
            Step::Create { file, bytes } => {
                let path = place(directory, file);
                if let Err(error) = create(&path, bytes, arguments.seed ^ file) {
                    note.write(n - 1)?;
                    let made = CommandError::file(&path, &error);
                    return Err(match error.kind() {
                        ErrorKind::StorageFull => {
                            made.hint("make room and give the same command, or take a new directory with less --bytes")
                        }
                        _ => made,
                    });
                }
                made += 1;
                written += bytes;
            }
            Step::Remove { file } => {
                let path = place(directory, file);
                match fs::remove_file(&path) {
                    // An interrupted run may have done more operations than its note says.
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(CommandError::file(&path, &error));
                    }
                    _ => removed += 1,
                }
            }
        }
        if n % NOTE_EVERY == 0 {
            note.write(n)?;
        }
        if interrupt.is_wished() {
            note.write(n)?;
            return fail!(Failed, "interrupted after {n} operations"; "the same command goes on from there");
        }
    }
    drop(progress);
    note.write(n)?;
    out.line(format_args!(
        "{shown}: {}, {} made, {} removed, {} written, {} there",
        count(n, "operation"),
        count(made, "file"),
        removed,
        human(written),
        human(workload.live())
    ))?;
    out.value(&json!({
        "operations": n, "resumed_at": done, "files_made": made, "files_removed": removed,
        "bytes_written": written, "bytes_there": workload.live(), "steady": workload.is_steady(),
    }))
}

fn place(directory: &Path, file: u64) -> PathBuf {
    directory
        .join(format!("{:02x}", file % 256))
        .join(file.to_string())
}

/// Creates a file of incompressible bytes.
fn create(path: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        match fs::create_dir(parent) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let mut file = File::create(path)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut piece = vec![0; PIECE.min(bytes as usize)];
    let mut left = bytes;
    while left > 0 {
        let take = left.min(PIECE as u64) as usize;
        random.fill(&mut piece[..take]);
        file.write_all(&piece[..take])?;
        left -= take as u64;
    }
    Ok(())
}

/// The note: parameters of the run, and number of operations done.
struct Note {
    path: PathBuf,
    run: serde_json::Value,
}

impl Note {
    /// Number of operations done; `None` without a note.
    fn read(&self) -> CommandResult<Option<u64>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CommandError::file(&self.path, &error)),
        };
        let shown = self.path.display();
        let value: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let done = value.as_ref().and_then(|value| value["done"].as_u64());
        let (Some(value), Some(done)) = (value, done) else {
            return fail!(Damaged, "{shown}: is no note of a run"; "name a new directory");
        };
        if value["run"] != self.run {
            return fail!(
                Refused, "{shown}: another run is here"; "give the same options to go on, or name a new directory"
            );
        }
        Ok(Some(done))
    }

    fn write(&self, done: u64) -> CommandResult {
        let new = self.path.with_extension("next");
        let text = json!({ "run": self.run, "done": done }).to_string();
        fs::write(&new, text).map_err(|error| CommandError::file(&new, &error))?;
        fs::rename(&new, &self.path).map_err(|error| CommandError::file(&self.path, &error))
    }
}
