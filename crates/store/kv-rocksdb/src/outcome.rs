//! Maps RocksDB's status to the errors of `kv`.

use crate::bridge::ffi;
use kv::{Error, Result};

/// Turns an outcome of the bridge into a result.
pub(crate) fn check(outcome: ffi::Outcome) -> Result<()> {
    let message = outcome.message;
    Err(match outcome.kind {
        ffi::Kind::Ok => return Ok(()),
        ffi::Kind::NoSpace => Error::NoSpace { message },
        ffi::Kind::Corruption => Error::Corruption { message },
        ffi::Kind::NotFound => Error::NotFound { message },
        ffi::Kind::Busy => Error::Busy { message },
        ffi::Kind::Invalid => Error::Invalid { message },
        ffi::Kind::Stopped => Error::Stopped { message },
        _ => Error::Io { message },
    })
}
