//! A loss by a repair.

use serde::Serialize;

/// What a repair does to a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Loss {
    /// The file's name, as far as it is known.
    pub path: String,
    /// The loss, in words that follow the name.
    pub what: String,
}

pub(crate) fn loss(path: &str, what: impl Into<String>) -> Loss {
    let (path, what) = (path.to_owned(), what.into());
    Loss { path, what }
}
