//! Ctrl-C in work that has something to clean up: the first one is a wish, which the work looks for
//! where it can stop; the second one ends the process at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the second signal ends the process with.
const EXIT_CODE: i32 = 1;

/// The signals that say that somebody wants a program to stop. That a terminal is gone (SIGHUP) is none where whoever
/// started the program has it ignored, as `nohup` does.
pub fn ending_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGINT, SIGTERM];
    if !ignores(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// proc(5): a bit for each signal, the first one's lowest.
fn ignores(status: &str, signal: i32) -> bool {
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

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
        for signal in ending_signals() {
            // Whoever closes a terminal sends SIGHUP, and the shell in it another.
            if signal != SIGHUP {
                // In this order: the second signal finds what the first one has set.
                flag::register_conditional_shutdown(signal, EXIT_CODE, wished.clone())?;
            }
            flag::register(signal, wished.clone())?;
        }
        Ok(Self(wished))
    }

    /// Leaves a byte in `socket` for each signal, for work that waits for sockets.
    ///
    /// # Errors
    /// The host has no room for it.
    pub fn leave_bytes_in(&self, socket: &UnixStream) -> io::Result<()> {
        for signal in ending_signals() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_has_ignored_stays_so() {
        let status =
            |bits: &str| format!("Name:\tzonestore\nSigBlk:\tffffffffffffffff\nSigIgn:\t{bits}\n");
        assert!(ignores(&status("0000000000000001"), SIGHUP));
        assert!(!ignores(&status("0000000000001000"), SIGHUP));
        assert!(!ignores("", SIGHUP));
    }
}
