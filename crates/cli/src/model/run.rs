//! `zonestore model run`: a workload in the drive's own time.

use super::report;
use crate::args::{self, ModelRun};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use clap::ValueEnum;
use drive_model::workload::{Counters, NoRequests, Order, Requests, Stretches, Workload};
use drive_model::{
    AnyProfile, Completion, Failure, Model, ModelStatistics, Request, Span, Time, keep_under_way,
};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use terminal::{Interrupt, Progress, human};

/// Answers between two looks at the progress bar.
const LOOK_EVERY: u64 = 4096;

/// Runs it.
pub fn run(arguments: &ModelRun, out: &mut Output) -> CommandResult {
    if arguments.runtime.0 == 0 || arguments.every.is_some_and(|every| every.0 == 0) {
        return Err(CommandError::new(Exit::Usage, "no time to run")
            .hint("--runtime and --every take a second or more"));
    }
    // Before the state file is there, so that whoever sees it can stop this.
    let interrupt = Interrupt::listen()?;
    let profile = super::find(&arguments.drive.profile)?;
    let (mut model, start, state) = super::start(&profile, &arguments.drive)?;
    let requests = Requests::new(&workload(arguments), &*model, start);
    let mut requests = requests.map_err(|error| refused(arguments, error))?;
    let before = model.statistics();
    let every = arguments.every.map(|every| every.0);
    let mut seen = Seen {
        counters: Counters::new().map_err(|error| CommandError::new(Exit::Failed, error))?,
        stretches: Stretches::new(start, every, arguments.runtime.0),
        first_failure: None,
        interrupt,
    };
    let end = serve(&mut *model, start, arguments, &mut requests, &mut seen);
    let seconds = end.since(start).seconds();
    let did = model.statistics().since(&before);
    show(arguments, &profile, &seen, &did, seconds, out)?;
    state.map_or(Ok(()), |state| state.save(&profile, &*model, end))?;
    if seen.interrupt.is_wished() {
        let stopped = format_args!("interrupted after {seconds:.1} s of the drive's time");
        return Err(CommandError::new(Exit::Failed, stopped));
    }
    match seen.first_failure {
        Some((count, request, failure)) if count == seen.stretches.requests() => {
            let block = request.lba.0;
            let failed = format_args!("every request failed, that at block {block} for: {failure}");
            Err(CommandError::new(Exit::Failed, failed).hint(
                "what was never written cannot be read on every drive: `--rw write --state FILE` first",
            ))
        }
        _ => Ok(()),
    }
}

fn workload(arguments: &ModelRun) -> Workload {
    Workload {
        order: match arguments.rw {
            args::Order::Read => Order::Read,
            args::Order::Write => Order::Write,
            args::Order::Randread => Order::RandomRead,
            args::Order::Randwrite => Order::RandomWrite,
        },
        request_bytes: arguments.bs.0,
        size_bytes: arguments.size.map(|size| size.0),
        seed: arguments.drive.seed,
    }
}

fn refused(arguments: &ModelRun, error: NoRequests) -> CommandError {
    let name = &arguments.drive.profile;
    let usage = |wrong: String, hint| CommandError::new(Exit::Usage, wrong).hint(hint);
    match error {
        NoRequests::RequestBytes { bytes } => usage(
            format!("--bs {bytes}: not a size of requests to a model"),
            "a model has blocks of 4 KiB: write a multiple of that, 32MiB at most",
        ),
        NoRequests::Beyond { bytes } => usage(
            format!("--size: {name} has {}", human(bytes)),
            "write less, or nothing for all",
        ),
        NoRequests::NoPlace { bytes } => usage(
            format!("no request of {} has a place", human(bytes)),
            "take a smaller --bs or a larger --size; zones are written behind what is in them",
        ),
        NoRequests::OnlyInOrder => CommandError::new(Exit::Refused, format_args!("{name} {error}"))
            .hint("--rw write fills them one after the other"),
        NoRequests::NothingWritten => {
            CommandError::new(Exit::Refused, format_args!("{name} {error}")).hint(
                "`--rw write --bs 1MiB --runtime 7d --state FILE` fills it, in a minute of yours; read it \
                 with the same --state then",
            )
        }
    }
}

/// What is known of the requests.
struct Seen {
    counters: Counters,
    stretches: Stretches,
    /// How many failed, and the first of them.
    first_failure: Option<(u64, Request, Failure)>,
    interrupt: Interrupt,
}

impl Seen {
    fn count(&mut self, request: Request, done: &Completion) {
        let bytes = match done.result {
            Ok(()) => request.bytes(),
            Err(failure) => {
                let first = self.first_failure.get_or_insert((0, request, failure));
                first.0 += 1;
                0
            }
        };
        let latency = done.latency();
        self.counters.count(
            request.operation,
            bytes as u32,
            done.result.is_ok(),
            latency,
            None,
        );
        self.stretches.count(done.at, bytes, latency);
    }
}

/// Says how it went.
fn show(
    arguments: &ModelRun,
    profile: &AnyProfile,
    seen: &Seen,
    did: &ModelStatistics,
    seconds: f64,
    out: &mut Output,
) -> CommandResult {
    report::stretches(&seen.stretches, seconds, out)?;
    let total = seen.stretches.total(seconds);
    out.line(format_args!(
        "{:.1} requests/s, {:.2} MiB/s in {seconds:.1} s of the drive's time",
        total.requests_per_second,
        total.bytes_per_second / f64::from(1 << 20)
    ))?;
    let order = arguments.rw.to_possible_value();
    let facts = json!({
        "profile": profile.name(), "rw": order.map(|order| order.get_name().to_owned()),
        "bs": arguments.bs.0, "iodepth": arguments.iodepth, "seconds": seconds,
        "requests_per_second": total.requests_per_second,
        "bytes_per_second": total.bytes_per_second, "every": seen.stretches.rates(seconds),
    });
    report::report(&seen.counters, did, facts, out)?;
    if let Some((count, request, failure)) = seen.first_failure {
        let block = request.lba.0;
        eprintln!("zonestore: {count} requests failed, the first at block {block} for: {failure}");
    }
    let looked = did.medium.read_blocks + did.flash.senses;
    if total.bytes_per_second > 0.0 && did.reads > 0 && did.writes == 0 && looked == 0 {
        eprintln!(
            "zonestore: nothing was ever written where this read, so the drive answered without a look at \
             the medium\nhint: fill it by --rw write --bs 1MiB --runtime 7d --state FILE, and read with \
             the same --state"
        );
    }
    Ok(())
}

/// Keeps requests under way until the time is over, there are no more or somebody wants it to stop, and
/// waits for the last of them: when that was.
fn serve(
    model: &mut dyn Model,
    start: Time,
    arguments: &ModelRun,
    requests: &mut Requests,
    seen: &mut Seen,
) -> Time {
    let runtime = Span::from_seconds(arguments.runtime.0 as f64);
    let progress = Progress::steps("seconds of the drive's", Some(arguments.runtime.0));
    let wished = seen.interrupt.flag();
    let mut next = |now: Time| {
        let goes_on = now.since(start) < runtime && !wished.load(Ordering::Relaxed);
        if goes_on { requests.next() } else { None }
    };
    let mut answers = 0u64;
    let mut watch = |now: Time, request, done: &Completion| {
        seen.count(request, done);
        answers += 1;
        if answers.is_multiple_of(LOOK_EVERY) {
            progress.set(now.since(start).seconds() as u64);
        }
        ControlFlow::Continue(())
    };
    let depth = arguments.iodepth as usize;
    keep_under_way(model, depth, start, &mut next, &mut watch)
}
