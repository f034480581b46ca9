//! Completes an upload: compares the client's list of parts with the stored parts (pure), then makes the object of
//! the parts in one transaction.

use super::{
    BATCH, MAX_PARTS, StoredPart, Upload, discard_parts, load, meta_name, part_name, parts,
};
use crate::attributes::{Checksum, ETAG, ObjectAttributes, PartSizes};
use crate::collections::uploads_of;
use crate::conditions;
use crate::errors::{condition_error, no_such_upload};
use crate::gateway::{Gateway, checksum_type, set_checksum};
use crate::lock::Refusal;
use crate::versions::{self, Locks, Version};
use objects::digest::{Algorithm, Digester, parse_hex};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;
use store::{Condition, Store, Transaction};

/// Least bytes of a part other than the last.
const MIN_PART_BYTES: u64 = 5 << 20;
/// Most bytes of an object.
const MAX_OBJECT_BYTES: u64 = 5 << 40;

/// The client's request: parts, checksum and size of the object.
struct Order {
    parts: Vec<CompletedPart>,
    checksum: Option<(Algorithm, String)>,
    kind: Option<String>,
    size: Option<i64>,
}

impl Order {
    /// Whether the object has the announced size, if one was announced.
    fn has_size(&self, size: u64) -> bool {
        self.size
            .is_none_or(|announced| u64::try_from(announced) == Ok(size))
    }
}

/// The attributes of the completed object, and its version.
type Completed = (ObjectAttributes, Option<String>);

/// The parts that the object is made of, and its attributes.
struct Assembly {
    numbers: Vec<u32>,
    attributes: ObjectAttributes,
    etags: Vec<String>,
}

/// The checksums that an input or a part has, from its fields.
macro_rules! checksum_fields {
    ($input:expr) => {
        [
            (Algorithm::Crc32, &$input.checksum_crc32),
            (Algorithm::Crc32c, &$input.checksum_crc32c),
            (Algorithm::Crc64Nvme, &$input.checksum_crc64nvme),
            (Algorithm::Sha1, &$input.checksum_sha1),
            (Algorithm::Sha256, &$input.checksum_sha256),
        ]
        .into_iter()
        .filter_map(|(algorithm, text)| text.clone().map(|text| (algorithm, text)))
    };
}

/// CompleteMultipartUpload.
pub async fn complete(
    gateway: &Gateway,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    // The address at which the client reached the object, as the client wrote it.
    let host = request.headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let location = format!("{}://{host}{}", gateway.scheme, request.uri.path());
    let input = request.input;
    let mut checksums = checksum_fields!(input);
    let checksum = checksums.next();
    if checksums.next().is_some() {
        return Err(s3_error!(
            InvalidRequest,
            "Expecting a single x-amz-checksum- header. Multiple checksum types are not allowed"
        ));
    }
    let order = Order {
        checksum,
        kind: input
            .checksum_type
            .as_ref()
            .map(|kind| kind.as_str().to_owned()),
        size: input.mpu_object_size,
        parts: input
            .multipart_upload
            .and_then(|upload| upload.parts)
            .unwrap_or_default(),
    };
    let requires = conditions::of_write(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let (bucket, key, id) = (input.bucket.clone(), input.key.clone(), input.upload_id);
    let (locks, rules) = (gateway.locks.clone(), gateway.rules.clone());
    let ((attributes, version_id), expiration) = gateway
        .call(move |store| {
            let done = run(store, &locks, (&bucket, &key), &id, &order, &requires);
            let done = done.or_else(|error| {
                // An identical request may have completed the upload before or meanwhile.
                let is_gone = matches!(
                    error.code(),
                    S3ErrorCode::NoSuchUpload | S3ErrorCode::InvalidPart
                );
                let before = is_gone.then(|| completed_before(store, &bucket, &key, &id, &order));
                before.flatten().ok_or(error)
            });
            Ok((done?, rules.header_of(store, &bucket, &key)))
        })
        .await?;
    let mut output = CompleteMultipartUploadOutput {
        location: Some(location),
        bucket: Some(input.bucket),
        key: Some(input.key),
        e_tag: Some(ETag::Strong(attributes.etag)),
        version_id,
        expiration,
        checksum_type: attributes.checksum.as_ref().map(checksum_type),
        ..Default::default()
    };
    set_checksum!(output, &attributes.checksum);
    Ok(S3Response::new(output))
}

fn run(
    store: &Store,
    locks: &Locks,
    (bucket, key): (&str, &str),
    id: &str,
    order: &Order,
    requires: &[Condition],
) -> S3Result<Completed> {
    let upload = load(store, bucket, key, id)?;
    let collection = uploads_of(bucket);
    let stored = parts(store, (&collection, id), 1, MAX_PARTS as usize, |error| {
        // It may not be listed; if it is, it cannot be found.
        tracing::warn!(%error, "a damaged part of an upload is left out");
        Ok(())
    })?;
    let Assembly {
        numbers,
        attributes,
        etags,
    } = assemble(&upload, order, &stored)?;
    let names: Vec<String> = numbers
        .iter()
        .map(|number| part_name(id, *number))
        .collect();
    let pairs: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (collection.as_str(), name.as_str()))
        .collect();
    let change = locks.change(store, bucket, key)?;
    // A default retention begins now, when the version is created.
    let lock = upload.lock.map_err(Refusal::from)?;
    let lock = change.grant(lock)?;
    let mut transaction = Transaction::new();
    transaction.require(&collection, meta_name(id), Condition::Present);
    for (name, etag) in names.iter().zip(etags) {
        let unchanged = Condition::AttributeIs(ETAG.to_owned(), etag.into_bytes());
        transaction.require(&collection, name, unchanged);
    }
    for condition in requires {
        transaction.require(bucket, key, condition.clone());
    }
    let version = change.replace(&mut transaction, lock, |transaction, next| {
        let attributes = next.mark(attributes.encode());
        transaction.assemble(bucket, key, &pairs, attributes);
    });
    let version = version?.and_then(Version::told);
    transaction.remove(&collection, meta_name(id));
    store.commit(transaction).map_err(|error| match &error {
        store::Error::ConditionFailed {
            collection: found,
            object,
        } if *found == collection => {
            if object.text() == Some(&*meta_name(id)) {
                no_such_upload()
            } else {
                invalid_part()
            }
        }
        _ => condition_error(store, bucket, key, requires, error),
    })?;
    drop(change);
    // Removes parts that were uploaded but not listed.
    if let Err(error) = discard_parts(store, &collection, id) {
        tracing::warn!(%error, "parts of a completed upload are left; the next start sweeps them");
    }
    Ok((attributes, version))
}

/// The object, if an identical request has completed it: a client that got no answer repeats its request.
fn completed_before(
    store: &Store,
    bucket: &str,
    key: &str,
    id: &str,
    order: &Order,
) -> Option<Completed> {
    let versions::Found {
        found: info,
        id: version,
        ..
    } = versions::stat(store, bucket, key, None).ok()?;
    let attributes = ObjectAttributes::decode(&info.attributes);
    let tags = order.parts.iter().filter_map(|part| part.e_tag.as_ref());
    let same = attributes.upload.as_deref() == Some(id)
        && attributes.etag == whole_etag(tags.map(ETag::value))
        && order.has_size(info.size)
        && check_announced(order, attributes.checksum.as_ref()).is_ok();
    same.then_some((attributes, version))
}

fn invalid_part() -> S3Error {
    s3_error!(
        InvalidPart,
        "One or more of the specified parts could not be found. The part may not have been \
         uploaded, or the specified entity tag may not match the part's entity tag."
    )
}

/// Compares the client's list with the stored parts.
fn assemble(upload: &Upload, order: &Order, stored: &[StoredPart]) -> S3Result<Assembly> {
    let stored: BTreeMap<u32, &StoredPart> =
        stored.iter().map(|part| (part.number, part)).collect();
    if order.parts.is_empty() {
        return Err(s3_error!(
            MalformedXML,
            "You must specify at least one part"
        ));
    }
    let mut chosen: Vec<&StoredPart> = Vec::with_capacity(order.parts.len().min(BATCH));
    for part in &order.parts {
        let number = part
            .part_number
            .ok_or_else(|| s3_error!(MalformedXML, "A part has no number"))?;
        let number = u32::try_from(number).map_err(|_| invalid_part())?;
        if chosen.last().is_some_and(|last| last.number >= number) {
            return Err(s3_error!(
                InvalidPartOrder,
                "The list of parts was not in ascending order. Parts must be ordered by part number."
            ));
        }
        let found = stored.get(&number).ok_or_else(invalid_part)?;
        let tag = part
            .e_tag
            .as_ref()
            .ok_or_else(|| s3_error!(MalformedXML, "A part has no ETag"))?;
        if tag.value() != found.etag {
            return Err(invalid_part());
        }
        let is_kept = |(algorithm, text): (Algorithm, String)| {
            let kept = found.checksum.as_ref();
            kept.is_some_and(|kept| kept.algorithm == algorithm && kept.text == text)
        };
        if !checksum_fields!(part).all(is_kept) {
            return Err(invalid_part());
        }
        chosen.push(found);
    }
    let before_last = &chosen[..chosen.len() - 1];
    if before_last.iter().any(|part| part.size < MIN_PART_BYTES) {
        return Err(s3_error!(
            EntityTooSmall,
            "Your proposed upload is smaller than the minimum allowed size of a part: \
             {MIN_PART_BYTES} bytes for every part but the last"
        ));
    }
    let size = chosen
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.size));
    if size > MAX_OBJECT_BYTES {
        return Err(s3_error!(
            EntityTooLarge,
            "An object has at most {MAX_OBJECT_BYTES} bytes"
        ));
    }
    if !order.has_size(size) {
        return Err(s3_error!(
            InvalidRequest,
            "The provided 'x-amz-mp-object-size' header value does not match what was computed"
        ));
    }
    if order
        .kind
        .as_ref()
        .is_some_and(|kind| upload.algorithm.is_none() || kind != upload.type_name())
    {
        return Err(s3_error!(
            InvalidRequest,
            "The checksum type you specified is not the one that the upload was created with"
        ));
    }
    let checksum = whole_checksum(upload, &chosen);
    check_announced(order, checksum.as_ref())?;
    let attributes = ObjectAttributes {
        etag: whole_etag(chosen.iter().map(|part| part.etag.as_str())),
        checksum,
        parts: Some(PartSizes::new(chosen.iter().map(|part| part.size))),
        part_checksums: part_checksums(upload, &chosen).unwrap_or_default(),
        upload: Some(upload.id.clone()),
        ..upload.object.clone()
    };
    Ok(Assembly {
        numbers: chosen.iter().map(|part| part.number).collect(),
        etags: chosen.iter().map(|part| part.etag.clone()).collect(),
        attributes,
    })
}

/// The checksums of all parts; `None` if a part has none.
fn part_checksums(upload: &Upload, parts: &[&StoredPart]) -> Option<Vec<String>> {
    let algorithm = upload.algorithm?;
    let text = |part: &&StoredPart| {
        let checksum = part.checksum.as_ref()?;
        (checksum.algorithm == algorithm).then(|| checksum.text.clone())
    };
    parts.iter().map(text).collect()
}

/// Entity tag of a multipart object: MD5 of the parts' MD5s, a dash and their number.
fn whole_etag<'a>(tags: impl Iterator<Item = &'a str>) -> String {
    let mut digester = Digester::new([Algorithm::Md5]);
    let mut count = 0;
    for tag in tags {
        digester.update(&parse_hex::<16>(tag).unwrap_or_default());
        count += 1;
    }
    format!("{}-{count}", digester.finish().hex(Algorithm::Md5))
}

/// The object's checksum, computed from those of its parts.
fn whole_checksum(upload: &Upload, parts: &[&StoredPart]) -> Option<Checksum> {
    let algorithm = upload.algorithm?;
    let values = parts.iter().map(|part| {
        let checksum = part
            .checksum
            .as_ref()
            .filter(|c| c.algorithm == algorithm)?;
        base64_simd::STANDARD
            .decode_to_vec(&checksum.text)
            .ok()
            .map(|value| (value, part.size))
    });
    let values: Vec<(Vec<u8>, u64)> = values.collect::<Option<_>>()?;
    if upload.full {
        let nothing = algorithm.of(b"");
        let value = values.iter().try_fold(nothing, |sum, (value, size)| {
            algorithm.combine(&sum, value, *size)
        })?;
        Some(Checksum::full(algorithm, &value))
    } else {
        let all: Vec<u8> = values
            .iter()
            .flat_map(|(value, _)| value.iter().copied())
            .collect();
        let mut checksum = Checksum::full(algorithm, &algorithm.of(&all));
        checksum.text.push_str(&format!("-{}", parts.len()));
        Some(checksum)
    }
}

/// Compares the object's checksum with the one in the request.
fn check_announced(order: &Order, found: Option<&Checksum>) -> S3Result<()> {
    let Some((algorithm, text)) = &order.checksum else {
        return Ok(());
    };
    let matches = found.is_some_and(|found| {
        let bare = found.text.split('-').next().unwrap_or_default();
        found.algorithm == *algorithm && (found.text == *text || bare == text)
    });
    if matches {
        return Ok(());
    }
    Err(s3_error!(
        BadDigest,
        "The {} you specified did not match the calculated checksum.",
        algorithm.name()
    ))
}

#[cfg(test)]
mod tests;
