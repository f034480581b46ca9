//! The command line, as clap reads it. Help texts live here and nowhere else.

mod bench;
mod drive;
mod experiment;
mod fs;
mod leveldb;
mod model;
mod rocksdb;
mod serve;
mod sim;
mod skylight;
mod store;

pub use bench::{
    BenchBluefs, BenchCommand, BenchIngest, BenchRocksdb, BluefsPart, RocksdbWorkload, wanted,
};
pub use drive::{DriveCommand, DriveConformance, DriveCreate, DriveReport, DriveReset, NewDrive};
pub use experiment::{ExperimentCommand, ExperimentRun};
pub use fs::{FsCommand, FsConformance, FsTop};
pub use leveldb::LeveldbArguments;
pub use model::{ModelCommand, ModelDrive, ModelExport, ModelRun, Order};
pub use rocksdb::RocksdbArguments;
pub use serve::ServeArguments;
pub use sim::{Placement, Policy, SimCleaning, SimCommand};
pub use skylight::SkylightArguments;
pub use store::{StoreClean, StoreCommand, StoreGet, StoreList, StorePut, StoreRemove};

use crate::errors::EXIT_CODES;
use clap::builder::StyledStr;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use std::str::FromStr;

/// Objects, LSM trees and files on zoned drives (host-managed SMR disks, ZNS SSDs).
///
/// A drive is a file that behaves as a zoned drive does: sparse, locked, and strict about every
/// rule. No zoned hardware is needed to try anything.
#[derive(Parser, Debug)]
#[command(name = "zonestore", version, after_help = FIRST_STEPS)]
#[command(after_long_help = format!("{FIRST_STEPS}\n\n{EXIT_CODES}"))]
#[command(
    propagate_version = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// Print one JSON value on standard output instead of text for people
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,

    /// How the log on standard error looks; RUST_LOG=debug makes it longer
    #[arg(long, global = true, value_enum, default_value_t = Format::Text, value_name = "FORMAT",
          help_heading = "Output")]
    pub log_format: Format,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    command.mut_subcommands(reflowed)
}

/// Lines of a paragraph become one. What is indented, or in columns, stays as it is.
fn joined(text: &str) -> String {
    let mut done = String::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.contains("  ");
        if !done.is_empty() {
            done.push(if goes_on && is_prose { ' ' } else { '\n' });
        }
        done += line;
        goes_on = is_prose && !line.ends_with(':');
    }
    done
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
    Serve(ServeArguments),
    /// BlueFS, the file system for LSM trees, alone on a drive
    #[command(subcommand)]
    Fs(FsCommand),
    /// Run an unmodified RocksDB program (db_bench, ldb, …) on a drive with BlueFS
    Rocksdb(RocksdbArguments),
    /// Run an unmodified program that uses LevelDB on a drive with BlueFS
    Leveldb(LeveldbArguments),
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

/// `COLLECTION/OBJECT`: the first slash separates, later ones belong to the object's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPath {
    /// The collection.
    pub collection: String,
    /// The object.
    pub object: String,
}

impl FromStr for ObjectPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((collection, object)) if !collection.is_empty() && !object.is_empty() => {
                Ok(Self {
                    collection: collection.to_owned(),
                    object: object.to_owned(),
                })
            }
            _ => Err("write COLLECTION/OBJECT, such as papers/2016/smr.pdf"),
        }
    }
}

/// `A..B`, `A..`, `..B` or `N`: indices or byte offsets from A up to and without B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first.
    pub start: u64,
    /// The one after the last; `None` means to the end.
    pub end: Option<u64>,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<terminal::Size>()
                .map(|size| size.0)
                .map_err(|_| "write A..B (without B), A.., ..B or one number".to_owned())
        };
        let span = match text.split_once("..") {
            Some((start, end)) => Self {
                start: if start.is_empty() { 0 } else { number(start)? },
                end: if end.is_empty() {
                    None
                } else {
                    Some(number(end)?)
                },
            },
            None => {
                let one = number(text)?;
                Self {
                    start: one,
                    end: one.checked_add(1),
                }
            }
        };
        match span.end {
            Some(end) if end < span.start => Err("the end lies before the start".to_owned()),
            _ => Ok(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::described().debug_assert();
    }

    #[test]
    fn paragraphs_are_joined_and_tables_are_not() {
        assert_eq!(joined("a\nb\n\nc"), "a b\n\nc");
        let kept = "Examples:\n  one\n  two\n\n 12  out\n130  ended";
        assert_eq!(joined(kept), kept);
    }

    #[test]
    fn object_paths_split_at_the_first_slash() {
        let path: ObjectPath = "a/b/c".parse().unwrap();
        assert_eq!(
            (path.collection.as_str(), path.object.as_str()),
            ("a", "b/c")
        );
        for bad in ["", "a", "a/", "/b"] {
            assert!(bad.parse::<ObjectPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn spans() {
        let span = |text: &str| text.parse::<Span>();
        assert_eq!(
            span("2..5"),
            Ok(Span {
                start: 2,
                end: Some(5)
            })
        );
        assert_eq!(
            span("2.."),
            Ok(Span {
                start: 2,
                end: None
            })
        );
        assert_eq!(
            span("..4K"),
            Ok(Span {
                start: 0,
                end: Some(4096)
            })
        );
        assert_eq!(
            span("7"),
            Ok(Span {
                start: 7,
                end: Some(8)
            })
        );
        assert!(span("5..2").is_err());
        assert!(span("x").is_err());
    }
}
