//! Errors of drives that another process has open, and of its server's answers.

use super::{CommandError, Exit};
use control::api::{DAEMON, Kind};
use control::{ClientError, OpenError, ServerError, ViewError};
use std::io;
use terminal::shell_word;

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        let error = match error {
            OpenError::Drive(error) => return error.into(),
            OpenError::Client(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            OpenError::Served { pid, command, .. } => Busy, format!(
                "stop it first{}; meanwhile `fs top`, `store df`, `store ls`, `store clean`, `store backup`, \
                 `drive report` and `drive info` ask it, and objects go in and out {}",
                pid.map_or_else(String::new, |pid| format!(": kill {pid}")),
                match command.as_str() {
                    DAEMON => "through OpenStack Swift, which asks its --socket",
                    _ => "by S3",
                }
            );
            _ => Busy, "wait for it, or stop it; meanwhile `zonestore fs top` looks at the drive";
        }
    }
}

impl From<ViewError> for CommandError {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Open(error) => error.into(),
            ViewError::Zone(error) => error.into(),
            ViewError::Store(error) => error.into(),
            ViewError::Client(error) => error.into(),
            ViewError::File { path, source } => Self::file(&path, &source),
        }
    }
}

impl From<ServerError> for CommandError {
    fn from(error: ServerError) -> Self {
        if let ServerError::Io { source, .. } = &error {
            let made = Self::host(&error, source);
            return match source.kind() {
                io::ErrorKind::NotFound => made.hint("make the socket's folder first"),
                io::ErrorKind::InvalidFilename => {
                    Self::new(Exit::Usage, &error).hint("a socket's name has 1 to 72 bytes")
                }
                _ => made,
            };
        }
        sorted! { error:
            ServerError::InUse { .. } => Busy, "stop it, or name another socket";
            ServerError::NotASocket { .. } | ServerError::Io { .. } => Usage, "name another socket";
        }
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        use ClientError as E;
        if let E::Written { source } = error {
            return source.into();
        }
        if let E::Io { source, .. } = &error {
            return Self::host(&error, source);
        }
        // An error that a server returns has the same exit code and hint as without a server.
        sorted! { error:
            E::PermissionDenied { .. } => Busy,
                "the drive is being served: run this command as the user who serves it";
            E::NotAServer { socket } => Busy,
                format!("the drive is in use; `fuser {}` names who has it", shell_word(socket));
            E::UnknownVersion { program_version, pid, .. } => Failed, format!(
                "use the zonestore that serves the drive (version {program_version}, pid {pid}), or start \
                 the server again with this one"
            );
            E::TimedOut { .. } => Busy, "try again, or look at the server's log";
            E::Answered { kind: Kind::NotFound, .. } => NotFound,
                "`zonestore store ls DRIVE` shows what there is";
            E::Answered { kind: Kind::UnknownCall, .. } => Failed,
                "the server is older than this program: start it again with this one";
            E::Answered { kind: Kind::Invalid | Kind::BrokenOff | Kind::TooLarge, .. } => Usage;
            E::Answered { kind: Kind::NoSpace, .. } => NoSpace,
                "remove objects through S3; `store df` shows the space";
            E::Answered { kind: Kind::Damaged, .. } => Damaged,
                "`zonestore store scrub DRIVE --deep` finds all that is damaged, and `store health DRIVE` names it; a backup goes on with --skip-damaged";
            E::Answered { kind: Kind::Stopping | Kind::Busy | Kind::Gone, .. } => Busy, "try again";
            E::Answered { kind: Kind::NoDrive | Kind::NoPolicy, .. } => NotFound;
            E::Answered { kind: Kind::OtherPolicy, .. } => Usage;
            E::Answered { kind: Kind::GivenUp, .. } => Busy, super::libraries::GIVEN_UP;
            E::Answered { kind: Kind::Failed, .. } => Failed, "the server's log says more";
            E::Io { .. } | E::Written { .. } => Failed;
        }
    }
}
