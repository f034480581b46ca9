//! Shows the progress of a benchmark, and may stop it.

use crate::error::{Error, Result};
use terminal::{Interrupt, Progress};

/// Receives the progress of a benchmark, and decides whether it goes on.
pub trait Watch: Sync {
    /// The benchmark has this many steps in all.
    fn steps(&self, count: u64);
    /// The benchmark measures `what` from now on.
    fn measures(&self, what: String);
    /// A step is over.
    fn step(&self);
    /// Whether the benchmark is to stop.
    fn is_stopped(&self) -> bool;

    /// Checks whether the benchmark is to stop.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is.
    fn check(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// A watch for tests, which shows nothing and never stops.
#[cfg(test)]
pub struct Nobody;

#[cfg(test)]
impl Watch for Nobody {
    fn steps(&self, _: u64) {}
    fn measures(&self, _: String) {}
    fn step(&self) {}
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Shows progress on a terminal, and stops at Ctrl-C.
pub struct Terminal(Progress, Interrupt);

impl Terminal {
    /// For a benchmark that tells the number of its steps.
    pub fn steps(interrupt: Interrupt) -> Self {
        Self(Progress::steps("measuring", Some(0)), interrupt)
    }

    /// For a benchmark that does not tell the number of its steps.
    pub fn parts(interrupt: Interrupt) -> Self {
        Self(Progress::steps("measuring", None), interrupt)
    }
}

impl Watch for Terminal {
    fn steps(&self, count: u64) {
        self.0.set_of(0, count);
    }

    fn measures(&self, what: String) {
        self.0.message(what);
    }

    fn step(&self) {
        self.0.advance(1);
    }

    fn is_stopped(&self) -> bool {
        self.1.is_wished()
    }
}
