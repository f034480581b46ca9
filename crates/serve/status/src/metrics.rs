//! Metrics of drive, store and process. `docs/metrics.md` lists them all.

use crate::document::Document;
use crate::exposition::{Exposition, Values};
use crate::look::Look;
use crate::requests::Requests;
use std::collections::BTreeMap;
use store::Grade;

/// Open connections: of clients that have signed a request, and of strangers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Connections {
    pub clients: usize,
    pub strangers: usize,
}

/// All metrics in Prometheus' text format.
pub(crate) fn text(
    requests: &Requests,
    document: &Document,
    look: Option<&Look>,
    connections: Connections,
    lost_lines: Vec<(&str, u64)>,
) -> Vec<u8> {
    let metrics = Exposition::default();
    let version = vec![(vec![document.version], 1.0)];
    let help = "1; the label says which program serves the drive.";
    metrics.gauges("zonestore_build_info", help, &["version"], version);
    metrics.gauges(
        "zonestore_s3_connections",
        "Open connections: clients have signed a request, strangers have not.",
        &["kind"],
        vec![
            (vec!["client"], connections.clients as f64),
            (vec!["stranger"], connections.strangers as f64),
        ],
    );
    metrics.gauge(
        "zonestore_ready",
        "Whether the drive answers and can be written to, as /-/ready says; a full one is ready.",
        number(document.not_ready.is_none()),
    );
    let longest = document.waiting.iter().map(|waiting| waiting.seconds).max();
    metrics.gauge(
        "zonestore_drive_waiting_seconds",
        "How long the drive has not answered a command, from ten seconds on; else 0.",
        longest.unwrap_or(0) as f64,
    );
    let lost_lines = lost_lines.into_iter();
    metrics.counters(
        "zonestore_log_lines_lost_total",
        "Lines of logs that could not be written.",
        &["log"],
        lost_lines
            .map(|(log, lines)| (vec![log], lines as f64))
            .collect(),
    );
    process(&metrics, requests);
    if let Some(look) = look {
        metrics.gauge(
            "zonestore_look_age_seconds",
            "How old what follows of drive and store is: it is young unless the drive does not answer.",
            look.taken.elapsed().as_secs_f64(),
        );
        space(&metrics, look);
        zones(&metrics, look);
        cleaner(&metrics, look);
        drive(&metrics, look);
        caches(&metrics, look);
        health(&metrics, look);
    }
    metrics.text(requests.registry())
}

fn number(flag: bool) -> f64 {
    f64::from(u8::from(flag))
}

fn process(metrics: &Exposition, requests: &Requests) {
    let process = crate::process::Process::now();
    metrics.gauge(
        "zonestore_uptime_seconds",
        "How long the drive has been served.",
        requests.uptime().as_secs_f64(),
    );
    if let Some(bytes) = process.resident_memory_bytes {
        let help = "Memory that the process has.";
        metrics.gauge("process_resident_memory_bytes", help, bytes as f64);
    }
    if let Some(fds) = process.open_fds {
        metrics.gauge("process_open_fds", "Open file descriptors.", fds as f64);
    }
}

fn space(metrics: &Exposition, look: &Look) {
    let space = &look.space;
    let parts = [
        ("drive", space.drive_bytes),
        ("capacity", space.capacity_bytes),
        ("live", space.live_bytes),
        ("inline", space.inline_bytes),
        ("pinned", space.pinned_bytes),
        ("dead", space.dead_bytes),
        ("free", space.free_bytes),
        ("available", space.available_bytes),
        ("metadata", space.metadata_bytes),
        ("reserve", space.reserve_bytes),
        ("conventional_free", space.conventional_free_bytes),
        ("unusable", space.unusable_bytes),
        ("set_aside", space.set_aside_bytes),
        ("unwritten_tail", space.unwritten_tail_bytes),
    ];
    metrics.gauges(
        "zonestore_space_bytes",
        "The store's space by part: capacity = live + pinned + dead + free.",
        &["part"],
        parts.map(|(part, bytes)| (vec![part], bytes as f64)).into(),
    );
    if let Some(bytes) = space.host_free_bytes {
        let help = "What the host's disk under a drive file has left.";
        metrics.gauge("zonestore_host_free_bytes", help, bytes as f64);
    }
    let help = "Zones that new data may take.";
    let free = f64::from(space.free_zones_for_data);
    metrics.gauge("zonestore_free_zones", help, free);
}

fn zones(metrics: &Exposition, look: &Look) {
    let Some(drive) = &look.drive else { return };
    let mut counts: BTreeMap<(String, &str), f64> = BTreeMap::new();
    for zone in &drive.zones {
        let owner = zone.owner.words().replace([' ', '-'], "_").to_lowercase();
        *counts.entry((owner, zone.condition.name())).or_default() += 1.0;
    }
    let values: Values<'_> = counts
        .iter()
        .map(|((owner, condition), count)| (vec![owner.as_str(), *condition], *count))
        .collect();
    metrics.gauges(
        "zonestore_zones",
        "Zones by who has them and the drive's condition of them.",
        &["owner", "condition"],
        values,
    );
}

fn cleaner(metrics: &Exposition, look: &Look) {
    let cleaner = &look.cleaner;
    let flag = |name, help, flag| metrics.gauge(name, help, number(flag));
    flag(
        "zonestore_cleaner_running",
        "Whether a zone is being cleaned.",
        cleaner.running,
    );
    flag(
        "zonestore_cleaner_automatic",
        "Whether the cleaner starts by itself.",
        cleaner.automatic,
    );
    if let Some(pace) = cleaner.pace_bytes_per_second {
        metrics.gauge(
            "zonestore_cleaner_pace_bytes_per_second",
            "What the pace comes to at present; missing where it is no rate.",
            pace as f64,
        );
    }
    metrics.gauge(
        "zonestore_cleaner_dirty_zones",
        "Zones with dead bytes.",
        cleaner.dirty_zones.into(),
    );
    for (name, help, value) in [
        (
            "zonestore_cleaner_zones_total",
            "Zones cleaned and reset.",
            cleaner.zones_cleaned,
        ),
        (
            "zonestore_cleaner_moved_bytes_total",
            "Bytes moved to other zones.",
            cleaner.bytes_moved,
        ),
        (
            "zonestore_cleaner_freed_bytes_total",
            "Bytes that can be written again.",
            cleaner.bytes_freed,
        ),
        (
            "zonestore_user_written_bytes_total",
            "Bytes that clients' objects wrote to zones.",
            cleaner.bytes_written,
        ),
    ] {
        metrics.counter(name, help, value);
    }
}

fn drive(metrics: &Exposition, look: &Look) {
    let commands = &look.commands;
    let counts = [
        ("read", commands.read),
        ("write", commands.write),
        ("append", commands.append),
        ("reset", commands.reset),
        ("finish", commands.finish),
        ("open", commands.open),
        ("close", commands.close),
        ("flush", commands.flush),
    ];
    metrics.counters(
        "zonestore_drive_commands_total",
        "Commands that the drive has carried out.",
        &["command"],
        counts
            .map(|(command, count)| (vec![command], count.operations as f64))
            .into(),
    );
    metrics.counter(
        "zonestore_drive_written_bytes_total",
        "Bytes written to the drive: data, what the cleaner moves, and metadata.",
        commands.bytes_written(),
    );
    metrics.counter(
        "zonestore_drive_read_bytes_total",
        "Bytes read from the drive.",
        commands.read.bytes,
    );
}

fn caches(metrics: &Exposition, look: &Look) {
    let caches = [
        ("metadata", look.caches.metadata),
        ("data", look.caches.data),
    ];
    let of = |value: fn(&cache::CacheStatistics) -> u64| -> Values<'_> {
        let values = caches.iter();
        values
            .map(|(cache, told)| (vec![*cache], value(told) as f64))
            .collect()
    };
    let label = &["cache"];
    metrics.counters(
        "zonestore_cache_hits_total",
        "Look-ups that found what they were for.",
        label,
        of(|told| told.hits),
    );
    metrics.counters(
        "zonestore_cache_misses_total",
        "Look-ups that did not.",
        label,
        of(|told| told.misses),
    );
    metrics.gauges(
        "zonestore_cache_held_bytes",
        "Bytes that the cache holds.",
        label,
        of(|told| told.held_bytes),
    );
    metrics.gauges(
        "zonestore_cache_budget_bytes",
        "Most bytes that it may hold.",
        label,
        of(|told| told.budget_bytes),
    );
}

fn health(metrics: &Exposition, look: &Look) {
    let Some(health) = look.health() else { return };
    let grade = match health.grade {
        Grade::Good => 0.0,
        Grade::Worn => 1.0,
        Grade::Failing => 2.0,
    };
    for (name, help, value) in [
        (
            "zonestore_healthy",
            "Whether nothing is lost, at risk or waited for.",
            number(health.is_healthy()),
        ),
        (
            "zonestore_failed",
            "Whether nothing can be written any more before a restart.",
            number(health.failure.is_some()),
        ),
        (
            "zonestore_drive_grade",
            "What the drive is worth: 0 good, 1 worn, 2 failing.",
            grade,
        ),
        (
            "zonestore_lost_objects",
            "Objects with bytes that are lost.",
            health.lost_objects as f64,
        ),
        (
            "zonestore_lost_bytes",
            "How many bytes these are.",
            health.lost_bytes as f64,
        ),
        (
            "zonestore_zones_at_risk",
            "Zones with object data that cannot be read, or only be read.",
            health.zones.len() as f64,
        ),
        (
            "zonestore_unusable_zones",
            "Zones that are read-only, offline or out of use, with nothing in them.",
            health.unusable_zones.into(),
        ),
        (
            "zonestore_damaged_metadata",
            "What is known to be damaged of the metadata and has no other copy.",
            health.metadata.len() as f64,
        ),
        (
            "zonestore_metadata_copies",
            "In how many zones each byte of the metadata is.",
            health.metadata_copies.into(),
        ),
        (
            "zonestore_metadata_damaged_copies",
            "Pairs of zones with metadata of which one is damaged; it is written anew.",
            health.damaged_copies.into(),
        ),
    ] {
        metrics.gauge(name, help, value);
    }
    if let Some(age) = look.lost_objects_age() {
        metrics.gauge(
            "zonestore_lost_objects_age_seconds",
            "How old the two numbers of what is lost are: they are young unless finding these objects takes long.",
            age.as_secs_f64(),
        );
    }
    let scrubbed = health.scrub.as_ref().and_then(|scrub| scrub.data_micros);
    metrics.gauge(
        "zonestore_scrub_data_timestamp_seconds",
        "When all data had been scrubbed for the last time, Unix time; 0 if never.",
        scrubbed.unwrap_or(0) as f64 / 1e6,
    );
}
