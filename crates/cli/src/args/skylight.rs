//! `zonestore skylight …`

use clap::Args;
use std::path::PathBuf;

/// `zonestore skylight`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore skylight                    the models there are
  zonestore skylight st5000as0011
  zonestore skylight st5000as0011 --quick
  zonestore skylight emulated-smr-1 --json
  zonestore skylight st5000as0011 --html report.html

The models live in virtual time: hours of a drive take seconds. Devices of the host cannot be
looked into yet.

The tests are those of Skylight (Aghayev and Desnoyers, FAST 2015); what each found is named as in
its table 3, with how sure it is.")]
pub struct SkylightArguments {
    /// A model; without one, their names are printed
    pub target: Option<String>,
    /// Only the kind of drive, with the fewest writes
    #[arg(long)]
    pub quick: bool,
    /// Write a page with the table and the figures of what was measured; takes the drive some hours more
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub html: Option<PathBuf>,
    /// The same seed writes to the same places
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
