//! Whether a moment that somebody reads at was given up, and how many read so.

use crate::freelist::Freelist;
use crate::{Error, Result};
use runtime::sync::{Condvar, Mutex};
use std::sync::Arc;

/// Tells from anywhere whether a moment was given up.
#[derive(Clone)]
pub struct MomentWatch {
    pub(crate) freelist: Arc<Freelist>,
    pub(crate) number: u64,
}

impl MomentWatch {
    /// An error if the moment was given up, so that what it showed may be gone.
    pub fn check(&self) -> Result<()> {
        match self.freelist.moment_lasts(self.number) {
            true => Ok(()),
            false => Err(Error::MomentGivenUp),
        }
    }
}

/// How many read at moments.
#[derive(Default)]
pub(crate) struct Readers {
    pub count: Mutex<usize>,
    pub left: Condvar,
}
