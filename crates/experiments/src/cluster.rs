//! Simulates the cluster of the thesis CMU-CS-20-130, section 5.8: eight nodes with a drive each, in three
//! configurations, and 128 clients.
//!
//! Drives are models with their queues and the network is links, but CPU time is left out. Of a back end there are
//! the data, a record of its log and the flushes; the compactions of a database are left out. Requests reach the
//! drives as in Swift, not as in Ceph: by way of proxies, and a write is answered when two of three replicas are
//! durable. The drive-managed model is a Seagate's, which streams at the printed rate (186 MiB/s); the printed
//! cluster had three kinds of another maker's, of which no model is known.
//!
//! At the full scale, data is a 16th of what is printed (8 GiB a drive for 125). It lies side by side, so that arms
//! have less far to go. The persistent cache is scaled in proportion, so that the same share of the data does not
//! fit.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::host::scale_cache;
use drive_model::{Profile, Span};
use sim::cluster::{
    BackEnd, Coordination, Disks, Layout, Load, Redundancy, Report, Scenario, Simulation, Until,
};
use sim::policy::Policy;
use zone_alloc::Pace;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const NODES: u32 = 8;
const CLIENTS: u32 = 128;
const REPLICAS: u64 = 3;
const ZONE: u64 = 256 * MIB;
/// Bytes of data on each drive: as printed, at the full scale, and the least with which the caches still fill up.
const PRINTED_BYTES: u64 = 125 * GIB;
const FULL_BYTES: u64 = 8 * GIB;
const LEAST_BYTES: u64 = 2 * GIB;
/// 40 Gb/s.
const LINK: u64 = 5_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Cmr,
    DriveManaged,
    HostManaged,
}

const KINDS: [Kind; 3] = [Kind::Cmr, Kind::DriveManaged, Kind::HostManaged];

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Cmr => "CMR",
            Self::DriveManaged => "DM-SMR",
            Self::HostManaged => "HM-SMR",
        }
    }

    /// The profile of the drive, with its persistent cache scaled for `bytes` of data.
    fn profile(self, bytes: u64) -> Result<Profile, Stopped> {
        let mut profile = Profile::named(match self {
            Self::Cmr => "hua72303",
            Self::DriveManaged => "st8000as0002",
            Self::HostManaged => "hm-smr-14tb",
        })?;
        scale_cache(&mut profile.layer, bytes as f64 / PRINTED_BYTES as f64);
        Ok(profile)
    }
}

fn bytes(run: &Run<'_>) -> u64 {
    run.scaled(FULL_BYTES, LEAST_BYTES).next_multiple_of(ZONE)
}

/// A cluster of empty drives, with room for an eighth more than the data because partitions are uneven.
fn cluster(
    run: &Run<'_>,
    kind: Kind,
    object_bytes: u64,
    coordination: Coordination,
) -> Result<Simulation, Stopped> {
    let bytes = bytes(run);
    let room = bytes / 8 * 9;
    let (layout, back_end) = match kind {
        Kind::HostManaged => {
            let layout = Layout::Zones {
                zones: room.div_ceil(ZONE) as u32,
                zone_bytes: ZONE,
                utilization: 0.0,
                // It cleans only when it is asked to.
                free_zones: "0..0".parse().unwrap_or_default(),
                pace: Pace::Full,
                policy: Policy::Greedy,
            };
            (layout, BackEnd::OneFlush)
        }
        _ => (
            Layout::Blocks {
                bytes: room,
                utilization: 0.0,
            },
            BackEnd::TwoFlushes,
        ),
    };
    let scenario = Scenario {
        seed: run.seed,
        nodes: NODES,
        drives_per_node: 1,
        failure_zones: 1,
        proxies: NODES,
        partitions_a_drive: 1_000,
        redundancy: Redundancy::Replicas(REPLICAS as u32),
        object_bytes,
        disks: Disks::Models {
            profile: Box::new(kind.profile(bytes)?),
            back_end,
        },
        layout,
        link_bytes_per_second: LINK,
        hop: Span::from_micros(50.0),
        after_quorum: Span::ZERO,
        coordination,
        news_delay: Span::from_seconds(1.0),
        turn: Span::from_seconds(30.0),
        budget_percent: 25,
        lost: None,
    };
    Ok(Simulation::new(&scenario)?)
}

/// The number of objects with which each drive gets the share `part` of its data.
fn objects(run: &Run<'_>, object_bytes: u64, part: f64) -> u64 {
    (bytes(run) as f64 * part) as u64 * u64::from(NODES) / REPLICAS / object_bytes
}

fn bear(
    run: &Run<'_>,
    simulation: &mut Simulation,
    (readers, writers): (u32, u32),
    count: u64,
) -> Result<Report, Stopped> {
    let load = Load {
        per_second: 0.0,
        reads: 0.0,
        readers,
        writers,
        overwrites: false,
        warm_up_seconds: 0.0,
        until: Until::Requests(count),
    };
    Ok(simulation.run(&load, &mut |_| !run.is_interrupted())?)
}

const SIZES: [u64; 3] = [1, 2, 4];

/// Objects written a second, or read a second, by size of object and kind of drive.
fn rates(run: &mut Run<'_>, reads: bool) -> Result<Vec<[f64; 3]>, Stopped> {
    let mut all = Vec::new();
    for size in SIZES {
        let mut rates = [0.0; 3];
        for (kind, rate) in KINDS.into_iter().zip(&mut rates) {
            run.next(&format!("{}, objects of {size} MiB", kind.name()))?;
            let object = size * MIB;
            let mut simulation = cluster(run, kind, object, Coordination::None)?;
            let count = objects(run, object, 1.0);
            let written = bear(run, &mut simulation, (0, CLIENTS), count)?;
            *rate = written.writes_per_second;
            if reads {
                // In print, a few hours; after one, the translation layer has nothing left to clean.
                simulation.pause(3_600.0);
                let read = bear(run, &mut simulation, (CLIENTS, 0), count / 2)?;
                *rate = read.reads_per_second;
            }
        }
        all.push(rates);
    }
    Ok(all)
}

fn ratios(rates: &[[f64; 3]]) -> Vec<f64> {
    let each = rates.iter();
    each.flat_map(|[cmr, managed, zoned]| [managed / cmr, zoned / cmr])
        .collect()
}

/// The printed HM-SMR ÷ CMR.
#[derive(Clone, Copy)]
enum HostManaged {
    Number(f64),
    /// Words that mean 1, or little more.
    Words(&'static str),
}

/// Rows for each size: DM-SMR ÷ CMR and HM-SMR ÷ CMR.
fn expected(managed: [f64; 3], zoned: [HostManaged; 3]) -> Vec<Expected> {
    let each = SIZES.into_iter().zip(managed.into_iter().zip(zoned));
    let rows = each.flat_map(|(size, (managed, zoned))| {
        let row = |kind: &str, printed| {
            Expected::value(format!("{size} MiB: {kind} ÷ CMR"), "", printed).by(0.1)
        };
        let zoned = match zoned {
            HostManaged::Number(printed) => row("HM-SMR", printed),
            HostManaged::Words(words) => row("HM-SMR", 1.0).words(words),
        };
        [row("DM-SMR", managed), zoned]
    });
    rows.collect()
}

pub const FIGURE_5_13_A: Experiment = Experiment {
    id: "figure-5.13a",
    title: "A simulated cluster writes objects to three kinds of drives (128 clients)",
    source: "CMU-CS-20-130, section 5.8.1; simulated, at full scale a 16th of the data",
    expected: || {
        expected(
            [0.83, 0.66, 0.66],
            [HostManaged::Words("slightly above 1"); 3],
        )
    },
    measure: |run| Ok(Outcome::from(ratios(&rates(run, false)?))),
};

pub const FIGURE_5_13_B: Experiment = Experiment {
    id: "figure-5.13b",
    title: "A simulated cluster reads them at random (128 clients)",
    source: "CMU-CS-20-130, section 5.8.2; simulated, at full scale a 16th of the data",
    expected: || {
        let about = HostManaged::Words("about 1");
        let zoned = [HostManaged::Number(1.23), HostManaged::Number(1.11), about];
        expected([0.71, 0.86, 0.73], zoned)
    },
    measure: |run| Ok(Outcome::from(ratios(&rates(run, true)?))),
};

pub const FIGURE_5_14: Experiment = Experiment {
    id: "figure-5.14",
    title: "A simulated cluster reads while drives clean (128 clients, objects of 1 MiB)",
    source: "CMU-CS-20-130, section 5.8.3; simulated, at full scale a 16th of the data",
    expected: || {
        vec![
            Expected::value("p99: HM-SMR ÷ DM-SMR", "", 0.47).by(0.15),
            Expected::at_most("p99: HM-SMR ÷ CMR, in print", "", 1.13),
            Expected::at_most("p99: HM-SMR ÷ CMR, our goal", "", 1.05).ours(),
            Expected::at_most("p99.9: HM-SMR ÷ CMR, in print", "", 1.13),
            Expected::at_most("p99, all drives in turns: HM-SMR ÷ CMR", "", 1.13).ours(),
            Expected::at_most("reads from a drive that cleans", "%", 1.0).ours(),
            Expected::at_least("two nodes clean: zones cleaned", "", 1.0).ours(),
        ]
    },
    measure: |run| {
        let mut tails = Vec::new();
        for kind in [Kind::Cmr, Kind::DriveManaged] {
            run.next(kind.name())?;
            let mut simulation = cluster(run, kind, MIB, Coordination::None)?;
            let half = objects(run, MIB, 0.5);
            bear(run, &mut simulation, (0, CLIENTS), half)?;
            let both = bear(run, &mut simulation, (CLIENTS, CLIENTS), half)?;
            tails.push(both.reads);
        }
        let mut managed = |what: &str, coordination, nodes: u32| {
            run.next(what)?;
            let mut simulation = cluster(run, Kind::HostManaged, MIB, coordination)?;
            bear(run, &mut simulation, (0, CLIENTS), objects(run, MIB, 1.0))?;
            simulation.delete(0.5);
            simulation.ask_to_clean(0..nodes);
            // By then, proxies have heard which drives clean.
            simulation.pause(2.0);
            bear(run, &mut simulation, (CLIENTS, 0), objects(run, MIB, 0.5))
        };
        let two = managed("HM-SMR, two nodes clean", Coordination::News, 2)?;
        let turns = managed("HM-SMR, all clean in turns", Coordination::Turns, NODES)?;
        let [cmr, drive_managed] = [tails[0], tails[1]];
        let beside = two
            .cleaning
            .map_or(f64::NAN, |cleaned| cleaned.reads_from_cleaning);
        let zones = two
            .cleaning
            .map_or(f64::NAN, |cleaned| cleaned.zones as f64);
        Ok(Outcome::from(vec![
            two.reads.p99_ms / drive_managed.p99_ms,
            two.reads.p99_ms / cmr.p99_ms,
            two.reads.p99_ms / cmr.p99_ms,
            two.reads.p999_ms / cmr.p999_ms,
            turns.reads.p99_ms / cmr.p99_ms,
            100.0 * beside,
            zones,
        ]))
    },
};
