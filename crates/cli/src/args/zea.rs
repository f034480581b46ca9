//! `zonestore zea …`

use clap::{Args, Subcommand};
use std::path::PathBuf;
use terminal::Size;

/// ZEA, the zone-based extent allocator: extents appended to zones, and files of them.
#[derive(Subcommand, Debug)]
pub enum ZeaCommand {
    /// Make sequential zones of a drive extent allocators, one each
    #[command(after_help = "\
Example:
  zonestore zea mkfs d.zoned --zones 4 --back-pointers 16
  zonestore zea put d.zoned photo.jpg --address 1
  zonestore zea mkfs --fs z.zoned

An extent's metadata names the extents before it, as many as there are back pointers. More of them make it faster to
find all extents again, on drives that can do many reads at a time.")]
    Mkfs(ZeaMkfs),
    /// List the zones with extents, or the extents of a zone; of a ZEAFS, its files
    Ls {
        /// The drive
        drive: PathBuf,
        /// The extents of this zone
        #[arg(long, value_name = "N")]
        zone: Option<u32>,
    },
    /// Say how much is put, how much of it has been put again, and how much space there is
    #[command(after_help = "\
What is dead only the consumer of the extents knows. Here the newest extent of each logical address counts as live,
and all others as dead.")]
    Df {
        /// The drive
        drive: PathBuf,
    },
    /// Compare back pointers with what lies in the zones; of a ZEAFS, files with their extents
    #[command(after_help = "\
Exit code 0: clean; 6: something that was put is damaged or lost. What puts that were cut short left is no error.")]
    Fsck {
        /// The drive
        drive: PathBuf,
        /// Also read all extents and compare their checksums
        #[arg(long)]
        deep: bool,
    },
    /// Print all metadata in the order of the zones' bytes
    Dump {
        /// The drive
        drive: PathBuf,
        /// Of this zone only
        #[arg(long, value_name = "N")]
        zone: Option<u32>,
    },
    /// Append a file as one extent; prints where it lies
    Put {
        /// The drive
        drive: PathBuf,
        /// The file; - for standard input
        file: PathBuf,
        /// The logical address, any number
        #[arg(long, value_name = "N")]
        address: u64,
        /// In this zone; else in the first with room for it
        #[arg(long, value_name = "N")]
        zone: Option<u32>,
    },
    /// Read an extent, or copy a file of a ZEAFS out; either is verified
    #[command(after_help = "\
Examples:
  zonestore zea get d.zoned 1048576 65536 photo.jpg
  zonestore zea get z.zoned /db/CURRENT current.txt")]
    Get {
        /// The drive
        drive: PathBuf,
        /// The extent's first byte on the drive, as `zea put` and `zea ls` show it; of a ZEAFS, the file, as `zea ls` shows it
        what: String,
        /// The extent's length in bytes; of a ZEAFS, where to
        #[arg(value_name = "LENGTH|FILE")]
        length: Option<String>,
        /// Where to; - for standard output, where it goes if nothing is said
        file: Option<PathBuf>,
    },
    /// Print a file of a ZEAFS
    Cat {
        /// The drive
        drive: PathBuf,
        /// The file, as `zea ls` shows it
        path: String,
    },
    /// Remove a file of a ZEAFS, or with -r a directory and all it holds
    Rm {
        /// The drive
        drive: PathBuf,
        /// The file or directory, as `zea ls` shows it
        path: String,
        /// A directory with all it holds; asks first
        #[arg(long, short)]
        recursive: bool,
        /// Do not ask
        #[arg(long, requires = "recursive")]
        yes: bool,
    },
    /// Pack all files of a ZEAFS into a tar archive; damaged ones are left out and named
    #[command(after_help = "\
Examples:
  zonestore zea backup z.zoned db.tar
  zonestore zea backup z.zoned - | tar x -C files
  zonestore fs mkfs new.zoned && zonestore fs restore new.zoned db.tar

Exit code 0: all files are in it; 6: those that are named are not, for they are damaged or cannot be read. The archive
appears under its name when all others are in it, and durable.")]
    Backup {
        /// The drive
        drive: PathBuf,
        /// The archive; - for standard output
        #[arg(default_value = "-")]
        archive: PathBuf,
        /// Replace an archive of that name
        #[arg(long)]
        force: bool,
    },
    /// Measure puts, gets and start-up beside the plain drive
    Bench(ZeaBench),
}

#[derive(Args, Debug)]
pub struct ZeaMkfs {
    /// The drive
    pub drive: PathBuf,
    /// How many zones, the first sequential ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub zones: u32,
    /// Pointers in each extent's metadata to that of extents before it
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub back_pointers: u32,
    /// Make the whole drive a ZEAFS instead: files of LevelDB programs (`zonestore leveldb --fs zeafs`)
    #[arg(long, conflicts_with_all = ["zones", "back_pointers"])]
    pub fs: bool,
    /// Erase whatever is on the drive; without this, only an empty one is taken
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore zea bench
  zonestore zea bench --model zns-zn540 --sizes 64KiB,1MiB
  zonestore zea bench d.zoned --yes-erase --rounds 5

On a model, time is the drive's own: the same seed gives the same figures on any machine. Its volatile write cache is
off, so that a write is answered when the head has written it; --write-cache switches it on. On a drive of yours, rounds
alternate between extents and plain writes, and figures are medians.

put, write   bytes a second, the flush at the end included
get, read    the same bytes again, in their order
÷            extents ÷ the plain drive, 1.00 where ZEA costs nothing")]
pub struct ZeaBench {
    /// Measure on this drive instead of on a model; everything on it is destroyed
    pub drive: Option<PathBuf>,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
    /// The model, one with zones
    #[arg(
        long,
        value_name = "NAME",
        default_value = "hm-smr-14tb",
        conflicts_with = "drive"
    )]
    pub model: String,
    /// Let the model's volatile write cache answer
    #[arg(long, conflicts_with = "drive")]
    pub write_cache: bool,
    /// Seed of the platters' angle at the start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Bytes of extents
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    #[arg(default_value = "4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,2MiB")]
    pub sizes: Vec<Size>,
    /// Extents of each size
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub extents: u64,
    /// Back pointers for which the start-up is measured
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,4,16,64"
    )]
    pub back_pointers: Vec<u32>,
    /// Extents of 4 KiB with which the start-up is measured, in growing order
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1000,2000,4000,8000,16000"
    )]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub start_up: Vec<u64>,
    /// Rounds of each size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}
