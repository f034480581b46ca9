//! `zonestore serve …`

use super::NewDrive;
use clap::Args;
use daemon::settings::{Parsed, ScrubEvery, Serve, Shape, Trace};
use status::Access;
use std::path::PathBuf;
use store::{Compression, Hours, Pace, Watermarks};
use terminal::Size;
use traces::{Address, Ratio};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore serve d.zoned --s3 127.0.0.1:9000
  zonestore serve d.zoned --s3 127.0.0.1:0 --create --size 64GiB
  zonestore serve d.zoned --clean-hours 22:00-06:00 --clean-free-zones 5%..20% --clean-pace latency:20ms
  zonestore serve --config /etc/zonestore.toml
  ZONESTORE_ACCESS_KEY=me ZONESTORE_SECRET_KEY=… zonestore serve d.zoned

The configuration has all options, keys with rights, TLS, logs and limits (`zonestore config example`); options of
the command line win over it. SIGHUP, and a change of its files, has keys, TLS and limits read again; SIGHUP
opens the logs' files anew. Without keys in a configuration, keys come from ZONESTORE_ACCESS_KEY and ZONESTORE_SECRET_KEY, or else from the file DRIVE.keys, which
is made on first use and which only its owner can read; it is a configuration of s3cmd, so that
`s3cmd -c d.zoned.keys ls` works at once. Ctrl-C or SIGTERM stops the server after the requests in
hand, SIGINT only if it was not ignored when the server was started, as in the background of a script. While it runs, `zonestore store df|ls|clean` and `drive report|info` ask it through a socket beside
the drive, DRIVE.sock, which only its owner can use. The log on standard error has a line
for each change of its state and for each class of requests (method, bucket or object, status): the first
answer, the tenth, the hundredth and so on. RUST_LOG=debug shows more of what it does, RUST_LOG=warn less; no
signature or key is ever in it.")]
pub struct ServeArguments {
    /// The drive
    #[arg(required_unless_present = "config")]
    pub drive: Option<PathBuf>,
    /// Read a configuration; what is not said here, it says
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:9000]
    #[arg(long, value_name = "HOST:PORT")]
    pub s3: Option<String>,
    /// End with exit code 11 when nothing can be written any more, such as after a failed flush. Without it, reads go on
    /// until the server is stopped; after a full disk of the host, writes go on once that disk has room
    #[arg(long)]
    pub exit_on_failure: bool,
    /// The server's name in requests, if it has dots; buckets are names below it then
    #[arg(long, value_name = "NAME")]
    pub s3_domain: Option<String>,
    /// Make the drive if there is none, and a store on it if it is empty
    #[arg(long)]
    pub create: bool,
    #[command(flatten)]
    pub care: Care,
    /// Who may see the status page and the metrics at http://HOST:PORT/-/: whoever has the keys, everybody (open) or nobody (off);
    /// what changes anything needs the keys [default: keys]
    #[arg(long, value_name = "off|open|keys")]
    pub status_page: Option<Parsed<Access>>,
    /// Send a span of each request and of what the store did for it to this collector (OTLP over HTTP):
    /// http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub trace_to: Option<Parsed<Address>>,
    /// The part of all requests that is traced, from 0 to 1 [default: 1]
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true)]
    pub trace_ratio: Option<Parsed<Ratio>>,
    #[command(flatten)]
    pub shape: NewDrive,
}

/// How the store on a served drive is looked after.
#[derive(Args, Debug)]
pub struct Care {
    /// Compress: none, passive (Content-Types that can be), aggressive (all but those that cannot) or force; :lz4
    /// [default: none]
    #[arg(long, value_name = "MODE[:CODEC]")]
    pub compression: Option<Parsed<Compression>>,
    /// How fast the cleaner goes while nobody waits for a zone: full, 100MiB/s, idle:200ms or latency:20ms
    /// [default: full]
    #[arg(long, value_name = "PACE", allow_hyphen_values = true)]
    pub clean_pace: Option<Parsed<Pace>>,
    /// When it begins by itself before zones are urgently needed: 22:00-06:00, or always
    /// [default: always]
    #[arg(long, value_name = "FROM-TO")]
    pub clean_hours: Option<Parsed<Hours>>,
    /// Free zones below which cleaning is urgent (MIN) and begins (LOW): 1..2, or of the zones for data 5%..20%
    /// [default: 1..2]
    #[arg(long, value_name = "MIN..LOW")]
    pub clean_free_zones: Option<Parsed<Watermarks>>,
    /// How often all data is read before somebody needs it, such as 30d, or never; all metadata is once a day
    /// [default: 30d]
    #[arg(long, value_name = "TIME")]
    pub scrub_every: Option<Parsed<ScrubEvery>>,
    /// How fast that goes: full, 16MiB/s, idle:200ms or latency:20ms
    /// [default: 16MiB/s]
    #[arg(long, value_name = "PACE", allow_hyphen_values = true)]
    pub scrub_pace: Option<Parsed<Pace>>,
    /// Memory for objects that were read, 0 or at least 1MiB. With a cache, large reads and writes of a drive in a file are
    /// direct I/O [default: an eighth of the machine's memory on a device, 0 on a drive in a file]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub cache: Option<Parsed<Size>>,
}

impl Care {
    /// What was said, as a configuration says it.
    pub fn said(&self) -> Serve {
        Serve {
            compression: self.compression.clone(),
            clean_pace: self.clean_pace.clone(),
            clean_hours: self.clean_hours.clone(),
            clean_free_zones: self.clean_free_zones.clone(),
            scrub_every: self.scrub_every.clone(),
            scrub_pace: self.scrub_pace.clone(),
            cache: self.cache.clone(),
            ..Serve::default()
        }
    }
}

impl ServeArguments {
    /// What was said, as a configuration says it.
    pub fn said(&self) -> (Serve, Shape, Trace) {
        let flag = |is_set: bool| is_set.then_some(true);
        let serve = Serve {
            drive: self.drive.clone(),
            s3: self.s3.clone(),
            s3_domain: self.s3_domain.clone(),
            exit_on_failure: flag(self.exit_on_failure),
            create: flag(self.create),
            status_page: self.status_page.clone(),
            ..self.care.said()
        };
        let size = |size: Option<Size>| size.map(Parsed::from);
        let NewDrive {
            profile,
            conventional,
            max_open,
            max_active,
            ..
        } = self.shape.clone();
        let shape = Shape {
            profile,
            size: size(self.shape.size),
            zone_size: size(self.shape.zone_size),
            zone_capacity: size(self.shape.zone_capacity),
            conventional,
            max_open,
            max_active,
        };
        let trace = Trace {
            to: self.trace_to.clone(),
            ratio: self.trace_ratio.clone(),
        };
        (serve, shape, trace)
    }
}
