//! What a database answers, sorted by what the caller has to do.

use thiserror::Error;

/// The result of a call to the database.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// The drive is full: free space. A flush that found none is tried again by the database itself, and batches are
    /// [`Error::Busy`] until then. If the log found none, it stays stopped, and whether the batch counts is known when
    /// the database is opened again.
    #[error("no space left for the database: {message}")]
    NoSpace {
        /// What the engine said.
        message: String,
    },
    /// Stored bytes are not what was written.
    #[error("the database is damaged: {message}")]
    Corruption {
        /// What the engine said.
        message: String,
    },
    /// There is no database, or a file of it is missing.
    #[error("not found: {message}")]
    NotFound {
        /// What the engine said.
        message: String,
    },
    /// Someone else holds the database, or it cannot do this right now and nothing was done: try again.
    #[error("busy: {message}")]
    Busy {
        /// What the engine said.
        message: String,
    },
    /// The call was wrong, or the database was opened read-only.
    #[error("invalid call: {message}")]
    Invalid {
        /// What the engine said.
        message: String,
    },
    /// Another engine made the database: open it with that one.
    #[error("the database was made by {found}, not by {given}")]
    OtherEngine {
        /// Who made it.
        found: &'static str,
        /// Who was to open it.
        given: &'static str,
    },
    /// What the database does in the background has failed for good: nothing can be written until it is opened again.
    #[error("the database has stopped, and goes on when it is opened again: {message}")]
    Stopped {
        /// What the engine said.
        message: String,
    },
    /// The drive or the file system failed.
    #[error("input or output failed: {message}")]
    Io {
        /// What the engine said.
        message: String,
    },
}
