//! `zonestore fs …`

use super::{Mkfs, OnDrive, ReadDrive, Tolerance};
use bluefs_conformance::Options;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// BlueFS, the file system for LSM trees, alone on a drive.
#[derive(Subcommand, Debug)]
pub enum FsCommand {
    /// Make an empty file system for RocksDB and LevelDB on a drive
    #[command(after_help = "\
Example:
  zonestore fs mkfs d.zoned
  zonestore rocksdb d.zoned -- db_bench --benchmarks=fillrandom --num=1000000")]
    Mkfs(Mkfs),
    /// List a directory, with sizes
    Ls {
        /// The drive
        drive: PathBuf,
        /// The directory
        #[arg(default_value = "/")]
        path: String,
        #[command(flatten)]
        damage: Tolerance,
    },
    /// Say what file system is on the drive
    MountInfo(OnDrive),
    /// Print a file
    Cat {
        /// The drive
        drive: PathBuf,
        /// The file, as `fs ls` shows it
        path: String,
        #[command(flatten)]
        damage: Tolerance,
    },
    /// Copy a file out
    Get {
        /// The drive
        drive: PathBuf,
        /// The file, as `fs ls` shows it
        path: String,
        /// Where to; - for standard output
        #[arg(default_value = "-")]
        file: PathBuf,
        #[command(flatten)]
        damage: Tolerance,
    },
    /// Copy a file in
    #[command(after_help = "\
Directories are made as they are needed; a file of that name is replaced when the new one is whole
and durable.")]
    Put {
        /// The drive
        drive: PathBuf,
        /// The file; - for standard input
        file: PathBuf,
        /// Its path on the drive
        path: String,
    },
    /// Remove a file, or with -r a directory and all it holds
    Rm {
        /// The drive
        drive: PathBuf,
        /// The file or directory
        path: String,
        /// A directory with all it holds; asks first
        #[arg(long, short)]
        recursive: bool,
        /// Do not ask
        #[arg(long, requires = "recursive")]
        yes: bool,
    },
    /// Say how much is stored and how much space there is
    Df(ReadDrive),
    /// Compare everything on the drive with everything else
    #[command(after_help = "\
Exit code 0: clean; 6: errors were found; 9: repaired, and something that was stored is gone. Without
--repair nothing is changed on the drive. --repair first names what it would lose, file by file, and
reads all data, as --deep does.")]
    Fsck {
        /// The drive
        drive: PathBuf,
        /// Also read all data and compare its checksums
        #[arg(long)]
        deep: bool,
        /// Go on without what is damaged: logs are truncated in front of it
        #[arg(long)]
        repair: bool,
        /// Do not ask
        #[arg(long, requires = "repair")]
        yes: bool,
    },
    /// Read everything back and compare it with its checksums
    Scrub(OnDrive),
    /// Pack all files into a tar archive
    #[command(after_help = "\
Examples:
  zonestore fs backup d.zoned db.tar
  zonestore fs backup d.zoned - | zstd > db.tar.zst

Every file is read and compared with its checksums before anything of it is packed. The archive appears
under its name when it is whole and durable.")]
    Backup {
        /// The drive
        drive: PathBuf,
        /// The archive; - for standard output
        #[arg(default_value = "-")]
        archive: PathBuf,
        /// Replace an archive of that name
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        damage: Tolerance,
    },
    /// Fill an empty file system from a tar archive
    #[command(after_help = "\
Example:
  zonestore fs mkfs new.zoned && zonestore fs restore new.zoned db.tar

An archive that is cut off or damaged restores nothing: files get their names when all of it has been
read and compared with its checksums.")]
    Restore {
        /// The drive
        drive: PathBuf,
        /// The archive; - for standard input
        #[arg(default_value = "-")]
        archive: PathBuf,
        /// Take an archive that another program made, which has no checksums
        #[arg(long)]
        foreign: bool,
    },
    /// Put BlueFS through its suite on a drive; destroys everything on it
    #[command(after_help = "\
Example:
  zonestore fs conformance /dev/nvme0n1 --yes-erase

Names, reads, logs, many writers, a drive that is full and zones that are cleaned, each compared with a
model, with a fresh mount and a check behind it. Only the first sequential zones are used, a few
conventional ones in front of them, if there are any; what is in the others is lost as well.")]
    Conformance(FsConformance),
    /// Show who owns which zone, how full and how dead it is, and which limit binds, live
    Top(FsTop),
    /// Print every file with the places of its bytes, and every zone with what it is for
    Dump(ReadDrive),
}

#[derive(Args, Debug)]
pub struct FsConformance {
    /// The drive
    pub drive: PathBuf,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
    /// How many sequential zones are used, and filled
    #[arg(long, value_name = "N", default_value_t = Options::default().zones,
          value_parser = clap::value_parser!(u32).range(14..))]
    pub zones: u32,
    /// How many times over what fits is written and cleaned
    #[arg(long, value_name = "N", default_value_t = Options::default().churn)]
    pub churn: u32,
    /// Seed: the same one makes the same files
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    pub seed: u64,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore fs top d.zoned
  zonestore fs top d.zoned --interval 0.2
  zonestore fs top d.zoned --once --json

It takes no lock and writes nothing, so it works while another process uses the drive: a program under
`zonestore rocksdb` or `zonestore leveldb`, or `zonestore serve`, which is asked for what it alone
knows. Keys: q or Ctrl-C leaves, the arrows scroll the zones with the most dead bytes, m gives the map
the whole screen, l shows letters instead of colours (as it begins with NO_COLOR), space looks at once. In a locale without UTF-8,
all is drawn in ASCII.

live         bytes of files and objects, padding to whole blocks included
dead         written (or finished without being written) and no longer needed
not named    written, but not in the journal before the file is synced; dead if nobody uses the drive
space amplification  bytes written to zones with data / live bytes

Where standard output is no terminal, one look is printed and that is all.")]
pub struct FsTop {
    /// The drive
    pub drive: PathBuf,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: std::time::Duration,
    /// Look once and print that as text
    #[arg(long)]
    pub once: bool,
    /// Look once and draw the map of zones into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// A number of seconds between two looks.
pub fn seconds(text: &str) -> Result<std::time::Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "write seconds, such as 0.5")?;
    if (0.05..=86_400.0).contains(&seconds) {
        Ok(std::time::Duration::from_secs_f64(seconds))
    } else {
        Err("from 0.05 to 86400 seconds")
    }
}
