//! The command-line environment of a program, independent of its commands: sizes and times as users write them,
//! output for people and for programs, progress, Ctrl-C, the log, and files that get their name only when they are
//! complete.

mod host;
mod interrupt;
mod lines;
pub mod live;
mod log;
mod log_file;
mod output;
mod pipe;
mod progress;
mod question;
mod span;
mod steps;
mod time;
mod whole_file;
mod wrapping;

pub use host::{check_address, check_host};
pub use interrupt::{Interrupt, ending_signals};
pub use log::{Apart, LogFiles, Logging, Observer, log};
pub use log_file::LogFile;
pub use output::{Output, OutputError, printable};
pub use pipe::open;
pub use progress::Progress;
pub use question::{ask, can_ask};
pub use span::Span;
pub use steps::Steps;
pub use time::{Duration, length, utc};
pub use whole_file::{FileError, WholeFile};
pub use wrapping::{columns, joined, wrapped};
pub use zone::shell::{shell_text, shell_word};
pub use zone::{Bytes as Size, SizeError, count};

/// A number of bytes for people: `1.21 GiB`.
pub fn human(bytes: u64) -> String {
    zone::Bytes(bytes).to_string()
}
