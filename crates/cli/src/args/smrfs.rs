//! `zonestore smrfs …`

use super::fs::seconds;
use super::{OnDrive, named};
use ::smrfs::{Fit, Policy};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use terminal::Size;

/// What a file system does with a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SmrfsKind {
    /// It only appends to bands, which are the drive's sequential zones
    StrictAppend,
    /// It writes anywhere and keeps away from what that damages: Caveat-Scriptor, emulated on conventional zones
    Caveat,
}

/// A POSIX file system on a drive, mounted by FUSE.
#[derive(Subcommand, Debug)]
pub enum SmrfsCommand {
    /// Make an empty file system on a drive
    #[command(after_help = "\
Example:
  zonestore drive create d.zoned --profile hm-smr-14tb --size 64GiB
  zonestore smrfs mkfs d.zoned && zonestore smrfs mount d.zoned /mnt

Metadata goes to the conventional zones; where there are none, to the first sequential ones. Mounting takes
memory for all of it: about 1 KiB a file, and 5 bytes a block of data.

  zonestore drive create c.zoned --profile test-small --size 1GiB --zone-size 1MiB --conventional 1024
  zonestore smrfs mkfs c.zoned --kind caveat --isolation-distance 16 --no-overlap-range 6

A Caveat-Scriptor drive is emulated on one whose zones are all conventional.")]
    Mkfs(SmrfsMkfs),
    /// Mount a file system; goes to the background once it is there
    #[command(after_help = "\
Example:
  zonestore smrfs mount d.zoned /mnt && cp -a photos /mnt && umount /mnt

What was synced is there after a crash. Of what was not, there is all up to some moment, five seconds
back unless --commit-seconds says otherwise. `umount` ends it, and may return before the last commit is done.
Whoever opens the drive next waits for it; `zonestore smrfs unmount` waits too.")]
    Mount(SmrfsMount),
    /// Unmount a file system, and wait until everything is on the drive and the drive is free
    Unmount {
        /// The directory where it is mounted
        directory: PathBuf,
    },
    /// Watch a mounted file system: what is free, and what is written, cleaned and committed
    Top {
        /// The directory where it is mounted
        directory: PathBuf,
        /// Seconds between two looks
        #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
        interval: std::time::Duration,
        /// Look once and print that as text
        #[arg(long)]
        once: bool,
    },
    /// Compare everything on the drive with everything else; changes nothing
    #[command(after_help = "\
Exit code 0: clean; 6: errors were found. It is not for a file system that is mounted.")]
    Fsck {
        /// The drive
        drive: PathBuf,
        /// Also read all data and compare its checksums
        #[arg(long)]
        deep: bool,
    },
    /// Say how much is stored, how much space there is, and what of it is dead or of no use
    Df {
        /// The drive; or the directory where it is mounted
        drive: PathBuf,
    },
    /// Say what a Caveat-Scriptor drive is, and which of its blocks can be read (caveat_modesense, caveat_dump)
    Dump(OnDrive),
    /// Move what is live out of bands with dead data, so that they are free
    #[command(after_help = "\
A mounted file system does so by itself before bands run out. This is for one that is not mounted.")]
    Clean {
        /// The drive
        drive: PathBuf,
        /// Stop after so many bands [default: all that have dead data]
        #[arg(long, value_name = "COUNT")]
        bands: Option<u64>,
        /// Which band is cleaned next [default: cost-benefit]
        #[arg(long, value_parser = named(POLICIES))]
        policy: Option<Policy>,
    },
}

const POLICIES: &[(&str, Policy, &str)] = &[
    (
        "greedy",
        Policy::Greedy,
        "the one with the fewest live bytes",
    ),
    (
        "cost-benefit",
        Policy::CostBenefit,
        "the one with the highest ratio of free space times age to cost",
    ),
];

const FITS: &[(&str, Fit, &str)] = &[
    ("best", Fit::Best, "the smallest that is large enough"),
    ("worst", Fit::Worst, "the largest"),
    ("first", Fit::First, "the one with the lowest address"),
    ("next", Fit::Next, "the next one after the last allocation"),
    (
        "last-accessed",
        Fit::LastAccessed,
        "the next one after the drive's head",
    ),
];

/// What a file system is made with.
#[derive(Args, Debug)]
pub struct SmrfsMkfs {
    /// The drive
    pub drive: PathBuf,
    /// What the file system does with the drive [default: caveat on a Caveat-Scriptor drive, strict-append on any other]
    #[arg(long, value_enum)]
    pub kind: Option<SmrfsKind>,
    /// Drive isolation distance: a write may damage so many blocks of 4 KiB behind it. It makes a new Caveat-Scriptor drive
    #[arg(long, value_name = "BLOCKS")]
    pub isolation_distance: Option<u64>,
    /// Drive no-overlap range: so many blocks behind its first one a write never damages
    #[arg(
        long,
        value_name = "BLOCKS",
        requires = "isolation_distance",
        default_value_t = 0
    )]
    pub no_overlap_range: u64,
    /// The unshingled part of a new Caveat-Scriptor drive, for metadata [default: a 32nd of the drive]
    #[arg(long, value_name = "SIZE", requires = "isolation_distance")]
    pub unshingled: Option<Size>,
    /// Once no write fits any more, move what lies between free blocks: only on a Caveat-Scriptor drive, and not with
    /// --whole-files. Without this, only removals make room
    #[arg(long, conflicts_with = "whole_files")]
    pub clean_when_full: bool,
    /// Keep each file in one band or one run of blocks as a whole, as the thesis does. No file is larger than a band
    /// then, and each change of one writes all of it
    #[arg(long)]
    pub whole_files: bool,
    /// Bytes of a block, 4KiB to 64KiB: the unit of checksums and of space. Large ones save memory
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub block_size: Size,
    /// A name for people
    #[arg(long, default_value = "")]
    pub label: String,
    /// Erase whatever is on it; without this, only an empty drive is taken
    #[arg(long)]
    pub force: bool,
}

/// How a file system is mounted.
#[derive(Args, Debug)]
pub struct SmrfsMount {
    /// The drive
    pub drive: PathBuf,
    /// The directory where it appears
    pub directory: PathBuf,
    /// Change nothing, not even after a crash
    #[arg(long)]
    pub read_only: bool,
    /// Stay until it is unmounted; Ctrl-C unmounts
    #[arg(long)]
    pub foreground: bool,
    /// Say so in one word once it is there
    #[arg(long, hide = true, requires = "foreground")]
    pub ready: bool,
    /// Let other users in; permissions of files are kept
    #[arg(long)]
    pub allow_other: bool,
    /// Run set-user-id programs as any other
    #[arg(long)]
    pub no_suid: bool,
    /// Open no device files
    #[arg(long)]
    pub no_dev: bool,
    /// Run no programs
    #[arg(long)]
    pub no_exec: bool,
    /// Memory for data that was written and is not on the drive
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub buffer: Size,
    /// What was done is durable after so many seconds at the latest
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub commit_seconds: u64,
    /// Which band is cleaned next [default: cost-benefit]
    #[arg(long, value_parser = named(POLICIES))]
    pub policy: Option<Policy>,
    /// Which free extent of a Caveat-Scriptor drive is taken next [default: best]
    #[arg(long, value_parser = named(FITS))]
    pub fit: Option<Fit>,
    /// Write the log of a mount in the background to this file [default: no log]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}
