//! What is said of a drive that somebody else has open, and of what its server answers.

use super::{CommandError, Exit};
use control::api::Kind;
use control::{ClientError, OpenError, ViewError};

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        let hint = match error {
            OpenError::Drive(error) => return error.into(),
            OpenError::Client(error) => return error.into(),
            OpenError::Served { pid, .. } => format!(
                "stop it first: kill {pid}; meanwhile `fs top`, `store df`, `store ls`, `store clean`, \
                 `drive report` and `drive info` ask it, and objects go in and out by S3"
            ),
            OpenError::InUse { .. } => {
                "wait for it, or stop it; meanwhile `zonestore fs top` looks at the drive"
                    .to_owned()
            }
        };
        Self::new(Exit::Busy, text).hint(hint)
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

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        use ClientError as E;
        let (exit, hint) = match &error {
            E::PermissionDenied { .. } => (
                Exit::Busy,
                "the drive is being served: run this command as the user who serves it".to_owned(),
            ),
            E::NotAServer { socket } => (
                Exit::Busy,
                format!(
                    "the drive is in use; `fuser {}` names who has it",
                    socket.display()
                ),
            ),
            E::UnknownVersion {
                program_version,
                pid,
                ..
            } => (
                Exit::Failed,
                format!(
                    "use the zonestore that serves the drive (version {program_version}, pid {pid}), or \
                     start the server again with this one"
                ),
            ),
            E::TimedOut { .. } => (
                Exit::Busy,
                "try again, or look at the server's log".to_owned(),
            ),
            E::Io { source, .. } => {
                let text = super::strip_os_error(&error.to_string());
                return Self::new(super::exit_of_io(source), text);
            }
            E::Answered { kind, .. } => return Self::answered(*kind, &error),
        };
        Self::new(exit, error).hint(hint)
    }
}

impl CommandError {
    /// An error of the server's, with the exit code and the hint it has without a server.
    fn answered(kind: Kind, error: &ClientError) -> Self {
        let (exit, hint) = match kind {
            Kind::NotFound => (
                Exit::NotFound,
                "`zonestore store ls DRIVE` shows what there is",
            ),
            Kind::UnknownCall => (
                Exit::Failed,
                "the server is older than this program: start it again with this one",
            ),
            Kind::Invalid | Kind::TooLarge => return Self::new(Exit::Usage, error),
            Kind::NoSpace => (
                Exit::NoSpace,
                "remove objects through S3; `store df` shows the space",
            ),
            Kind::Damaged => (
                Exit::Damaged,
                "stop the server, then `zonestore store fsck DRIVE` says what is damaged",
            ),
            Kind::Stopping => (Exit::Busy, "try again"),
            Kind::Failed => (Exit::Failed, "the server's log says more"),
        };
        Self::new(exit, error).hint(hint)
    }
}
