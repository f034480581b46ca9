//! `zonestore sim …`

use clap::{Args, Subcommand, ValueEnum};
use std::str::FromStr;

/// `zonestore sim …`
#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// What cleaning policies cost under random overwrites, beside theory
    Cleaning(SimCleaning),
}

/// A policy by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Policy {
    /// The zone with the fewest live bytes
    Greedy,
    /// The most free space times age for what it costs (Rosenblum and Ousterhout)
    CostBenefit,
    /// The zone that was filled first
    Fifo,
    /// Any zone
    Random,
}

/// Which blocks share a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Placement {
    /// All
    Mixed,
    /// What is written, and what is moved
    MovedApart,
    /// The hot and the cold, known beforehand
    ByHeat,
    /// Those that will live about as long, inferred from overwrites
    ByLifetime,
    /// The same, as SepBIT infers it (Wang et al., FAST 2022)
    Sepbit,
}

/// `zonestore sim cleaning`.
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
    #[arg(long, value_enum)]
    pub policy: Vec<Policy>,
    /// Live data ÷ usable capacity
    #[arg(long, short, value_name = "U", default_value_t = 0.8)]
    pub utilization: f64,
    /// Per cent of the data that get other per cent of the writes, such as 20/80 [default: all alike]
    #[arg(long, value_name = "DATA/WRITES")]
    pub skew: Option<Percentages>,
    /// After as many writes as there are blocks, other blocks are the hot ones
    #[arg(long, requires = "skew")]
    pub shifting: bool,
    /// Which blocks share a zone
    #[arg(long, value_enum, default_value_t = Placement::Mixed)]
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

/// Two parts of a hundred.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Percentages(pub f64, pub f64);

impl FromStr for Percentages {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |text: &str| text.trim().parse().ok().filter(|p| *p > 0.0 && *p < 100.0);
        text.split_once('/')
            .and_then(|(data, writes)| Some(Self(part(data)?, part(writes)?)))
            .ok_or("two numbers between 0 and 100 with a slash between them, such as 20/80")
    }
}
