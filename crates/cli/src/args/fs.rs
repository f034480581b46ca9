//! `zonestore fs …`

use clap::Subcommand;
use std::path::PathBuf;

/// BlueFS, the file system for LSM trees, alone on a drive.
#[derive(Subcommand, Debug)]
pub enum FsCommand {
    /// Make an empty file system for RocksDB on a drive
    #[command(after_help = "\
Example:
  zonestore fs mkfs d.zoned
  zonestore rocksdb d.zoned -- db_bench --benchmarks=fillrandom --num=1000000")]
    Mkfs {
        /// The drive
        drive: PathBuf,
        /// Erase the store or file system that is on it
        #[arg(long)]
        force: bool,
    },
    /// List a directory, with sizes
    Ls {
        /// The drive
        drive: PathBuf,
        /// The directory
        #[arg(default_value = "/")]
        path: String,
    },
    /// Say how much is stored and how much space there is
    Df {
        /// The drive
        drive: PathBuf,
    },
    /// Compare everything on the drive with everything else
    Fsck {
        /// The drive
        drive: PathBuf,
        /// Also read all data and compare its checksums
        #[arg(long)]
        deep: bool,
    },
}
