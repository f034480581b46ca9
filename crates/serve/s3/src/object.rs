//! Operations on objects: put, get, head, attributes. The body of a put passes through [`crate::upload`],
//! that of a get through [`Download`].

use crate::attributes::{Checksum, Content, ETAG, ObjectAttributes, PartSizes, stored_encoding};
use crate::collections;
use crate::conditions::{self, Preconditions, Verdict, judge};
use crate::dates::{format_date, timestamp};
use crate::download::Outbound;
use crate::errors::{condition_error, of_read, of_store, precondition_failed};
use crate::gateway::{Gateway, checksum_type, set_checksum};
use crate::lock::{self, BucketLock, Kept};
use crate::object_lock::{asked_of, tell_lock};
use crate::pages::page_size;
use crate::ranges::{RequestedRange, requested_range, said};
use crate::refusals::{
    check_metadata, refuse_features, refuse_others_metadata, refuse_parts_checksum,
};
use crate::tags::Tags;
use crate::upload::{self, Plan};
use crate::versions::{self, Found, Version};
use http::{HeaderMap, HeaderName, HeaderValue};
use objects::{Download, Permit, take_piece};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use std::sync::Arc;
use store::{Condition, ObjectInfo, Store, Transaction};

/// Content type in answers for an object without one.
const DEFAULT_TYPE: &str = "binary/octet-stream";

/// Header with an object's number of tags.
const TAG_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");

/// Extension of a HeadObject response that is about a range.
#[derive(Clone, Copy)]
pub struct PartialContent;

/// Extension of a response whose entity tag has no quotes: GetObjectAttributes.
#[derive(Clone, Copy)]
pub struct BareTag;

/// An object with its attributes read.
pub struct Object {
    /// Bytes of data.
    pub size: u64,
    /// When it was last changed, Unix time in microseconds.
    pub modified_micros: u64,
    /// Its S3 attributes; the entity tag is never empty.
    pub attributes: ObjectAttributes,
    /// Its lock.
    pub lock: Kept,
}

/// An object's entity tag; for one that this gateway has not stored, its size and time serve as that.
pub fn etag_of(info: &ObjectInfo) -> String {
    let tag = info.attributes.get(ETAG);
    let tag = tag.and_then(|tag| String::from_utf8(tag.clone()).ok());
    tag.filter(|tag| !tag.is_empty())
        .unwrap_or_else(|| format!("{:x}-{:x}", info.size, info.modified_micros))
}

impl Object {
    /// Decodes the store's information on an object.
    pub fn of(info: &ObjectInfo) -> Self {
        let mut attributes = ObjectAttributes::decode(&info.attributes);
        attributes.etag = etag_of(info);
        Self {
            size: info.size,
            modified_micros: info.modified_micros,
            attributes,
            lock: Kept::of(&info.attributes),
        }
    }

    /// The entity tag for headers.
    pub fn etag(&self) -> ETag {
        ETag::Strong(self.attributes.etag.clone())
    }

    /// Checksum of the bytes that are read: the whole object or one part.
    fn checksum_of(&self, extent: &RequestedRange, part: Option<i32>) -> Option<Checksum> {
        if !extent.partial {
            return self.attributes.checksum.clone();
        }
        self.attributes.part_checksum(u32::try_from(part?).ok()?)
    }

    /// Evaluates the conditions of a read.
    pub fn judge(&self, preconditions: &Preconditions) -> Verdict {
        judge(preconditions, &self.attributes.etag, self.modified_micros)
    }
}

/// The content headers of a request's input, taken from its fields.
macro_rules! content_of {
    ($input:expr) => {
        Content {
            kind: $input.content_type.clone(),
            encoding: stored_encoding($input.content_encoding.clone()),
            disposition: $input.content_disposition.clone(),
            language: $input.content_language.clone(),
            cache_control: $input.cache_control.clone(),
            expires: $input.expires.as_ref().and_then(format_date),
        }
    };
}
pub(crate) use content_of;

/// PutObject.
pub async fn put(
    gateway: &Gateway,
    mut request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let content_length = request.input.content_length;
    let plan = Plan::of(&mut request, content_length)?;
    refuse_others_metadata(&request.headers)?;
    refuse_parts_checksum(&request.headers)?;
    let input = request.input;
    refuse_features!(input);
    check_metadata(input.metadata.as_ref())?;
    let requires = conditions::of_write(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let content = content_of!(input);
    let now = (gateway.clock)();
    let asked = asked_of!(input, now)?;
    let metadata = input.metadata.unwrap_or_default().into_iter().collect();
    let tags = Tags::of_header(input.tagging.as_deref())?;
    let (bucket, key) = (input.bucket, input.key);
    // Checked before gigabytes of body are received for nothing. Buckets are held in memory.
    let info = collections::require(&gateway.store, &bucket)?;
    lock::grant(BucketLock::of(&info.attributes), asked, now)?;
    if !requires.is_empty() {
        let (bucket, key, requires) = (bucket.clone(), key.clone(), requires.clone());
        let foresee = move |store: &Store| foresee(store, &bucket, &key, &requires);
        gateway.call(foresee).await?;
    }
    let (store, locks) = (gateway.store.clone(), gateway.locks.clone());
    let rules = gateway.rules.clone();
    let object = (bucket.clone(), key.clone());
    let commit = move |received: upload::Received| {
        let attributes = ObjectAttributes {
            etag: received.etag,
            content,
            metadata,
            tags,
            checksum: received.checksum,
            ..Default::default()
        };
        let change = locks.change(&store, &bucket, &key)?;
        let lock = change.grant(asked)?;
        let mut transaction = Transaction::new();
        for condition in &requires {
            transaction.require(&bucket, &key, condition.clone());
        }
        let version = change.replace(&mut transaction, lock, |transaction, next| {
            let attributes = next.mark(attributes.encode());
            transaction.put(&bucket, &key, received.written, attributes);
        });
        let version = version?.and_then(Version::told);
        match store.commit(transaction) {
            Ok(()) => Ok((attributes, version, rules.header_of(&store, &bucket, &key))),
            Err(error) => Err(condition_error(&store, &bucket, &key, &requires, error)),
        }
    };
    let (attributes, version_id, expiration) =
        upload::receive(gateway, object, input.body, plan, commit).await?;
    let mut output = PutObjectOutput {
        e_tag: Some(ETag::Strong(attributes.etag)),
        version_id,
        expiration,
        ..Default::default()
    };
    output.checksum_type = attributes.checksum.as_ref().map(checksum_type);
    set_checksum!(output, &attributes.checksum);
    Ok(S3Response::new(output))
}

/// Refuses a write whose condition does not hold now; the transaction evaluates the condition again.
pub fn foresee(store: &Store, bucket: &str, key: &str, requires: &[Condition]) -> S3Result<()> {
    if requires.is_empty() {
        return Ok(());
    }
    let found = store.stat(bucket, key).map_err(of_store)?;
    let object = found.as_ref().map(|i| (&i.attributes, i.modified_micros));
    if requires.iter().all(|condition| condition.holds(object)) {
        return Ok(());
    }
    let (collection, object) = (bucket.to_owned(), key.to_owned());
    let object = object.into();
    let error = store::Error::ConditionFailed { collection, object };
    Err(condition_error(store, bucket, key, requires, error))
}

/// 304, with the validators that the client may keep.
fn not_modified(object: &Object) -> S3Error {
    let mut headers = HeaderMap::new();
    if let Ok(etag) = object.etag().to_http_header() {
        headers.insert(http::header::ETAG, etag);
    }
    let date = format_date(&timestamp(object.modified_micros));
    if let Some(Ok(date)) = date.map(|date| HeaderValue::from_str(&date)) {
        headers.insert(http::header::LAST_MODIFIED, date);
    }
    let mut error = s3_error!(NotModified, "Not Modified");
    error.set_headers(headers);
    error
}

/// Evaluates conditions and range of a read, before any byte is read.
fn plan_read(
    object: &Object,
    preconditions: &Preconditions,
    if_range: Option<&str>,
    range: Option<&Range>,
    part: Option<i32>,
) -> S3Result<RequestedRange> {
    match object.judge(preconditions) {
        Verdict::Proceed => {}
        Verdict::NotModified => return Err(not_modified(object)),
        Verdict::Failed => return Err(precondition_failed()),
    }
    // `If-Range` names another object than this one: the client gets the whole object.
    let other = if_range.is_some_and(|tag| tag.trim_matches('"') != object.attributes.etag);
    let parts = object.attributes.parts.as_ref();
    requested_range(object.size, parts, range.filter(|_| !other), part)
}

macro_rules! preconditions_of {
    ($input:expr) => {
        Preconditions {
            if_match: $input.if_match.clone(),
            if_none_match: $input.if_none_match.clone(),
            if_modified_since: $input.if_modified_since.clone(),
            if_unmodified_since: $input.if_unmodified_since.clone(),
        }
    };
}

/// Fills the fields that GetObject and HeadObject have in common.
macro_rules! fill {
    ($output:expr, $object:expr, $extent:expr, $checksum_mode:expr, $part:expr) => {{
        let (object, extent): (&Object, &RequestedRange) = (&$object, &$extent);
        let content = object.attributes.content.clone();
        $output.accept_ranges = Some("bytes".to_owned());
        $output.content_length = extent.length();
        $output.content_range = extent.content_range(object.size);
        $output.e_tag = Some(object.etag());
        $output.last_modified = Some(timestamp(object.modified_micros));
        $output.content_type = content.kind.or_else(|| Some(DEFAULT_TYPE.to_owned()));
        $output.content_encoding = content.encoding;
        $output.content_disposition = content.disposition;
        $output.content_language = content.language;
        $output.cache_control = content.cache_control;
        $output.expires = content
            .expires
            .and_then(|text| crate::dates::parse_date(&text));
        $output.parts_count = extent.parts_count;
        tell_lock!($output, &object.lock);
        if !object.attributes.metadata.is_empty() {
            $output.metadata = Some(object.attributes.metadata.clone().into_iter().collect());
        }
        if $checksum_mode.is_some()
            && let Some(checksum) = object.checksum_of(extent, $part)
        {
            $output.checksum_type = object.attributes.checksum.as_ref().map(checksum_type);
            set_checksum!($output, Some(&checksum));
        }
    }};
}

fn if_range(headers: &HeaderMap) -> Option<String> {
    headers
        .get(http::header::IF_RANGE)?
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// GetObject.
pub async fn get(
    gateway: &Gateway,
    mut request: S3Request<GetObjectInput>,
) -> S3Result<S3Response<GetObjectOutput>> {
    let permit = request.extensions.remove::<Permit>();
    let if_range = if_range(&request.headers);
    let mut input = request.input;
    input.range = said(input.range, &request.headers);
    let (checksum_mode, part_number) = (input.checksum_mode.clone(), input.part_number);
    let rules = gateway.rules.clone();
    let read = move |store: &Store| {
        let (bucket, key, version) = (&input.bucket, &input.key, input.version_id.as_deref());
        let Found {
            found: reader,
            id,
            bucket: info,
            ..
        } = versions::open(store, bucket, key, version)?;
        let fate = info.and_then(|info| rules.fate(&info, key, reader.info()));
        let object = Object::of(reader.info());
        let preconditions = preconditions_of!(input);
        let (range, part) = (input.range.as_ref(), input.part_number);
        let extent = plan_read(&object, &preconditions, if_range.as_deref(), range, part)?;
        // Before the head is sent: damage at the start can still be answered as an error.
        let first = take_piece(&reader, &extent.range).map_err(of_read)?;
        Ok((reader, object, extent, first, (id, fate)))
    };
    let (reader, object, extent, first, (version_id, fate)) = gateway.call(read).await?;
    let mut output = GetObjectOutput {
        version_id,
        expiration: fate.and_then(|fate| fate.header()),
        tag_count: object.attributes.tags.count(),
        ..Default::default()
    };
    fill!(output, object, extent, checksum_mode, part_number);
    let range = extent.range.clone();
    let body = Download::new(
        Arc::new(reader),
        gateway.blocking.clone(),
        range,
        first,
        permit,
    );
    output.body = Some(StreamingBlob::new(Outbound(body)));
    Ok(S3Response::new(output))
}

/// HeadObject.
pub async fn head(
    gateway: &Gateway,
    request: S3Request<HeadObjectInput>,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let if_range = if_range(&request.headers);
    let mut input = request.input;
    input.range = said(input.range, &request.headers);
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let version = input.version_id.take();
    let found = gateway
        .call(move |store| versions::stat(store, &bucket, &key, version.as_deref()))
        .await?;
    let fate = found.bucket.as_ref();
    let fate = fate.and_then(|bucket| gateway.rules.fate(bucket, &input.key, &found.found));
    let object = Object::of(&found.found);
    let preconditions = preconditions_of!(input);
    let (range, part) = (input.range.as_ref(), input.part_number);
    let extent = plan_read(&object, &preconditions, if_range.as_deref(), range, part)?;
    let mut output = HeadObjectOutput {
        version_id: found.id,
        expiration: fate.and_then(|fate| fate.header()),
        ..Default::default()
    };
    fill!(output, object, extent, input.checksum_mode, part);
    let set = |field: &mut Option<String>, value: Option<String>| {
        if value.is_some() {
            *field = value;
        }
    };
    set(&mut output.content_type, input.response_content_type);
    set(
        &mut output.content_encoding,
        input.response_content_encoding,
    );
    set(
        &mut output.content_disposition,
        input.response_content_disposition,
    );
    set(
        &mut output.content_language,
        input.response_content_language,
    );
    set(&mut output.cache_control, input.response_cache_control);
    output.expires = input.response_expires.or(output.expires);
    let mut response = S3Response::new(output);
    if let Some(count) = object.attributes.tags.count() {
        // `s3s` has no field for this header in HeadObject.
        response.headers.insert(TAG_COUNT, count.into());
    }
    if extent.partial {
        response.extensions.insert(PartialContent);
    }
    Ok(response)
}

/// The attributes that GetObjectAttributes can return.
const ATTRIBUTES: [&str; 5] = [
    ObjectAttributes_::CHECKSUM,
    ObjectAttributes_::ETAG,
    ObjectAttributes_::OBJECT_PARTS,
    ObjectAttributes_::OBJECT_SIZE,
    ObjectAttributes_::STORAGE_CLASS,
];

/// GetObjectAttributes.
pub async fn describe(
    gateway: &Gateway,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let input = request.input;
    let (bucket, key, version) = (input.bucket, input.key, input.version_id);
    let found = gateway
        .call(move |store| versions::stat(store, &bucket, &key, version.as_deref()))
        .await?;
    let object = Object::of(&found.found);
    // A header with several names arrives as one.
    let names = input
        .object_attributes
        .iter()
        .flat_map(|names| names.as_str().split(','));
    let wanted: Vec<&str> = names.map(str::trim).collect();
    if let Some(unknown) = wanted.iter().find(|name| !ATTRIBUTES.contains(name)) {
        return Err(s3_error!(
            InvalidArgument,
            "There is no object attribute {unknown:?}"
        ));
    }
    let wants = |name: &str| wanted.contains(&name);
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(object.modified_micros)),
        version_id: found.id,
        ..Default::default()
    };
    if wants(ObjectAttributes_::ETAG) {
        output.e_tag = Some(object.etag());
    }
    if wants(ObjectAttributes_::OBJECT_SIZE) {
        output.object_size = i64::try_from(object.size).ok();
    }
    if wants(ObjectAttributes_::STORAGE_CLASS) {
        output.storage_class = Some(StorageClass::from_static(StorageClass::STANDARD));
    }
    if wants(ObjectAttributes_::CHECKSUM)
        && let Some(checksum) = &object.attributes.checksum
    {
        let mut field = s3s::dto::Checksum {
            checksum_type: Some(checksum_type(checksum)),
            ..Default::default()
        };
        set_checksum!(field, Some(checksum));
        output.checksum = Some(field);
    }
    if wants(ObjectAttributes_::OBJECT_PARTS)
        && let Some(parts) = &object.attributes.parts
    {
        let limit = page_size(input.max_parts)?;
        let marker = input.part_number_marker.unwrap_or(0);
        output.object_parts = Some(describe_parts(&object.attributes, parts, marker, limit));
    }
    let mut response = S3Response::new(output);
    response.extensions.insert(BareTag);
    Ok(response)
}

/// A page of an object's parts, after part `marker`.
fn describe_parts(
    attributes: &ObjectAttributes,
    parts: &PartSizes,
    marker: i32,
    limit: usize,
) -> GetObjectAttributesParts {
    let first = u32::try_from(marker).unwrap_or(0).saturating_add(1);
    let last = first
        .saturating_add(u32::try_from(limit).unwrap_or(u32::MAX))
        .min(parts.count().saturating_add(1));
    let shown: Vec<ObjectPart> = (first..last)
        .filter_map(|number| {
            let (_, size) = parts.locate(number)?;
            let mut part = ObjectPart {
                part_number: i32::try_from(number).ok(),
                size: i64::try_from(size).ok(),
                ..Default::default()
            };
            set_checksum!(part, attributes.part_checksum(number));
            Some(part)
        })
        .collect();
    let next = shown.last().and_then(|part| part.part_number);
    GetObjectAttributesParts {
        total_parts_count: i32::try_from(parts.count()).ok(),
        is_truncated: Some(limit > 0 && last <= parts.count()),
        max_parts: i32::try_from(limit).ok(),
        part_number_marker: Some(marker),
        next_part_number_marker: next.or(Some(marker)),
        parts: (!shown.is_empty()).then_some(shown),
    }
}

/// Renamed, because this module has an `ObjectAttributes` of its own.
use s3s::dto::ObjectAttributes as ObjectAttributes_;

#[cfg(test)]
mod tests;
