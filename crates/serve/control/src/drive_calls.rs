//! The calls of one drive, wherever they are answered.

use crate::calls::{Tell, router};
use crate::daemon::{Daemon, QUESTIONS};
use crate::whole_request::read_whole;
use axum::{Router, middleware};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;

/// What is asked of a drive and of the store on it.
pub struct DriveCalls {
    daemon: Arc<Daemon>,
    tell: Option<Tell>,
}

impl DriveCalls {
    /// Of a drive whose lock this process holds.
    pub fn new(drive: Arc<device::Drive>, store: Store) -> Self {
        Self {
            daemon: Arc::new(Daemon::new(drive, store)),
            tell: None,
        }
    }

    /// Also tells what the status page shows.
    #[must_use]
    pub fn telling(self, tell: Tell) -> Self {
        Self {
            tell: Some(tell),
            ..self
        }
    }

    /// All calls. Requests are read to their end before they are answered.
    pub fn router(&self) -> Router {
        router(self.daemon.clone(), self.tell.clone()).layer(middleware::from_fn(read_whole))
    }

    /// What takes long ends early from now on.
    pub(crate) fn stop(&self) {
        self.daemon.stops.store(true, Ordering::Relaxed);
    }

    /// Whoever waits is told that the server stops; whoever is at work ends first.
    pub async fn close(&self) {
        self.stop();
        let daemon = &self.daemon;
        drop(daemon.questions.acquire_many(QUESTIONS).await);
        daemon.questions.close();
        drop(daemon.backups.acquire().await);
        daemon.backups.close();
        drop(daemon.cleaning.acquire().await);
        daemon.cleaning.close();
    }
}
