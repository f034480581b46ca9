//! `zonestore model run`: a workload in the drive's own time.

use super::requests::Requests;
use super::state_file;
use super::statistics::Counters;
use super::stretches::Stretches;
use crate::args::ModelRun;
use crate::errors::CommandResult;
use crate::output::Output;
use crate::progress::Progress;
use clap::ValueEnum;
use drive_model::{Model, Span, Time};
use serde_json::json;
use std::collections::HashMap;

/// Answers between two looks at the progress bar.
const LOOK_EVERY: u64 = 4096;

/// Runs it.
pub fn run(arguments: &ModelRun, out: &mut Output) -> CommandResult {
    let profile = super::find(&arguments.drive.profile)?;
    let (mut model, start) = state_file::start(&profile, &arguments.drive)?;
    let mut requests = Requests::new(arguments, &*model)?;
    let before = model.statistics();
    let counters = Counters::new()?;
    let runtime = Span::from_seconds(arguments.runtime.0 as f64);
    let mut stretches = Stretches::new(start, arguments.every.map(|every| every.0));
    let end = serve(
        &mut *model,
        start,
        runtime,
        arguments.iodepth,
        &mut requests,
        &counters,
        &mut stretches,
    );
    let seconds = end.since(start).seconds();
    stretches.print(seconds, out)?;
    let total = stretches.total(seconds);
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
        "bytes_per_second": total.bytes_per_second, "every": stretches.rates(seconds),
    });
    let did = model.statistics().since(&before);
    counters.report(&did, facts, out)?;
    match &arguments.drive.state {
        Some(path) => state_file::save(&profile, &*model, end, path),
        None => Ok(()),
    }
}

/// Keeps `depth` requests under way until the time is over or there are no more, and waits for the last
/// of them: when that was.
fn serve(
    model: &mut dyn Model,
    start: Time,
    runtime: Span,
    depth: u32,
    requests: &mut Requests,
    counters: &Counters,
    stretches: &mut Stretches,
) -> Time {
    let progress = Progress::steps("seconds of the drive's", Some(runtime.seconds() as u64));
    let mut under_way = HashMap::new();
    let mut now = start;
    let mut answers = 0u64;
    for request in requests.by_ref().take(depth as usize) {
        under_way.insert(model.enqueue(request, now), request);
    }
    while let Some(done) = model.next_completion() {
        // None of those of a state that was saved with requests under way.
        let Some(request) = under_way.remove(&done.tag) else {
            continue;
        };
        now = now.max(done.at);
        let ok = done.result.is_ok();
        let bytes = if ok { request.bytes() } else { 0 };
        counters.count(request.operation, bytes as u32, ok, done.latency(), None);
        stretches.count(done.at, bytes, done.latency());
        answers += 1;
        if answers.is_multiple_of(LOOK_EVERY) {
            progress.set(now.since(start).seconds() as u64);
        }
        if now.since(start) < runtime
            && let Some(request) = requests.next()
        {
            under_way.insert(model.enqueue(request, now), request);
        }
    }
    now
}
