//! State of the handlers, and limits of their concurrent calls: [`QUESTIONS`] short ones, and one each of cleaning,
//! backups, and looks at the health, which take long.

use crate::failure::Failure;
use axum::Json;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{HealthLook, Store};
use tokio::sync::Semaphore;

/// Short calls that run at the same time.
pub const QUESTIONS: u32 = 4;

/// Result of a handler.
pub type Answer<T> = Result<Json<T>, Failure>;

/// State of the handlers.
pub struct Daemon {
    pub drive: Arc<device::Drive>,
    pub store: Store,
    pub questions: Arc<Semaphore>,
    pub cleaning: Arc<Semaphore>,
    pub backups: Arc<Semaphore>,
    /// One at a time: each begins with what the one before has found.
    pub looks: Arc<Semaphore>,
    pub health: Mutex<Option<Arc<HealthLook>>>,
    pub stops: Arc<AtomicBool>,
}

impl Daemon {
    pub fn new(drive: Arc<device::Drive>, store: Store) -> Self {
        Self {
            drive,
            store,
            questions: Arc::new(Semaphore::new(QUESTIONS as usize)),
            cleaning: Arc::new(Semaphore::new(1)),
            backups: Arc::new(Semaphore::new(1)),
            looks: Arc::new(Semaphore::new(1)),
            health: Mutex::default(),
            stops: Arc::default(),
        }
    }

    pub async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Answer<T> {
        self.call(&self.questions, call).await
    }

    /// Runs a call that may block, once `places` has a permit. It runs to its end even if the client disconnects.
    pub async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        places: &Arc<Semaphore>,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Answer<T> {
        let place = places.clone().acquire_owned().await;
        let place = place.map_err(|_| Failure::stopping())?;
        let daemon = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let answer = call(&daemon);
            drop(place);
            answer
        });
        match task.await {
            Ok(answer) => answer.map(Json),
            Err(error) if error.is_cancelled() => Err(Failure::stopping()),
            Err(error) => {
                tracing::error!(%error, "a control request ended unexpectedly");
                Err(Failure::failed("an internal error; see the server's log"))
            }
        }
    }
}
