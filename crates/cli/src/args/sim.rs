//! `zonestore sim …`

use super::named;
use clap::{Args, Subcommand};
use sim::cleaning::Skew;
use sim::placement::Placement;
use sim::policy::Policy;

#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// What cleaning policies cost under random overwrites, beside theory
    Cleaning(SimCleaning),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore sim cleaning
  zonestore sim cleaning --utilization 0.9 --policy greedy --policy cost-benefit
  zonestore sim cleaning --skew 20/80 --placement by-heat --blocks-per-zone 1024
  zonestore sim cleaning --skew 20/80 --shifting --placement by-lifetime --policy cost-benefit

Write amplification is blocks written to the drive ÷ blocks that the user wrote. Theory is the closed
form of a policy where there is one; under a skew, the least cost with hot and cold blocks apart. The
same options and seed give the same figures.")]
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
    /// Which random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
