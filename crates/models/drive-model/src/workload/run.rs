//! Runs a workload on a model, and collects its results.

use super::{Counters, Requests, Stretches};
use crate::host::keep_under_way;
use crate::model::Model;
use crate::request::{Completion, Failure, Request};
use crate::time::{Span, Time};
use hdrhistogram::CreationError;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Completions between two calls of the progress callback.
const WORD_EVERY: u64 = 4096;

/// Duration and depth of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Number of requests under way.
    pub depth: usize,
    /// Duration in seconds of the drive's time.
    pub seconds: u64,
    /// Length of a stretch in seconds, not zero; `None` for no stretches.
    pub every: Option<u64>,
}

/// Results of a workload.
pub struct Ran {
    /// Counters by kind of request.
    pub counters: Counters,
    /// Rates by time.
    pub stretches: Stretches,
    /// Number of failed requests, the first of them, and its failure.
    pub failed: Option<(u64, Request, Failure)>,
    /// Time of the last completion.
    pub end: Time,
}

/// Keeps requests under way from `start` on until the time is over, the requests end or `stop` is set; then waits for
/// the rest. `each` is called from time to time with the drive's time that has passed.
///
/// # Errors
/// Those of [`Counters::new`].
pub fn run(
    model: &mut dyn Model,
    start: Time,
    requests: &mut Requests,
    length: &Length,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Span),
) -> Result<Ran, CreationError> {
    let mut ran = Ran {
        counters: Counters::new()?,
        stretches: Stretches::new(start, length.every, length.seconds),
        failed: None,
        end: start,
    };
    let runtime = Span::from_seconds(length.seconds as f64);
    let mut next = |now: Time| {
        let goes_on = now.since(start) < runtime && !stop.load(Ordering::Relaxed);
        if goes_on { requests.next() } else { None }
    };
    let mut watch = |now: Time, request, done: &Completion| {
        ran.count(request, done);
        if ran.stretches.requests().is_multiple_of(WORD_EVERY) {
            each(now.since(start));
        }
        ControlFlow::Continue(())
    };
    let end = keep_under_way(model, length.depth, start, &mut next, &mut watch);
    ran.end = end;
    Ok(ran)
}

impl Ran {
    fn count(&mut self, request: Request, done: &Completion) {
        let bytes = match done.result {
            Ok(()) => request.bytes(),
            Err(failure) => {
                self.failed.get_or_insert((0, request, failure)).0 += 1;
                0
            }
        };
        let (ok, latency) = (done.result.is_ok(), done.latency());
        self.counters
            .count(request.operation, bytes as u32, ok, latency, None);
        self.stretches.count(done.at, bytes, latency);
    }
}
