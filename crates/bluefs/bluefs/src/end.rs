//! Whether a mounted file system has ended, and why.

use crate::{Error, Result};
use std::sync::OnceLock;

/// Set once: by the unmount, or by a failure that makes going on unsafe.
#[derive(Default)]
pub(crate) struct End(OnceLock<Option<Error>>);

impl End {
    /// The error for every caller that wants to continue after the end.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(None) => Err(Error::Unmounted),
            Some(Some(cause)) => Err(Error::Stopped {
                cause: Box::new(cause.clone()),
            }),
        }
    }

    /// Ends by an unmount. An earlier failure is kept as the reason.
    pub fn unmounted(&self) {
        _ = self.0.set(None);
    }

    /// Ends by a failure. False if the file system has ended already.
    pub fn stopped_at(&self, cause: &Error) -> bool {
        !cause.is_of_the_end() && self.0.set(Some(cause.clone())).is_ok()
    }
}
