//! DeleteObject and DeleteObjects.

use crate::collections;
use crate::conditions;
use crate::errors::of_store;
use crate::gateway::Gateway;
use crate::lock::{Kept, Lock};
use crate::object_lock::bypasses;
use crate::refusals::refuse;
use crate::versions::{Deleted, Locks, Versioning};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeSet;
use store::{Pending, Store};

/// Most keys in one DeleteObjects.
const MAX_DELETES: usize = 1000;
/// Most bytes of a key.
const MAX_KEY_BYTES: usize = 1024;

/// DeleteObject.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let input = request.input;
    let bypass = input.bypass_governance_retention;
    let bypass = bypasses(&request.extensions, &input.bucket, bypass);
    let requires = conditions::of_write(input.if_match.as_ref(), None)?;
    let (bucket, key, version) = (input.bucket, input.key, input.version_id);
    let locks = gateway.locks.clone();
    let deleted = gateway
        .call(move |store| {
            let change = locks.change(store, &bucket, &key)?;
            Ok(match &version {
                Some(version) => {
                    let done = change.delete_version(version, bypass, &requires, Store::commit);
                    done?.0
                }
                None => change.delete(&requires, Store::commit)?.0,
            })
        })
        .await?;
    Ok(S3Response::new(DeleteObjectOutput {
        delete_marker: deleted.marker.then_some(true),
        version_id: deleted.id,
        ..Default::default()
    }))
}

/// DeleteObjects.
pub async fn delete_many(
    gateway: &Gateway,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let DeleteObjectsInput {
        bucket,
        delete,
        bypass_governance_retention: bypass,
        ..
    } = request.input;
    let bypass = bypasses(&request.extensions, &bucket, bypass);
    let quiet = delete.quiet.unwrap_or(false);
    if delete.objects.is_empty() || delete.objects.len() > MAX_DELETES {
        return Err(s3_error!(
            MalformedXML,
            "A multi-delete names between 1 and {MAX_DELETES} objects"
        ));
    }
    let locks = gateway.locks.clone();
    let run = move |store: &Store| {
        let (mut deleted, mut errors, mut last) = (Vec::new(), Vec::new(), None);
        for (object, outcome) in delete_all(store, &locks, &bucket, bypass, delete.objects)? {
            match outcome {
                Ok((one, pending)) => {
                    last = pending.or(last);
                    deleted.push((object, one));
                }
                Err(error) => errors.push(s3s::dto::Error {
                    code: Some(error.code().as_str().to_owned()),
                    key: Some(object.key),
                    message: error.message().map(str::to_owned),
                    version_id: object.version_id,
                }),
            }
        }
        // Commits are in order: once the last one is durable, so are those before it.
        last.map_or(Ok(()), Pending::wait).map_err(of_store)?;
        Ok((deleted, errors))
    };
    let (deleted, errors) = gateway.call(run).await?;
    let deleted = deleted.into_iter().map(|(object, one)| DeletedObject {
        key: Some(object.key),
        delete_marker: one.marker.then_some(true),
        delete_marker_version_id: one.id.filter(|_| one.marker),
        version_id: object.version_id,
    });
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: (!quiet).then(|| deleted.collect()),
        errors: (!errors.is_empty()).then_some(errors),
        request_charged: None,
    }))
}

type Outcome = S3Result<(Deleted, Option<Pending>)>;

/// Deletes objects one by one; where no versions are kept, those without conditions and locks go in one transaction,
/// unless one of them is damaged.
fn delete_all(
    store: &Store,
    locks: &Locks,
    bucket: &str,
    bypass: bool,
    objects: Vec<ObjectIdentifier>,
) -> S3Result<Vec<(ObjectIdentifier, Outcome)>> {
    collections::require(store, bucket)?;
    let is_plain = |object: &ObjectIdentifier| {
        object.e_tag.is_none() && object.version_id.is_none() && check(object).is_ok()
    };
    // Any lock counts here; whether it has ended is decided where the object is deleted by itself.
    let may_be_locked = |object: &ObjectIdentifier| {
        let is_free = |lock: Kept| lock.read() == Ok(Lock::default());
        let found = store.stat(bucket, &object.key);
        !found.is_ok_and(|info| info.is_none_or(|info| is_free(Kept::of(&info.attributes))))
    };
    let mut together = BTreeSet::new();
    {
        let _held = locks.as_they_are(bucket);
        if Versioning::of(&collections::require(store, bucket)?) == Versioning::Never {
            for object in objects.iter().filter(|object| is_plain(object)) {
                if !may_be_locked(object) {
                    together.insert(object.key.clone());
                }
            }
            let plain: Vec<&String> = together.iter().collect();
            if let Err(error) = store.remove_all(bucket, &plain).map_err(of_store) {
                // A drive that is full or fails has all of them refused; damage has not.
                if *error.code() != S3ErrorCode::InternalError {
                    return Err(error);
                }
                together.clear();
            }
        }
    }
    let delete = |object: ObjectIdentifier| {
        let outcome = match together.contains(&object.key) && is_plain(&object) {
            true => Ok((Deleted::default(), None)),
            false => delete_one(store, locks, bucket, bypass, &object),
        };
        (object, outcome)
    };
    Ok(objects.into_iter().map(delete).collect())
}

/// Refuses entries that cannot be deleted as requested.
fn check(object: &ObjectIdentifier) -> S3Result<()> {
    refuse(&[(
        object.size.is_some() || object.last_modified_time.is_some(),
        "Deleting by size or time",
    )])?;
    if object.key.is_empty() {
        return Err(s3_error!(UserKeyMustBeSpecified, "A key must be specified"));
    }
    if object.key.len() > MAX_KEY_BYTES {
        return Err(s3_error!(KeyTooLongError, "Your key is too long"));
    }
    Ok(())
}

/// Deletes an object, or one version of it.
fn delete_one(
    store: &Store,
    locks: &Locks,
    bucket: &str,
    bypass: bool,
    object: &ObjectIdentifier,
) -> Outcome {
    check(object)?;
    let condition = object.e_tag.clone().map(ETagCondition::ETag);
    let requires = conditions::of_write(condition.as_ref(), None)?;
    let change = locks.change(store, bucket, &object.key)?;
    match &object.version_id {
        Some(version) => change.delete_version(version, bypass, &requires, Store::commit_readable),
        None => {
            let (deleted, pending) = change.delete(&requires, Store::commit_readable)?;
            Ok((deleted, Some(pending)))
        }
    }
}

#[cfg(test)]
mod tests;
