//! What a command ends with: an exit code that scripts can use, one line that says what is wrong,
//! and one that says what to do.
//!
//! Every library error is sorted here by its kind, never by its text.

/// Sorts a library's error by its kind: an exit code, and perhaps what to do. A kind is a line.
macro_rules! sorted {
    ($error:ident: $($kind:pat $(if $when:expr)? => $exit:expr $(, $hint:expr)?;)+) => {{
        use $crate::errors::{CommandError, Exit::*};
        let (exit, hint): ($crate::errors::Exit, Option<String>) = match &$error {
            $($kind $(if $when)? => ($exit, [$($hint.to_string())?].into_iter().next()),)+
        };
        CommandError { exit, message: $error.to_string(), hint }
    }};
}
pub(crate) use sorted;

mod control;
mod libraries;

pub use libraries::FREE_HOST;

use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;
use terminal::{FileError, OutputError};
use terminal::{columns, wrapped};

/// The result of a command.
pub type CommandResult<T = ()> = Result<T, CommandError>;

/// The exit codes of `zonestore`; part of the interface, so numbers never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Anything that has no code of its own.
    Failed = 1,
    /// The command line does not make sense.
    Usage = 2,
    /// A drive, collection, object, file, program or server that does not exist.
    NotFound = 3,
    /// In use: a drive that another process holds, a port that is taken.
    Busy = 4,
    /// No space on the drive or on the host's disk.
    NoSpace = 5,
    /// Damaged data, or something that is no drive; also `fsck` that found errors.
    Damaged = 6,
    /// The drive holds no store or file system yet.
    NotFormatted = 7,
    /// Going on would destroy data, and nobody said that it may.
    Refused = 8,
    /// Repaired, and something that was stored is gone for good.
    Lost = 9,
    /// `store health`: something is lost or at risk.
    AtRisk = 10,
    /// `serve --exit-on-failure`: nothing could be written any more.
    WritesStopped = 11,
    /// `experiment run`: something that was measured contradicts what is printed.
    OutOfTolerance = 12,
    /// Whoever read our output went away (`| head`): what a shell says of a program that SIGPIPE
    /// ended. Without a word.
    ReaderGone = 141,
}

impl Exit {
    /// The word that programs get in the JSON form of an error.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Busy => "in_use",
            Self::NoSpace => "no_space",
            Self::Damaged => "damaged",
            Self::NotFormatted => "not_formatted",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::AtRisk => "at_risk",
            Self::WritesStopped => "writes_stopped",
            Self::OutOfTolerance => "out_of_tolerance",
            Self::ReaderGone => "reader_gone",
        }
    }
}

/// The table of exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line does not make sense
  3  not found: a drive, collection, object, file, program or server
  4  in use: a drive that another process holds, a port that is taken
  5  no space, on the drive or on the host's disk
  6  damaged: a checksum does not match, a file is no drive, fsck found errors
  7  the drive is not formatted
  8  refused: it would destroy data (see --force, --yes)
  9  repaired, and something that was stored is gone (fs fsck --repair)
 10  store health: something is lost or at risk
 11  serve --exit-on-failure: nothing could be written any more
 12  experiment run: something that was measured is out of its tolerance
130  ended by Ctrl-C; work that cleans up behind itself first says so and ends with 1
141  nobody reads the output any more, as in `| head`

With --json an error is one line on standard error: {\"error\": {\"kind\", \"exit_code\", \"message\",
\"hint\"}}.";

/// Why a command failed.
#[derive(Debug)]
pub struct CommandError {
    /// The exit code.
    pub exit: Exit,
    /// One line: what is wrong.
    pub message: String,
    /// One line: what to do.
    pub hint: Option<String>,
}

impl CommandError {
    /// An error with an exit code and its one line.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Puts what was being done in front of the line.
    pub fn context(mut self, context: impl Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// A check that found errors, so many of each kind.
    pub fn found_errors(path: &Path, errors: &BTreeMap<String, u64>) -> Self {
        let count: u64 = errors.values().sum();
        let errors = if count == 1 { "error" } else { "errors" };
        Self::new(
            Exit::Damaged,
            format_args!("{}: {count} {errors}", path.display()),
        )
        .hint("keep a copy of the drive; what is not named above can still be read")
    }

    /// The error as people read it: one line, and perhaps a hint below it.
    pub fn text(&self) -> String {
        let hint = self.hint.as_ref();
        let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        let text = format!("zonestore: {}{hint}", self.message);
        match columns() {
            Some(columns) if io::stderr().is_terminal() => wrapped(&text, columns),
            _ => text,
        }
    }

    /// The error as programs read it: JSON in one line.
    pub fn json(&self) -> String {
        json!({ "error": {
            "kind": self.exit.word(), "exit_code": self.exit as u8, "message": self.message,
            "hint": self.hint,
        }})
        .to_string()
    }

    /// An error of a library's that the host's is behind.
    pub fn host(error: &impl Display, source: &io::Error) -> Self {
        Self::new(exit_of_io(source), strip_os_error(&error.to_string()))
    }

    /// A file of the host's that could not be used.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(
            exit_of_io(error),
            format_args!("{}: {}", path.display(), io_text(error)),
        )
    }
}

impl std::error::Error for CommandError {}

impl Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> Self {
        let mut made = Self::host(&error, &error.0);
        if error.0.kind() == io::ErrorKind::BrokenPipe {
            made.exit = Exit::ReaderGone;
        }
        made
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        Self::file(&error.path, &error.source)
    }
}

impl From<io::Error> for CommandError {
    /// One of ours, which went through a reader or writer of the standard library's, is itself again.
    fn from(error: io::Error) -> Self {
        fn own<E>(error: io::Error) -> Result<CommandError, io::Error>
        where
            E: Into<CommandError> + std::error::Error + Send + Sync + 'static,
        {
            error.downcast::<E>().map(Into::into)
        }
        own::<FileError>(error)
            .or_else(own::<OutputError>)
            .or_else(own::<bluefs::Error>)
            .or_else(own::<store::Error>)
            .unwrap_or_else(|error| Self::new(exit_of_io(&error), io_text(&error)))
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => Self::new(Exit::Failed, error),
        }
    }
}

/// The exit code for an error of the host's system.
fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::AddrInUse | io::ErrorKind::ResourceBusy => Exit::Busy,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::NoSpace,
        io::ErrorKind::AlreadyExists => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// The system's words without Rust's "(os error 2)".
fn io_text(error: &io::Error) -> String {
    strip_os_error(&error.to_string())
}

/// A message without the number that Rust puts behind the system's words.
pub fn strip_os_error(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_owned()
}
