//! What stops a server.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that are waited for.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// SIGINT and SIGTERM.
    pub(crate) fn listen() -> io::Result<Self> {
        Self::of([SignalKind::interrupt(), SignalKind::terminate()])
    }

    /// Also that the terminal is gone: for a server that means nothing else by it.
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
            // All of them, so that each wakes us.
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
