//! Tells whether a moment was given up, and counts the readers at moments.

use crate::freelist::Freelist;
use crate::{Error, Result};
use runtime::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// A handle, usable from any thread, that tells whether a moment was given up.
#[derive(Clone)]
pub struct MomentWatch {
    pub(crate) freelist: Arc<Freelist>,
    pub(crate) number: u64,
}

impl MomentWatch {
    /// [`Error::MomentGivenUp`] if the moment was given up, so that its data may be overwritten.
    pub fn check(&self) -> Result<()> {
        match self.freelist.moment_lasts(self.number) {
            true => Ok(()),
            false => Err(Error::MomentGivenUp),
        }
    }
}

/// Readers at moments; `left` is notified when one ends.
#[derive(Default)]
pub(crate) struct Readers {
    pub there: Mutex<There>,
    pub left: Condvar,
}

#[derive(Default)]
pub(crate) struct There {
    pub count: usize,
    /// Until when writers wait for readers whose moments were given up, on the monotonic clock.
    pub awaited_until: Duration,
}
