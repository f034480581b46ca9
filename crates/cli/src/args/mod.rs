//! The command line, as clap reads it. Help texts live here and nowhere else.

mod age;
mod archive;
mod bench;
mod collection;
mod config;
mod daemon;
mod drive;
mod dump;
mod experiment;
mod fs;
mod model;
mod program;
mod serve;
mod sim;
mod skylight;
mod smrfs;
mod store;
mod zea;

pub use self::smrfs::{SmrfsCommand, SmrfsKind, SmrfsMkfs, SmrfsMount};
pub use age::AgeArguments;
pub use archive::{ArchiveTarget, StoreBackup, StoreExport, StoreImport, StoreRestore};
pub use bench::{
    BenchAppend, BenchBluefs, BenchCommand, BenchDamage, BenchIngest, BenchRocksdb, BenchScale,
};
pub use collection::CollectionCommand;
pub use config::ConfigCommand;
pub use daemon::DaemonArguments;
pub use drive::{
    DriveCommand, DriveConformance, DriveCreate, DrivePowerTest, DriveQualify, DriveReport,
    DriveReset, NewDrive,
};
pub use dump::StoreDump;
pub use experiment::{ExperimentCommand, ExperimentRun};
pub use fs::{FsCommand, FsConformance, FsTop};
pub use model::{ModelCommand, ModelDrive, ModelExport, ModelRun};
pub use program::{LeveldbArguments, ProgramArguments, ProgramFiles};
pub use serve::{Care, ServeArguments};
pub use sim::{SimCleaning, SimCluster, SimCommand};
pub use skylight::SkylightArguments;
pub use store::{
    StoreClean, StoreCommand, StoreFsck, StoreGet, StoreList, StorePut, StoreRemove, StoreSalvage,
    StoreScrub, StoreTop,
};
pub use zea::{ZeaBench, ZeaCommand, ZeaMkfs};

use crate::errors::exit_codes;
use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, StyledStr, TypedValueParser,
};
use clap::{Arg, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::any::TypeId;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use terminal::{Size, joined};

/// Objects, LSM trees and files on zoned drives (host-managed SMR disks, ZNS SSDs).
///
/// A drive is a file that behaves as a zoned drive does: sparse, locked, and strict about every
/// rule. No zoned hardware is needed to try anything.
#[derive(Parser, Debug)]
#[command(name = "zonestore", version, after_help = FIRST_STEPS)]
#[command(after_long_help = format!("{FIRST_STEPS}\n\n{}", exit_codes()))]
#[command(
    propagate_version = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// Print one JSON value on standard output instead of text for people; `store dump` prints one for each line
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,

    /// Format of the log; RUST_LOG=debug makes it longer [default: text]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub log_format: Option<Format>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Names may be any bytes, as the shell passes them.
fn bytes() -> impl TypedValueParser<Value = Vec<u8>> {
    OsStringValueParser::new().map(OsStringExt::into_vec)
}

/// One of a library's values by its name, each with what it is.
fn named<T: Copy + Send + Sync>(
    all: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let values = all.iter();
    let values = values.map(|(name, _, what)| PossibleValue::new(*name).help(*what));
    PossibleValuesParser::new(values).try_map(|text| {
        let found = all.iter().find(|(name, ..)| *name == text);
        found.map(|(_, value, _)| *value).ok_or("no such value")
    })
}

/// Those that were named; all if none was.
pub fn wanted<T: Copy>(all: &[(&str, T, &str)], named: &[T]) -> Vec<T> {
    if named.is_empty() {
        return all.iter().map(|(_, value, _)| *value).collect();
    }
    named.to_vec()
}

/// How the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

impl Arguments {
    /// The command line's description. Paragraphs behind the options are lines of any length there, which the
    /// terminal's width breaks.
    pub fn described() -> clap::Command {
        reflowed(Self::command())
    }
}

fn reflowed(command: clap::Command) -> clap::Command {
    let text = |text: Option<&StyledStr>| text.map(|text| joined(&text.to_string()));
    let (short, long) = (
        text(command.get_after_help()),
        text(command.get_after_long_help()),
    );
    let command = match short {
        Some(short) => command.after_help(short),
        None => command,
    };
    let command = match long {
        Some(long) => command.after_long_help(long),
        None => command,
    };
    command.mut_args(signed).mut_subcommands(reflowed)
}

/// `-5` in the place of a number is a wrong number, and not an option that nobody knows.
fn signed(arg: Arg) -> Arg {
    let kind = arg.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<Size>(),
        TypeId::of::<u64>(),
        TypeId::of::<u32>(),
    ];
    match numbers.iter().any(|number| kind == *number) {
        true => arg.allow_hyphen_values(true),
        false => arg,
    }
}

const FIRST_STEPS: &str = "\
First steps:
  zonestore drive create d.zoned --profile hm-smr-14tb --size 64GiB
  zonestore store mkfs d.zoned
  zonestore store put d.zoned README.md papers/readme
  zonestore serve d.zoned --s3 127.0.0.1:9000

`zonestore help COMMAND` explains each; `zonestore --help` lists the exit codes.";

/// For commands that only read.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct Tolerance {
    /// Read what lies in front of damage to the metadata; the answer says what is missing
    #[arg(long)]
    pub accept_damage: bool,
}

/// A command that has nothing but a drive.
#[derive(clap::Args, Debug)]
pub struct OnDrive {
    /// The drive
    pub drive: PathBuf,
}

/// A command that only reads a drive.
#[derive(clap::Args, Debug)]
pub struct ReadDrive {
    /// The drive
    pub drive: PathBuf,
    #[command(flatten)]
    pub damage: Tolerance,
}

/// What a drive is formatted with.
#[derive(clap::Args, Debug)]
pub struct Mkfs {
    /// The drive
    pub drive: PathBuf,
    /// Erase whatever is on it; without this, only an empty drive is taken
    #[arg(long)]
    pub force: bool,
    /// In how many zones all metadata is: two copies take twice the space and outlive any one zone. By default two of
    /// a store (one where they would take more than a sixteenth of the drive, or with fewer than 13 active zones), and one of `fs mkfs`
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub metadata_copies: Option<u32>,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make, look at and reset emulated zoned drives
    #[command(subcommand)]
    Drive(DriveCommand),
    /// The object store on a drive, with a server or without
    #[command(subcommand)]
    Store(StoreCommand),
    /// Serve the store on a drive as an S3 endpoint
    Serve(Box<ServeArguments>),
    /// Serve the stores on drives to OpenStack Swift
    Daemon(Box<DaemonArguments>),
    /// The configuration of a server
    #[command(subcommand)]
    Config(ConfigCommand),
    /// BlueFS, the file system for LSM trees, alone on a drive
    #[command(subcommand)]
    Fs(FsCommand),
    /// A POSIX file system on a drive, mounted by FUSE
    #[command(subcommand)]
    Smrfs(SmrfsCommand),
    /// Age a directory of any file system: files of many sizes come and go until it is full, and then on
    #[command(after_help = "\
Example:
  zonestore age /mnt/aged --bytes 40GiB

Four files are made for one that is removed until --bytes are there; from then on files are removed until the
next one fits. The same seed does the same. A run that was interrupted goes on with the same command.")]
    Age(AgeArguments),
    /// Run an unmodified RocksDB program (db_bench, ldb, …) on a drive with BlueFS
    #[command(after_help = program::ROCKSDB)]
    Rocksdb(ProgramArguments),
    /// Run an unmodified program that uses LevelDB on a drive with BlueFS or ZEAFS
    #[command(after_help = program::LEVELDB)]
    Leveldb(LeveldbArguments),
    /// ZEA, the zone-based extent allocator: extents appended to zones
    #[command(subcommand)]
    Zea(ZeaCommand),
    /// Models of drives, and block devices that take as long as one
    #[command(subcommand)]
    Model(ModelCommand),
    /// Simulations of what the cleaners decide
    #[command(subcommand)]
    Sim(SimCommand),
    /// Measure again what papers and data sheets printed
    #[command(subcommand)]
    Experiment(ExperimentCommand),
    /// Find out what is inside a drive-managed SMR disk
    Skylight(SkylightArguments),
    /// Measure ZoneStore against the plain device and the host's file system
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print the completions of a shell
    #[command(after_help = "\
Examples:
  zonestore completions bash > ~/.local/share/bash-completion/completions/zonestore
  zonestore completions zsh  > ~/.zfunc/_zonestore
  zonestore completions fish > ~/.config/fish/completions/zonestore.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual's pages, one for each command
    #[command(after_help = "\
Example:
  zonestore man ~/.local/share/man/man1 && man zonestore-store-put")]
    Man {
        /// Where to; it is made if there is none
        directory: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::described().debug_assert();
    }
}
