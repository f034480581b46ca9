//! The clock of a device in real time. It also does the waiting, so that a test can use another one.

pub use super::workers::Done;
use drive_model::{Span, Time};
use runtime::Runtime;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A clock, and waiting by it.
pub trait Clock: Send + Sync {
    /// The present.
    fn now(&self) -> Time;

    /// Waits for a span.
    fn sleep(&self, span: Span);

    /// Waits at most `limit` for the next completion of `under_way` requests.
    fn receive(&self, done: &Receiver<Done>, under_way: usize, limit: Span) -> Option<Done>;
}

/// The host's monotonic clock.
#[derive(Debug)]
pub struct WallClock(Runtime);

impl Default for WallClock {
    fn default() -> Self {
        Self(Runtime::system())
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

impl Clock for WallClock {
    fn now(&self) -> Time {
        let nanos = self.0.now().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn sleep(&self, span: Span) {
        runtime::thread::sleep(duration(span));
    }

    fn receive(&self, done: &Receiver<Done>, _under_way: usize, limit: Span) -> Option<Done> {
        match done.recv_timeout(duration(limit)) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            // Workers end only when no request can come any more.
            Err(RecvTimeoutError::Disconnected) => {
                self.sleep(limit);
                None
            }
        }
    }
}
