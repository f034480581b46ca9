//! Errors of the control socket, on either side.

use crate::api::{API_VERSION, Kind};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a daemon has no control socket.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Something else has the socket's name; it is left alone.
    #[error("{}: exists and is no socket", path.display())]
    NotASocket {
        /// What is there.
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
    /// The daemon answered with an error.
    #[error("{message}")]
    Answered {
        /// What can be done.
        kind: Kind,
        /// The daemon's words.
        message: String,
    },
}
