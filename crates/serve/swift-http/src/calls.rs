//! All calls of one drive, and what does not need a file of its own.

use crate::api::{Done, Kind, NewPolicy, Policy};
use crate::failure::{not_run, of_drive};
use crate::held::Held;
use crate::path::Named;
use crate::{data, listings};
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use control::{Failure, Sent};
use objects::Blocking;
use runtime::Runtime;
use std::io;
use std::sync::Arc;
use store::{ObjectReader, Store, Written};
use swift_drive::SwiftDrive;
use tokio::sync::Semaphore;

/// Calls of the store at the same time.
const BLOCKING: usize = 16;
/// Bodies of more than [`data::SMALL`] bytes on their way at the same time; each takes up to 2 MiB of memory.
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

    /// All calls.
    pub fn router(self: &Arc<Self>) -> Router {
        let object = "/{policy}/{partition}/{hash}";
        let of_object = |call: &str| format!("{object}/{call}");
        Router::new()
            .route("/policies", get(policies))
            .route("/policies/{policy}", put(add_policy))
            .route("/staged", post(data::stage))
            .route("/staged/{id}", delete(data::forget_staged))
            .route("/opened/{id}", get(data::read).delete(data::close))
            .route("/{policy}/partitions", get(listings::partitions))
            .route("/{policy}/quarantined", get(listings::quarantined))
            .route("/{policy}/{partition}/hashes", post(listings::hashes))
            .route("/{policy}/{partition}/suffixes", get(listings::suffixes))
            .route(
                "/{policy}/{partition}/suffixes/{suffix}",
                get(listings::objects),
            )
            .route(object, get(listings::files))
            .route(&of_object("open"), post(data::open))
            .route(&of_object("quarantine"), post(quarantine))
            .route(&of_object("files/{file}"), put(data::put).delete(purge))
            .route(&of_object("files/{file}/durable"), post(make_durable))
            // Data has no limit; what is read whole has its own.
            .layer(DefaultBodyLimit::disable())
            .with_state(self.clone())
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
    async fn change(
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

async fn policies(State(calls): Calls) -> Answer<Vec<Policy>> {
    let found = calls
        .call(|calls| calls.drive.policies().map_err(of_drive))
        .await?;
    let each = found.into_iter().map(|(policy, kind)| Policy {
        policy,
        kind: Kind::from(kind),
    });
    Ok(Json(each.collect()))
}

async fn add_policy(
    State(calls): Calls,
    named: Named,
    Sent(NewPolicy { kind }): Sent<NewPolicy>,
) -> Answer<Done> {
    let index = named.policy()?;
    calls
        .change(move |drive| drive.add_policy(index, kind.into()))
        .await
}

async fn quarantine(State(calls): Calls, named: Named) -> Answer<Done> {
    let address = named.address()?;
    let done = calls.change(move |drive| drive.quarantine(address)).await?;
    tracing::warn!(?address, "an object was put aside");
    Ok(done)
}

async fn purge(State(calls): Calls, named: Named) -> Answer<Done> {
    let (address, file) = (named.address()?, named.file()?);
    calls.change(move |drive| drive.purge(address, file)).await
}

async fn make_durable(State(calls): Calls, named: Named) -> Answer<Done> {
    let (address, file) = (named.address()?, named.file()?);
    calls
        .change(move |drive| drive.make_durable(address, file))
        .await
}
