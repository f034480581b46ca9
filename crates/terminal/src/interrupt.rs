//! Ctrl-C in work that has something to clean up: the first one is a wish, which the work looks for
//! where it can stop; the second one ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the second signal ends the process with.
const EXIT_CODE: i32 = 1;

/// Whether somebody wants the work to stop.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on, as long as the process lives.
    ///
    /// # Errors
    /// The host has no room for it.
    pub fn listen() -> io::Result<Self> {
        let wished = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds what the first one has set.
            flag::register_conditional_shutdown(signal, EXIT_CODE, wished.clone())?;
            flag::register(signal, wished.clone())?;
        }
        Ok(Self(wished))
    }

    /// Leaves a byte in `socket` for each signal, for work that waits for sockets.
    ///
    /// # Errors
    /// The host has no room for it.
    pub fn leave_bytes_in(&self, socket: &UnixStream) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            pipe::register(signal, socket.try_clone()?)?;
        }
        Ok(())
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
