//! How long requests took: on the drive, and how late their answers were on the wall.

use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use crate::size::human;
use drive_model::{Operation, Span, Statistics};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::time::Duration;

/// Requests of one kind.
struct Kind {
    name: &'static str,
    requests: u64,
    bytes: u64,
    errors: u64,
    /// Nanoseconds of the drive's; the least and the most exactly.
    latency: Histogram<u64>,
    extremes: (u64, u64),
}

/// Counts what was answered.
pub struct Counters(Mutex<Inner>);

struct Inner {
    kinds: [Kind; 4],
    /// Nanoseconds on the wall between the time when an answer was due and that when it was given out.
    late: Histogram<u64>,
}

const NAMES: [&str; 4] = ["read", "write", "flush", "trim"];

/// Keeps three digits of everything from 1 ns on.
fn histogram() -> CommandResult<Histogram<u64>> {
    Histogram::new(3).map_err(|error| CommandError::new(Exit::Failed, error))
}

impl Counters {
    /// Nothing yet.
    pub fn new() -> CommandResult<Self> {
        let kind = |name| -> CommandResult<Kind> {
            Ok(Kind {
                name,
                requests: 0,
                bytes: 0,
                errors: 0,
                latency: histogram()?,
                extremes: (u64::MAX, 0),
            })
        };
        let [read, write, flush, trim] = NAMES;
        Ok(Self(Mutex::new(Inner {
            kinds: [kind(read)?, kind(write)?, kind(flush)?, kind(trim)?],
            late: histogram()?,
        })))
    }

    /// One request that the drive answered after `latency`, and that its answer was late by on the wall,
    /// if it went there.
    pub fn count(
        &self,
        operation: Operation,
        bytes: u32,
        ok: bool,
        latency: Span,
        late: Option<Duration>,
    ) {
        let index = match operation {
            Operation::Read => 0,
            Operation::Flush => 2,
            Operation::Trim => 3,
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
        // They grow with what they hold; an error would be for want of room for some kilobytes.
        let _ = kind.latency.record(latency.nanos());
        let (least, most) = kind.extremes;
        kind.extremes = (least.min(latency.nanos()), most.max(latency.nanos()));
        if let Some(late) = late {
            let late = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
            let _ = inner.late.record(late);
        }
    }

    /// Whether there was a request.
    pub fn any(&self) -> bool {
        let inner = self.0.lock();
        inner.kinds.iter().any(|kind| kind.requests > 0)
    }

    /// Says what was counted, and what the model did for it. `facts` say what else there is to say.
    pub fn report(&self, did: &Statistics, facts: Value, out: &mut Output) -> CommandResult {
        let inner = self.0.lock();
        // Without a column of zeros the table fits on 80 columns.
        let any_errors = inner.kinds.iter().any(|kind| kind.errors > 0);
        let mut head = vec!["", "requests", "bytes"];
        head.extend(any_errors.then_some("errors"));
        head.extend(["min", "median", "mean", "p99", "max"]);
        let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
        let mut requests = serde_json::Map::new();
        for kind in &inner.kinds {
            let mut value = latencies(&kind.latency, kind.extremes);
            value["requests"] = kind.requests.into();
            value["bytes"] = kind.bytes.into();
            value["errors"] = kind.errors.into();
            requests.insert(kind.name.to_owned(), value);
            if kind.requests == 0 {
                continue;
            }
            let mut row = vec![
                kind.name.to_owned(),
                kind.requests.to_string(),
                human(kind.bytes),
            ];
            row.extend(any_errors.then(|| kind.errors.to_string()));
            row.extend(five(&kind.latency, kind.extremes).map(time));
            rows.push(row);
        }
        if rows.len() == 1 {
            out.line(format_args!("no requests"))?;
        } else {
            out.table(&[0], &rows)?;
        }
        if !inner.late.is_empty() {
            out.line(format_args!(
                "times are the drive's; on the wall answers came late by {} in the mean, {} at most",
                time(inner.late.mean()),
                time(inner.late.max() as f64)
            ))?;
        }
        out.pairs(&done(did))?;
        let mut all = facts;
        all["requests"] = requests.into();
        if !inner.late.is_empty() {
            all["late"] = latencies(&inner.late, (inner.late.min(), inner.late.max()));
        }
        all["model"] = json!(did);
        out.value(&all)
    }
}

fn five(latency: &Histogram<u64>, (least, most): (u64, u64)) -> [f64; 5] {
    // Those of the histogram are the middles of its steps.
    let within = |nanos: f64| nanos.clamp(least as f64, most as f64);
    let quantile = |part| within(latency.value_at_quantile(part) as f64);
    [
        least as f64,
        quantile(0.5),
        within(latency.mean()),
        quantile(0.99),
        most as f64,
    ]
}

fn latencies(latency: &Histogram<u64>, extremes: (u64, u64)) -> Value {
    if latency.is_empty() {
        return json!({ "latency_us": null });
    }
    let [min, median, mean, p99, max] = five(latency, extremes).map(|nanos| nanos / 1e3);
    json!({ "latency_us": { "min": min, "median": median, "mean": mean, "p99": p99, "max": max } })
}

/// Nanoseconds for people.
pub fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// What the model did, without what it does not do.
fn done(did: &Statistics) -> Vec<(&'static str, String)> {
    let blocks = |count: u64| human(count * drive_model::BLOCK_BYTES);
    let (medium, cleaning, flash) = (&did.medium, &did.cleaning, &did.flash);
    let facts = [
        ("seeks", medium.seeks, medium.seeks.to_string()),
        (
            "read from the medium",
            medium.read_blocks,
            blocks(medium.read_blocks),
        ),
        (
            "written to the medium",
            medium.written_blocks,
            blocks(medium.written_blocks),
        ),
        (
            "bands cleaned",
            cleaning.bands,
            format!(
                "{}, {} of them while a write waited; in {:.1} s",
                cleaning.bands,
                cleaning.urgent_bands,
                Span::from_nanos(cleaning.nanos).seconds()
            ),
        ),
        (
            "bands streamed",
            cleaning.streamed_bands,
            cleaning.streamed_bands.to_string(),
        ),
        (
            "programmed on flash",
            flash.programmed_blocks,
            format!(
                "{}, {:.2} times what was written",
                blocks(flash.programmed_blocks),
                did.write_amplification()
            ),
        ),
        ("superblocks erased", flash.erases, flash.erases.to_string()),
    ];
    let counted = facts.into_iter().filter(|(_, count, _)| *count > 0);
    counted.map(|(name, _, text)| (name, text)).collect()
}
