//! Routes of all calls of one drive, and the handlers of short ones.

use crate::api::{Done, Emptied, Kind, NewPolicy, Policy, Quarantining, Removed, Removing};
use crate::failure::{invalid, of_drive};
use crate::path::Named;
use crate::state::{Answer, Calls, SwiftCalls};
use crate::{data, listings, receiving, sending};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use std::sync::Arc;
use swift_files::FileName;

impl SwiftCalls {
    /// Routes of all calls.
    pub fn router(self: &Arc<Self>) -> Router {
        let object = "/{policy}/{partition}/{hash}";
        let of_object = |call: &str| format!("{object}/{call}");
        Router::new()
            .route("/policies", get(policies))
            .route("/policies/{policy}", put(add_policy))
            .route("/staged", post(data::stage))
            .route("/staged/{id}", delete(data::forget_staged))
            .route("/opened/{id}", get(data::read).delete(data::close))
            .route("/receiving", get(receiving::receiving))
            .route("/sending", get(sending::sending))
            .route("/{policy}/partitions", get(listings::partitions))
            .route(
                "/{policy}/quarantined",
                get(listings::quarantined).delete(empty_quarantine),
            )
            .route("/{policy}/{partition}/hashes", post(listings::hashes))
            .route("/{policy}/{partition}/suffixes", get(listings::suffixes))
            .route(
                "/{policy}/{partition}/suffixes/{suffix}",
                get(listings::objects),
            )
            .route(object, get(listings::files))
            .route(&of_object("open"), post(data::open))
            .route(&of_object("quarantine"), post(quarantine))
            .route(&of_object("remove"), post(remove))
            .route(&of_object("files/{file}"), put(data::put))
            .route(&of_object("files/{file}/durable"), post(make_durable))
            // Data is not limited; bodies that are read as a whole have limits of their own.
            .layer(DefaultBodyLimit::disable())
            .with_state(self.clone())
    }
}

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

async fn add_policy(State(calls): Calls, named: Named, body: Body) -> Answer<Done> {
    let index = named.policy()?;
    let NewPolicy { kind } = calls.question(body).await?;
    calls
        .change(move |drive| drive.add_policy(index, kind.into()))
        .await
}

async fn quarantine(State(calls): Calls, named: Named, body: Body) -> Answer<Done> {
    let address = named.address()?;
    let Quarantining { file } = calls.question(body).await?;
    let file = file.map(|file| file.parse::<FileName>().map_err(invalid));
    let file = file.transpose()?;
    let done = calls
        .change(move |drive| drive.quarantine(address, file))
        .await?;
    tracing::warn!(?address, "an object was put aside");
    Ok(done)
}

async fn empty_quarantine(State(calls): Calls, named: Named) -> Answer<Emptied> {
    let policy = named.policy()?;
    let files = calls
        .call(move |calls| calls.drive.empty_quarantine(policy).map_err(of_drive))
        .await?;
    tracing::warn!(policy, files, "quarantined objects were removed");
    Ok(Json(Emptied { files }))
}

async fn remove(State(calls): Calls, named: Named, body: Body) -> Answer<Removed> {
    let address = named.address()?;
    let Removing {
        files,
        older_than,
        leaves_metadata,
    } = calls.question(body).await?;
    let files = files.iter().map(|file| file.parse().map_err(invalid));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let since = older_than.map(|age| calls.seconds_ago(age));
    let remove = move |calls: &SwiftCalls| {
        calls
            .drive
            .remove_all(address, &files, since, leaves_metadata)
            .map_err(of_drive)
    };
    let removed = calls.call(remove).await?;
    Ok(Json(Removed { removed }))
}

async fn make_durable(State(calls): Calls, named: Named) -> Answer<Done> {
    let (address, file) = (named.address()?, named.file()?);
    calls
        .change(move |drive| drive.make_durable(address, file))
        .await
}
