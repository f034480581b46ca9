//! `zonestore model run`: runs a workload in the model's own time.

use super::report;
use crate::args::ModelRun;
use crate::errors::{CommandError, CommandResult, Exit, fail, sorted};
use crate::output::{Output, tell};
use drive_model::workload::{self, Length, NoRequests, Ran, Requests, Workload};
use drive_model::{AnyProfile, ModelStatistics, Span};
use serde_json::json;
use terminal::{Interrupt, Progress, human};

/// Runs `zonestore model run`.
pub fn run(arguments: &ModelRun, out: &mut Output) -> CommandResult {
    if arguments.runtime.0 == 0 || arguments.every.is_some_and(|every| every.0 == 0) {
        return fail!(Usage, "no time to run"; "--runtime and --every take a second or more");
    }
    // Before a signal only sets a flag: opening a pipe may wait forever.
    let profile = super::find(&arguments.drive.profile)?;
    // Before the state file exists: a user who sees it can interrupt this process.
    let interrupt = Interrupt::listen()?;
    let (mut model, start, state) = super::start(&profile, &arguments.drive)?;
    let asked = Workload {
        order: arguments.rw,
        request_bytes: arguments.bs.0,
        size_bytes: arguments.size.map(|size| size.0),
        seed: arguments.drive.seed,
    };
    let requests = Requests::new(&asked, &*model, start);
    let mut requests = requests.map_err(|error| refused(arguments, error))?;
    let before = model.statistics();
    let length = Length {
        depth: arguments.iodepth as usize,
        seconds: arguments.runtime.0,
        every: arguments.every.map(|every| every.0),
    };
    let progress = Progress::steps("seconds of the drive's", Some(length.seconds));
    let mut each = |over: Span| progress.set(over.seconds() as u64);
    let stop = interrupt.flag();
    let ran = workload::run(&mut *model, start, &mut requests, &length, &stop, &mut each);
    let ran = ran.map_err(|error| CommandError::new(Exit::Failed, error))?;
    drop(progress);
    let seconds = ran.end.since(start).seconds();
    let did = model.statistics().since(&before);
    // First, for a reader of the output may be gone; the results are printed even if it fails.
    let saved = state.map_or(Ok(()), |state| state.save(&profile, &*model, ran.end));
    show(arguments, &profile, &ran, &did, seconds, out)?;
    saved?;
    if interrupt.is_wished() {
        return fail!(
            Failed,
            "interrupted after {seconds:.1} s of the drive's time"
        );
    }
    match ran.failed {
        Some((count, request, failure)) if count == ran.stretches.requests() => {
            let block = request.lba.0;
            fail!(
                Failed, "every request failed, that at block {block} for: {failure}";
                "what was never written cannot be read on every drive: `--rw write --state FILE` first"
            )
        }
        _ => Ok(()),
    }
}

fn refused(arguments: &ModelRun, error: NoRequests) -> CommandError {
    use NoRequests as E;
    let name = arguments.drive.profile.display();
    let message = match error {
        E::RequestBytes { bytes } => format!("--bs {bytes}: not a size of requests to a model"),
        E::Beyond { bytes } => format!("--size: {name} has {}", human(bytes)),
        E::NoPlace { bytes } => format!("no request of {} has a place", human(bytes)),
        E::OnlyInOrder | E::NothingWritten => format!("{name} {error}"),
    };
    let made = sorted! { error:
        E::RequestBytes { .. } => Usage,
            "a model has blocks of 4 KiB: write a multiple of that, 32MiB at most";
        E::Beyond { .. } => Usage, "write less, or nothing for all";
        E::NoPlace { .. } => Usage,
            "take a smaller --bs or a larger --size; zones are written behind what is in them";
        E::OnlyInOrder => Refused, "--rw write fills them one after the other";
        E::NothingWritten => Refused,
            "`--rw write --bs 1MiB --runtime 7d --state FILE` fills it, in a minute of yours; read it with \
             the same --state then";
    };
    CommandError { message, ..made }
}

/// Prints the results.
fn show(
    arguments: &ModelRun,
    profile: &AnyProfile,
    ran: &Ran,
    did: &ModelStatistics,
    seconds: f64,
    out: &mut Output,
) -> CommandResult {
    report::stretches(&ran.stretches, seconds, out)?;
    let total = ran.stretches.total(seconds);
    out.line(format_args!(
        "{:.1} requests/s, {:.2} MiB/s in {seconds:.1} s of the drive's time",
        total.requests_per_second,
        total.bytes_per_second / f64::from(1 << 20)
    ))?;
    let facts = json!({
        "profile": profile.name(), "rw": arguments.rw.name(),
        "bs": arguments.bs.0, "iodepth": arguments.iodepth, "seconds": seconds,
        "requests_per_second": total.requests_per_second,
        "bytes_per_second": total.bytes_per_second, "every": ran.stretches.rates(seconds),
    });
    report::report(&ran.counters, did, facts, out)?;
    if let Some((count, request, failure)) = ran.failed {
        let block = request.lba.0;
        tell(format_args!(
            "zonestore: {count} requests failed, the first at block {block} for: {failure}"
        ));
    }
    let looked = did.medium.read_blocks + did.flash.senses;
    if total.bytes_per_second > 0.0 && did.reads > 0 && did.writes == 0 && looked == 0 {
        tell(format_args!(
            "zonestore: nothing was ever written where this read, so the drive answered without a look at \
             the medium\nhint: fill it by --rw write --bs 1MiB --runtime 7d --state FILE, and read with \
             the same --state"
        ));
    }
    Ok(())
}
