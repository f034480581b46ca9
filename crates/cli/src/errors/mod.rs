//! Errors of commands: an exit code for scripts, one line that says what is wrong, and one that says what to do.
//!
//! Every library error is classified here by its kind, never by its text.

/// Maps each kind of a library error to an exit code and, optionally, a hint.
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

/// Returns an error: exit code, message and, after a semicolon, a hint.
macro_rules! fail {
    ($exit:ident, $what:literal $(, $of:expr)* $(; $hint:literal $(, $with:expr)*)?) => {{
        use $crate::errors::{CommandError, Exit};
        Err(CommandError::new(Exit::$exit, format_args!($what $(, $of)*))
            $(.hint(format_args!($hint $(, $with)*)))?)
    }};
}
pub(crate) use fail;

mod archive;
mod control;
mod exit;
mod libraries;

pub use exit::{Exit, exit_codes};
pub use libraries::{FILE_LIMIT, FREE_HOST, KEEP, OPEN_FILES, THREADS, UNFINISHED};

use rustix::io::Errno;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;
use terminal::{FileError, OutputError, columns, printable, wrapped};

/// The result of a command.
pub type CommandResult<T = ()> = Result<T, CommandError>;

/// Why a command failed.
#[derive(Debug)]
pub struct CommandError {
    /// The exit code.
    pub exit: Exit,
    /// The message, in one line.
    pub message: String,
    /// The hint, in one line.
    pub hint: Option<String>,
}

impl CommandError {
    /// An error without a hint.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Prefixes the message with the failed operation.
    pub fn context(mut self, context: impl Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The error of a check that found errors, by kind, and printed `details`. Without `deep`, it read no data.
    pub fn found_errors(
        path: &Path,
        errors: &BTreeMap<String, u64>,
        details: &[String],
        deep: bool,
    ) -> Self {
        let count: u64 = errors.values().sum();
        let errors = if count == 1 { "error" } else { "errors" };
        let others = match deep {
            false => "data was not read (--deep does)",
            true if count > details.len() as u64 => "more may be damaged than is named above",
            true => "what is not named above can still be read",
        };
        Self::new(
            Exit::Damaged,
            format_args!("{}: {count} {errors}", path.display()),
        )
        .hint(format_args!("keep a copy of the drive; {others}"))
    }

    /// Whether it says that the host's disk is full, and not a drive.
    pub fn is_of_full_host(&self) -> bool {
        let hint = self.hint.as_deref();
        hint.is_some_and(|hint| libraries::OF_FULL_HOST.contains(&hint))
    }

    /// The error for people: the message, and a hint on the next line.
    pub fn text(&self) -> String {
        let hint = self.hint.as_ref();
        let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        let text = format!("zonestore: {}{hint}", self.message);
        match columns() {
            Some(columns) if io::stderr().is_terminal() => wrapped(&printable(&text), columns),
            _ => text,
        }
    }

    /// The error for programs: JSON in one line.
    pub fn json(&self) -> String {
        json!({ "error": {
            "kind": self.exit.word(), "exit_code": self.exit as u8, "message": self.message,
            "hint": self.hint,
        }})
        .to_string()
    }

    /// An error that the host's system caused.
    pub fn host(error: &impl Display, source: &io::Error) -> Self {
        let made = Self::new(exit_of_io(source), strip_os_error(&error.to_string()));
        match source.kind() {
            io::ErrorKind::PermissionDenied => {
                made.hint("run this as a user who may; `ls -l` shows who that is")
            }
            _ if is_of_a_limit(source) => made.hint(FILE_LIMIT),
            _ if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                made.hint(OPEN_FILES)
            }
            _ if made.exit == Exit::NoSpace => made.hint(FREE_HOST),
            _ => made,
        }
    }

    /// An error of the start of a thread.
    pub fn thread(error: &io::Error) -> Self {
        Self::host(&format_args!("no thread can be started: {error}"), error).hint(THREADS)
    }

    /// An error on a host file.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        let made = Self::host(&format_args!("{}: {error}", path.display()), error);
        match path.parent() {
            Some(folder) if made.exit == Exit::NotFound && lacks(folder) => {
                made.hint(format_args!(
                    "make the folder {} first, or name another",
                    folder.display()
                ))
            }
            _ => made,
        }
    }

    /// An error on a host folder that could not be created.
    pub fn folder(path: &Path, error: &io::Error) -> Self {
        let made = Self::file(path, error);
        if made.hint.is_some() {
            return made;
        }
        let exit = Exit::Failed;
        Self { exit, ..made }.hint("name a folder in which files can be made")
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
    /// Unwraps an error of ours that passed through a reader or writer of the standard library.
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
            .unwrap_or_else(|error| Self::host(&error, &error))
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
        _ if is_of_a_limit(error) => Exit::NoSpace,
        io::ErrorKind::AlreadyExists => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// Whether the system refused to make a file larger. A file that is too large to be read is not of that kind.
fn is_of_a_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge && error.raw_os_error().is_some()
}

/// Whether the folder of a path does not exist.
fn lacks(folder: &Path) -> bool {
    !folder.as_os_str().is_empty() && !folder.exists()
}

/// Removes the error number that Rust appends to the system's message.
fn strip_os_error(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_any_space_is_not_answered_by_removing() {
        let hint = |free| {
            let error = CommandError::from(store::Error::HostFull {
                free,
                kept: 1 << 30,
            });
            assert_eq!(error.exit, Exit::NoSpace);
            assert!(error.is_of_full_host());
            error.hint.unwrap()
        };
        assert!(hint(0).contains("first") && hint(1 << 29).contains("or remove objects"));
    }

    #[test]
    fn a_check_calls_nothing_whole_that_it_did_not_look_at() {
        let (path, details) = (Path::new("d"), vec![String::new(); 100]);
        let hint = |count, deep| {
            let errors = BTreeMap::from([("damage".to_owned(), count)]);
            CommandError::found_errors(path, &errors, &details, deep)
                .hint
                .unwrap()
        };
        assert!(hint(100, true).contains("can still be read"));
        assert!(hint(101, true).contains("more may be damaged"));
        assert!(hint(100, false).contains("--deep"));
    }

    #[test]
    fn less_than_what_is_kept_on_the_host_is_not_a_part_of_it() {
        let (free, kept) = (58_300_000, 128 << 20);
        let message = CommandError::from(store::Error::HostFull { free, kept }).message;
        assert!(
            message.contains("55.6 MiB of it are free") && message.contains("leave 128 MiB free"),
            "{message}"
        );
    }

    #[test]
    fn what_to_do_where_no_thread_can_be_started_is_said() {
        let error = io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error());
        let error = CommandError::thread(&error);
        assert_eq!(
            error.message,
            "no thread can be started: Resource temporarily unavailable"
        );
        assert!(error.hint.is_some_and(|hint| hint.contains("ulimit -u")));
    }

    #[test]
    fn who_may_not_is_told_what_to_do() {
        let error = io::Error::from_raw_os_error(13);
        let error = CommandError::file(Path::new("/x"), &error);
        assert_eq!(error.message, "/x: Permission denied");
        assert!(error.hint.is_some_and(|hint| hint.contains("ls -l")));
    }

    #[test]
    fn a_limit_on_the_size_of_files_is_named() {
        let over = io::Error::from_raw_os_error(27);
        let of_a_drive = zone::ZoneError::Io {
            command: zone::ZoneCommand::Write,
            at: zone::ByteOffset(0),
            source: io::Error::from_raw_os_error(27).into(),
        };
        let file = CommandError::file(Path::new("/x"), &over);
        for error in [file, CommandError::from(of_a_drive)] {
            assert_eq!(error.exit, Exit::NoSpace);
            assert!(error.is_of_full_host());
            assert!(error.hint.is_some_and(|hint| hint.contains("ulimit -f")));
        }
        let too_large_to_read = io::ErrorKind::FileTooLarge.into();
        let error = CommandError::file(Path::new("/x"), &too_large_to_read);
        assert_eq!(error.exit, Exit::Failed);
    }

    #[test]
    fn what_names_no_folder_is_told_what_to_do() {
        let nothing = io::Error::from_raw_os_error(2);
        let hint = |path: &str| CommandError::file(Path::new(path), &nothing).hint;
        assert!(hint("/no/x").is_some_and(|hint| hint.contains("folder /no first")));
        assert_eq!((hint("x"), hint("/x")), (None, None));
        let there = io::Error::from_raw_os_error(17);
        let error = CommandError::folder(Path::new("/dev/null"), &there);
        assert_eq!(error.exit, Exit::Failed);
        assert!(error.hint.is_some());
    }
}
