//! Copies within the store: CopyObject and UploadPartCopy.
//!
//! The source is held open, so that what is copied is one version of it. Data goes piece by piece
//! through memory; if the client goes away, the copy stops at the next piece and leaves nothing.

use crate::attributes::{Checksum, Content, ETAG, ObjectAttributes, format_date, stored_encoding};
use crate::collections;
use crate::conditions::{self, Preconditions, Verdict, timestamp};
use crate::digest::parse_name;
use crate::errors::{of_read, of_store, precondition_failed};
use crate::gateway::{Gateway, checksum_type, set_checksum};
use crate::multipart;
use crate::object::{Object, condition_error, content_of, foresee};
use crate::ranges::{resolve, unsatisfiable};
use crate::refusals::{check_metadata, refuse_features, refuse_version};
use crate::upload::MAX_PUT_BYTES;
use objects::digest::{Algorithm, Digester, Digests};
use objects::read_piece;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::ops;
use std::sync::Arc;
use store::{Condition, ObjectReader, ObjectWriter, Store, Transaction, Written};

/// The source of a copy.
struct Source {
    reader: Arc<ObjectReader>,
    object: Object,
}

fn locate(source: &CopySource) -> S3Result<(String, String)> {
    match source {
        CopySource::Bucket {
            bucket,
            key,
            version_id,
        } => {
            refuse_version(version_id.as_deref())?;
            Ok((bucket.to_string(), key.to_string()))
        }
        _ => Err(s3_error!(
            NotImplemented,
            "Access points are not implemented"
        )),
    }
}

fn open(store: &Store, bucket: &str, key: &str, preconditions: &Preconditions) -> S3Result<Source> {
    collections::require(store, bucket)?;
    let reader = store.open(bucket, key).map_err(of_store)?;
    let object = Object::of(reader.info());
    match object.judge(preconditions) {
        Verdict::Proceed => Ok(Source {
            reader: Arc::new(reader),
            object,
        }),
        Verdict::NotModified | Verdict::Failed => Err(precondition_failed()),
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

/// A copy under way.
struct Transfer {
    reader: Arc<ObjectReader>,
    writer: ObjectWriter,
    digester: Digester,
    rest: ops::Range<u64>,
}

impl Transfer {
    fn step(mut self) -> S3Result<Self> {
        let piece = read_piece(&self.reader, &self.rest).map_err(of_read)?;
        self.rest.start += piece.len() as u64;
        self.digester.update(&piece);
        self.writer.write(&piece).map_err(of_store)?;
        Ok(self)
    }
}

/// Copies a range, then calls `commit` on a thread that may block.
async fn transfer<T, C>(
    gateway: &Gateway,
    reader: Arc<ObjectReader>,
    range: ops::Range<u64>,
    algorithms: Option<Algorithm>,
    commit: C,
) -> S3Result<T>
where
    T: Send + 'static,
    C: FnOnce(&Store, Written, Digests) -> S3Result<T> + Send + 'static,
{
    let length = range.end - range.start;
    if length > MAX_PUT_BYTES {
        return Err(s3_error!(
            InvalidRequest,
            "The specified copy source is larger than the maximum allowable size for a copy \
             source: {MAX_PUT_BYTES}"
        ));
    }
    let mut transfer = gateway
        .call(move |store| {
            let writer = store.writer(Some(length)).map_err(of_store)?;
            Ok(Transfer {
                reader,
                writer,
                digester: Digester::new(algorithms.into_iter().chain([Algorithm::Md5])),
                rest: range,
            })
        })
        .await?;
    while !transfer.rest.is_empty() {
        transfer = gateway.call(move |_| transfer.step()).await?;
    }
    gateway
        .call(move |store| {
            let written = transfer.writer.finish().map_err(of_store)?;
            commit(store, written, transfer.digester.finish())
        })
        .await
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
    let wanted = match &input.checksum_algorithm {
        Some(algorithm) => Some(parse_name(algorithm.as_str())?),
        None => None,
    };
    let (from_bucket, from_key) = locate(&input.copy_source)?;
    let onto_itself = from_bucket == input.bucket && from_key == input.key;
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
    let source = {
        let (bucket, key, requires) = (bucket.clone(), key.clone(), requires.clone());
        gateway
            .call(move |store| {
                collections::require(store, &bucket)?;
                foresee(store, &bucket, &key, &requires)?;
                open(store, &from_bucket, &from_key, &preconditions)
            })
            .await?
    };
    let Source { reader, object } = source;
    let (content, metadata) = match replacement {
        Some(replacement) => replacement,
        None => (
            object.attributes.content.clone(),
            object.attributes.metadata.clone(),
        ),
    };
    let kept = object
        .attributes
        .checksum
        .as_ref()
        .map(|checksum| checksum.algorithm);
    let algorithm = wanted.or(kept);
    let same_bytes = onto_itself && (wanted.is_none() || wanted == kept);
    let attributes = if same_bytes {
        let was = object.attributes.etag.clone();
        let attributes = ObjectAttributes {
            content,
            metadata,
            ..object.attributes
        };
        gateway
            .call(move |store| redescribe(store, &bucket, &key, &was, &requires, attributes))
            .await?
    } else {
        let range = 0..object.size;
        let commit = move |store: &Store, written: Written, digests: Digests| {
            let attributes = ObjectAttributes {
                etag: digests.hex(Algorithm::Md5),
                content,
                metadata,
                checksum: kept_checksum(algorithm, &digests),
                ..Default::default()
            };
            let mut transaction = Transaction::new();
            for condition in &requires {
                transaction.require(&bucket, &key, condition.clone());
            }
            transaction.put(&bucket, &key, written, attributes.encode());
            store
                .commit(transaction)
                .map_err(|error| condition_error(store, &bucket, &key, &requires, error))?;
            Ok((attributes, modified(store, &bucket, &key)))
        };
        transfer(gateway, reader, range, algorithm, commit).await?
    };
    let (attributes, modified_micros) = attributes;
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
        ..Default::default()
    }))
}

/// Gives an object that is still the one with this tag other attributes, and leaves its bytes.
fn redescribe(
    store: &Store,
    bucket: &str,
    key: &str,
    was: &str,
    requires: &[Condition],
    attributes: ObjectAttributes,
) -> S3Result<(ObjectAttributes, u64)> {
    let mut transaction = Transaction::new();
    for condition in requires {
        transaction.require(bucket, key, condition.clone());
    }
    transaction
        .require(
            bucket,
            key,
            Condition::AttributeIs(ETAG.to_owned(), was.as_bytes().to_vec()),
        )
        .set_attributes(bucket, key, attributes.encode());
    store.commit(transaction).map_err(of_store)?;
    let modified_micros = modified(store, bucket, key);
    Ok((attributes, modified_micros))
}

fn kept_checksum(algorithm: Option<Algorithm>, digests: &Digests) -> Option<Checksum> {
    let algorithm = algorithm?;
    digests
        .value(algorithm)
        .map(|value| Checksum::full(algorithm, value))
}

/// When the object just written was; the answer only informs, so a race for it does no harm.
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
    let (from_bucket, from_key) = locate(&input.copy_source)?;
    let preconditions = source_preconditions!(input);
    let (bucket, key, id) = (input.bucket, input.key, input.upload_id);
    let (upload, source) = {
        let (bucket, key, id) = (bucket.clone(), key, id.clone());
        gateway
            .call(move |store| {
                let upload = multipart::load(store, &bucket, &key, &id)?;
                Ok((
                    upload,
                    open(store, &from_bucket, &from_key, &preconditions)?,
                ))
            })
            .await?
    };
    let size = source.object.size;
    let range = match &input.copy_source_range {
        None => 0..size,
        Some(text) => copy_range(text, size)?,
    };
    let algorithm = upload.algorithm;
    let commit = move |store: &Store, written: Written, digests: Digests| {
        let attributes = ObjectAttributes {
            etag: digests.hex(Algorithm::Md5),
            checksum: kept_checksum(algorithm, &digests),
            ..Default::default()
        };
        multipart::put_part(store, &bucket, &id, number, written, &attributes)?;
        let collection = collections::uploads_of(&bucket);
        let modified_micros = modified(store, &collection, &multipart::part_name(&id, number));
        Ok((attributes, modified_micros))
    };
    let (attributes, modified_micros) =
        transfer(gateway, source.reader, range, algorithm, commit).await?;
    let mut result = CopyPartResult {
        e_tag: Some(ETag::Strong(attributes.etag)),
        last_modified: Some(timestamp(modified_micros)),
        ..Default::default()
    };
    set_checksum!(result, &attributes.checksum);
    let copy_part_result = Some(result);
    Ok(S3Response::new(UploadPartCopyOutput {
        copy_part_result,
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
