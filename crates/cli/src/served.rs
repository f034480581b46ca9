//! A drive that somebody else has open: what `zonestore serve` answers there, in the
//! words of the command line.

use crate::errors::{CommandError, CommandResult, Exit};
use control::api::Kind;
use control::{Client, ClientError};
use device::DriveError;
use inspect::User;
use std::path::Path;

/// The server of a drive that is in use; if there is none, why the drive cannot be used.
pub fn client(drive: &Path, in_use: DriveError) -> CommandResult<Client> {
    match Client::connect(drive) {
        Ok(Some(client)) => Ok(client),
        Ok(None) => Err(in_use_by(drive, in_use)),
        Err(error) => Err(CommandError::from(error)),
    }
}

/// A drive that somebody has who does not answer for it: who, as far as the kernel tells.
fn in_use_by(drive: &Path, error: DriveError) -> CommandError {
    let User::Process { pid, name } = User::of(drive) else {
        return error.into();
    };
    // Of another process namespace there is no number.
    if pid == 0 {
        return error.into();
    }
    let name = name.unwrap_or_else(|| "a process".to_owned());
    CommandError::new(
        Exit::Busy,
        format_args!("{}: in use by {name} (pid {pid})", drive.display()),
    )
    .hint("wait for it, or stop it; meanwhile `zonestore fs top` looks at the drive")
}

/// Why a command that needs the drive for itself does not get it.
pub fn in_use(drive: &Path, error: DriveError) -> CommandError {
    let served = |pid: u32| {
        CommandError::new(
            Exit::Busy,
            format_args!("{}: in use by zonestore serve (pid {pid})", drive.display()),
        )
        .hint(format_args!(
            "stop it first: kill {pid}; meanwhile `fs top`, `store df`, `store ls`, `store clean`, \
             `drive report` and `drive info` ask it, and objects go in and out by S3"
        ))
    };
    match Client::connect(drive) {
        Ok(Some(client)) => served(client.hello().pid),
        Err(ClientError::UnknownVersion { pid, .. }) => served(pid),
        Ok(None) | Err(_) => in_use_by(drive, error),
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
                let text = super::errors::strip_os_error(&error.to_string());
                return Self::new(super::errors::exit_of_io(source), text);
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
