//! Looks that are shared: one at a time, whoever asks, and none while nobody does.

use crate::look::{Look, Served};
use objects::Blocking;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How long somebody who asks waits for a new look. A drive that does not answer keeps nobody from learning that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes looks.
pub(crate) struct Looker {
    served: Arc<Served>,
    blocking: Blocking,
    turn: Arc<Semaphore>,
    latest: watch::Sender<Option<Arc<Look>>>,
    /// How long the last look took, without what the store sees to itself: how often it looks for objects that are lost.
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

    /// A look that is no older than `max_age`, if the drive answers soon; else an older one, or none.
    pub(crate) async fn latest(&self, max_age: Duration) -> Option<Arc<Look>> {
        let mut news = self.latest.subscribe();
        let latest = news.borrow_and_update().clone();
        // A large drive is looked at no more than a fifth of the time.
        let max_age = max_age.max(*self.took.lock() * 5);
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
                drop(turn);
                latest.send_replace(Some(Arc::new(look)));
            });
            // Runs to its end, whether or not anybody waits.
            drop(look.await);
        }
        let _ = tokio::time::timeout(PATIENCE, news.changed()).await;
        news.borrow().clone()
    }
}
