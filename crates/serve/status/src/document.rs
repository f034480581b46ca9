//! Everything that is shown, as one document: the page, programs and the command line read the same.

use crate::buckets::Buckets;
use crate::history::Second;
use crate::log::Entry;
use crate::look::Look;
use crate::process::Process;
use crate::requests::Requests;
use inspect::Snapshot;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Caches, CleanerStatus, Health, Statfs, Store, Waiting};

/// A served drive at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// The program's version.
    pub version: &'static str,
    /// Unix time in milliseconds.
    pub time_ms: u64,
    /// How long the drive has been served.
    pub uptime_seconds: f64,
    /// Why objects cannot be stored; `null` if they can.
    pub not_ready: Option<String>,
    /// What the drive has not answered for a while.
    pub waiting: Vec<Waiting>,
    /// What clients ask.
    pub requests: Asked,
    /// This process.
    process: Process,
    /// How large the buckets are; `null` until they have been counted.
    pub buckets: Option<Buckets>,
    /// Drive and store; `null` if the drive has not answered yet.
    pub drive: Option<Drive>,
}

/// What clients ask.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// Requests that are being answered.
    pub in_flight: u64,
    /// The last two minutes, a second each, the oldest first.
    pub history: Vec<Second>,
    /// The last requests, the newest first.
    pub log: Vec<Entry>,
}

/// Drive and store when they were last looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Drive {
    /// How long ago that was.
    pub age_seconds: f64,
    /// What could not be told, and why.
    pub problems: Vec<String>,
    /// The store's space.
    pub space: Statfs,
    /// The cleaner.
    pub cleaner: CleanerStatus,
    /// Its pace in words.
    pub pace: String,
    /// The caches.
    pub caches: Caches,
    /// What is lost or at risk.
    pub health: Option<Health>,
    /// How old the names and numbers of objects in `health` are.
    pub lost_objects_age_seconds: Option<f64>,
    /// Bytes written to the drive since it is served, by whomever.
    pub written_bytes: u64,
    /// Bytes read from it.
    pub read_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Changes when any zone does.
    pub zones_tag: Option<String>,
    /// The zones, summed up; each of them is in `zones.json`.
    pub zones: Option<Snapshot>,
}

impl Document {
    pub(crate) fn new(
        store: &Store,
        requests: &Requests,
        look: Option<&Look>,
        buckets: Option<Buckets>,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let waiting = store.waiting();
        let longest = waiting.iter().map(|waiting| waiting.seconds).max();
        let silent = longest.map(|s| format!("the drive has not answered for {s} s"));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            time_ms: now.map_or(0, |now| now.as_millis() as u64),
            uptime_seconds: requests.uptime().as_secs_f64(),
            not_ready: store.failure().or(silent),
            waiting,
            requests: Asked {
                in_flight: requests.in_flight(),
                history: requests.history(),
                log: requests.log(),
            },
            process: Process::now(),
            buckets,
            drive: look.map(Drive::of),
        }
    }
}

impl Drive {
    fn of(look: &Look) -> Self {
        Self {
            age_seconds: look.taken.elapsed().as_secs_f64(),
            problems: look.problems.clone(),
            space: look.space,
            cleaner: look.cleaner,
            pace: look.cleaner.pace.to_string(),
            caches: look.caches,
            health: look.health().cloned(),
            lost_objects_age_seconds: look.lost_objects_age().map(|age| age.as_secs_f64()),
            written_bytes: look.commands.bytes_written(),
            read_bytes: look.commands.read.bytes,
            flushes: look.commands.flush.operations,
            zones_tag: look.drive.as_ref().map(|drive| drive.codes.tag.clone()),
            zones: look.drive.as_ref().map(|drive| drive.sums.clone()),
        }
    }
}
