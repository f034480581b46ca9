//! The operations on an object's tags, which change nothing else of it: neither its entity tag nor its time.

use crate::attributes::{ObjectAttributes, TAGS};
use crate::collections;
use crate::gateway::Gateway;
use crate::object::{condition_error, stat};
use crate::refusals::refuse_version;
use crate::tags::Tags;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use store::{Attributes, Condition, Store, Transaction};

/// GetObjectTagging.
pub async fn get(
    gateway: &Gateway,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let input = request.input;
    refuse_version(input.version_id.as_deref())?;
    let info = gateway
        .call(move |store| stat(store, &input.bucket, &input.key))
        .await?;
    let tags = ObjectAttributes::decode(&info.attributes).tags;
    let tag = |(key, value): (&str, &str)| Tag {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    };
    Ok(S3Response::new(GetObjectTaggingOutput {
        tag_set: tags.iter().map(tag).collect(),
        ..Default::default()
    }))
}

/// PutObjectTagging.
pub async fn put(
    gateway: &Gateway,
    request: S3Request<PutObjectTaggingInput>,
) -> S3Result<S3Response<PutObjectTaggingOutput>> {
    let input = request.input;
    refuse_version(input.version_id.as_deref())?;
    let tag = |tag: Tag| Some((tag.key?, tag.value?));
    let tags: Option<Vec<_>> = input.tagging.tag_set.into_iter().map(tag).collect();
    let missing = || s3_error!(MalformedXML, "A tag has a key and a value");
    let tags = Tags::new(tags.ok_or_else(missing)?)?;
    set(gateway, input.bucket, input.key, tags).await?;
    Ok(S3Response::new(PutObjectTaggingOutput::default()))
}

/// DeleteObjectTagging.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteObjectTaggingInput>,
) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
    let input = request.input;
    refuse_version(input.version_id.as_deref())?;
    set(gateway, input.bucket, input.key, Tags::default()).await?;
    Ok(S3Response::new(DeleteObjectTaggingOutput::default()))
}

async fn set(gateway: &Gateway, bucket: String, key: String, tags: Tags) -> S3Result<()> {
    let encoded = tags.encode().map(|text| (TAGS.to_owned(), text.into()));
    let (set, remove): (Attributes, &[&str]) = match encoded {
        Some(tags) => (Attributes::from([tags]), &[]),
        None => (Attributes::new(), &[TAGS]),
    };
    let change = move |store: &Store| {
        collections::require(store, &bucket)?;
        let mut transaction = Transaction::new();
        transaction
            .require(&bucket, &key, Condition::Present)
            .update_attributes(&bucket, &key, set, remove);
        let done = store.commit(transaction);
        done.map_err(|error| condition_error(store, &bucket, &key, &[Condition::Present], error))
    };
    gateway.call(change).await
}
