//! Whether a mounted file system goes on, and if not, why.

use crate::{Error, Result};
use std::sync::OnceLock;

/// Set once: by the unmount, or by a failure that makes going on unsafe.
#[derive(Default)]
pub(crate) struct End(OnceLock<Option<Error>>);

impl End {
    /// What everybody is told who wants to go on behind it.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(None) => Err(Error::Unmounted),
            Some(Some(cause)) => Err(Error::Stopped {
                cause: Box::new(cause.clone()),
            }),
        }
    }

    /// It is unmounted. What it has stopped at before that stays known.
    pub fn unmounted(&self) {
        _ = self.0.set(None);
    }

    /// False if it has ended already.
    pub fn stopped_at(&self, cause: &Error) -> bool {
        !cause.is_of_the_end() && self.0.set(Some(cause.clone())).is_ok()
    }
}
