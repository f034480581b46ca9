//! `zonestore model …`

use super::named;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use drive_model::workload::Order;
use std::ffi::OsString;
use std::path::PathBuf;
use terminal::{Duration, Size};

#[derive(Subcommand, Debug)]
pub enum ModelCommand {
    /// The models there are
    List,
    /// A model's profile: every number with its unit and source (TOML)
    Show {
        /// A model's name, or the path of a profile
        #[arg(value_name = "PROFILE")]
        profile: OsString,
    },
    /// Run a workload in the drive's own time, hours of which take seconds
    Run(ModelRun),
    /// Be a block device that takes as long as a model does, for any NBD client
    Export(ModelExport),
}

/// The drive that a command is about, and how it is when that begins.
#[derive(Args, Debug)]
pub struct ModelDrive {
    /// A model's name, or the path of a profile
    pub profile: OsString,
    /// Go on with the drive's state in this file, if it is there, and leave it there at the end
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Seed of the platters' angle at the start and of random requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Switch a disk's volatile write cache off
    #[arg(long)]
    pub no_write_cache: bool,
    /// Switch a disk's read-ahead off
    #[arg(long)]
    pub no_look_ahead: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore model run seagate-cmr
  zonestore model run st5000as0011 --rw randwrite --iodepth 31 --no-write-cache --runtime 10min --every 20s
  zonestore model run hm-smr-14tb --rw write --bs 1MiB
  zonestore model run ssd-15gb --rw write --bs 1MiB --state aged.state        (fills it, and keeps it so)
  zonestore model run ssd-15gb --rw randwrite --state aged.state --json

Options are called as in fio. Every run with the same options gives the same figures.")]
pub struct ModelRun {
    /// What is asked for, and in which order
    #[arg(long, default_value = "randread", value_parser = named(&Order::ALL))]
    pub rw: Order,
    /// Bytes of a request: whole blocks of 4 KiB, 32 MiB at most; random ones begin at multiples of it
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub bs: Size,
    /// How many requests are under way at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub iodepth: u32,
    /// How long, in the drive's time, such as 90s, 30min, 12h or 1d; sequential ones end with the drive
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub runtime: Duration,
    /// Only the first so many bytes
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Also print figures for each stretch of so much of the drive's time
    #[arg(long, value_name = "TIME")]
    pub every: Option<Duration>,
    #[command(flatten)]
    pub drive: ModelDrive,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore model export seagate-cmr --nbd d.sock
  fio --name=random --ioengine=nbd --uri='nbd+unix:///?socket=d.sock' --rw=randread --bs=4k --runtime=30
  zonestore model export st5000as0011 --nbd d.sock --speed-up 100 --data d.bytes --state d.state
  zonestore model export ssd-15gb --nbd 127.0.0.1:10809 --once --json
  zonestore model show seagate-cmr > mine.toml     (change it, then: model export ./mine.toml …)

Ctrl-C ends it and prints how long requests took on the drive, and what it did for them.

Whoever can connect can read and write everything: to a Unix socket, only its owner; to a port, anybody.")]
pub struct ModelExport {
    /// Where to listen: the path of a Unix socket, or HOST:PORT
    #[arg(long, value_name = "SOCKET", value_parser = address())]
    pub nbd: String,
    /// Keep the data in this file, which is made if it is missing. Without this, the data is gone at the end
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The drive's time passes so many times as fast as real time
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed_up)]
    pub speed_up: f64,
    /// End when the last client has disconnected and any request was made
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub drive: ModelDrive,
}

/// Clap's own refusal of what is not UTF-8 does not say which argument is meant.
fn address() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|text| {
        let not = "a socket's path has to be UTF-8: name another";
        text.into_string().map_err(|_| not)
    })
}

fn speed_up(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(factor) if (0.001..=1e5).contains(&factor) => Ok(factor),
        _ => Err("write a factor from 0.001 to 100000"),
    }
}
