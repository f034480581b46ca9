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
    /// Something else has the socket's name; it is left alone.
    #[error("{}: exists and is no socket", path.display())]
    NotASocket {
        /// What is there.
        path: PathBuf,
    },
    /// Another process answers there.
    #[error("{}: another process listens there", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("{}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a daemon was not asked, or did not answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Another user runs the daemon.
    #[error("{}: only the user who runs the server may connect", socket.display())]
    PermissionDenied {
        /// The socket.
        socket: PathBuf,
    },
    /// What answers is no daemon of ours, or its answer is cut off.
    #[error("{}: the answer is not that of a zonestore server", socket.display())]
    NotAServer {
        /// The socket.
        socket: PathBuf,
    },
    /// A daemon of another version.
    #[error(
        "{}: the server speaks versions {found:?} of the interface, this program version {API_VERSION}",
        socket.display()
    )]
    UnknownVersion {
        /// The socket.
        socket: PathBuf,
        /// What the server speaks.
        found: Vec<u32>,
        /// The version of its program.
        program_version: String,
        /// Its process.
        pid: u32,
        /// The command that it runs.
        command: String,
    },
    /// No answer in time.
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
        /// What the system said.
        source: io::Error,
    },
    /// What it answered cannot be written where it should go.
    #[error("{source}")]
    Written {
        /// What the system said.
        source: io::Error,
    },
    /// The daemon answered with an error.
    #[error("{message}")]
    Answered {
        /// What can be done.
        kind: Kind,
        /// The daemon's words.
        message: String,
    },
}

impl ClientError {
    /// What the system said of the connection.
    pub(crate) fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

/// Why a drive is neither opened nor asked for.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// Its daemon has it.
    #[error("{}: in use by {command} (pid {pid})", drive.display())]
    Served {
        /// The drive.
        drive: PathBuf,
        /// The command that the daemon runs, such as `zonestore serve`.
        command: String,
        /// Its process.
        pid: u32,
    },
    /// A process has it that does not answer for it.
    #[error("{}: in use by {name} (pid {pid})", drive.display())]
    InUse {
        /// The drive.
        drive: PathBuf,
        /// The process's name.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// Its daemon does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why a question about a drive or a store has no answer.
#[derive(Debug, Error)]
pub enum ViewError {
    /// Nobody could be asked.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Of the drive.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// Of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Of the daemon.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The drive's file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
