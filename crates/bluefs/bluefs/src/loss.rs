//! What a repair loses.

use serde::Serialize;

/// What becomes of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Loss {
    /// Its name, as far as that is known.
    pub path: String,
    /// What becomes of it, in words that follow the name.
    pub what: String,
}

pub(crate) fn loss(path: &str, what: impl Into<String>) -> Loss {
    let (path, what) = (path.to_owned(), what.into());
    Loss { path, what }
}
