//! Whether a bucket keeps versions.

use crate::attributes::{VERSIONING, VERSIONING_ENABLED, VERSIONING_SUSPENDED};
use store::CollectionInfo;

/// Versioning state of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versioning {
    /// The bucket has never kept versions.
    Never,
    /// The bucket keeps all versions.
    Enabled,
    /// The bucket keeps the versions it has; new objects replace the version with id `null`.
    Suspended,
}

impl Versioning {
    /// State of this bucket.
    pub fn of(bucket: &CollectionInfo) -> Self {
        match bucket.attributes.get(VERSIONING).map(Vec::as_slice) {
            None => Self::Never,
            Some(VERSIONING_SUSPENDED) => Self::Suspended,
            // Also for a value that is damaged or of a newer program: keeping versions loses nothing.
            Some(_) => Self::Enabled,
        }
    }

    pub(super) fn word(self) -> Option<&'static [u8]> {
        match self {
            Self::Never => None,
            Self::Enabled => Some(VERSIONING_ENABLED),
            Self::Suspended => Some(VERSIONING_SUSPENDED),
        }
    }
}
