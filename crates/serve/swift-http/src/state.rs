//! State that all calls of one drive share.

use crate::api::{Age, Done};
use crate::failure::{not_run, of_drive};
use crate::held::Held;
use axum::Json;
use axum::extract::State;
use control::Failure;
use objects::Blocking;
use runtime::Runtime;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{ObjectReader, Store, Written};
use swift_drive::SwiftDrive;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Store calls that run at the same time: those that put files, which may have to wait for space, and all others, which
/// wait for one of these only where both change the same suffix.
const ADDING: usize = 16;
const BLOCKING: usize = 16;
/// Bodies of more than [`SMALL`](crate::body::SMALL) bytes at the same time; each takes up to 2 MiB of memory,
/// and a download 3.
const BODIES: usize = 128;
/// When missing suffixes are looked for again. Behind looks that only passed over rows the pause doubles, up to a day: rows
/// that are damaged for good cannot be read then either, and all behind them are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
const LOOK_AGAIN_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// Most staged data and most open readers at the same time.
const STAGED: usize = 4096;
const OPENED: usize = 4096;

/// Result of a handler.
pub type Answer<T> = Result<Json<T>, Failure>;

/// State of the calls of one drive.
pub struct SwiftCalls {
    pub(crate) drive: SwiftDrive,
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) adding: Blocking,
    pub(crate) blocking: Blocking,
    pub(crate) bodies: Arc<Semaphore>,
    is_stopping: AtomicBool,
    pub(crate) staged: Held<Written>,
    pub(crate) opened: Held<Arc<ObjectReader>>,
}

impl SwiftCalls {
    /// Most threads that the calls of one drive take.
    pub const THREADS: usize = ADDING + BLOCKING;

    /// Calls for the objects on this store.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn new(store: Store, runtime: Runtime) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            drive: SwiftDrive::new(store.clone()),
            store,
            adding: Blocking::new(ADDING),
            blocking: Blocking::new(BLOCKING),
            bodies: Arc::new(Semaphore::new(BODIES)),
            is_stopping: AtomicBool::new(false),
            staged: Held::new(runtime.clone(), STAGED)?,
            opened: Held::new(runtime.clone(), OPENED)?,
            runtime,
        }))
    }

    /// Looks for missing suffixes ([`SwiftDrive::find_suffixes`]), in the place of one call, again after ten minutes, and then
    /// after ever longer pauses while only rows cannot be read, until all are there or [`Self::stop`] is called. To be called
    /// once, beside the first requests.
    pub async fn find_suffixes(self: Arc<Self>) {
        let mut pause = Duration::ZERO;
        loop {
            let found = self.call(|calls| {
                let goes_on = || !calls.is_stopping.load(Ordering::Relaxed);
                Ok(calls.drive.find_suffixes(goes_on).ok())
            });
            // An error only if the call panics, which is logged.
            let has_all = found.await.unwrap_or(Some(true));
            if has_all == Some(true) || self.is_stopping.load(Ordering::Relaxed) {
                break;
            }
            pause = pause_behind(pause, has_all);
            tokio::time::sleep(pause).await;
        }
    }

    /// Lets the search for suffixes end soon, and keeps places free for the last calls.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Drops staged data and readers that clients have abandoned; to be called regularly.
    pub fn sweep(&self) {
        let staged = self.staged.sweep(|_| false);
        // A download has a reader of its own.
        let opened = self.opened.sweep(|reader| Arc::strong_count(reader) > 1);
        if staged + opened > 0 {
            tracing::info!(staged, opened, "forgot what clients had left alone");
        }
    }

    /// Waits, but no longer than `until`, until the data is through that goes from and to sockets. Nothing more is begun then.
    pub async fn bodies_done(&self, until: Instant) {
        self.stop();
        let all = self.bodies.acquire_many(BODIES as u32);
        let all = tokio::time::timeout_at(until, all).await;
        // Given back only when none that waits can get them any more.
        self.bodies.close();
        drop(all);
    }

    /// Whether every place for a body is taken, and not kept free for the end.
    pub(crate) fn places_are_taken(&self) -> bool {
        self.bodies.available_permits() == 0 && !self.is_stopping.load(Ordering::Relaxed)
    }

    /// Waits until no store call is running.
    pub async fn idle(&self) {
        self.adding.idle().await;
        self.blocking.idle().await;
    }

    /// Runs a call that may block.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.call_on(&self.blocking, call).await
    }

    /// Runs a call that may block, in one of these places.
    pub(crate) async fn call_on<T: Send + 'static>(
        self: &Arc<Self>,
        places: &Blocking,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let calls = self.clone();
        let run = places.run(move || call(&calls));
        run.await.map_err(not_run)?
    }

    /// Unix time in microseconds, `seconds` ago.
    pub(crate) fn seconds_ago(&self, Age(seconds): Age) -> u64 {
        let now = self.runtime.unix_micros();
        now.saturating_sub((seconds * 1e6) as u64)
    }

    /// Runs a call that changes objects, and answers [`Done`].
    pub(crate) async fn change(
        self: &Arc<Self>,
        call: impl FnOnce(&SwiftDrive) -> swift_drive::Result<()> + Send + 'static,
    ) -> Answer<Done> {
        self.call(|calls| call(&calls.drive).map_err(of_drive))
            .await?;
        Ok(Json(Done {}))
    }
}

/// The pause before suffixes are looked for again, behind the pause `before` and a look that has not found all: `None` if
/// it ended with an error, as for want of space.
fn pause_behind(before: Duration, has_all: Option<bool>) -> Duration {
    match has_all {
        Some(_) => (before * 2).clamp(LOOK_AGAIN, LOOK_AGAIN_AT_MOST),
        None => LOOK_AGAIN,
    }
}

/// [`SwiftCalls`] as an argument of handlers.
pub type Calls = State<Arc<SwiftCalls>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_that_are_never_found_are_looked_for_once_a_day() {
        let mut pause = Duration::ZERO;
        for minutes in [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440] {
            pause = pause_behind(pause, Some(false));
            assert_eq!(pause.as_secs() / 60, minutes);
        }
        // There may soon be space.
        assert_eq!(pause_behind(pause, None), LOOK_AGAIN);
    }
}
