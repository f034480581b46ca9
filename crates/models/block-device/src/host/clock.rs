//! The clock of a device in real time, which also does the waiting, so that a test can put another
//! one in its place.

pub use super::workers::Done;
use drive_model::{Span, Time};
use runtime::Runtime;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A clock, and how to wait by it.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Time;

    /// Lets time pass.
    fn sleep(&self, span: Span);

    /// The next of `under_way` requests to be done, if one is within `limit`.
    fn receive(&self, done: &Receiver<Done>, under_way: usize, limit: Span) -> Option<Done>;
}

/// The clock on the wall.
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
            // Workers end only when nobody asks them any more.
            Err(RecvTimeoutError::Disconnected) => {
                self.sleep(limit);
                None
            }
        }
    }
}
