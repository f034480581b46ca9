//! The calls of one drive, independent of the socket that they arrive on.

use crate::calls::{Tell, router};
use crate::daemon::{Daemon, QUESTIONS};
use crate::whole_request::read_whole;
use axum::{Router, middleware};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;

/// The calls for a drive and the store on it.
pub struct DriveCalls {
    daemon: Arc<Daemon>,
    tell: Option<Tell>,
}

impl DriveCalls {
    /// Calls for a drive whose lock this process holds.
    pub fn new(drive: Arc<device::Drive>, store: Store) -> Self {
        Self {
            daemon: Arc::new(Daemon::new(drive, store)),
            tell: None,
        }
    }

    /// Adds `GET /v1/store/status`, answered by `tell`.
    #[must_use]
    pub fn telling(self, tell: Tell) -> Self {
        Self {
            tell: Some(tell),
            ..self
        }
    }

    /// Routes of all calls. Requests are read to their end before they are answered.
    pub fn router(&self) -> Router {
        router(self.daemon.clone(), self.tell.clone()).layer(middleware::from_fn(read_whole))
    }

    /// Makes calls that take long end early.
    pub(crate) fn stop(&self) {
        self.daemon.stops.store(true, Ordering::Relaxed);
    }

    /// Waits for running calls to end; calls that wait for a permit are answered that the server stops.
    pub async fn close(&self) {
        self.stop();
        let daemon = &self.daemon;
        // Given back only when no waiting call can get them any more.
        let questions = daemon.questions.acquire_many(QUESTIONS).await;
        daemon.questions.close();
        let backup = daemon.backups.acquire().await;
        daemon.backups.close();
        let cleaning = daemon.cleaning.acquire().await;
        daemon.cleaning.close();
        let look = daemon.looks.acquire().await;
        daemon.looks.close();
        drop((questions, backup, cleaning, look));
    }
}
