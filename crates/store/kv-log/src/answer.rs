//! Maps BlueFS's errors to those of `kv`.

use bluefs::Error as E;
use kv::Error;

pub(crate) fn answer(error: E) -> Error {
    let message = error.to_string();
    match error {
        E::NoSpace { .. } => Error::NoSpace { message },
        error if error.is_damage() => Error::Corruption { message },
        E::NotFound { .. } => Error::NotFound { message },
        E::Locked { .. } => Error::Busy { message },
        E::ReadOnly | E::Invalid { .. } => Error::Invalid { message },
        _ => Error::Io { message },
    }
}

pub(crate) fn corrupt(path: &str, what: &str) -> Error {
    Error::Corruption {
        message: format!("{path}: {what}"),
    }
}
