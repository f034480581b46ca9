//! `zonestore bench …`

use crate::size::Size;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Measure ZoneStore against the plain device and the host's file system.
#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Objects through the store, and the same bytes straight to the device
    Ingest(BenchIngest),
    /// db_bench on BlueFS, and on the host's own file system
    Rocksdb(BenchRocksdb),
}

/// `bench ingest`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  zonestore bench ingest d.zoned --rounds 5

Rounds alternate between the store and a plain device: a second drive file of the same shape in the
same directory, removed afterwards, written zone by zone in writes of the object's size. The device is
measured twice: with one flush at the end of the round, and with one flush for as many objects as the
store acknowledges together. The printed ratio is the median over the rounds: many short ones, for
disks are shared and their speed varies more between minutes than between these. The objects that the
benchmark stores are removed again, also after Ctrl-C.")]
pub struct BenchIngest {
    /// A drive with a store on it
    pub drive: PathBuf,
    /// Bytes a round of 4 MiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub large_total: Size,
    /// Bytes a round of 64 KiB objects; 0 leaves them out
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub small_total: Size,
    /// Objects written at the same time
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Rounds of each kind, after one to warm up
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

/// `bench rocksdb`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore bench rocksdb
  zonestore bench rocksdb /mnt/disk/bench.zoned --num 2000000 --rounds 5

Every round makes a fresh drive (on which BlueFS is put) and a fresh directory beside it, and runs
Debian's db_bench on each with the same settings: 20-byte keys, 400-byte values; fillrandom then
readrandom, and fillsync. Both are removed afterwards.")]
pub struct BenchRocksdb {
    /// Where to make the drive; the file must not exist, its directory is the disk that is measured
    #[arg(default_value = "zonestore-bench.zoned")]
    pub drive: PathBuf,
    /// Keys of fillrandom and readrandom
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub num: u64,
    /// Keys of fillsync
    #[arg(long, value_name = "N", default_value_t = 3_000)]
    pub sync_num: u64,
    /// Rounds on each
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Size of the drive
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    pub size: Size,
    /// Profile of the drive
    #[arg(long, value_name = "NAME", default_value = "hm-smr-14tb")]
    pub profile: String,
}
