//! Reports of requests to a model, for people and programs.

use crate::errors::CommandResult;
use crate::output::Output;
use drive_model::workload::{Answered, Counters, Stretches};
use drive_model::{ModelStatistics, micros};
use serde_json::{Value, json};

/// Prints the counters of requests and of the model. `facts` are additional rows.
pub fn report(
    counters: &Counters,
    did: &ModelStatistics,
    facts: Value,
    out: &mut Output,
) -> CommandResult {
    let answered = counters.answered();
    let requests = answered
        .iter()
        .map(|kind| (kind.name.to_owned(), json!(kind)));
    let requests: serde_json::Map<_, _> = requests.collect();
    let rows = Answered::rows(&answered);
    if rows.is_empty() {
        out.line(format_args!("no requests"))?;
    } else {
        out.table(&[0], &rows)?;
    }
    let late = counters.late();
    if let Some(late) = &late {
        out.line(format_args!(
            "times are the drive's; on the wall answers came late by {} in the mean, {} at most",
            micros(late.mean),
            micros(late.max)
        ))?;
    }
    out.pairs(&did.in_words())?;
    let mut all = facts;
    all["requests"] = requests.into();
    if let Some(late) = late {
        all["late"] = json!({ "latency_us": late });
    }
    all["model"] = json!(did);
    out.value(&all)
}

/// Prints a table of stretches, if there are any, for a workload that took `seconds`.
pub fn stretches(stretches: &Stretches, seconds: f64, out: &mut Output) -> CommandResult {
    let rows = stretches.rows(seconds);
    if rows.is_empty() {
        return Ok(());
    }
    out.table(&[], &rows)?;
    out.line(format_args!(""))
}
