//! `zonestore experiment …`

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum ExperimentCommand {
    /// The experiments there are, and where their numbers are printed
    List,
    /// Measure what is printed, and set both beside each other: all experiments, or those named
    Run(ExperimentRun),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore experiment run figure-2.4
  zonestore experiment run table-2.1 table-2.3 --json
  zonestore experiment run figure-3.1 figure-5.11 --out results
  zonestore experiment run --scale small          (all of them)

Drives are models in virtual time, so that the same seed and scale give the same figures on any
machine. Exit code 12: a measured number is out of its tolerance.

Ctrl-C ends with the experiments that were done until then (exit code 1).")]
pub struct ExperimentRun {
    /// Which, as `zonestore experiment list` calls them [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Seed of random requests and of the platters' angle at the start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How much work where more gives more exact figures: small (a tenth), full, or a factor
    #[arg(long, value_name = "SCALE", default_value = "full", value_parser = scale)]
    pub scale: f64,
    /// Also write tables (JSON) and figures (SVG) into this directory, which is made if there is none
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, &'static str> {
    match text {
        "small" => Ok(experiments::Scale::SMALL.0),
        "full" => Ok(experiments::Scale::FULL.0),
        _ => match text.parse() {
            Ok(factor) if (0.001..=100.0).contains(&factor) => Ok(factor),
            _ => Err("write small, full or a factor from 0.001 to 100"),
        },
    }
}
