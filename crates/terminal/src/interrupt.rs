//! Ctrl-C for work that has to clean up: the first signal sets a flag, which the work checks where it can stop; the
//! second one ends the process at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code after the second signal.
const EXIT_CODE: i32 = 1;

/// The signals that ask a program to stop: SIGINT, SIGTERM and SIGHUP (the terminal is gone), without those that the
/// parent process has ignored, as `nohup` and the background jobs of a script do.
pub fn ending_signals() -> Vec<i32> {
    heeded(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn heeded(status: &str) -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
    signals.retain(|signal| !ignores(status, *signal));
    signals
}

/// Whether a signal is ignored; proc(5): one bit for each signal, the first signal's lowest.
fn ignores(status: &str, signal: i32) -> bool {
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

/// Whether a signal has asked the work to stop.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handlers, which stay as long as the process lives.
    ///
    /// # Errors
    /// The system cannot install a handler.
    pub fn listen() -> io::Result<Self> {
        let wished = Arc::new(AtomicBool::new(false));
        for signal in ending_signals() {
            // Closing a terminal sends SIGHUP, and its shell may send another.
            if signal != SIGHUP {
                // The order matters: the second signal finds the flag that the first one has set.
                flag::register_conditional_shutdown(signal, EXIT_CODE, wished.clone())?;
            }
            flag::register(signal, wished.clone())?;
        }
        Ok(Self(wished))
    }

    /// Writes a byte to `socket` for each signal, for work that waits for sockets.
    ///
    /// # Errors
    /// The system cannot install a handler.
    pub fn leave_bytes_in(&self, socket: &UnixStream) -> io::Result<()> {
        for signal in ending_signals() {
            pipe::register(signal, socket.try_clone()?)?;
        }
        Ok(())
    }

    /// The flag, which is set once a signal has come.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Whether a signal has come.
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
        assert_eq!(heeded(&status("0000000000000001")), [SIGINT, SIGTERM]);
        assert_eq!(heeded(&status("0000000000004002")), [SIGHUP]);
        assert_eq!(heeded(""), [SIGINT, SIGTERM, SIGHUP]);
    }
}
