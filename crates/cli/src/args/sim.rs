//! `zonestore sim …`

use super::named;
use clap::{Args, Subcommand};
use sim::cleaning::Skew;
use sim::cluster::{Coordination, Redundancy};
use sim::placement::Placement;
use sim::policy::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use terminal::{Duration, Size};
use zone_alloc::{Pace, Watermarks};

#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// What cleaning policies cost under random overwrites, beside theory
    Cleaning(SimCleaning),
    /// A cluster of zoned drives in virtual time: throughput, tail latency, cleaning and rebuild
    Cluster(Box<SimCluster>),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore sim cleaning
  zonestore sim cleaning --utilization 0.9 --policy greedy --policy cost-benefit
  zonestore sim cleaning --skew 20/80 --placement by-heat --blocks-per-zone 1024
  zonestore sim cleaning --skew 20/80 --shifting --placement by-lifetime --policy cost-benefit

Write amplification is blocks written to the drive ÷ blocks that the user wrote. Theory is a closed form
(Desnoyers, SYSTOR 2012), and the last column says of what: of the policy itself where there is one, for
greedy with 8 blocks in a zone or more. Under a skew it is the same for every policy and placement: fifo with
hot and cold blocks in zones of their own and the spare capacity divided between them in the best way. That
is no limit: cost-benefit with both apart, or by lifetime, may cost a little less. The same options and
seed give the same figures.")]
pub struct SimCleaning {
    /// A policy; may be given several times [default: all]
    #[arg(long, value_parser = named(&Policy::ALL))]
    pub policy: Vec<Policy>,
    /// Live data ÷ usable capacity
    #[arg(long, short, value_name = "U", default_value_t = 0.8)]
    pub utilization: f64,
    /// Per cent of the data that get other per cent of the writes, such as 20/80 [default: all alike]
    #[arg(long, value_name = "DATA/WRITES")]
    pub skew: Option<Skew>,
    /// After as many writes as there are blocks, other blocks are the hot ones
    #[arg(long, requires = "skew")]
    pub shifting: bool,
    /// Which blocks share a zone
    #[arg(long, default_value = "mixed", value_parser = named(&Placement::ALL))]
    pub placement: Placement,
    /// Zones of the drive
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub zones: u32,
    /// Blocks (or objects of one size) in a zone
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub blocks_per_zone: u32,
    /// Writes that are counted, after six overwrites of everything that are not
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub writes: u64,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore sim cluster
  zonestore sim cluster --nodes 400 --drives 25 --time 30s --warm-up 10s      (10,000 drives)
  zonestore sim cluster --nodes 400 --drives 25 --failure-zones 4 --coordination turns
  zonestore sim cluster --nodes 16 --drives 4 --redundancy 8+4 --object-size 4MiB --rebuild 200MiB
  zonestore sim cluster --drive st8000as0002 --clients 128 --reads 0
  zonestore sim cluster --news-delay 100ms --json

A column for each way to coordinate. Proxies read one replica or as many fragments as it takes, and answer a
write when all replicas are durable, or enough (2 of 3; 9 of 8+4) and --after-quorum has passed. Drives clean as ZoneStore does; one without zones
has nothing to clean, but its translation layer may. Times of a drive are drawn from what its model takes for
each job alone, and jobs are done in their order; with --models each drive is a model with its own queue,
which is slow beyond some hundred drives. All objects are alike; docs/models.md has what is left out.

Nothing is measured on a real cluster. The same options and seed give the same figures.")]
pub struct SimCluster {
    /// Machines with drives
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Cluster")]
    pub nodes: u32,
    /// Drives of each machine
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Cluster")]
    pub drives: u32,
    /// Zones, such as racks, that the machines are in: the ring keeps an object's parts in different ones
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Cluster")]
    pub failure_zones: u32,
    /// Proxies in front of the machines [default: one for 32 drives]
    #[arg(long, value_name = "N", help_heading = "Cluster")]
    pub proxies: Option<u32>,
    /// Bytes a second of a machine's network interface, each way; 0 for no limit
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1250MB",
        help_heading = "Cluster"
    )]
    pub network: Size,
    /// Latency from one machine to another, one way, without the time that the bytes take
    #[arg(
        long,
        value_name = "TIME",
        default_value = "50us",
        value_parser = humantime::parse_duration,
        help_heading = "Cluster"
    )]
    pub hop: std::time::Duration,
    /// How long a proxy waits for the last replicas of a write once enough are durable
    #[arg(
        long,
        value_name = "TIME",
        default_value = "500ms",
        value_parser = humantime::parse_duration,
        help_heading = "Cluster"
    )]
    pub after_quorum: std::time::Duration,
    /// Replicas, or data+parity of an erasure code
    #[arg(
        long,
        value_name = "N|K+M",
        default_value = "3",
        help_heading = "Cluster"
    )]
    pub redundancy: Redundancy,
    /// Partitions that a drive has at least: with fewer, it shares objects with fewer others
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        help_heading = "Cluster"
    )]
    pub partitions: u32,
    /// A disk's model: a name (`zonestore model list`), or the path of a profile
    #[arg(
        long,
        value_name = "PROFILE",
        default_value = "hm-smr-14tb",
        help_heading = "Drives"
    )]
    pub drive: OsString,
    /// Each drive is a model, with a queue that it orders
    #[arg(long, help_heading = "Drives")]
    pub models: bool,
    /// Times of a drive's jobs that were measured, in the place of its model's: JSON with lists of milliseconds, `read_ms`,
    /// `write_ms` and, for a drive with zones, `moved_ms`: to move 512 KiB when it cleans
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "models",
        help_heading = "Drives"
    )]
    pub times: Option<PathBuf>,
    /// Zones for data of each drive: fewer than a real one has, and as full
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Drives")]
    pub zones: u32,
    /// Live data ÷ what the zones hold
    #[arg(
        long,
        short,
        value_name = "U",
        default_value_t = 0.7,
        help_heading = "Drives"
    )]
    pub utilization: f64,
    /// Which zone is cleaned
    #[arg(long, default_value = "cost-benefit", value_parser = named(&Policy::ALL), help_heading = "Cleaning")]
    pub policy: Policy,
    /// Free zones below which a drive must clean (MIN), and below which it begins to (LOW), as with `serve`
    #[arg(
        long,
        value_name = "MIN..LOW",
        default_value = "2..8",
        help_heading = "Cleaning"
    )]
    pub clean_free_zones: Watermarks,
    /// How fast a drive cleans while it need not: full, 50MiB/s, idle:200ms or latency:20ms
    #[arg(
        long,
        value_name = "PACE",
        default_value = "full",
        help_heading = "Cleaning"
    )]
    pub clean_pace: Pace,
    /// What drives and proxies know of each other; may be given several times [default: all]
    #[arg(long, value_parser = named(&Coordination::ALL), help_heading = "Cleaning")]
    pub coordination: Vec<Coordination>,
    /// How long it takes until proxies know that a drive cleans, and between turns
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = humantime::parse_duration,
        help_heading = "Cleaning"
    )]
    pub news_delay: std::time::Duration,
    /// How long a turn to clean is
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        value_parser = humantime::parse_duration,
        help_heading = "Cleaning"
    )]
    pub turn: std::time::Duration,
    /// Per cent of all drives that clean at once with turns, but for those that must
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 25,
        help_heading = "Cleaning"
    )]
    pub budget: u32,
    /// Bytes of an object
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1MiB",
        help_heading = "Load"
    )]
    pub object_size: Size,
    /// Requests a second, at random moments [default: 5 for each drive]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "clients",
        help_heading = "Load"
    )]
    pub rate: Option<f64>,
    /// Instead of --rate: so many clients, each with one request after the other
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub clients: Option<u32>,
    /// The part of the requests, or of the clients, that reads; the others overwrite
    #[arg(
        long,
        value_name = "PART",
        default_value_t = 0.9,
        help_heading = "Load"
    )]
    pub reads: f64,
    /// Lose a drive when counting begins, and rebuild it at so many bytes a second
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub rebuild: Option<Size>,
    /// For how long requests are counted, in the cluster's time
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10min",
        help_heading = "Load"
    )]
    pub time: Duration,
    /// How long the cluster runs before requests are counted
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5min",
        help_heading = "Load"
    )]
    pub warm_up: Duration,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub seed: u64,
}
