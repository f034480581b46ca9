//! Operations on an object's tags. They change neither its entity tag nor its modification time.

use crate::attributes::{ObjectAttributes, TAGS};
use crate::errors::condition_error;
use crate::gateway::Gateway;
use crate::tags::Tags;
use crate::versions;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use store::{Attributes, Condition, Store, Transaction};

/// GetObjectTagging.
pub async fn get(
    gateway: &Gateway,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let input = request.input;
    let (bucket, key, version) = (input.bucket, input.key, input.version_id);
    let found = gateway
        .call(move |store| versions::stat(store, &bucket, &key, version.as_deref()))
        .await?;
    let tags = ObjectAttributes::decode(&found.found.attributes).tags;
    let tag = |(key, value): (&str, &str)| Tag {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
    };
    Ok(S3Response::new(GetObjectTaggingOutput {
        tag_set: tags.iter().map(tag).collect(),
        version_id: found.id,
    }))
}

/// PutObjectTagging.
pub async fn put(
    gateway: &Gateway,
    request: S3Request<PutObjectTaggingInput>,
) -> S3Result<S3Response<PutObjectTaggingOutput>> {
    let input = request.input;
    let tag = |tag: Tag| Some((tag.key?, tag.value?));
    let tags: Option<Vec<_>> = input.tagging.tag_set.into_iter().map(tag).collect();
    let missing = || s3_error!(MalformedXML, "A tag has a key and a value");
    let tags = Tags::new(tags.ok_or_else(missing)?)?;
    let object = (input.bucket, input.key, input.version_id);
    let version_id = set(gateway, object, tags).await?;
    Ok(S3Response::new(PutObjectTaggingOutput { version_id }))
}

/// DeleteObjectTagging.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteObjectTaggingInput>,
) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
    let input = request.input;
    let object = (input.bucket, input.key, input.version_id);
    let version_id = set(gateway, object, Tags::default()).await?;
    Ok(S3Response::new(DeleteObjectTaggingOutput { version_id }))
}

/// Replaces the tags of a version; returns its id for the answer.
async fn set(
    gateway: &Gateway,
    (bucket, key, version): (String, String, Option<String>),
    tags: Tags,
) -> S3Result<Option<String>> {
    let encoded = tags.encode().map(|text| (TAGS.to_owned(), text.into()));
    let (set, remove): (Attributes, &[&str]) = match encoded {
        Some(tags) => (Attributes::from([tags]), &[]),
        None => (Attributes::new(), &[TAGS]),
    };
    let locks = gateway.locks.clone();
    let change = move |store: &Store| {
        let _change = locks.change(store, &bucket, &key)?;
        let found = versions::stat(store, &bucket, &key, version.as_deref())?;
        let mut transaction = Transaction::new();
        // Where no versions are kept, the object may be removed meanwhile.
        transaction
            .require(&found.collection, &found.name, Condition::Present)
            .update_attributes(&found.collection, &found.name, set, remove);
        let done = store.commit(transaction);
        done.map_err(|error| condition_error(store, &bucket, &key, &[Condition::Present], error))?;
        Ok(found.id)
    };
    gateway.call(change).await
}
