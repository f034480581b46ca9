//! Signals that stop a server.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

static NOTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Notes from now on that SIGINT or SIGTERM came, since a server that starts anew does not listen in between. A second one
/// ends the process with code 1.
pub(crate) fn note() -> io::Result<()> {
    if NOTED.get().is_none() {
        let noted = NOTED.get_or_init(Arc::default);
        for signal in [SIGINT, SIGTERM] {
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

/// Signals to wait for.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// SIGINT and SIGTERM.
    pub(crate) fn listen() -> io::Result<Self> {
        Self::of([SignalKind::interrupt(), SignalKind::terminate()])
    }

    /// Also SIGHUP (the terminal was closed), unless it is ignored: for a server that gives it no other meaning.
    pub(crate) fn listen_or_hangup() -> io::Result<Self> {
        Self::of(
            terminal::ending_signals()
                .into_iter()
                .map(SignalKind::from_raw),
        )
    }

    fn of(kinds: impl IntoIterator<Item = SignalKind>) -> io::Result<Self> {
        let signals: io::Result<_> = kinds.into_iter().map(signal).collect();
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
