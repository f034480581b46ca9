//! Shares snapshots among all callers: one is taken at a time, and none without a request.

use crate::look::{Look, Served};
use objects::Blocking;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How long a request waits for a new snapshot, so that a drive that does not answer shows as such.
const PATIENCE: Duration = Duration::from_secs(2);

/// How old the latest snapshot may be, so that on a large drive snapshots take at most a fifth of the time. One that
/// took longer than [`PATIENCE`] waited for a drive that did not answer, which says nothing of the next one.
fn oldest(max_age: Duration, took: Duration) -> Duration {
    max_age.max(took.min(PATIENCE) * 5)
}

/// Takes snapshots on request.
pub(crate) struct Looker {
    served: Arc<Served>,
    blocking: Blocking,
    turn: Arc<Semaphore>,
    latest: watch::Sender<Option<Arc<Look>>>,
    /// Duration of the last snapshot, without the search for lost objects, which the store limits itself.
    took: Arc<Mutex<Duration>>,
}

impl Looker {
    pub(crate) fn new(served: Arc<Served>, blocking: Blocking) -> Self {
        Self {
            served,
            blocking,
            turn: Arc::new(Semaphore::new(1)),
            latest: watch::Sender::new(None),
            took: Arc::default(),
        }
    }

    /// A snapshot not older than `max_age`, if the drive answers soon; else an older one, or `None`.
    pub(crate) async fn latest(&self, max_age: Duration) -> Option<Arc<Look>> {
        let mut news = self.latest.subscribe();
        let latest = news.borrow_and_update().clone();
        let max_age = oldest(max_age, *self.took.lock());
        if let Some(latest) = latest
            && latest.taken.elapsed() < max_age
        {
            return Some(latest);
        }
        if let Ok(turn) = self.turn.clone().try_acquire_owned() {
            let (served, before) = (self.served.clone(), self.latest.borrow().clone());
            let (latest, took) = (self.latest.clone(), self.took.clone());
            let look = self.blocking.begin(move || {
                let begin = std::time::Instant::now();
                let look = served.look(before.as_deref());
                *took.lock() = begin.elapsed().saturating_sub(look.objects_took());
                latest.send_replace(Some(Arc::new(look)));
                // Not earlier, or an older snapshot could take the place of a newer one.
                drop(turn);
            });
            // It runs to its end, whether or not a request waits for it.
            drop(look.await);
        }
        let _ = tokio::time::timeout(PATIENCE, news.changed()).await;
        news.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_was_silent_for_an_hour_is_looked_at_soon() {
        let second = Duration::from_secs(1);
        let of = |took| oldest(second, took);
        assert_eq!(of(second / 10), second);
        assert_eq!(of(second), 5 * second);
        assert_eq!(of(3_600 * second), 10 * second);
    }
}
