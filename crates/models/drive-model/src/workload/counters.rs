//! Latencies of requests on the drive, and delays of their completions on the wall clock.

use crate::request::RequestKind;
use crate::time::{Span, micros};
use hdrhistogram::{CreationError, Histogram};
use runtime::sync::Mutex;
use serde::Serialize;
use std::time::Duration;
use zone::Bytes;

/// Counters of one kind of request.
struct Kind {
    name: &'static str,
    requests: u64,
    bytes: u64,
    errors: u64,
    /// Nanoseconds of the drive's time; the smallest and largest exactly.
    latency: Histogram<u64>,
    extremes: (u64, u64),
}

/// Counters of completed requests.
pub struct Counters(Mutex<Inner>);

struct Inner {
    kinds: [Kind; 4],
    /// Nanoseconds on the wall clock between the time at which a completion was due and the time at which it was
    /// handed out.
    late: Histogram<u64>,
}

/// Significant digits of a time in the histograms, from 1 ns on.
const DIGITS: u8 = 3;

const NAMES: [&str; 4] = ["read", "write", "flush", "trim"];

/// Totals of one kind of request.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Answered {
    /// `read`, `write`, `flush` or `trim`.
    #[serde(skip)]
    pub name: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Bytes of successful requests.
    pub bytes: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Latencies; `None` without requests.
    pub latency_us: Option<Latencies>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[expect(
    missing_docs,
    reason = "statistics have the names that everybody gives them"
)]
pub struct Latencies {
    pub min: f64,
    pub median: f64,
    pub mean: f64,
    pub p99: f64,
    pub max: f64,
}

impl Latencies {
    fn of(latency: &Histogram<u64>, (least, most): (u64, u64)) -> Option<Self> {
        if latency.is_empty() {
            return None;
        }
        // A value of the histogram is the middle of its step, so it is limited to the exact extremes.
        let within = |nanos: f64| nanos.clamp(least as f64, most as f64) / 1e3;
        let quantile = |part| within(latency.value_at_quantile(part) as f64);
        Some(Self {
            min: least as f64 / 1e3,
            median: quantile(0.5),
            mean: within(latency.mean()),
            p99: quantile(0.99),
            max: most as f64 / 1e3,
        })
    }
}

impl Answered {
    /// A table of the kinds that occurred, with a head; empty if none did.
    pub fn rows(all: &[Self]) -> Vec<Vec<String>> {
        // Without a column of zeros, the table fits in 80 columns.
        let any_errors = all.iter().any(|kind| kind.errors > 0);
        let mut head = vec!["", "requests", "bytes"];
        head.extend(any_errors.then_some("errors"));
        head.extend(["min", "median", "mean", "p99", "max"]);
        let mut rows = Vec::new();
        for kind in all {
            let Some(l) = kind.latency_us else {
                continue;
            };
            let bytes = Bytes(kind.bytes).to_string();
            let mut row = vec![kind.name.to_owned(), kind.requests.to_string(), bytes];
            row.extend(any_errors.then(|| kind.errors.to_string()));
            row.extend([l.min, l.median, l.mean, l.p99, l.max].map(micros));
            rows.push(row);
        }
        if !rows.is_empty() {
            rows.insert(0, head.into_iter().map(str::to_owned).collect());
        }
        rows
    }
}

impl Counters {
    /// Counters of nothing.
    ///
    /// # Errors
    /// None is expected: the parameters of the histograms are valid.
    pub fn new() -> Result<Self, CreationError> {
        let kind = |name| -> Result<Kind, CreationError> {
            Ok(Kind {
                name,
                requests: 0,
                bytes: 0,
                errors: 0,
                latency: Histogram::new(DIGITS)?,
                extremes: (u64::MAX, 0),
            })
        };
        let [read, write, flush, trim] = NAMES;
        Ok(Self(Mutex::new(Inner {
            kinds: [kind(read)?, kind(write)?, kind(flush)?, kind(trim)?],
            late: Histogram::new(DIGITS)?,
        })))
    }

    /// Counts a request that the drive completed after `latency`, and the delay of its completion on the wall clock,
    /// if there was one.
    pub fn count(
        &self,
        operation: RequestKind,
        bytes: u32,
        ok: bool,
        latency: Span,
        late: Option<Duration>,
    ) {
        let index = match operation {
            RequestKind::Read => 0,
            RequestKind::Flush => 2,
            RequestKind::Trim => 3,
            _ => 1,
        };
        let mut inner = self.0.lock();
        let kind = &mut inner.kinds[index];
        kind.requests += 1;
        if ok {
            kind.bytes += u64::from(bytes);
        } else {
            kind.errors += 1;
        }
        // The histograms grow as needed; an error would mean that some kilobytes of memory are missing.
        let _ = kind.latency.record(latency.nanos());
        let (least, most) = kind.extremes;
        kind.extremes = (least.min(latency.nanos()), most.max(latency.nanos()));
        if let Some(late) = late {
            let late = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
            let _ = inner.late.record(late);
        }
    }

    /// Whether any request was counted.
    pub fn any(&self) -> bool {
        let inner = self.0.lock();
        inner.kinds.iter().any(|kind| kind.requests > 0)
    }

    /// Totals by kind.
    pub fn answered(&self) -> [Answered; 4] {
        let inner = self.0.lock();
        inner.kinds.each_ref().map(|kind| Answered {
            name: kind.name,
            requests: kind.requests,
            bytes: kind.bytes,
            errors: kind.errors,
            latency_us: Latencies::of(&kind.latency, kind.extremes),
        })
    }

    /// Delays on the wall clock, if any were counted.
    pub fn late(&self) -> Option<Latencies> {
        let late = &self.0.lock().late;
        Latencies::of(late, (late.min(), late.max()))
    }
}
