//! Ctrl-C in work that has something to clean up: the first one is a wish, which the work looks for
//! where it can stop; the second one ends the process at once.

use crate::errors::{CommandResult, Exit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody wants the work to stop.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on, as long as the process lives.
    pub fn listen() -> CommandResult<Self> {
        let wished = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds what the first one has set.
            flag::register_conditional_shutdown(signal, Exit::Failed as i32, wished.clone())?;
            flag::register(signal, wished.clone())?;
        }
        Ok(Self(wished))
    }

    /// What is set once somebody wants the work to stop.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Whether that is so.
    pub fn is_wished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
