//! A workload carried out on a model, and what came of it.

use super::{Counters, Requests, Stretches};
use crate::host::keep_under_way;
use crate::model::Model;
use crate::request::{Completion, Failure, Request};
use crate::time::{Span, Time};
use hdrhistogram::CreationError;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Answers between two words to whoever watches.
const WORD_EVERY: u64 = 4096;

/// How long a workload goes on.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Requests under way at a time.
    pub depth: usize,
    /// Seconds of the drive's time.
    pub seconds: u64,
    /// Seconds of a stretch, if there are stretches; not zero.
    pub every: Option<u64>,
}

/// What came of it.
pub struct Ran {
    /// Its requests by kind.
    pub counters: Counters,
    /// Its requests by time.
    pub stretches: Stretches,
    /// How many failed, and the first of them.
    pub failed: Option<(u64, Request, Failure)>,
    /// When the last answer came.
    pub end: Time,
}

/// Keeps requests under way from `start` on until the time is over, there are no more or `stop` is set, and
/// waits for the last of them. `each` is told now and then how much of the drive's time is over.
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
