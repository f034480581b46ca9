//! Signals that stop a server.
//!
//! SIGTERM always does. SIGINT and SIGHUP do not if they were ignored when the server was started. A shell ignores SIGINT
//! in what a script starts with `&`, and `nohup` ignores SIGHUP: whoever starts a server so wants it to outlive the script,
//! its Ctrl-C and its terminal. Service managers, containers and `kill` send SIGTERM, and only SIGKILL would be left if a
//! server did not heed it.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

static NOTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Notes from now on that one of [`stopping`] came, since a server that starts anew does not listen in between. A second
/// one ends the process with code 1.
pub(crate) fn note() -> io::Result<()> {
    if NOTED.get().is_none() {
        let noted = NOTED.get_or_init(Arc::default);
        for signal in stopping() {
            // In this order: the first one is noted only after it was looked whether it is the second.
            flag::register_conditional_shutdown(signal, 1, noted.clone())?;
            flag::register(signal, noted.clone())?;
        }
    }
    Ok(())
}

/// Whether one came since [`note`]; `None` before.
pub(crate) fn noted() -> Option<bool> {
    Some(NOTED.get()?.load(Ordering::SeqCst))
}

/// What a user does to stop this server, in words for its greeting: Ctrl-C, or `kill` if Ctrl-C is ignored.
#[must_use]
pub fn how_to_stop() -> String {
    if stopping().contains(&SIGINT) {
        return "Ctrl-C stops.".to_owned();
    }
    let process = std::process::id();
    format!("`kill {process}` stops; Ctrl-C (SIGINT) is ignored, as it was at the start.")
}

/// SIGTERM, and SIGINT unless it is ignored.
fn stopping() -> Vec<i32> {
    let mut signals = of_a_server(terminal::ending_signals());
    signals.retain(|signal| *signal != SIGHUP);
    signals
}

/// Those of `heeded` and SIGTERM.
fn of_a_server(mut heeded: Vec<i32>) -> Vec<i32> {
    if !heeded.contains(&SIGTERM) {
        heeded.push(SIGTERM);
    }
    heeded
}

/// Signals to wait for.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// SIGTERM, and SIGINT unless it is ignored.
    pub(crate) fn listen() -> io::Result<Self> {
        Self::of(stopping())
    }

    /// Also SIGHUP (the terminal was closed), unless it is ignored: for a server that gives it no other meaning.
    pub(crate) fn listen_or_hangup() -> io::Result<Self> {
        Self::of(of_a_server(terminal::ending_signals()))
    }

    fn of(signals: Vec<i32>) -> io::Result<Self> {
        let kinds = signals.into_iter().map(SignalKind::from_raw);
        let signals: io::Result<_> = kinds.map(signal).collect();
        Ok(Self(signals?))
    }

    pub(crate) async fn next(&mut self) {
        poll_fn(|context| {
            // All are polled, so that each of them wakes this task.
            let came = self
                .0
                .iter_mut()
                .map(|one| one.poll_recv(context).is_ready());
            match came.fold(false, |any, one| any | one) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigterm_stops_a_server_that_ignores_all_else() {
        assert_eq!(of_a_server(Vec::new()), [SIGTERM]);
        assert_eq!(of_a_server(vec![SIGINT, SIGTERM]), [SIGINT, SIGTERM]);
    }
}
