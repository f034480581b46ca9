//! `zonestore skylight …`

use clap::Args;
use std::path::PathBuf;
use terminal::Duration;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore skylight                    the models there are
  zonestore skylight st5000as0011
  zonestore skylight st5000as0011 --quick
  zonestore skylight ./mine.toml        a profile of your own
  zonestore skylight emulated-smr-1 --json
  zonestore skylight st5000as0011 --html report.html
  zonestore skylight /dev/sdb --read-only
  zonestore skylight /dev/sdb --budget 12h

The models live in virtual time: hours of a drive take seconds. So does a path that ends in .toml, which
is read as a profile, as `zonestore model show NAME` prints them, and never written to. A block device,
or a file without holes on a file system that writes in place, is looked into in real time. Everything
on it is overwritten, which has to be confirmed by typing its name.

Ctrl-C ends with what was found until then (exit code 1), as does a --budget that is over (exit code 0).

The tests are those of Skylight (Aghayev and Desnoyers, FAST 2015); what each found is named as in
its table 3, with how sure it is.")]
pub struct SkylightArguments {
    /// A model, a profile (.toml), a block device or a file; without one, the models' names are printed
    pub target: Option<PathBuf>,
    /// Only the kind of drive, with the fewest writes
    #[arg(long)]
    pub quick: bool,
    /// Only what can be found without writing
    #[arg(long, conflicts_with_all = ["quick", "yes_overwrite"])]
    pub read_only: bool,
    /// Everything on the device or file may be overwritten: do not ask
    #[arg(long)]
    pub yes_overwrite: bool,
    /// Stop after so much of the drive's time, such as 90s, 30min, 12h or 1d, with what was found until then
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Duration>,
    /// Write a page with the table and the figures of what was measured; takes the drive some hours more
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "read_only"])]
    pub html: Option<PathBuf>,
    /// The same seed writes to the same places
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
