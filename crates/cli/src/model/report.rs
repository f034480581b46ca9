//! How requests went, for people and programs.

use crate::errors::CommandResult;
use crate::output::Output;
use drive_model::workload::{Counters, Latencies, Stretches};
use drive_model::{ModelStatistics, Span};
use serde_json::{Value, json};
use terminal::human;

/// Says what was counted, and what the model did for it. `facts` say what else there is to say.
pub fn report(
    counters: &Counters,
    did: &ModelStatistics,
    facts: Value,
    out: &mut Output,
) -> CommandResult {
    let answered = counters.answered();
    // Without a column of zeros the table fits on 80 columns.
    let any_errors = answered.iter().any(|kind| kind.errors > 0);
    let mut head = vec!["", "requests", "bytes"];
    head.extend(any_errors.then_some("errors"));
    head.extend(["min", "median", "mean", "p99", "max"]);
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    let mut requests = serde_json::Map::new();
    for kind in &answered {
        requests.insert(kind.name.to_owned(), json!(kind));
        let Some(Latencies {
            min,
            median,
            mean,
            p99,
            max,
        }) = kind.latency_us
        else {
            continue;
        };
        let mut row = vec![
            kind.name.to_owned(),
            kind.requests.to_string(),
            human(kind.bytes),
        ];
        row.extend(any_errors.then(|| kind.errors.to_string()));
        row.extend([min, median, mean, p99, max].map(time));
        rows.push(row);
    }
    if rows.len() == 1 {
        out.line(format_args!("no requests"))?;
    } else {
        out.table(&[0], &rows)?;
    }
    let late = counters.late();
    if let Some(late) = &late {
        out.line(format_args!(
            "times are the drive's; on the wall answers came late by {} in the mean, {} at most",
            time(late.mean),
            time(late.max)
        ))?;
    }
    out.pairs(&done(did))?;
    let mut all = facts;
    all["requests"] = requests.into();
    if let Some(late) = late {
        all["late"] = json!({ "latency_us": late });
    }
    all["model"] = json!(did);
    out.value(&all)
}

/// A table of stretches, if there are any, of work that took so many seconds.
pub fn stretches(stretches: &Stretches, seconds: f64, out: &mut Output) -> CommandResult {
    let all = stretches.rates(seconds);
    if all.is_empty() {
        return Ok(());
    }
    let head = ["from", "requests/s", "MiB/s", "mean", "max"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|rates| {
        vec![
            format!("{:.0} s", rates.from_seconds),
            format!("{:.1}", rates.requests_per_second),
            format!("{:.2}", rates.bytes_per_second / f64::from(1 << 20)),
            time(rates.mean_us),
            time(rates.max_us),
        ]
    }));
    out.table(&[], &rows)?;
    out.line(format_args!(""))
}

/// Microseconds for people.
fn time(micros: f64) -> String {
    match micros {
        n if n < 1e3 => format!("{n:.1} µs"),
        n if n < 1e6 => format!("{:.2} ms", n / 1e3),
        n => format!("{:.2} s", n / 1e6),
    }
}

/// What the model did, without what it does not do.
fn done(did: &ModelStatistics) -> Vec<(&'static str, String)> {
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
