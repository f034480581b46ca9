//! Who watches a benchmark, and may end it.

use crate::error::{Error, Result};
use terminal::{Interrupt, Progress};

/// Is told how far a benchmark is, and asked whether it goes on.
pub trait Watch: Sync {
    /// There are so many steps.
    fn steps(&self, count: u64);
    /// What is being measured.
    fn measures(&self, what: String);
    /// A step is over.
    fn step(&self);
    /// Whether somebody wants it to end.
    fn is_stopped(&self) -> bool;

    /// An error once somebody wants it to end.
    ///
    /// # Errors
    /// That.
    fn check(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// For tests: watches nothing.
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

/// Somebody at a terminal, who may press Ctrl-C.
pub struct Terminal(Progress, Interrupt);

impl Terminal {
    /// Of a benchmark that says how many steps there are.
    pub fn steps(interrupt: Interrupt) -> Self {
        Self(Progress::steps("measuring", Some(0)), interrupt)
    }

    /// Of one that does not.
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
