//! Multipart uploads.
//!
//! An upload lives in its bucket's hidden collection: `ID/meta` is an empty object with the attributes of the future
//! object; `ID/00001`… are the parts. Completing an upload makes the object out of the parts without copying them. A
//! part is stored only while `ID/meta` exists; parts without it are garbage that can be removed.

mod complete;
mod listing;

pub use complete::complete;
pub use listing::{list_parts, list_uploads};

use crate::attributes::{Checksum, ObjectAttributes};
use crate::attributes::{Content, stored_encoding};
use crate::collections::{self, is_uploads, uploads_of};
use crate::dates::format_date;
use crate::digest::{from_name, parse_name};
use crate::errors::{no_such_upload, of_store};
use crate::gateway::{Gateway, set_checksum};
use crate::listing::successor_of_prefix;
use crate::lock::{self, BucketLock, Kept, Lock, Read};
use crate::object::content_of;
use crate::object_lock::asked_of;
use crate::plain::{complete_bucket, remove_listed};
use crate::refusals::{check_metadata, refuse_features, refuse_others_metadata};
use crate::tags::Tags;
use crate::upload::{self, Plan};
use objects::digest::{Algorithm, hex, parse_hex};
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeSet;
use store::{Attributes, Condition, ObjectInfo, Store, Transaction};

/// The most parts of an upload.
pub const MAX_PARTS: u32 = 10_000;
/// Entries listed or removed at a time.
const BATCH: usize = 1000;

const META: &str = "meta";
const KEY: &str = "key";
const ALGORITHM: &str = "algorithm";
const CHECKSUM_TYPE: &str = "checksum-type";

/// An unfinished upload.
pub struct Upload {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Key of the future object.
    pub key: String,
    /// Other attributes of the future object.
    pub object: ObjectAttributes,
    /// Lock requested for the future object.
    pub lock: Read<Lock>,
    /// Algorithm of the parts' checksums.
    pub algorithm: Option<Algorithm>,
    /// Whether the object's checksum covers its bytes, and not its parts' checksums.
    pub full: bool,
    /// When it began, Unix time in microseconds.
    pub initiated_micros: u64,
}

impl Upload {
    /// Reads an upload from the attributes of `ID/meta`.
    fn of(id: &str, info: &ObjectInfo) -> Option<Self> {
        let text = |name: &str| {
            let bytes = info.attributes.get(name)?;
            std::str::from_utf8(bytes).ok()
        };
        Some(Self {
            id: id.to_owned(),
            key: text(KEY)?.to_owned(),
            object: ObjectAttributes::decode(&info.attributes),
            lock: Kept::of(&info.attributes).read(),
            algorithm: text(ALGORITHM).and_then(from_name),
            full: text(CHECKSUM_TYPE) == Some(ChecksumType::FULL_OBJECT),
            initiated_micros: info.modified_micros,
        })
    }

    fn encode(&self) -> Attributes {
        let mut attributes = self.object.encode();
        attributes.extend(self.lock.unwrap_or_default().encode());
        attributes.insert(KEY.to_owned(), self.key.as_bytes().to_vec());
        if let Some(algorithm) = self.algorithm {
            attributes.insert(ALGORITHM.to_owned(), algorithm.name().as_bytes().to_vec());
            attributes.insert(
                CHECKSUM_TYPE.to_owned(),
                self.type_name().as_bytes().to_vec(),
            );
        }
        attributes
    }

    fn type_name(&self) -> &'static str {
        if self.full {
            ChecksumType::FULL_OBJECT
        } else {
            ChecksumType::COMPOSITE
        }
    }

    /// Checksum algorithm and type in S3's terms.
    fn checksum_names(&self) -> (Option<ChecksumAlgorithm>, Option<ChecksumType>) {
        let name = self
            .algorithm
            .map(|a| ChecksumAlgorithm::from_static(a.name()));
        let kind = self
            .algorithm
            .map(|_| ChecksumType::from_static(self.type_name()));
        (name, kind)
    }
}

fn meta_name(id: &str) -> String {
    format!("{id}/{META}")
}

/// Name of the object that holds a part.
fn part_name(id: &str, number: u32) -> String {
    format!("{id}/{number:05}")
}

/// Checks that a part's number is between 1 and [`MAX_PARTS`].
pub fn part_number(number: i32) -> S3Result<u32> {
    match u32::try_from(number) {
        Ok(number @ 1..=MAX_PARTS) => Ok(number),
        _ => Err(s3_error!(
            InvalidArgument,
            "Part number must be an integer between 1 and {MAX_PARTS}, inclusive"
        )),
    }
}

/// The upload with this id and key.
pub fn load(store: &Store, bucket: &str, key: &str, id: &str) -> S3Result<Upload> {
    // The id becomes part of an object's name, so it must be hexadecimal.
    let known = parse_hex::<16>(id).is_some_and(|bytes| hex(&bytes) == id);
    collections::require(store, bucket)?;
    if !known {
        return Err(no_such_upload());
    }
    let found = store
        .stat(&uploads_of(bucket), meta_name(id))
        .map_err(of_store)?;
    found
        .and_then(|info| Upload::of(id, &info))
        .filter(|upload| upload.key == key)
        .ok_or_else(no_such_upload)
}

/// CreateMultipartUpload.
pub async fn create(
    gateway: &Gateway,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
    refuse_others_metadata(&request.headers)?;
    let input = request.input;
    refuse_features!(input);
    check_metadata(input.metadata.as_ref())?;
    let (algorithm, full) = checksum_plan(
        input.checksum_algorithm.as_ref(),
        input.checksum_type.as_ref(),
    )?;
    let tags = Tags::of_header(input.tagging.as_deref())?;
    let now = (gateway.clock)();
    let asked = asked_of!(input, now)?;
    let mut id = [0; 16];
    (gateway.random)(&mut id);
    let upload = Upload {
        id: hex(&id),
        key: input.key.clone(),
        object: ObjectAttributes {
            content: content_of!(input),
            metadata: input
                .metadata
                .clone()
                .unwrap_or_default()
                .into_iter()
                .collect(),
            tags,
            ..Default::default()
        },
        lock: Ok(asked),
        algorithm,
        full,
        initiated_micros: 0,
    };
    let (checksum_algorithm, checksum_type) = upload.checksum_names();
    let bucket = input.bucket.clone();
    let info = collections::require(&gateway.store, &bucket)?;
    lock::grant(BucketLock::of(&info.attributes), asked, now)?;
    let id = gateway
        .call(move |store| begin(store, &bucket, upload))
        .await?;
    Ok(S3Response::new(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id),
        checksum_algorithm,
        checksum_type,
        ..Default::default()
    }))
}

/// Stores the `ID/meta` of a new upload; returns the id.
pub fn begin(store: &Store, bucket: &str, upload: Upload) -> S3Result<String> {
    let nothing = store
        .writer(Some(0))
        .and_then(|writer| writer.finish())
        .map_err(of_store)?;
    let (collection, meta) = (uploads_of(bucket), meta_name(&upload.id));
    let mut transaction = Transaction::new();
    transaction
        .require(&collection, &meta, Condition::Absent)
        .put(&collection, &meta, nothing, upload.encode());
    store.commit(transaction).map_err(of_store)?;
    Ok(upload.id)
}

/// An upload's checksum algorithm, and whether its checksum covers the whole object.
fn checksum_plan(
    algorithm: Option<&ChecksumAlgorithm>,
    kind: Option<&ChecksumType>,
) -> S3Result<(Option<Algorithm>, bool)> {
    let algorithm = match algorithm {
        Some(algorithm) => Some(parse_name(algorithm.as_str())?),
        None => None,
    };
    let full = match (algorithm, kind.map(|kind| kind.as_str())) {
        (None, None) => false,
        (Some(Algorithm::Crc64Nvme), None | Some(ChecksumType::FULL_OBJECT)) => true,
        (Some(Algorithm::Crc32 | Algorithm::Crc32c), Some(ChecksumType::FULL_OBJECT)) => true,
        (Some(algorithm), None | Some(ChecksumType::COMPOSITE))
            if algorithm != Algorithm::Crc64Nvme =>
        {
            false
        }
        (_, kind) => {
            return Err(s3_error!(
                InvalidRequest,
                "The {} checksum type cannot be used with the {} checksum algorithm",
                kind.unwrap_or("given"),
                algorithm.map_or("missing", Algorithm::name)
            ));
        }
    };
    Ok((algorithm, full))
}

/// UploadPart.
pub async fn upload_part(
    gateway: &Gateway,
    mut request: S3Request<UploadPartInput>,
) -> S3Result<S3Response<UploadPartOutput>> {
    let content_length = request.input.content_length;
    let mut plan = Plan::of(&mut request, content_length)?;
    let input = request.input;
    let number = part_number(input.part_number)?;
    let (bucket, key, id) = (input.bucket, input.key, input.upload_id);
    // Names what is being uploaded: the same part of a later upload of this key would replace it.
    let object = (bucket.clone(), format!("{key}\0{number}"));
    let upload = {
        let (bucket, id) = (bucket.clone(), id.clone());
        gateway
            .call(move |store| load(store, &bucket, &key, &id))
            .await?
    };
    plan.want(upload.algorithm)?;
    let store = gateway.store.clone();
    let commit = move |received: upload::Received| {
        let attributes = ObjectAttributes {
            etag: received.etag,
            checksum: received.checksum,
            ..Default::default()
        };
        let (mut transaction, collection, name) = begin_part(&bucket, &id, number);
        transaction.put(&collection, name, received.written, attributes.encode());
        store.commit(transaction).map_err(upload_error)?;
        Ok(attributes)
    };
    let attributes = upload::receive(gateway, object, input.body, plan, commit).await?;
    let mut output = UploadPartOutput {
        e_tag: Some(ETag::Strong(attributes.etag)),
        ..Default::default()
    };
    set_checksum!(output, &attributes.checksum);
    Ok(S3Response::new(output))
}

/// A transaction that requires the upload to exist, with the collection and the name of the part to put.
pub fn begin_part(bucket: &str, id: &str, number: u32) -> (Transaction, String, String) {
    let collection = uploads_of(bucket);
    let mut transaction = Transaction::new();
    transaction.require(&collection, meta_name(id), Condition::Present);
    (transaction, collection, part_name(id, number))
}

/// A failed condition on an upload means that the upload is gone.
pub fn upload_error(error: store::Error) -> s3s::S3Error {
    match error {
        store::Error::ConditionFailed { .. } => no_such_upload(),
        error => of_store(error),
    }
}

/// A stored part.
#[derive(Clone, Debug)]
struct StoredPart {
    number: u32,
    etag: String,
    size: u64,
    modified_micros: u64,
    checksum: Option<Checksum>,
}

impl StoredPart {
    /// `None` for `ID/meta`; names begin with `prefix`.
    fn of(prefix: &str, info: &ObjectInfo) -> Option<Self> {
        let attributes = ObjectAttributes::decode(&info.attributes);
        Some(Self {
            number: info.name.text()?.strip_prefix(prefix)?.parse().ok()?,
            etag: attributes.etag,
            size: info.size,
            modified_micros: info.modified_micros,
            checksum: attributes.checksum,
        })
    }
}

/// At most `limit` parts of an upload, from `first` on. Parts with damaged records are left out if `damaged` is `Ok` for
/// their errors.
fn parts(
    store: &Store,
    (collection, id): (&str, &str),
    first: u32,
    limit: usize,
    damaged: impl Fn(store::Error) -> S3Result<()>,
) -> S3Result<Vec<StoredPart>> {
    let mut found = Vec::new();
    let mut from = part_name(id, first).into_bytes();
    let prefix = format!("{id}/");
    while found.len() < limit {
        let wanted = (limit - found.len()).min(BATCH);
        let batch = store
            .list_damaged(collection, &prefix, &from, wanted)
            .map_err(of_store)?;
        let end = batch.len() < wanted;
        if let Some((last, _)) = batch.last() {
            from = [&**last, b"\0"].concat();
        }
        for (_, info) in batch {
            match info {
                Ok(info) => found.extend(StoredPart::of(&prefix, &info)),
                Err(error) => damaged(error)?,
            }
        }
        if end {
            break;
        }
    }
    Ok(found)
}

/// AbortMultipartUpload.
pub async fn abort(
    gateway: &Gateway,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
    let AbortMultipartUploadInput {
        bucket,
        key,
        upload_id,
        ..
    } = request.input;
    gateway
        .call(move |store| {
            let upload = load(store, &bucket, &key, &upload_id)?;
            end(store, &uploads_of(&bucket), &upload.id)
        })
        .await?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

fn end(store: &Store, collection: &str, id: &str) -> S3Result<()> {
    let meta = meta_name(id);
    let mut transaction = Transaction::new();
    transaction
        .require(collection, &meta, Condition::Present)
        .remove(collection, &meta);
    store.commit(transaction).map_err(upload_error)?;
    discard_parts(store, collection, id)
}

/// Ends those that `which` selects of the next `limit` uploads of a bucket, while `hold` returns something to hold meanwhile;
/// returns their number, the place to go on, and the first failure. Also removes parts without `ID/meta`, left by an end that
/// failed halfway.
pub fn end_those<H>(
    store: &Store,
    bucket: &str,
    from: String,
    limit: usize,
    which: impl Fn(&Upload) -> bool,
    hold: impl Fn() -> S3Result<Option<H>>,
) -> (u64, Option<String>, S3Result<()>) {
    let (collection, mut count) = (uploads_of(bucket), 0);
    let (next, done) = visit_some(store, &collection, from, limit, |id, meta| {
        let Some(meta) = meta else {
            return discard_parts(store, &collection, id);
        };
        if !Upload::of(id, &meta).is_some_and(|upload| which(&upload)) {
            return Ok(());
        }
        let Some(_held) = hold()? else {
            return Ok(());
        };
        match end(store, &collection, id) {
            Ok(()) => count += 1,
            // Another request has completed or ended the upload meanwhile.
            Err(error) if *error.code() == S3ErrorCode::NoSuchUpload => {}
            Err(error) => return Err(error),
        }
        Ok(())
    });
    (count, next, done)
}

/// Removes the parts of an upload whose `ID/meta` is gone; returns the first failure. A damaged part keeps no other.
fn discard_parts(store: &Store, collection: &str, id: &str) -> S3Result<()> {
    let prefix = format!("{id}/");
    let (mut from, mut done) = (prefix.clone().into_bytes(), Ok(()));
    loop {
        let batch = store.list_damaged(collection, &prefix, &from, BATCH);
        let batch = batch.map_err(of_store)?;
        let Some((last, _)) = batch.last() else {
            return done;
        };
        from = [&**last, b"\0"].concat();
        let damaged = remove_listed(store, collection, batch).map_err(of_store)?;
        done = damaged
            .into_iter()
            .fold(done, |done, error| done.and(Err(of_store(error))));
    }
}

/// Ends all uploads of a bucket by few transactions, which become durable with the next commit.
pub fn discard_all(store: &Store, collection: &str) -> S3Result<()> {
    let (mut from, mut damaged) = (Vec::new(), None);
    loop {
        let batch = store.list_damaged(collection, "", &from, BATCH);
        let batch = batch.map_err(of_store)?;
        let Some((last, _)) = batch.last() else {
            return damaged.map_or(Ok(()), |error| Err(of_store(error)));
        };
        from = [&**last, b"\0"].concat();
        let mut whole = Vec::with_capacity(batch.len());
        for (name, found) in batch {
            match found {
                Ok(_) => whole.push(name),
                // The others go first.
                Err(error) => _ = damaged.get_or_insert(error),
            }
        }
        // `ID/meta` goes with the first parts of its upload: no part is put behind them.
        let ids = whole
            .iter()
            .filter_map(|name| name.text()?.split('/').next());
        let metas: BTreeSet<String> = ids.map(meta_name).collect();
        let names = metas.iter().map(String::as_bytes);
        let names: Vec<&[u8]> = names.chain(whole.iter().map(|name| &**name)).collect();
        let mut transaction = Transaction::new();
        for name in &names {
            transaction.remove_if_present(collection, name);
        }
        let removed = match store.commit_readable(transaction) {
            // The drive is full: in smaller transactions.
            Err(store::Error::TransactionTooLarge { .. }) => store.remove_all(collection, &names),
            done => done.map(drop),
        };
        match removed {
            Err(error) if error.is_damage() => {
                let found = store.remove_around_damage(collection, &names);
                damaged = damaged.or(found.map_err(of_store)?.into_iter().next());
            }
            removed => removed.map_err(of_store)?,
        }
    }
}

/// Calls `each` with every upload's id and its `ID/meta`, if that is there; returns the first failure. An upload with a
/// damaged part keeps no other from being visited.
fn visit(
    store: &Store,
    collection: &str,
    each: impl FnMut(&str, Option<ObjectInfo>) -> S3Result<()>,
) -> S3Result<()> {
    visit_some(store, collection, String::new(), usize::MAX, each).1
}

/// [`visit`] of at most `limit` uploads at the place `from` and behind it; also returns the place of the next one, if there may
/// be one.
fn visit_some(
    store: &Store,
    collection: &str,
    mut from: String,
    limit: usize,
    mut each: impl FnMut(&str, Option<ObjectInfo>) -> S3Result<()>,
) -> (Option<String>, S3Result<()>) {
    let mut done = Ok(());
    for _ in 0..limit {
        let first = match store.list_damaged(collection, "", &from, 1) {
            Ok(first) => first,
            Err(error) => return (None, done.and(Err(of_store(error)))),
        };
        // Names of uploads are text, and sort before any names that are not.
        let Some(name) = first.first().and_then(|(name, _)| name.text()) else {
            return (None, done);
        };
        let id = name.split('/').next().unwrap_or_default();
        let meta = store.stat(collection, meta_name(id)).map_err(of_store);
        done = done.and(meta.and_then(|meta| each(id, meta)));
        match successor_of_prefix(&format!("{id}/")) {
            Some(next) => from = next,
            None => return (None, done),
        }
    }
    (Some(from), done)
}

/// Completes buckets that imports of earlier programs left without their collections of uploads or versions, and removes
/// parts without `ID/meta`, left by uploads that ended just before the server did.
pub fn sweep(store: &Store) -> S3Result<()> {
    let mut transaction = Transaction::new();
    for bucket in store.collections().map_err(of_store)? {
        complete_bucket(store, &mut transaction, &bucket).map_err(of_store)?;
    }
    store.commit(transaction).map_err(of_store)?;
    let collections = store.collections().map_err(of_store)?;
    let mut done = Ok(());
    for collection in collections.iter().filter(|c| is_uploads(c)) {
        let swept = visit(store, &collection.name, |id, meta| match meta {
            Some(_) => Ok(()),
            None => discard_parts(store, &collection.name, id),
        });
        done = done.and(swept);
    }
    done
}

#[cfg(test)]
mod tests;
