//! `zonestore sim`: simulations of what the cleaners decide, and of clusters.

use crate::args::{SimCleaning, SimCluster, SimCommand, wanted};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::local_file;
use crate::model::find;
use crate::output::Output;
use ::sim::cleaning::{Load, Skew};
use ::sim::cluster::{
    self, Coordination, Disks, Fleet, Impossible, Lost, Report, Scenario, Simulation, Times, Until,
};
use ::sim::policy::{Cost, Policy};
use drive_model::{Class, Profile, Span};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use terminal::{Interrupt, Progress};

/// Default number of drives for each proxy, and of requests a second for each drive.
const DRIVES_A_PROXY: u32 = 32;
const REQUESTS_A_DRIVE: u32 = 5;

/// Times of a job of a drive, in milliseconds: a microsecond to an hour. With jobs that take no time, a simulation may
/// never end.
const LEAST_MS: f64 = 0.001;
const MOST_MS: f64 = 3_600_000.0;

/// Resolution of the progress bar.
const PARTS: f64 = 1_000.0;

/// Runs the command.
pub fn run(command: SimCommand, out: &mut Output) -> CommandResult {
    match command {
        SimCommand::Cleaning(arguments) => cleaning(&arguments, out),
        SimCommand::Cluster(arguments) => cluster(&arguments, out),
    }
}

fn cleaning(arguments: &SimCleaning, out: &mut Output) -> CommandResult {
    let load = Load {
        zones: arguments.zones,
        blocks_per_zone: arguments.blocks_per_zone,
        utilization: arguments.utilization,
        skew: arguments.skew.map(|skew| Skew {
            shifts: arguments.shifting,
            ..skew
        }),
        placement: arguments.placement,
        writes: arguments.writes,
        seed: arguments.seed,
    };
    if load.writes == 0 {
        return fail!(Usage, "nothing to count"; "--writes takes 1 or more");
    }
    let measure = |policy: Policy| {
        let progress = Progress::steps(policy.name(), None);
        let cost = policy.measure(&load, |done, all| progress.set_of(done, all));
        cost.map_err(|error| CommandError::new(Exit::Usage, error))
    };
    let policies = wanted(&Policy::ALL, &arguments.policy).into_iter();
    let costs: Vec<Cost> = policies.map(measure).collect::<CommandResult<_>>()?;
    out.table(&[0], &Cost::rows(&costs))?;
    out.value(&costs)
}

fn disk(text: &OsStr) -> CommandResult<Profile> {
    let profile = find(text)?;
    if profile.class() == Class::CaveatScriptor {
        return fail!(
            Usage, "{}: a Caveat-Scriptor disk, where a write damages what lies behind it and what was never \
                written cannot be read: no cluster is simulated with such drives", profile.name();
            "take hm-smr-14tb, or another disk: `zonestore model list` has the models"
        );
    }
    if matches!(profile.class(), Class::Flash | Class::Zns) {
        return fail!(Usage, "{} is flash", profile.name(); "take a disk: `zonestore model list` has the models");
    }
    Ok(Profile::parse(profile.text())?)
}

fn impossible(error: Impossible) -> CommandError {
    match error {
        Impossible::Profile(error) => error.into(),
        Impossible::Interrupted | Impossible::Refused(_) => CommandError::new(Exit::Failed, error),
        Impossible::Full => {
            CommandError::new(Exit::Failed, error).hint("take a lower --utilization")
        }
        error => CommandError::new(Exit::Usage, error),
    }
}

fn times(file: &Path, is_cleaned: bool) -> CommandResult<Times> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::new(Exit::Usage, format!("{}: {error}", file.display())).hint(
            r#"write lists of milliseconds: {"read_ms": [11.2, 9.7], "write_ms": [14.0], "moved_ms": [9.1]}"#,
        )
    };
    let text = local_file::text(file)?;
    let times: Times = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if times.read_ms.is_empty() || times.write_ms.is_empty() {
        return Err(failed(&"a list is empty"));
    }
    if is_cleaned && times.moved_ms.is_empty() {
        return Err(failed(
            &"moved_ms is empty, and drives with zones move data when they clean",
        ));
    }
    let lists = [&times.read_ms, &times.write_ms, &times.moved_ms];
    let wrong = lists
        .into_iter()
        .flatten()
        .copied()
        .find(|ms| !(LEAST_MS..=MOST_MS).contains(ms));
    if let Some(wrong) = wrong {
        let why =
            format!("{wrong} is no time of a job: one is {LEAST_MS} to {MOST_MS} milliseconds");
        return Err(failed(&why));
    }
    Ok(times)
}

fn load_of(arguments: &SimCluster) -> cluster::Load {
    let clients = arguments.clients.unwrap_or(0);
    let readers = (f64::from(clients) * arguments.reads).round() as u32;
    let drives = f64::from(arguments.nodes) * f64::from(arguments.drives);
    let per_second = match (arguments.rate, arguments.clients) {
        (Some(rate), _) => rate,
        (None, None) => drives * f64::from(REQUESTS_A_DRIVE),
        (None, Some(_)) => 0.0,
    };
    cluster::Load {
        per_second,
        reads: arguments.reads,
        readers,
        writers: clients - readers.min(clients),
        overwrites: true,
        warm_up_seconds: arguments.warm_up.0 as f64,
        until: Until::Seconds(arguments.time.0 as f64),
    }
}

fn cluster(arguments: &SimCluster, out: &mut Output) -> CommandResult {
    let fleet = Fleet {
        profile: disk(&arguments.drive)?,
        models: arguments.models,
        zones: arguments.zones,
        utilization: arguments.utilization,
        free_zones: arguments.clean_free_zones,
        pace: arguments.clean_pace,
        policy: arguments.policy,
    };
    let load = load_of(arguments);
    let part_bytes = arguments.redundancy.part_bytes(arguments.object_size.0);
    let (mut disks, layout) = fleet
        .build(part_bytes, arguments.seed)
        .map_err(impossible)?;
    if let Some(file) = &arguments.times {
        disks = Disks::Served(Arc::new(times(file, fleet.has_zones())?.into()));
    }
    let scenario = Scenario {
        seed: arguments.seed,
        nodes: arguments.nodes,
        drives_per_node: arguments.drives,
        failure_zones: arguments.failure_zones,
        proxies: arguments.proxies.unwrap_or_else(|| {
            let drives = arguments.nodes.saturating_mul(arguments.drives);
            drives.div_ceil(DRIVES_A_PROXY)
        }),
        partitions_a_drive: arguments.partitions,
        redundancy: arguments.redundancy,
        object_bytes: arguments.object_size.0,
        disks,
        layout,
        link_bytes_per_second: arguments.network.0,
        hop: Span::from_seconds(arguments.hop.as_secs_f64()),
        after_quorum: Span::from_seconds(arguments.after_quorum.as_secs_f64()),
        coordination: Coordination::None,
        news_delay: Span::from_seconds(arguments.news_delay.as_secs_f64()),
        turn: Span::from_seconds(arguments.turn.as_secs_f64()),
        budget_percent: arguments.budget,
        lost: arguments.rebuild.map(|rate| Lost {
            after_seconds: load.warm_up_seconds,
            bytes_per_second: rate.0,
        }),
    };
    // If the host does not clean, there is nothing to coordinate.
    let ways = match fleet.has_zones() {
        false if arguments.coordination.is_empty() => vec![Coordination::None],
        _ => wanted(&Coordination::ALL, &arguments.coordination),
    };
    let interrupted = Interrupt::listen()?.flag();
    let measure = |coordination: Coordination| {
        let scenario = Scenario {
            coordination,
            ..scenario.clone()
        };
        let watch = |what: &str| {
            let (progress, interrupted) = (Progress::steps(what, None), &interrupted);
            move |part: f64| {
                progress.set_of((part * PARTS) as u64, PARTS as u64);
                !interrupted.load(Ordering::Relaxed)
            }
        };
        let mut simulation =
            Simulation::watched(&scenario, &mut watch("ageing drives")).map_err(impossible)?;
        let measured = simulation.run(&load, &mut watch(coordination.name()));
        measured.map_err(impossible)
    };
    let reports: Vec<Report> = ways
        .into_iter()
        .map(measure)
        .collect::<CommandResult<_>>()?;
    out.table(&[0], &Report::rows(&reports))?;
    out.value(&reports)
}
