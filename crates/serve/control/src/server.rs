//! The daemon's side of the control socket.
//!
//! Handlers only translate. Every store or drive call runs on a thread for blocking calls, so many at a
//! time; cleaning has a place of its own, so that it never keeps a question waiting.

use crate::api::{
    API_VERSION, Action, Backup, Cleaned, Collection, DriveDescription, Hello, Kind, MAX_OBJECTS,
    MAX_REQUEST_BYTES, MAX_ZONES, Object, Objects, Order, Problem, SERVICE, Scrub, Zones,
};
use crate::backup;
use crate::error::ServerError;
use crate::socket::Place;
use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use device::ZonedDevice;
use futures::StreamExt;
use http_body_util::BodyExt;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{
    Caches, CleanerChange, CleanerStatus, CleaningStep, Health, ScrubStatus, Statfs, Store,
    Waiting, ZoneUse,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use zone::{ZoneDescriptor, ZoneError, ZoneId};

/// The events of the audit log.
const AUDIT: &str = "audit";
/// Questions answered at the same time.
const QUESTIONS: u32 = 4;
/// How long connections may take to end when the control socket closes.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a request's body may take to come.
const BODY: Duration = Duration::from_secs(5);
/// How long, and of how many bytes, the rest of a request that is too large is read.
const TOO_LARGE: (Duration, usize) = (Duration::from_secs(2), 16 << 20);

/// Tells what the status page shows.
pub type Tell =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = serde_json::Value> + Send>> + Send + Sync>;

/// A served control socket. The socket's file goes when this does.
pub struct ControlServer {
    listener: UnixListener,
    place: SocketFile,
    daemon: Arc<Daemon>,
    tell: Option<Tell>,
}

/// What requests are answered from.
struct Daemon {
    drive: Arc<device::Drive>,
    store: Store,
    questions: Arc<Semaphore>,
    cleaning: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    stops: Arc<AtomicBool>,
}

struct SocketFile(Place);

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl ControlServer {
    /// Opens the control socket of `drive`, whose lock this process holds; nothing is answered before
    /// [`run`](Self::run).
    pub fn open(drive: Arc<device::Drive>, store: Store) -> Result<Self, ServerError> {
        let place = Place::of(drive.path()).map_err(|source| ServerError::Io {
            path: drive.path().to_owned(),
            source,
        })?;
        let listener = place.listen()?;
        Ok(Self {
            listener,
            tell: None,
            place: SocketFile(place),
            daemon: Arc::new(Daemon {
                drive,
                store,
                questions: Arc::new(Semaphore::new(QUESTIONS as usize)),
                cleaning: Arc::new(Semaphore::new(1)),
                backups: Arc::new(Semaphore::new(1)),
                stops: Arc::default(),
            }),
        })
    }

    /// Also tells what the status page shows.
    #[must_use]
    pub fn telling(mut self, tell: Tell) -> Self {
        self.tell = Some(tell);
        self
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        self.place.0.path()
    }

    /// Answers until `shutdown` is there. Needs a tokio runtime with I/O and time. Afterwards no store
    /// call runs any more, and the socket is gone.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let path = self.path().to_owned();
        let failed = |source| ServerError::Io { path, source };
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return Err(failed(error)),
        };
        let daemon = self.daemon.clone();
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let stops = daemon.stops.clone();
        let shutdown = async move {
            shutdown.await;
            stops.store(true, Ordering::Relaxed);
            let _ = stop.send(true);
        };
        let serve = axum::serve(listener, router(daemon.clone(), self.tell))
            .with_graceful_shutdown(shutdown);
        let serve = serve.into_future();
        tokio::pin!(serve);
        let served: io::Result<()> = tokio::select! {
            served = &mut serve => served,
            // A connection that never says anything does not keep the server running.
            () = async { let _ = stopped.wait_for(|stop| *stop).await; tokio::time::sleep(CLOSING).await } => Ok(()),
        };
        // Whoever waits is told that the server stops; whoever is at work ends first.
        drop(daemon.questions.acquire_many(QUESTIONS).await);
        daemon.questions.close();
        drop(daemon.backups.acquire().await);
        daemon.backups.close();
        drop(daemon.cleaning.acquire().await);
        daemon.cleaning.close();
        drop(self.place);
        served.map_err(failed)
    }
}

fn router(daemon: Arc<Daemon>, tell: Option<Tell>) -> Router {
    let status = async move || match tell {
        Some(tell) => Json(tell().await).into_response(),
        None => unknown().await.into_response(),
    };
    Router::new()
        .route("/v1/store/status", get(status))
        .route("/", get(hello))
        .route("/v1/drive", get(drive))
        .route("/v1/drive/zones", get(zones))
        .route("/v1/store/space", get(space))
        .route("/v1/store/caches", get(caches))
        .route("/v1/store/waiting", get(waiting))
        .route("/v1/store/health", get(health))
        .route("/v1/store/zones", get(store_zones))
        .route("/v1/store/collections", get(collections))
        .route("/v1/store/objects", get(objects))
        .route("/v1/store/cleaner", get(cleaner).post(order).patch(change))
        .route("/v1/store/backup", post(back_up))
        .route("/v1/store/scrub", get(scrub).post(order_scrub))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(middleware::from_fn(read_whole))
        .with_state(daemon)
}

/// Reads a request to its end before it is answered, whatever the answer: a client that still writes when
/// the connection closes is told of a broken pipe and never sees why it was refused.
async fn read_whole(request: Request, next: Next) -> Response {
    let (head, mut body) = request.into_parts();
    let mut whole = Vec::new();
    let invalid = |why: &dyn ToString| {
        Failure::new(StatusCode::BAD_REQUEST, Kind::Invalid, why.to_string()).into_response()
    };
    let until = Instant::now() + BODY;
    while whole.len() <= MAX_REQUEST_BYTES {
        match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                whole.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            }
            Ok(Some(Err(error))) => return invalid(&error),
            Ok(None) => return next.run(Request::from_parts(head, Body::from(whole))).await,
            // A chunked body, for instance, without the chunk that ends it.
            Err(_) => return invalid(&"the end of the request's body did not come"),
        }
    }
    let (time, mut left) = TOO_LARGE;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, |data| data.len());
            match left.checked_sub(bytes) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(time, rest).await;
    let message = format!("a request has at most {MAX_REQUEST_BYTES} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, message).into_response()
}

type Answer<T> = Result<Json<T>, Failure>;

async fn hello() -> Json<Hello> {
    Json(Hello {
        service: SERVICE.to_owned(),
        api_versions: vec![API_VERSION],
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
    })
}

async fn drive(State(daemon): State<Arc<Daemon>>) -> Answer<DriveDescription> {
    daemon
        .ask(|daemon| {
            let drive = &daemon.drive;
            let host_bytes = drive.host_bytes().map_err(Failure::failed)?;
            Ok(DriveDescription {
                profile: drive.profile_name().to_owned(),
                uuid: drive.identity(),
                geometry: drive.geometry().clone(),
                host_bytes,
            })
        })
        .await
}

async fn zones(
    State(daemon): State<Arc<Daemon>>,
    query: Result<Query<Zones>, QueryRejection>,
) -> Answer<Vec<ZoneDescriptor>> {
    let Query(Zones { first, count }) = query?;
    daemon
        .ask(move |daemon| Ok(daemon.drive.report(ZoneId(first), count.min(MAX_ZONES))?))
        .await
}

async fn space(State(daemon): State<Arc<Daemon>>) -> Answer<Statfs> {
    daemon.ask(|daemon| Ok(daemon.store.statfs())).await
}

async fn caches(State(daemon): State<Arc<Daemon>>) -> Answer<Caches> {
    daemon.ask(|daemon| Ok(daemon.store.caches()?)).await
}

/// Without a place among the questions: these may all wait for what is asked here.
async fn waiting(State(daemon): State<Arc<Daemon>>) -> Json<Vec<Waiting>> {
    Json(daemon.store.waiting())
}

async fn health(State(daemon): State<Arc<Daemon>>) -> Answer<Health> {
    daemon.ask(|daemon| Ok(daemon.store.health()?)).await
}

async fn store_zones(
    State(daemon): State<Arc<Daemon>>,
    query: Result<Query<Zones>, QueryRejection>,
) -> Answer<Vec<ZoneUse>> {
    let Query(Zones { first, count }) = query?;
    let asked = first..first.saturating_add(count.min(MAX_ZONES));
    daemon
        .ask(move |daemon| {
            let mut zones = daemon.store.zones();
            zones.retain(|zone| asked.contains(&zone.zone.0));
            Ok(zones)
        })
        .await
}

async fn collections(State(daemon): State<Arc<Daemon>>) -> Answer<Vec<Collection>> {
    daemon
        .ask(|daemon| {
            let collections = daemon.store.collections()?.into_iter();
            Ok(collections.map(Collection::from).collect())
        })
        .await
}

async fn objects(
    State(daemon): State<Arc<Daemon>>,
    query: Result<Query<Objects>, QueryRejection>,
) -> Answer<Vec<Object>> {
    let Query(query) = query?;
    let digits = "prefix_hex and from_hex have two hexadecimal digits for each byte";
    let no_digits = || Failure::new(StatusCode::BAD_REQUEST, Kind::Invalid, digits);
    let (prefix, from) = query.names().ok_or_else(no_digits)?;
    daemon
        .ask(move |daemon| {
            let limit = query.limit.min(MAX_OBJECTS);
            let page = daemon
                .store
                .list(&query.collection, &prefix, &from, limit)?;
            Ok(page.into_iter().map(Object::from).collect())
        })
        .await
}

async fn cleaner(State(daemon): State<Arc<Daemon>>) -> Answer<CleanerStatus> {
    daemon.ask(|daemon| Ok(daemon.store.clean_status())).await
}

async fn order(
    State(daemon): State<Arc<Daemon>>,
    order: Result<Json<Order>, JsonRejection>,
) -> Answer<Cleaned> {
    let Json(Order { action, job }) = order?;
    if matches!(action, Action::Start | Action::Stop) {
        tracing::info!(target: AUDIT, ?action, by = "the control socket", "order to the cleaner");
    }
    let does = move |daemon: &Daemon| {
        let store = &daemon.store;
        let mut step = CleaningStep::default();
        match action {
            Action::Start => store.clean_start()?,
            Action::Stop => store.clean_stop(),
            Action::One => {
                let job = job.unwrap_or_else(|| store.clean_status().job);
                step = store.clean_step(job)?;
            }
            Action::Seal => store.seal_open_zones()?,
        }
        let status = store.clean_status();
        Ok(Cleaned { step, status })
    };
    match action {
        Action::One | Action::Seal => daemon.call(&daemon.cleaning, does).await,
        Action::Start | Action::Stop => daemon.ask(does).await,
    }
}

async fn change(
    State(daemon): State<Arc<Daemon>>,
    change: Result<Json<CleanerChange>, JsonRejection>,
) -> Answer<CleanerStatus> {
    let Json(change) = change?;
    tracing::info!(target: AUDIT, ?change, by = "the control socket", "order to the cleaner");
    daemon
        .ask(move |daemon| {
            daemon.store.clean_change(change);
            Ok(daemon.store.clean_status())
        })
        .await
}

async fn scrub(State(daemon): State<Arc<Daemon>>) -> Answer<ScrubStatus> {
    daemon.ask(|daemon| Ok(daemon.store.scrub_status()?)).await
}

async fn order_scrub(
    State(daemon): State<Arc<Daemon>>,
    order: Result<Json<Scrub>, JsonRejection>,
) -> Answer<ScrubStatus> {
    let Json(order) = order?;
    tracing::info!(target: AUDIT, ?order, by = "the control socket", "order to the scrub");
    daemon
        .ask(move |daemon| {
            match order {
                Scrub::Metadata => daemon.store.scrub_start(false)?,
                Scrub::Data => daemon.store.scrub_start(true)?,
                Scrub::Stop => daemon.store.scrub_stop(),
            }
            Ok(daemon.store.scrub_status()?)
        })
        .await
}

/// One at a time; the next waits.
async fn back_up(
    State(daemon): State<Arc<Daemon>>,
    what: Result<Json<Backup>, JsonRejection>,
) -> Result<Response, Failure> {
    let Json(what) = what?;
    tracing::info!(target: AUDIT, ?what, by = "the control socket", "backup");
    let place = daemon.backups.clone().acquire_owned().await;
    let place = place.map_err(|_| Failure::stopping())?;
    let (sender, mut archive) = tokio::sync::mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        backup::run(&daemon.store, &what, sender, daemon.stops.clone());
        drop(place);
    });
    let frames = futures::stream::poll_fn(move |context| archive.poll_recv(context));
    Ok(Body::from_stream(frames.map(Ok::<_, io::Error>)).into_response())
}

async fn unknown() -> Failure {
    let message = format!("there is no such call in version {API_VERSION}");
    Failure::new(StatusCode::NOT_FOUND, Kind::UnknownCall, message)
}

impl Daemon {
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Answer<T> {
        self.call(&self.questions, call).await
    }

    /// Runs a call that may block. It runs to its end even if whoever asked goes away.
    async fn call<T: Send + 'static>(
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

/// An error on its way out.
struct Failure {
    status: StatusCode,
    problem: Problem,
}

impl Failure {
    fn new(status: StatusCode, kind: Kind, message: impl ToString) -> Self {
        let message = message.to_string();
        let problem = Problem { kind, message };
        Self { status, problem }
    }

    fn failed(message: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Failed, message)
    }

    fn stopping() -> Self {
        let message = "the server is stopping";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Stopping, message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let full = (StatusCode::INSUFFICIENT_STORAGE, Kind::NoSpace);
        let (status, kind) = match &error {
            E::NoCollection { .. } | E::NoObject { .. } => (StatusCode::NOT_FOUND, Kind::NotFound),
            E::Invalid { .. } | E::HashNotCovered { .. } | E::NoName { .. } => {
                (StatusCode::BAD_REQUEST, Kind::Invalid)
            }
            E::NoSpace { .. }
            | E::NoMetadataSpace { .. }
            | E::HostFull { .. }
            | E::Kv(kv::Error::NoSpace { .. })
            | E::BlueFs(bluefs::Error::NoSpace { .. }) => full,
            E::Drive(error) | E::BlueFs(bluefs::Error::Drive(error)) if error.is_host_full() => {
                full
            }
            E::ChecksumMismatch { .. }
            | E::CorruptMetadata { .. }
            | E::BelowMetadata { .. }
            | E::Kv(kv::Error::Corruption { .. }) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged)
            }
            E::BlueFs(error) if error.is_damage() => {
                (StatusCode::INTERNAL_SERVER_ERROR, Kind::Damaged)
            }
            E::ReadOnly => (StatusCode::SERVICE_UNAVAILABLE, Kind::Stopping),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, Kind::Failed),
        };
        Self::new(status, kind, error)
    }
}

impl From<ZoneError> for Failure {
    fn from(error: ZoneError) -> Self {
        Self::failed(format_args!("drive: {error}"))
    }
}

impl From<QueryRejection> for Failure {
    fn from(error: QueryRejection) -> Self {
        Self::new(error.status(), Kind::Invalid, error.body_text())
    }
}

impl From<JsonRejection> for Failure {
    fn from(error: JsonRejection) -> Self {
        Self::new(error.status(), Kind::Invalid, error.body_text())
    }
}
