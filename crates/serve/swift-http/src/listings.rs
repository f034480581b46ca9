//! Handlers of listings and of suffix hashes.

use crate::api::{
    Files, Hashes, Hashing, LISTED, Limit, MAX_LISTED, Object, Partitions, Quarantined,
};
use crate::failure::{invalid, of_drive};
use crate::path::{Named, suffix};
use crate::state::{Answer, Calls};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use control::Failure;
use swift_drive::Ages;
use swift_files::{FileName, Reclaim};

fn names(files: &[FileName]) -> Vec<String> {
    files.iter().map(FileName::to_string).collect()
}

fn at_most(limit: Option<usize>) -> Result<usize, Failure> {
    let limit = limit.unwrap_or(LISTED);
    if limit > MAX_LISTED {
        return Err(invalid(format_args!("limit is at most {MAX_LISTED}")));
    }
    Ok(limit)
}

/// Partitions of a policy that have suffixes, in order.
pub async fn partitions(
    State(calls): Calls,
    named: Named,
    query: Result<Query<Partitions>, QueryRejection>,
) -> Answer<Vec<u32>> {
    let (policy, Query(Partitions { from, limit })) = (named.policy()?, query?);
    let limit = at_most(limit)?;
    let found = calls.call(move |calls| {
        calls
            .drive
            .partitions(policy, from, limit)
            .map_err(of_drive)
    });
    Ok(Json(found.await?))
}

/// Suffixes of a partition, in order.
pub async fn suffixes(State(calls): Calls, named: Named) -> Answer<Vec<String>> {
    let (policy, partition) = (named.policy()?, named.partition()?);
    let found = calls.call(move |calls| calls.drive.suffixes(policy, partition).map_err(of_drive));
    let found = found.await?;
    Ok(Json(found.iter().map(ToString::to_string).collect()))
}

/// Objects of a suffix with their files, in order.
pub async fn objects(State(calls): Calls, named: Named) -> Answer<Vec<Object>> {
    let (policy, partition, suffix) = (named.policy()?, named.partition()?, named.suffix()?);
    let found = calls.call(move |calls| {
        calls
            .drive
            .objects(policy, partition, suffix)
            .map_err(of_drive)
    });
    let objects = found.await?.into_iter().map(|(hash, files)| Object {
        hash: hash.to_string(),
        files: names(&files),
    });
    Ok(Json(objects.collect()))
}

/// Files of an object.
pub async fn files(State(calls): Calls, named: Named) -> Answer<Files> {
    let address = named.address()?;
    let found = calls.call(move |calls| calls.drive.files(address).map_err(of_drive));
    let files = names(&found.await?);
    Ok(Json(Files { files }))
}

/// Quarantined objects of a policy.
pub async fn quarantined(
    State(calls): Calls,
    named: Named,
    query: Result<Query<Limit>, QueryRejection>,
) -> Answer<Vec<Quarantined>> {
    let (policy, Query(Limit { limit })) = (named.policy()?, query?);
    let limit = at_most(limit)?;
    let found = calls.call(move |calls| calls.drive.quarantined(policy, limit).map_err(of_drive));
    let objects = found
        .await?
        .into_iter()
        .map(|(address, files)| Quarantined {
            partition: address.partition,
            hash: address.hash.to_string(),
            files: names(&files),
        });
    Ok(Json(objects.collect()))
}

/// The hashes of a partition's suffixes.
pub async fn hashes(State(calls): Calls, named: Named, body: Body) -> Answer<Hashes> {
    let (policy, partition) = (named.policy()?, named.partition()?);
    let Hashing {
        recalculate,
        reclaim_age,
        commit_window,
    } = calls.question(body).await?;
    let again = recalculate.iter().map(|digits| suffix(digits));
    let again: Vec<_> = again.collect::<Result<_, _>>()?;
    let found = calls.call(move |calls| {
        let ages = Ages {
            reclaim: Reclaim {
                age: (reclaim_age.0 * 1e5) as u64,
                now: calls.runtime.unix_micros() / 10,
            },
            committing_since: calls.seconds_ago(commit_window),
        };
        calls
            .drive
            .hashes(policy, partition, &again, ages)
            .map_err(of_drive)
    });
    let (hashes, computed) = found.await?;
    Ok(Json(Hashes { computed, hashes }))
}
