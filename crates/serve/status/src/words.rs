//! A status document as lines of text, for a terminal.

use crate::history::Second;
use serde::Deserialize;
use serde_json::Value;
use store::{Caches, CleanerStatus, Health, Statfs};
use zone::{Bytes, count};

/// Seconds over which rates of traffic are averaged.
const MEAN_OF: usize = 5;

/// What is read of a document: what is missing in one of another version is left out.
#[derive(Deserialize)]
struct Told {
    version: String,
    uptime_seconds: f64,
    not_ready: Option<String>,
    requests: Requests,
    drive: Option<Drive>,
}

#[derive(Deserialize)]
struct Requests {
    in_flight: u64,
    history: Vec<Second>,
    log: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    operation: String,
    resource: String,
    status: u16,
    received_bytes: u64,
    sent_bytes: u64,
    milliseconds: f64,
}

#[derive(Deserialize)]
struct Drive {
    age_seconds: f64,
    space: Statfs,
    cleaner: CleanerStatus,
    caches: Caches,
    health: Option<Health>,
}

/// Lines of text about a document, followed by the last `requests` requests.
///
/// # Errors
/// The JSON is not a status document.
pub fn lines(document: &Value, requests: usize) -> Result<Vec<String>, serde_json::Error> {
    let told = Told::deserialize(document)?;
    let state = told.not_ready.map_or_else(
        || "ready".to_owned(),
        |why| format!("objects cannot be stored: {why}"),
    );
    let minutes = (told.uptime_seconds / 60.0) as u64;
    let mut lines = vec![format!(
        "zonestore {}, serving for {} h {:02} min: {state}",
        told.version,
        minutes / 60,
        minutes % 60
    )];
    lines.extend(traffic(&told.requests));
    match told.drive {
        None => lines.push("the drive has not answered yet".to_owned()),
        Some(drive) => lines.extend(drive.lines()),
    }
    if !told.requests.log.is_empty() && requests > 0 {
        lines.push(String::new());
    }
    lines.extend(told.requests.log.iter().take(requests).map(Request::line));
    Ok(lines)
}

fn traffic(requests: &Requests) -> Vec<String> {
    let history = &requests.history;
    let last = &history[history.len().saturating_sub(MEAN_OF)..];
    let mean = |of: fn(&Second) -> u64| {
        let sum: u64 = last.iter().map(of).sum();
        sum as f64 / last.len().max(1) as f64
    };
    let mut lines = vec![format!(
        "{:.1} requests/s, {} stored/s, {} read/s, {} in flight",
        mean(|second| second.requests),
        Bytes(mean(|second| second.received_bytes) as u64),
        Bytes(mean(|second| second.sent_bytes) as u64),
        requests.in_flight
    )];
    let busy = last.iter().rev().find_map(|s| s.p50_ms.zip(s.p99_ms));
    if let Some((half, most)) = busy {
        lines.push(format!(
            "half within {half:.1} ms, 99 % within {most:.1} ms"
        ));
    }
    lines
}

impl Drive {
    fn lines(&self) -> Vec<String> {
        let space = &self.space;
        let mut lines = Vec::new();
        if self.age_seconds > 5.0 {
            let age = self.age_seconds as u64;
            lines.push(format!("what follows is {} old", count(age, "second")));
        }
        lines.push(format!(
            "{} live, {} dead, {} free; {} can still be stored of {}",
            Bytes(space.live_bytes),
            Bytes(space.dead_bytes),
            Bytes(space.free_bytes),
            Bytes(space.available_bytes),
            Bytes(space.capacity_bytes)
        ));
        lines.extend(space.lines());
        lines.push(String::new());
        lines.extend(self.cleaner.lines());
        lines.push(String::new());
        lines.extend(self.caches.lines());
        lines.extend(self.health.iter().flat_map(Health::lines));
        lines
    }
}

impl Request {
    fn line(&self) -> String {
        format!(
            "{:>3}  {:>9.1} ms  {:>9} in  {:>9} out  {:<20}  {}",
            self.status,
            self.milliseconds,
            Bytes(self.received_bytes).to_string(),
            Bytes(self.sent_bytes).to_string(),
            self.operation,
            self.resource.escape_debug()
        )
    }
}
