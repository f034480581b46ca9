//! Deleting objects, one or many.

use crate::collections;
use crate::conditions;
use crate::errors::of_store;
use crate::gateway::Gateway;
use crate::object::condition_error;
use crate::refusals::{refuse, refuse_version};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use store::{Condition, Store, Transaction};

/// Keys of one multi-delete.
const MAX_DELETES: usize = 1000;
/// Bytes of a key.
const MAX_KEY_BYTES: usize = 1024;

/// DeleteObject.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let input = request.input;
    refuse_version(input.version_id.as_deref())?;
    let requires = conditions::of_write(input.if_match.as_ref(), None);
    let (bucket, key) = (input.bucket, input.key);
    gateway
        .call(move |store| {
            collections::require(store, &bucket)?;
            remove(store, &bucket, &key, &requires)
        })
        .await?;
    Ok(S3Response::new(DeleteObjectOutput::default()))
}

fn remove(store: &Store, bucket: &str, key: &str, requires: &[Condition]) -> S3Result<()> {
    let mut transaction = Transaction::new();
    for condition in requires {
        transaction.require(bucket, key, condition.clone());
    }
    transaction.remove_if_present(bucket, key);
    store
        .commit(transaction)
        .map_err(|error| condition_error(store, bucket, key, requires, error))
}

/// DeleteObjects.
pub async fn delete_many(
    gateway: &Gateway,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let DeleteObjectsInput { bucket, delete, .. } = request.input;
    let quiet = delete.quiet.unwrap_or(false);
    if delete.objects.is_empty() || delete.objects.len() > MAX_DELETES {
        return Err(s3_error!(
            MalformedXML,
            "A multi-delete names between 1 and {MAX_DELETES} objects"
        ));
    }
    let run = move |store: &Store| {
        collections::require(store, &bucket)?;
        let (mut deleted, mut errors, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for object in delete.objects {
            match delete_one(store, &bucket, &object, &mut plain) {
                Ok(()) => deleted.push(object.key),
                Err(error) => errors.push(s3s::dto::Error {
                    code: Some(error.code().as_str().to_owned()),
                    key: Some(object.key),
                    message: error.message().map(str::to_owned),
                    version_id: object.version_id,
                }),
            }
        }
        store.remove_all(&bucket, &plain).map_err(of_store)?;
        Ok((deleted, errors))
    };
    let (deleted, errors) = gateway.call(run).await?;
    let deleted = deleted.into_iter().map(|key| DeletedObject {
        key: Some(key),
        ..Default::default()
    });
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: (!quiet).then(|| deleted.collect()),
        errors: (!errors.is_empty()).then_some(errors),
        request_charged: None,
    }))
}

/// Deletes an object on a condition at once, and has one without in `plain`, to be removed with others.
fn delete_one(
    store: &Store,
    bucket: &str,
    object: &ObjectIdentifier,
    plain: &mut Vec<String>,
) -> S3Result<()> {
    refuse_version(object.version_id.as_deref())?;
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
    match &object.e_tag {
        None => {
            plain.push(object.key.clone());
            Ok(())
        }
        Some(tag) => {
            let condition = ETagCondition::ETag(tag.clone());
            remove(
                store,
                bucket,
                &object.key,
                &conditions::of_write(Some(&condition), None),
            )
        }
    }
}
