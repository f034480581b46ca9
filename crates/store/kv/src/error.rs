//! What RocksDB answers, sorted by what the caller has to do.

use crate::bridge::ffi;
use thiserror::Error;

/// The result of a call to the database.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// The drive is full: free space. RocksDB goes on by itself if a flush found none. If the log
    /// found none, it stays stopped, and whether the batch counts is known when the database is
    /// opened again.
    #[error("no space left for the database: {message}")]
    NoSpace {
        /// What RocksDB said.
        message: String,
    },
    /// Stored bytes are not what was written.
    #[error("the database is damaged: {message}")]
    Corruption {
        /// What RocksDB said.
        message: String,
    },
    /// There is no database, or a file of it is missing.
    #[error("not found: {message}")]
    NotFound {
        /// What RocksDB said.
        message: String,
    },
    /// Someone else holds the database, or it cannot do this right now: try again.
    #[error("busy: {message}")]
    Busy {
        /// What RocksDB said.
        message: String,
    },
    /// The call was wrong, or the database was opened read-only.
    #[error("invalid call: {message}")]
    Invalid {
        /// What RocksDB said.
        message: String,
    },
    /// The drive or the file system failed.
    #[error("input or output failed: {message}")]
    Io {
        /// What RocksDB said.
        message: String,
    },
}

/// The bridge's answer as a result.
pub(crate) fn check(outcome: ffi::Outcome) -> Result<()> {
    let message = outcome.message;
    Err(match outcome.kind {
        ffi::Kind::Ok => return Ok(()),
        ffi::Kind::NoSpace => Error::NoSpace { message },
        ffi::Kind::Corruption => Error::Corruption { message },
        ffi::Kind::NotFound => Error::NotFound { message },
        ffi::Kind::Busy => Error::Busy { message },
        ffi::Kind::Invalid => Error::Invalid { message },
        _ => Error::Io { message },
    })
}
