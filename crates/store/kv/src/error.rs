//! Errors of a database, by what the caller has to do.

use thiserror::Error;

/// The result of a call to the database.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// The drive is full: free space. If a flush found none, the database retries it, and batches are [`Error::Busy`]
    /// until then. If the log found none, it stays stopped, and only reopening the database shows whether the batch
    /// counts.
    #[error("no space left for the database: {message}")]
    NoSpace {
        /// Message of the engine.
        message: String,
    },
    /// Stored bytes differ from those written.
    #[error("the database is damaged: {message}")]
    Corruption {
        /// Message of the engine.
        message: String,
    },
    /// There is no database, or a file of it is missing.
    #[error("not found: {message}")]
    NotFound {
        /// Message of the engine.
        message: String,
    },
    /// The database is locked, or cannot take the call right now; nothing was done: try again.
    #[error("busy: {message}")]
    Busy {
        /// Message of the engine.
        message: String,
    },
    /// The call was wrong, or the database was opened read-only.
    #[error("invalid call: {message}")]
    Invalid {
        /// Message of the engine.
        message: String,
    },
    /// Another engine made the database: open it with that one.
    #[error("the database was made by {found}, not by {given}")]
    OtherEngine {
        /// Name of the engine that made it.
        found: &'static str,
        /// Name of the engine that was to open it.
        given: &'static str,
    },
    /// The database's background work has failed for good: nothing can be written until it is opened again.
    #[error("the database has stopped, and goes on when it is opened again: {message}")]
    Stopped {
        /// Message of the engine.
        message: String,
    },
    /// The drive or the file system failed.
    #[error("input or output failed: {message}")]
    Io {
        /// Message of the engine.
        message: String,
    },
}
