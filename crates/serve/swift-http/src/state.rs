//! What the calls of one drive work on.

use crate::api::Done;
use crate::failure::{not_run, of_drive};
use crate::held::Held;
use axum::Json;
use axum::extract::State;
use control::Failure;
use objects::Blocking;
use runtime::Runtime;
use std::io;
use std::sync::Arc;
use store::{ObjectReader, Store, Written};
use swift_drive::SwiftDrive;
use tokio::sync::Semaphore;

/// Calls of the store at the same time.
const BLOCKING: usize = 16;
/// Bodies of more than [`SMALL`](crate::body::SMALL) bytes on their way at the same time; each takes up to 2 MiB of memory.
const BODIES: usize = 128;
/// Most things that are staged, and most that are opened.
const STAGED: usize = 4096;
const OPENED: usize = 4096;

/// An answer.
pub type Answer<T> = Result<Json<T>, Failure>;

/// What the calls work on.
pub struct SwiftCalls {
    pub(crate) drive: SwiftDrive,
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) blocking: Blocking,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) staged: Held<Written>,
    pub(crate) opened: Held<Arc<ObjectReader>>,
}

impl SwiftCalls {
    /// Of the objects on this store.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn new(store: Store, runtime: Runtime) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            drive: SwiftDrive::new(store.clone()),
            store,
            blocking: Blocking::new(BLOCKING),
            bodies: Arc::new(Semaphore::new(BODIES)),
            staged: Held::new(runtime.clone(), STAGED)?,
            opened: Held::new(runtime.clone(), OPENED)?,
            runtime,
        }))
    }

    /// Forgets what clients have left alone; to be called now and then.
    pub fn sweep(&self) {
        let (staged, opened) = (self.staged.sweep(), self.opened.sweep());
        if staged + opened > 0 {
            tracing::info!(staged, opened, "forgot what clients had left alone");
        }
    }

    /// Waits until no call of the store runs any more.
    pub async fn idle(&self) {
        self.blocking.idle().await;
    }

    /// Runs a call that may block.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let calls = self.clone();
        let run = self.blocking.run(move || call(&calls));
        run.await.map_err(not_run)?
    }

    /// Does something with an object.
    /// Unix time in microseconds, so many seconds ago.
    pub(crate) fn seconds_ago(&self, seconds: f64) -> u64 {
        let now = self.runtime.unix_micros();
        now.saturating_sub((seconds.max(0.0) * 1e6) as u64)
    }

    pub(crate) async fn change(
        self: &Arc<Self>,
        call: impl FnOnce(&SwiftDrive) -> swift_drive::Result<()> + Send + 'static,
    ) -> Answer<Done> {
        self.call(|calls| call(&calls.drive).map_err(of_drive))
            .await?;
        Ok(Json(Done {}))
    }
}

/// What the calls work on, as handlers are given it.
pub type Calls = State<Arc<SwiftCalls>>;
