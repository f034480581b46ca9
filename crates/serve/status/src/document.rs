//! The status document: the page, programs and the command line all read it.

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

/// Status of a served drive at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Version of the program.
    pub version: &'static str,
    /// Time of the document, Unix time in milliseconds.
    pub time_ms: u64,
    /// Time since the drive is served.
    pub uptime_seconds: f64,
    /// Why objects cannot be stored; `null` if they can.
    pub not_ready: Option<String>,
    /// Requests that the drive has not answered for ten seconds or more.
    pub waiting: Vec<Waiting>,
    /// Requests of clients.
    pub requests: Asked,
    /// Memory and file descriptors of this process.
    process: Process,
    /// Sizes of the buckets; `null` until they have been counted.
    pub buckets: Option<Buckets>,
    /// Snapshot of drive and store; `null` if the drive has not answered yet.
    pub drive: Option<Drive>,
}

/// Requests of clients.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// Requests under way.
    pub in_flight: u64,
    /// The last two minutes by second, the oldest first.
    pub history: Vec<Second>,
    /// The last requests, the newest first.
    pub log: Vec<Entry>,
}

/// Snapshot of drive and store.
#[derive(Clone, Debug, Serialize)]
pub struct Drive {
    /// Age of the snapshot.
    pub age_seconds: f64,
    /// Parts of the snapshot that failed, with the reason.
    pub problems: Vec<String>,
    /// The store's space.
    pub space: Statfs,
    /// State and counters of the cleaner.
    pub cleaner: CleanerStatus,
    /// The cleaner's pace in words.
    pub pace: String,
    /// Statistics of the read caches.
    pub caches: Caches,
    /// Losses of data, and risks to it.
    pub health: Option<Health>,
    /// Age of the names and numbers of objects in `health`.
    pub lost_objects_age_seconds: Option<f64>,
    /// Bytes written to the drive while it is served, for any purpose.
    pub written_bytes: u64,
    /// Bytes read from the drive.
    pub read_bytes: u64,
    /// Flushes of the drive.
    pub flushes: u64,
    /// Changes when any zone in `zones.json` does.
    pub zones_tag: Option<String>,
    /// Totals of the zones; `zones.json` has each zone.
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
