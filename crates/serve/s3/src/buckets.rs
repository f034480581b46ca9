//! Operations on buckets. A bucket `b` has hidden collections for its unfinished uploads and for earlier versions of
//! its objects, which are removed with it in one transaction.

use crate::attributes::{KIND, KIND_BUCKET};
use crate::collections::{is_empty, require, uploads_of, versions_of};
use crate::dates::timestamp;
use crate::errors::of_store;
use crate::gateway::{Gateway, owner};
use crate::keyring::Key;
use crate::listing;
use crate::lock::BucketLock;
use crate::multipart;
use crate::pages::decode_token;
use crate::refusals::{refuse, refuse_acl};
use crate::versions::{Locks, Versioning};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use std::sync::Arc;
use store::{Store, Transaction};

/// CreateBucket.
pub async fn create(
    gateway: &Gateway,
    request: S3Request<CreateBucketInput>,
) -> S3Result<S3Response<CreateBucketOutput>> {
    let input = request.input;
    let acl = input.acl.as_ref().map(|acl| acl.as_str());
    refuse_acl(
        acl,
        [
            input.grant_full_control.is_some(),
            input.grant_read.is_some() || input.grant_read_acp.is_some(),
            input.grant_write.is_some(),
            input.grant_write_acp.is_some(),
        ],
    )?;
    let lock = input.object_lock_enabled_for_bucket == Some(true);
    let ownership = input.object_ownership.as_ref().map(|o| o.as_str());
    refuse(&[(
        !matches!(
            ownership,
            None | Some(ObjectOwnership::BUCKET_OWNER_ENFORCED)
        ),
        "Object ownership other than the bucket owner's",
    )])?;
    let (bucket, locks) = (input.bucket, gateway.locks.clone());
    let location = format!("/{bucket}");
    gateway
        .call(move |store| locks.create(store, &bucket, lock.then(BucketLock::default)))
        .await?;
    Ok(S3Response::new(CreateBucketOutput {
        location: Some(location),
    }))
}

/// Objects of a bucket among which a damaged one is looked for.
const LOOKED_AT: usize = 1000;
/// How often DeleteBucket removes uploads that clients go on creating.
const ROUNDS: u32 = 16;

/// DeleteBucket. Unfinished uploads do not prevent it; they are removed with the bucket.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<S3Response<DeleteBucketOutput>> {
    let bucket = request.input.bucket;
    let locks = gateway.locks.clone();
    gateway
        .call(move |store| remove(store, &locks, &bucket))
        .await?;
    Ok(S3Response::new(DeleteBucketOutput {}))
}

fn remove(store: &Store, locks: &Locks, bucket: &str) -> S3Result<()> {
    require(store, bucket)?;
    let uploads = uploads_of(bucket);
    let versions = versions_of(bucket);
    // While this is held, no object is put, so that uploads do not end without their bucket, and no request turns
    // versioning on. All other changes of the bucket wait, so nothing here waits for a flush but the last commit.
    let _held = locks.hold(bucket);
    for _ in 0..ROUNDS {
        // Uploads end with their bucket, so not before it is known to be empty.
        for collection in [bucket, &versions] {
            if !is_empty(store, collection).map_err(of_store)? {
                return Err(not_empty(store, collection));
            }
        }
        multipart::discard_all(store, &uploads)?;
        let mut transaction = Transaction::new();
        transaction
            .remove_collection(bucket)
            .remove_collection(&uploads);
        if store.collection(&versions).map_err(of_store)?.is_some() {
            transaction.remove_collection(&versions);
        }
        match store.commit(transaction) {
            // A part has arrived meanwhile.
            Err(store::Error::CollectionNotEmpty { collection }) if collection == uploads => {}
            result => return result.map_err(of_store),
        }
    }
    Err(s3_error!(
        OperationAborted,
        "Parts of uploads keep arriving in this bucket; try again when they have ended."
    ))
}

/// The error for a bucket with objects. An object with damaged metadata is named: no request removes it.
fn not_empty(store: &Store, collection: &str) -> S3Error {
    let found = store.list_damaged(collection, "", "", LOOKED_AT);
    let mut found = found.into_iter().flatten();
    match found.find_map(|(_, object)| object.err()) {
        Some(damage) => s3_error!(
            BucketNotEmpty,
            "The bucket you tried to delete is not empty, and what it holds is damaged; `store fsck --repair` on the server \
             moves that elsewhere: {damage}"
        ),
        None => of_store(store::Error::CollectionNotEmpty {
            collection: collection.to_owned(),
        }),
    }
}

/// HeadBucket.
pub async fn head(
    gateway: &Gateway,
    request: S3Request<HeadBucketInput>,
) -> S3Result<S3Response<HeadBucketOutput>> {
    let bucket = request.input.bucket;
    gateway.call(move |store| require(store, &bucket)).await?;
    Ok(S3Response::new(HeadBucketOutput {
        bucket_region: Some(gateway.region.clone()),
        ..Default::default()
    }))
}

/// GetBucketLocation.
pub async fn location(
    gateway: &Gateway,
    request: S3Request<GetBucketLocationInput>,
) -> S3Result<S3Response<GetBucketLocationOutput>> {
    let bucket = request.input.bucket;
    gateway.call(move |store| require(store, &bucket)).await?;
    // `us-east-1` has no name here, for historical reasons.
    let constraint = (gateway.region != "us-east-1").then(|| gateway.region.clone().into());
    Ok(S3Response::new(GetBucketLocationOutput {
        location_constraint: constraint,
    }))
}

/// GetBucketVersioning.
pub async fn versioning(
    gateway: &Gateway,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let bucket = request.input.bucket;
    let info = gateway.call(move |store| require(store, &bucket)).await?;
    let status = match Versioning::of(&info) {
        Versioning::Never => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    Ok(S3Response::new(GetBucketVersioningOutput {
        status: status.map(BucketVersioningStatus::from_static),
        ..Default::default()
    }))
}

/// PutBucketVersioning.
pub async fn set_versioning(
    gateway: &Gateway,
    request: S3Request<PutBucketVersioningInput>,
) -> S3Result<S3Response<PutBucketVersioningOutput>> {
    let input = request.input;
    let wanted = input.versioning_configuration;
    let mfa = wanted.mfa_delete.as_ref().map(MFADelete::as_str);
    refuse(&[(
        !matches!(mfa, None | Some(MFADelete::DISABLED)),
        "Deleting with a second factor",
    )])?;
    let status = wanted.status.as_ref().map(BucketVersioningStatus::as_str);
    let versioning = match status {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        Some(_) => {
            return Err(s3_error!(
                MalformedXML,
                "The status of versioning is Enabled or Suspended"
            ));
        }
        None => {
            return Err(s3_error!(
                IllegalVersioningConfigurationException,
                "The status of versioning must be specified"
            ));
        }
    };
    let (bucket, locks) = (input.bucket, gateway.locks.clone());
    gateway
        .call(move |store| locks.set(store, &bucket, versioning))
        .await?;
    Ok(S3Response::new(PutBucketVersioningOutput {}))
}

/// ListBuckets.
pub async fn list(
    gateway: &Gateway,
    request: S3Request<ListBucketsInput>,
) -> S3Result<S3Response<ListBucketsOutput>> {
    let input = request.input;
    let limit = match input.max_buckets {
        None => usize::MAX,
        Some(n @ 1..=10_000) => n as usize,
        Some(_) => {
            return Err(s3_error!(
                InvalidArgument,
                "max-buckets must be between 1 and 10000"
            ));
        }
    };
    let after = match &input.continuation_token {
        Some(token) => Some(decode_token(token)?),
        None => None,
    };
    let prefix = input.prefix.clone().unwrap_or_default();
    let elsewhere = input
        .bucket_region
        .is_some_and(|region| region != gateway.region);
    let key = request.extensions.get::<Arc<Key>>();
    let may_see = |bucket: &str| key.is_some_and(|key| key.rights.see(bucket));
    let mut found = gateway
        .call(|store| store.collections().map_err(of_store))
        .await?;
    found.retain(|info| {
        !elsewhere
            && may_see(&info.name)
            && info
                .attributes
                .get(KIND)
                .is_some_and(|kind| kind == KIND_BUCKET)
            && info.name.starts_with(&prefix)
            && after.as_ref().is_none_or(|after| info.name > *after)
    });
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let more = found.len() > limit;
    found.truncate(limit);
    let token = found
        .last()
        .filter(|_| more)
        .map(|info| listing::encode_token(&info.name));
    let buckets = found.into_iter().map(|info| Bucket {
        bucket_region: None,
        creation_date: Some(timestamp(info.created_micros)),
        name: Some(info.name),
    });
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(buckets.collect()),
        continuation_token: token,
        owner: Some(owner()),
        prefix: input.prefix,
    }))
}

#[cfg(test)]
mod tests;
