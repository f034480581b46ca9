//! Copies within the store: CopyObject and UploadPartCopy.
//!
//! A copy shares its bytes with the source. They are read only for digests that are not stored: of parts, and of
//! objects put in parts. The commit requires the source as it was described; if it changed, the copy begins again.

pub mod source;

use self::source::{Located, open};
use crate::attributes::{Checksum, Content, ObjectAttributes, stored_encoding};
use crate::collections;
use crate::conditions::{self, Preconditions};
use crate::dates::{format_date, timestamp};
use crate::digest::parse_name;
use crate::errors::condition_error;
use crate::gateway::{Gateway, checksum_type, set_checksum};
use crate::lock::{self, BucketLock};
use crate::multipart;
use crate::object::{content_of, foresee};
use crate::object_lock::asked_of;
use crate::ranges::{resolve, unsatisfiable};
use crate::refusals::{check_metadata, refuse_features};
use crate::tags::Tags;
use crate::versions::Version;
use http::HeaderMap;
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use std::ops;
use store::{Store, Transaction};

/// How many times a copy begins again because its source was replaced or got other tags.
const ATTEMPTS: u32 = 8;
/// The same for a copy onto itself. Of those that are made at the same time, each round lets one through, and as many are made
/// as a server has store calls.
const ATTEMPTS_IN_PLACE: u32 = 64;

/// The source of a copy. As S3 does, this takes a `+` for a space, which clients send that encode it as in a form.
fn locate(headers: &HeaderMap) -> S3Result<Located> {
    let header = headers.get("x-amz-copy-source");
    let text = header.and_then(|value| value.to_str().ok());
    let source = text.and_then(|text| CopySource::parse(&text.replace('+', "%20")).ok());
    match source {
        Some(CopySource::Bucket {
            bucket,
            key,
            version_id,
        }) => Ok((bucket.into(), key.into(), version_id.map(Into::into))),
        Some(_) => Err(s3_error!(
            NotImplemented,
            "Access points are not implemented"
        )),
        None => Err(s3_error!(
            InvalidArgument,
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
        )),
    }
}

macro_rules! source_preconditions {
    ($input:expr) => {
        Preconditions {
            if_match: $input.copy_source_if_match.clone(),
            if_none_match: $input.copy_source_if_none_match.clone(),
            if_modified_since: $input.copy_source_if_modified_since.clone(),
            if_unmodified_since: $input.copy_source_if_unmodified_since.clone(),
        }
    };
}

fn never_the_same() -> S3Error {
    s3_error!(
        OperationAborted,
        "The copy source was replaced again and again while it was copied. Please try again."
    )
}

/// CopyObject.
pub async fn object(
    gateway: &Gateway,
    request: S3Request<CopyObjectInput>,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let requires = conditions::of_headers(&request.headers)?;
    let input = request.input;
    refuse_features!(input);
    check_metadata(input.metadata.as_ref())?;
    let replace = match input
        .metadata_directive
        .as_ref()
        .map(|directive| directive.as_str())
    {
        None | Some(MetadataDirective::COPY) => false,
        Some(MetadataDirective::REPLACE) => true,
        Some(_) => return Err(s3_error!(InvalidArgument, "Unknown metadata directive.")),
    };
    let tags = match input
        .tagging_directive
        .as_ref()
        .map(TaggingDirective::as_str)
    {
        None | Some(TaggingDirective::COPY) => None,
        Some(TaggingDirective::REPLACE) => Some(Tags::of_header(input.tagging.as_deref())?),
        Some(_) => return Err(s3_error!(InvalidArgument, "Unknown tagging directive.")),
    };
    let wanted = match &input.checksum_algorithm {
        Some(algorithm) => Some(parse_name(algorithm.as_str())?),
        None => None,
    };
    let now = (gateway.clock)();
    let asked = asked_of!(input, now)?;
    let from = locate(&request.headers)?;
    let onto_itself = from.0 == input.bucket && from.1 == input.key && from.2.is_none();
    if onto_itself && !replace && wanted.is_none() {
        return Err(s3_error!(
            InvalidRequest,
            "This copy request is illegal because it is trying to copy an object to itself without \
             changing the object's metadata, storage class, website redirect location or encryption \
             attributes."
        ));
    }
    let preconditions = source_preconditions!(input);
    let replacement = replace.then(|| {
        let metadata = input
            .metadata
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect();
        (content_of!(input), metadata)
    });
    let (bucket, key) = (input.bucket, input.key);
    let mut copied = None;
    let attempts = match onto_itself {
        true => ATTEMPTS_IN_PLACE,
        false => ATTEMPTS,
    };
    for _ in 0..attempts {
        let (bucket, key, requires) = (bucket.clone(), key.clone(), requires.clone());
        let source = {
            let (bucket, key, requires) = (bucket.clone(), key.clone(), requires.clone());
            let from = from.clone();
            let preconditions = preconditions.clone();
            gateway
                .call(move |store| {
                    let info = collections::require(store, &bucket)?;
                    lock::grant(BucketLock::of(&info.attributes), asked, now)?;
                    foresee(store, &bucket, &key, &requires)?;
                    open(store, &from, &preconditions)
                })
                .await?
        };
        let was = &source.object.attributes;
        let kept = was.checksum.as_ref().map(|checksum| checksum.algorithm);
        let range = 0..source.object.size;
        // A copy's checksum covers all its bytes, while this one covers those of parts.
        let is_composite = was.checksum.as_ref().is_some_and(Checksum::is_composite);
        let is_kept = !is_composite && (wanted.is_none() || wanted == kept);
        let described = if onto_itself && is_kept {
            was.clone()
        } else {
            source.describe(gateway, &range, wanted.or(kept)).await?
        };
        let (content, metadata) = replacement
            .clone()
            .unwrap_or_else(|| (was.content.clone(), was.metadata.clone()));
        let attributes = ObjectAttributes {
            content,
            metadata,
            tags: tags.clone().unwrap_or_else(|| was.tags.clone()),
            ..described
        };
        let copies_tags = tags.is_none();
        let (locks, rules) = (gateway.locks.clone(), gateway.rules.clone());
        let commit = move |store: &Store| {
            let change = locks.change(store, &bucket, &key)?;
            // A copy does not inherit its source's lock.
            let lock = change.grant(asked)?;
            let mut transaction = Transaction::new();
            for condition in &requires {
                transaction.require(&bucket, &key, condition.clone());
            }
            source.require(&mut transaction);
            if copies_tags {
                source.require_tags(&mut transaction);
            }
            let version = change.replace(&mut transaction, lock, |transaction, next| {
                let marked = next.mark(attributes.encode());
                source.put(transaction, range, (&bucket, &key), next.moved, change.now);
                transaction.set_attributes(&bucket, &key, marked);
            });
            let ids = (version?.and_then(Version::told), source.id.clone());
            match store.commit(transaction) {
                Ok(()) => {
                    let fate = rules.header_of(store, &bucket, &key);
                    Ok(Some((
                        attributes,
                        modified(store, &bucket, &key),
                        ids,
                        fate,
                    )))
                }
                Err(error) if source.is_gone(&error) => Ok(None),
                Err(error) => Err(condition_error(store, &bucket, &key, &requires, error)),
            }
        };
        copied = gateway.call(commit).await?;
        if copied.is_some() {
            break;
        }
    }
    let (attributes, modified_micros, ids, expiration) = copied.ok_or_else(never_the_same)?;
    let mut result = CopyObjectResult {
        e_tag: Some(ETag::Strong(attributes.etag)),
        last_modified: Some(timestamp(modified_micros)),
        checksum_type: attributes.checksum.as_ref().map(checksum_type),
        ..Default::default()
    };
    set_checksum!(result, &attributes.checksum);
    let copy_object_result = Some(result);
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result,
        expiration,
        version_id: ids.0,
        copy_source_version_id: ids.1,
        ..Default::default()
    }))
}

/// Modification time of an object just written. It only informs, so that a race does no harm.
fn modified(store: &Store, collection: &str, object: &str) -> u64 {
    store
        .stat(collection, object)
        .ok()
        .flatten()
        .map_or(0, |info| info.modified_micros)
}

/// UploadPartCopy.
pub async fn part(
    gateway: &Gateway,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<S3Response<UploadPartCopyOutput>> {
    let input = request.input;
    let number = multipart::part_number(input.part_number)?;
    let from = locate(&request.headers)?;
    let preconditions = source_preconditions!(input);
    let (bucket, key, id) = (input.bucket, input.key, input.upload_id);
    let mut copied = None;
    for _ in 0..ATTEMPTS {
        let (bucket, id) = (bucket.clone(), id.clone());
        let (upload, source) = {
            let (bucket, key, id) = (bucket.clone(), key.clone(), id.clone());
            let from = from.clone();
            let preconditions = preconditions.clone();
            gateway
                .call(move |store| {
                    let upload = multipart::load(store, &bucket, &key, &id)?;
                    Ok((upload, open(store, &from, &preconditions)?))
                })
                .await?
        };
        let size = source.object.size;
        let range = match &input.copy_source_range {
            None => 0..size,
            Some(text) => copy_range(text, size)?,
        };
        let attributes = source.describe(gateway, &range, upload.algorithm).await?;
        let commit = move |store: &Store| {
            let (mut transaction, collection, name) = multipart::begin_part(&bucket, &id, number);
            source.require(&mut transaction);
            transaction.remove_even_damaged(&collection, &name);
            source.put(&mut transaction, range, (&collection, &name), None, 0);
            transaction.set_attributes(&collection, &name, attributes.encode());
            match store.commit(transaction) {
                Ok(()) => {
                    let modified = modified(store, &collection, &name);
                    Ok(Some((attributes, modified, source.id)))
                }
                Err(error) if source.is_gone(&error) => Ok(None),
                Err(error) => Err(multipart::upload_error(error)),
            }
        };
        copied = gateway.call(commit).await?;
        if copied.is_some() {
            break;
        }
    }
    let (attributes, modified_micros, source_id) = copied.ok_or_else(never_the_same)?;
    let mut result = CopyPartResult {
        e_tag: Some(ETag::Strong(attributes.etag)),
        last_modified: Some(timestamp(modified_micros)),
        ..Default::default()
    };
    set_checksum!(result, &attributes.checksum);
    let copy_part_result = Some(result);
    Ok(S3Response::new(UploadPartCopyOutput {
        copy_part_result,
        copy_source_version_id: source_id,
        ..Default::default()
    }))
}

/// `x-amz-copy-source-range`: both ends given, and within the source.
fn copy_range(text: &str, size: u64) -> S3Result<ops::Range<u64>> {
    match Range::parse(text) {
        Ok(
            range @ Range::Int {
                last: Some(last), ..
            },
        ) => match resolve(&range, size) {
            Some(found) if last < size => Ok(found),
            _ => Err(unsatisfiable(size)),
        },
        _ => Err(s3_error!(
            InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and \
             last are the zero-based offsets of the first and last bytes to copy"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_sources_are_strict() {
        assert_eq!(copy_range("bytes=0-9", 10).unwrap(), 0..10);
        assert_eq!(copy_range("bytes=3-3", 10).unwrap(), 3..4);
        let code = |text| copy_range(text, 10).unwrap_err().code().as_str().to_owned();
        assert_eq!(code("bytes=0-10"), "InvalidRange");
        assert_eq!(code("bytes=20-30"), "InvalidRange");
        for text in ["bytes=0-", "bytes=-5", "0-5", "bytes=5-2", ""] {
            assert_eq!(code(text), "InvalidArgument", "{text:?}");
        }
    }
}
