//! Errors of the control socket, on either side.

use crate::api::{API_VERSION, Kind};
use device::DriveError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use zone::ZoneError;

/// Why a daemon has no control socket.
#[derive(Debug, Error)]
pub enum ServerError {
    /// What has the socket's path is no socket that a killed process left; it is left alone.
    #[error("{}: exists and is no socket that a killed process left", path.display())]
    NotASocket {
        /// Path of that file.
        path: PathBuf,
    },
    /// Another process listens on the socket.
    #[error("{}: another process listens there", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Why a request to a daemon failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Another user runs the daemon.
    #[error("{}: only the user who runs the server may connect", socket.display())]
    PermissionDenied {
        /// The socket.
        socket: PathBuf,
    },
    /// The listening process is not a server of ours, or its answer is cut off.
    #[error("{}: the answer is not that of a zonestore server", socket.display())]
    NotAServer {
        /// The socket.
        socket: PathBuf,
    },
    /// The daemon does not speak [`API_VERSION`].
    #[error(
        "{}: the server speaks versions {found:?} of the interface, this program version {API_VERSION}",
        socket.display()
    )]
    UnknownVersion {
        /// The socket.
        socket: PathBuf,
        /// The versions that the server speaks.
        found: Vec<u32>,
        /// Version of the server's program.
        program_version: String,
        /// Process id of the server.
        pid: u32,
        /// The command that the server runs.
        command: String,
    },
    /// No answer within the time limit.
    #[error("{}: the server does not answer", socket.display())]
    TimedOut {
        /// The socket.
        socket: PathBuf,
    },
    /// The connection failed.
    #[error("{}: {source}", socket.display())]
    Io {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A backup cannot be written to its destination.
    #[error("{source}")]
    Written {
        /// The system's error.
        source: io::Error,
    },
    /// The daemon answered with an error.
    #[error("{message}")]
    Answered {
        /// What the caller can do.
        kind: Kind,
        /// The daemon's message, one line for people.
        message: String,
    },
}

impl ClientError {
    /// Kind of a connection's error; `None` for all but [`Self::Io`].
    pub(crate) fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

/// Why a drive can neither be opened nor asked for through its daemon.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The drive cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// A daemon serves the drive.
    #[error(
        "{}: in use by {command}{}",
        drive.display(),
        pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
    )]
    Served {
        /// The drive.
        drive: PathBuf,
        /// The command that the daemon runs, such as `zonestore serve`.
        command: String,
        /// Process id of the daemon; `None` if it may have another one here, in another PID namespace.
        pid: Option<u32>,
    },
    /// A process without a control socket has the drive open.
    #[error("{}: in use by {name} (pid {pid})", drive.display())]
    InUse {
        /// The drive.
        drive: PathBuf,
        /// The process's name.
        name: String,
        /// The process's id.
        pid: u32,
    },
    /// The drive's daemon cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why a question about a drive or a store has no answer.
#[derive(Debug, Error)]
pub enum ViewError {
    /// The drive can neither be opened nor its daemon reached.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An error of the drive.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A request to the daemon failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The drive's file cannot be examined.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
