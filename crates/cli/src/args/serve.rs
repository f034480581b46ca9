//! `zonestore serve …`

use super::NewDrive;
use clap::Args;
use std::path::PathBuf;
use store::{Compression, Hours, Pace, Watermarks};
use terminal::Size;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore serve d.zoned --s3 127.0.0.1:9000
  zonestore serve d.zoned --s3 127.0.0.1:0 --create --size 64GiB
  zonestore serve d.zoned --clean-hours 22:00-06:00 --clean-free-zones 5%..20% --clean-pace latency:20ms
  ZONESTORE_ACCESS_KEY=me ZONESTORE_SECRET_KEY=… zonestore serve d.zoned

Keys come from ZONESTORE_ACCESS_KEY and ZONESTORE_SECRET_KEY, or else from the file DRIVE.keys, which
is made on first use and which only its owner can read; it is a configuration of s3cmd, so that
`s3cmd -c d.zoned.keys ls` works at once. Ctrl-C or SIGTERM stops the server after the requests in
hand. While it runs, `zonestore store df|ls|clean` and `drive report|info` ask it through a socket beside
the drive, DRIVE.sock, which only its owner can use. The log on standard error has a line
for each change of its state and for each class of requests (method, bucket or object, status): the first
answer, the tenth, the hundredth and so on. RUST_LOG=debug shows more of what it does, RUST_LOG=warn less; no
signature or key is ever in it.")]
pub struct ServeArguments {
    /// The drive
    pub drive: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    pub s3: String,
    /// End with exit code 11 when nothing can be written any more (a flush failed); without it, reads go
    /// on until the server is stopped
    #[arg(long)]
    pub exit_on_failure: bool,
    /// The server's name in requests, if it has dots; buckets are names below it then
    #[arg(long, value_name = "NAME")]
    pub s3_domain: Option<String>,
    /// Make the drive if there is none, and a store on it if it is empty
    #[arg(long)]
    pub create: bool,
    /// Compress: none, passive (Content-Types that can be), aggressive (all but those that cannot) or force; :lz4
    #[arg(long, value_name = "MODE[:CODEC]", default_value = "none")]
    pub compression: Compression,
    /// How fast the cleaner goes while nobody waits for a zone: full, 100MiB/s, idle:200ms or latency:20ms
    #[arg(
        long,
        value_name = "PACE",
        default_value = "full",
        allow_hyphen_values = true
    )]
    pub clean_pace: Pace,
    /// When it begins by itself before zones are urgently needed: 22:00-06:00, or always
    #[arg(long, value_name = "FROM-TO", default_value = "always")]
    pub clean_hours: Hours,
    /// Free zones to hurry below, and to begin below: 1..2 or, of those for data, 5%..20%
    #[arg(long, value_name = "MIN..LOW", default_value = "1..2")]
    pub clean_free_zones: Watermarks,
    /// Memory for objects that were read, 0 or at least 1MiB; by default an eighth of the machine's on a device, and none on a drive in a
    /// file, of which the host keeps what was read
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Size>,
    #[command(flatten)]
    pub shape: NewDrive,
}
