//! Handlers of all calls: they only translate between the wire types and those of store and drive.

use crate::api::{
    API_VERSION, Action, Backup, Cleaned, Collection, DriveDescription, HealthOf, Hello, Kind,
    MAX_OBJECTS, MAX_ZONES, Object, Objects, Order, SERVICE, Scrub, Zones,
};
use crate::backup;
use crate::daemon::{Answer, Daemon};
use crate::failure::Failure;
use crate::sent::Sent;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use device::ZonedDevice;
use futures::StreamExt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use store::{
    Caches, CleanerChange, CleanerStatus, CleaningStep, ClusterTurn, Health, ScrubStatus, Statfs,
    Waiting, ZoneUse,
};
use zone::{ZoneDescriptor, ZoneId};

/// Target of the audit log's events.
const AUDIT: &str = "audit";

/// Origin of these orders in the audit log.
const BY: &str = "the control socket";

/// Gives the content of the status page.
pub type Tell =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = serde_json::Value> + Send>> + Send + Sync>;

/// All calls of a drive. Without `tell`, `/store/status` is an unknown call.
pub fn router(daemon: Arc<Daemon>, tell: Option<Tell>) -> Router {
    let status = async move || match tell {
        Some(tell) => Json(tell().await).into_response(),
        None => unknown().await.into_response(),
    };
    Router::new()
        .route("/store/status", get(status))
        .route("/drive", get(drive))
        .route("/drive/zones", get(zones))
        .route("/store/space", get(space))
        .route("/store/caches", get(caches))
        .route("/store/waiting", get(waiting))
        .route("/store/health", get(health))
        .route("/store/zones", get(store_zones))
        .route("/store/collections", get(collections))
        .route("/store/objects", get(objects))
        .route("/store/cleaner", get(cleaner).post(order).patch(change))
        .route("/store/cleaner/turn", post(take_turn))
        .route("/store/backup", post(back_up))
        .route("/store/scrub", get(scrub).post(order_scrub))
        .fallback(unknown)
        .with_state(daemon)
}

pub fn hello(command: &str) -> Json<Hello> {
    Json(Hello {
        service: SERVICE.to_owned(),
        api_versions: vec![API_VERSION],
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        command: command.to_owned(),
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

/// Takes no permit: all permits may be held by calls that wait for the very requests reported here.
async fn waiting(State(daemon): State<Arc<Daemon>>) -> Json<Vec<Waiting>> {
    Json(daemon.store.waiting())
}

async fn health(
    State(daemon): State<Arc<Daemon>>,
    query: Result<Query<HealthOf>, QueryRejection>,
) -> Answer<Health> {
    let Query(HealthOf { recent }) = query?;
    let look = move |daemon: &Daemon| {
        let before = daemon.health.lock().clone().filter(|_| recent);
        let look = Arc::new(daemon.store.health_after(before.as_deref())?);
        *daemon.health.lock() = Some(look.clone());
        Ok(look.health.clone())
    };
    daemon.call(&daemon.looks, look).await
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

async fn order(State(daemon): State<Arc<Daemon>>, Sent(order): Sent<Order>) -> Answer<Cleaned> {
    let Order { action, job } = order;
    if matches!(action, Action::Start | Action::Stop) {
        let order = if matches!(action, Action::Start) {
            "start"
        } else {
            "stop"
        };
        tracing::info!(target: AUDIT, order, by = BY, "order to the cleaner");
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
    Sent(change): Sent<CleanerChange>,
) -> Answer<CleanerStatus> {
    let order = change.to_string();
    tracing::info!(target: AUDIT, order, by = BY, "order to the cleaner");
    daemon
        .ask(move |daemon| {
            daemon.store.clean_change(change);
            Ok(daemon.store.clean_status())
        })
        .await
}

/// Not in the audit log: a cluster sends a turn each second, and a turn expires soon.
async fn take_turn(
    State(daemon): State<Arc<Daemon>>,
    Sent(turn): Sent<ClusterTurn>,
) -> Answer<CleanerStatus> {
    daemon
        .ask(move |daemon| {
            daemon.store.clean_turn(turn);
            Ok(daemon.store.clean_status())
        })
        .await
}

async fn scrub(State(daemon): State<Arc<Daemon>>) -> Answer<ScrubStatus> {
    daemon.ask(|daemon| Ok(daemon.store.scrub_status()?)).await
}

async fn order_scrub(
    State(daemon): State<Arc<Daemon>>,
    Sent(order): Sent<Scrub>,
) -> Answer<ScrubStatus> {
    let words = match order {
        Scrub::Metadata => "look at the metadata",
        Scrub::Data => "look at all data",
        Scrub::Stop => "stop",
    };
    tracing::info!(target: AUDIT, order = words, by = BY, "order to the scrub");
    daemon
        .ask(move |daemon| {
            match order {
                Scrub::Metadata => daemon.store.scrub_start(false)?,
                Scrub::Data => daemon.store.scrub_start(true)?,
                Scrub::Stop => daemon.store.scrub_stop()?,
            }
            Ok(daemon.store.scrub_status()?)
        })
        .await
}

/// The order in words, for the audit log.
fn backup_in_words(what: &Backup) -> String {
    let mut words = match &what.since {
        None => "full".to_owned(),
        Some(since) => format!("what changed since {}", since.display()),
    };
    if what.skip_damaged {
        words += ", without what is damaged";
    }
    words
}

/// Makes one backup at a time; the next waits.
async fn back_up(
    State(daemon): State<Arc<Daemon>>,
    Sent(what): Sent<Backup>,
) -> Result<Response, Failure> {
    let order = backup_in_words(&what);
    tracing::info!(target: AUDIT, order, by = BY, "order of a backup");
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

pub async fn unknown() -> Failure {
    Failure::unknown_call()
}

/// A call that does not have this method.
pub async fn no_method() -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        Kind::UnknownCall,
        "this call is not asked with this method",
    )
}
