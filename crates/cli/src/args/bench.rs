//! `zonestore bench …`

use super::named;
use bench::bluefs::Part;
use bench::rocksdb::Workload;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use terminal::Size;

/// An object is made in memory.
fn object_size(text: &str) -> Result<Size, String> {
    let size: Size = text
        .parse()
        .map_err(|error: terminal::SizeError| error.to_string())?;
    match size.0 {
        1..=0x4000_0000 => Ok(size),
        _ => Err("objects of 1 byte to 1 GiB are measured".to_owned()),
    }
}

/// Measure ZoneStore against the plain device and the host's file system.
#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Objects through the store, and the same bytes straight to the device
    Ingest(BenchIngest),
    /// db_bench on BlueFS, and on the host's own file system
    Rocksdb(BenchRocksdb),
    /// What BlueFS costs: bytes, space, flushes, speed of one SST, time to mount
    Bluefs(BenchBluefs),
    /// What puts, look-ups and mounts cost with ten thousand to millions of objects
    Scale(BenchScale),
    /// Puts by several writers: with zone append, and with writes in order
    Append(BenchAppend),
    /// What a store loses to random damages of its drive
    Damage(BenchDamage),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore bench damage --damages 500
  zonestore bench damage --two
  zonestore bench damage --seed 1 --first 7305 --damages 1     try one again

Stores with two copies of their metadata lie on drives in memory. Each damage (a bit, a byte, 4 KiB or 1 MiB zeroed or stale, a
misdirected write, two blocks swapped, a zone offline, unreadable or rolled back) is followed by a mount, a look at every
byte, a scrub, a put, another mount and a check. Six in ten are in metadata. Exit code 0: no mount was refused, no object lost beside the damaged
bytes, nothing wrong or older was answered, and the scrub has repaired what has another copy.")]
pub struct BenchDamage {
    /// How many damages are tried
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub damages: u64,
    /// Seed of the damages
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of the first damage
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// Two damages at a time: no answer may be wrong or older
    #[arg(long)]
    pub two: bool,
    /// How many are tried side by side
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Both drives are in memory, and each write, append and flush takes as long as is asked for. So what is measured
is how many commands the store keeps under way. Rounds alternate; the figures are their medians.")]
pub struct BenchAppend {
    /// How many write at the same time
    #[arg(long, value_name = "N", default_value = "1,2,4,8")]
    #[arg(value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub writers: Vec<u32>,
    /// Bytes of an object
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = object_size)]
    pub bytes: Size,
    /// Objects of a round
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub objects: u64,
    /// Rounds of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How many microseconds a write, an append or a flush takes
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub latency_micros: u64,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The drive is one of 14 TB in memory, where zeros take no room. All costs are counts of one operation: CPU
time of the process, compactions included, and bytes and reads of the drive.")]
pub struct BenchScale {
    /// How many objects there are when something is measured
    #[arg(long, value_name = "N", default_value = "10000,100000,1000000")]
    #[arg(value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub objects: Vec<u64>,
    /// Bytes of an object
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "512,4KiB,64KiB",
        value_parser = object_size,
        value_delimiter = ','
    )]
    pub bytes: Vec<Size>,
    /// Objects written at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  zonestore bench ingest d.zoned --rounds 5

Rounds alternate between the store and a plain device: a second drive file of the same shape in the
same directory, removed afterwards, written zone by zone in writes of the object's size. The device is
measured twice: with one flush at the end of the round, and with one flush for as many objects as the
store acknowledges together (for each object of 4 KiB). Then all is read again from the disk, by as many readers as there
were writers. The printed ratio is the median over the rounds: many short ones, for
disks are shared and their speed varies more between minutes than between these. The objects that the
benchmark stores are removed again, also after Ctrl-C.")]
pub struct BenchIngest {
    /// A drive file with a store on it
    pub drive: PathBuf,
    /// Bytes a round of 4 MiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub large_total: Size,
    /// Bytes a round of 1 MiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    pub medium_total: Size,
    /// Bytes a round of 64 KiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub small_total: Size,
    /// Bytes a round of 4 KiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub tiny_total: Size,
    /// Objects written at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Rounds of each kind, after one to warm up
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Bytes a second that either drive takes at most, as a hard disk (250MiB) or a ZNS SSD (1GiB) does; 0: as many as it can
    #[arg(long, value_name = "SIZE")]
    pub drive_rate: Option<Size>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore bench rocksdb
  zonestore bench rocksdb --only fillrandom,overwrite --rounds 15
  zonestore bench rocksdb /mnt/disk/bench.zoned --num 2000000

Every round makes a fresh drive (on which BlueFS is put) and a fresh directory beside it, and runs
Debian's db_bench on each with the same settings: 20-byte keys, 400-byte values, no compression, the same
block cache, direct I/O for flushes and compactions. fillrandom and overwrite are one run, readrandom and
readwhilewriting another (on what a fillrandom left), fillsync a third. Who goes first changes from round
to round. All that is made is removed afterwards, also after Ctrl-C.")]
pub struct BenchRocksdb {
    /// Where to make the drive; the file must not exist, its directory is the disk that is measured
    #[arg(default_value = "zonestore-bench.zoned")]
    pub drive: PathBuf,
    /// Only these, separated by commas
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',', value_parser = named(&Workload::ALL))]
    pub only: Vec<Workload>,
    /// Keys of the database
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub num: u64,
    /// Reads of each reader
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: u64,
    /// Readers
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Bytes a second that readwhilewriting writes; 0: as many as it can, which makes reads slower
    /// where writing is faster
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub write_rate: Size,
    /// Keys of fillsync
    #[arg(long, value_name = "N", default_value_t = 3_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub sync_num: u64,
    /// Bytes of RocksDB's block cache
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub cache: Size,
    /// Without direct I/O, for disks whose file system has none
    #[arg(long)]
    pub buffered: bool,
    /// Rounds on each
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Size of the drive
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    pub size: Size,
    /// Profile of the drive
    #[arg(long, value_name = "NAME", default_value = "hm-smr-14tb")]
    pub profile: String,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore bench bluefs
  zonestore bench bluefs /mnt/disk/bench.zoned --only stream,mount --rounds 21

Amplification and flushes are counted by BlueFS while db_bench runs on it; how much space is dead is read
from the drive several times a second, as `zonestore fs top` does. Stream writes one SST by BlueFS and
the same bytes to a second drive file of the same shape, in writes of the same size, both ending in a
flush, in alternation. All that is made is removed afterwards, also after Ctrl-C.")]
pub struct BenchBluefs {
    /// Where to make the drives; the file must not exist, its directory is the disk that is measured
    #[arg(default_value = "zonestore-bench.zoned")]
    pub drive: PathBuf,
    /// Only these, separated by commas
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = named(&Part::ALL))]
    pub only: Vec<Part>,
    /// How much of the first part's drive all its keys take once, in percent; what RocksDB has at the
    /// most (printed) is about a tenth more
    #[arg(long, value_name = "PERCENT", default_value_t = 73)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    pub fill: u8,
    /// Size of the drive of the first part
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub size: Size,
    /// Size of its zones
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub zone_size: Size,
    /// Size of RocksDB's SSTs there, `target_file_size_base` [default: two zones]
    #[arg(long, value_name = "SIZE")]
    pub table_size: Option<Size>,
    /// Synced puts
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub sync_num: u64,
    /// Bytes of the SST of the third part
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub stream_bytes: Size,
    /// Rounds of the third and fourth part, after one of the third to warm up
    #[arg(long, value_name = "N", default_value_t = 9)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Zones of the drive that is mounted
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    pub zones: u32,
    /// Files on it
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub files: u32,
}
