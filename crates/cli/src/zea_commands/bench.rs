//! `zea bench`: measures extents on a model in virtual time, or on a drive.

use super::{confirm_erase, erase_all};
use crate::args::ZeaBench;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail, sorted};
use crate::output::Output;
use device::{Drive, ZonedDevice};
use drive_model::{AnyProfile, Timed};
use runtime::{Runtime, SimulatedClock};
use serde_json::json;
use std::sync::Arc;
use terminal::{Interrupt, Progress};
use zea_bench::{Bed, Error, StartUp, Transfer, Work, start_ups, transfers};

/// Bytes of an extent in the start-up measurement.
const START_UP_SIZE: u64 = 4096;
/// Total bytes of gets of each size, as in the paper.
const GET_BYTES: u64 = 1 << 30;

/// The test bed: where to measure, and the progress.
struct Measured {
    place: Place,
    runtime: Runtime,
    interrupt: Interrupt,
    progress: Progress,
}

enum Place {
    /// A new drive of a model for each measurement.
    Model {
        profile: AnyProfile,
        clock: Arc<SimulatedClock>,
        seed: u64,
        write_cache: bool,
    },
    /// The same drive each time, erased.
    Drive(Arc<Drive>),
}

impl Bed for Measured {
    fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error> {
        match &self.place {
            Place::Model {
                profile,
                clock,
                seed,
                write_cache,
            } => {
                let no_drive = |error: String| Error::NoDrive(error);
                let model = profile.model(*seed);
                let mut model = model.map_err(|error| no_drive(error.to_string()))?;
                model.set_volatile_cache(*write_cache);
                let timed = Timed::in_memory(model, clock.clone());
                let timed = timed.map_err(|error| no_drive(error.to_string()))?;
                Ok(Arc::new(timed))
            }
            Place::Drive(drive) => {
                erase_all(drive).map_err(|error| Error::NoDrive(error.to_string()))?;
                Ok(drive.clone())
            }
        }
    }

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn next(&mut self, what: &str) -> Result<(), Error> {
        self.progress.message(what.to_owned());
        match self.interrupt.is_wished() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// Runs the measurements.
pub fn run(arguments: &ZeaBench, out: &mut Output) -> CommandResult {
    if arguments.start_up.windows(2).any(|two| two[0] >= two[1]) {
        return fail!(Usage, "--start-up: numbers of extents have to grow");
    }
    if arguments
        .sizes
        .iter()
        .any(|size| size.0 == 0 || !size.0.is_multiple_of(START_UP_SIZE))
    {
        return fail!(
            Usage,
            "--sizes: multiples of 4 KiB, for plain writes are of whole blocks"
        );
    }
    let system = Runtime::system();
    let (place, runtime, fill) = match &arguments.drive {
        Some(path) => {
            confirm_erase(path, arguments.yes_erase)?;
            let drive = Arc::new(drive_file::open(path)?);
            (Place::Drive(drive), system, 0xa5)
        }
        None => {
            let clock = Arc::new(SimulatedClock::default());
            let runtime = Runtime::seeded(arguments.seed).with_clock(clock.clone());
            let profile = AnyProfile::named(&arguments.model)?;
            let (seed, write_cache) = (arguments.seed, arguments.write_cache);
            let place = Place::Model {
                profile,
                clock,
                seed,
                write_cache,
            };
            // Zeros take no memory in a model.
            (place, runtime, 0)
        }
    };
    let is_model = arguments.drive.is_none();
    let mut bed = Measured {
        place,
        runtime,
        interrupt: Interrupt::listen()?,
        progress: Progress::words("zea bench"),
    };
    let work = Work {
        extents: arguments.extents,
        get_bytes: GET_BYTES,
        back_pointers: zea::Options::default().back_pointers,
        fill,
        rounds: arguments.rounds,
    };
    let sizes: Vec<u64> = arguments.sizes.iter().map(|size| size.0).collect();
    let moved = transfers(&mut bed, &sizes, work)?;
    let (pointers, counts) = (&arguments.back_pointers, &arguments.start_up);
    let starts = start_ups(&mut bed, pointers, counts, START_UP_SIZE, fill)?;
    let drive = match &arguments.drive {
        Some(path) => path.display().to_string(),
        None => format!("model {}", arguments.model),
    };
    drop(bed);
    out.line(format_args!(
        "{drive}, {} extents of each size, MiB/s",
        arguments.extents
    ))?;
    out.table(&[0], &transfer_rows(&moved))?;
    out.line(format_args!(
        "finding all extents of 4 KiB again, seconds, by back pointers"
    ))?;
    out.table(&[0], &start_rows(&starts, pointers, counts))?;
    out.value(&json!({
        "drive": drive, "virtual_time": is_model, "write_cache": arguments.write_cache,
        "extents": arguments.extents, "transfers": moved, "start_up": starts,
    }))
}

fn transfer_rows(all: &[Transfer]) -> Vec<Vec<String>> {
    let head = ["extent", "put", "write", "÷", "get", "read", "÷"];
    let rate = |bytes: f64| format!("{:.2}", bytes / f64::from(1 << 20));
    let ratio = |ratio: f64| format!("{ratio:.3}");
    let row = |t: &Transfer| {
        vec![
            terminal::human(t.size),
            rate(t.put),
            rate(t.write),
            ratio(t.put_ratio),
            rate(t.get),
            rate(t.read),
            ratio(t.get_ratio),
        ]
    };
    let head = head.map(str::to_owned).to_vec();
    std::iter::once(head).chain(all.iter().map(row)).collect()
}

fn start_rows(all: &[StartUp], pointers: &[u32], counts: &[u64]) -> Vec<Vec<String>> {
    let head = std::iter::once("extents".to_owned()).chain(pointers.iter().map(u32::to_string));
    let rows = counts.iter().map(|count| {
        let seconds = pointers.iter().map(|n| {
            let start = all
                .iter()
                .find(|s| s.back_pointers == *n && s.extents == *count);
            start.map_or_else(String::new, |start| format!("{:.3}", start.seconds))
        });
        std::iter::once(count.to_string()).chain(seconds).collect()
    });
    std::iter::once(head.collect()).chain(rows).collect()
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Zea(error) => return error.into(),
            Error::Drive(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            Error::NoDrive(_) => Usage, "`zonestore drive profiles` says which models have zones";
            Error::NoRoom { .. } => NoSpace, "measure fewer extents (--extents, --start-up), or take a larger drive";
            Error::Interrupted | Error::Zea(_) | Error::Drive(_) => Failed;
        }
    }
}
