//! `zonestore age …`

use clap::Args;
use std::path::PathBuf;
use terminal::Size;

/// How a directory is aged.
#[derive(Args, Debug)]
pub struct AgeArguments {
    /// The directory; it is made if there is none
    pub directory: PathBuf,
    /// Bytes that files fill
    #[arg(long, value_name = "SIZE")]
    pub bytes: Size,
    /// How many files are made and removed, together
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub operations: u64,
    /// Sizes of files: a file with lines of bytes and weight, as in `4096 30`. Without it they are those of the thesis:
    /// mostly 4 and 8 KiB, seldom 4 MiB
    #[arg(long, value_name = "FILE")]
    pub sizes: Option<PathBuf>,
    /// Per cent of the removals that take any file; the others take the oldest
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub random_removals: u8,
    /// Seed of sizes, bytes and removals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
