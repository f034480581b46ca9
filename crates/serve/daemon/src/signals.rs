//! Signals that stop a server.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
