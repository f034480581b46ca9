//! Operations on a bucket's lifecycle rules, which [`expiry`](crate::expiry) carries out.

use crate::attributes::LIFECYCLE;
use crate::collections::require;
use crate::gateway::Gateway;
use crate::lifecycle_rules;
use objects::digest::hex;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

/// PutBucketLifecycleConfiguration.
pub async fn put(
    gateway: &Gateway,
    request: S3Request<PutBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<PutBucketLifecycleConfigurationOutput>> {
    let input = request.input;
    let rules = input.lifecycle_configuration;
    let rules = rules.ok_or_else(|| s3_error!(MalformedXML, "There are no lifecycle rules"))?;
    let rules = lifecycle_rules::admit(rules, || {
        let mut id = [0; 16];
        (gateway.random)(&mut id);
        hex(&id)
    })?;
    set(
        gateway,
        input.bucket,
        Some(lifecycle_rules::encode(&rules)?),
    )
    .await?;
    Ok(S3Response::new(
        PutBucketLifecycleConfigurationOutput::default(),
    ))
}

/// DeleteBucketLifecycle.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteBucketLifecycleInput>,
) -> S3Result<S3Response<DeleteBucketLifecycleOutput>> {
    set(gateway, request.input.bucket, None).await?;
    Ok(S3Response::new(DeleteBucketLifecycleOutput {}))
}

async fn set(gateway: &Gateway, bucket: String, document: Option<Vec<u8>>) -> S3Result<()> {
    let locks = gateway.locks.clone();
    let change = move |store: &store::Store| {
        locks.change_bucket(store, &bucket, |attributes, _| {
            match document {
                Some(document) => attributes.insert(LIFECYCLE.to_owned(), document),
                None => attributes.remove(LIFECYCLE),
            };
            Ok(())
        })
    };
    gateway.call(change).await?;
    gateway.rules_changed.notify_one();
    Ok(())
}

/// GetBucketLifecycleConfiguration.
pub async fn get(
    gateway: &Gateway,
    request: S3Request<GetBucketLifecycleConfigurationInput>,
) -> S3Result<S3Response<GetBucketLifecycleConfigurationOutput>> {
    let bucket = request.input.bucket;
    let info = gateway.call(move |store| require(store, &bucket)).await?;
    let none = || {
        s3_error!(
            NoSuchLifecycleConfiguration,
            "The lifecycle configuration does not exist"
        )
    };
    let document = info.attributes.get(LIFECYCLE).ok_or_else(none)?;
    Ok(S3Response::new(GetBucketLifecycleConfigurationOutput {
        rules: Some(lifecycle_rules::decode(document)?.rules),
        ..Default::default()
    }))
}
