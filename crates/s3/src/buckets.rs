//! Buckets: collections of the store. A bucket `b` comes with a hidden collection for its
//! unfinished uploads, made and removed with it in one transaction.

use crate::attributes::{ETAG, KIND, KIND_BUCKET, KIND_UPLOADS};
use crate::conditions::timestamp;
use crate::errors::of_store;
use crate::gateway::{Gateway, owner};
use crate::listing::{self, Keyed, Page, Query};
use crate::multipart;
use crate::objects::refuse;
use crate::xml;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use store::{Attributes, CollectionInfo, ObjectInfo, Store, Transaction};

/// The version of an object in a bucket without versioning.
const NULL_VERSION: &str = "null";
/// The most items on a page.
pub const MAX_PAGE: usize = 1000;
/// Buckets' names start with a letter or a digit, so this collides with none.
const UPLOADS: &str = ".uploads/";

/// The collection with a bucket's unfinished uploads.
pub fn uploads_of(bucket: &str) -> String {
    format!("{UPLOADS}{bucket}")
}

/// Lets `transaction` make a bucket; neither it nor its uploads may exist.
pub fn add_bucket(transaction: &mut Transaction, bucket: &str) {
    transaction
        .create_collection(bucket, kind(KIND_BUCKET))
        .create_collection(&uploads_of(bucket), kind(KIND_UPLOADS));
}

/// The bucket whose unfinished uploads are in this collection.
pub fn is_uploads(collection: &CollectionInfo) -> bool {
    collection.name.starts_with(UPLOADS)
}

/// The bucket, or `NoSuchBucket`.
pub fn require(store: &Store, name: &str) -> S3Result<CollectionInfo> {
    match store.collection(name).map_err(of_store)? {
        Some(info)
            if info
                .attributes
                .get(KIND)
                .is_some_and(|kind| kind == KIND_BUCKET) =>
        {
            Ok(info)
        }
        _ => Err(of_store(store::Error::NoCollection {
            collection: name.to_owned(),
        })),
    }
}

fn kind(kind: &[u8]) -> Attributes {
    Attributes::from([(KIND.to_owned(), kind.to_vec())])
}

/// Refuses access control lists: there is one owner, and nobody else.
pub fn refuse_acl(acl: Option<&str>, grants: [bool; 4]) -> S3Result<()> {
    let plain = matches!(acl, None | Some("private" | "bucket-owner-full-control"));
    if plain && grants == [false; 4] {
        return Ok(());
    }
    Err(s3_error!(
        AccessControlListNotSupported,
        "The bucket does not allow ACLs"
    ))
}

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
    if input.object_lock_enabled_for_bucket == Some(true) {
        return Err(s3_error!(NotImplemented, "Object lock is not implemented"));
    }
    let ownership = input.object_ownership.as_ref().map(|o| o.as_str());
    refuse(&[(
        !matches!(
            ownership,
            None | Some(ObjectOwnership::BUCKET_OWNER_ENFORCED)
        ),
        "Object ownership other than the bucket owner's",
    )])?;
    let bucket = input.bucket;
    let location = format!("/{bucket}");
    gateway
        .call(move |store| {
            let mut transaction = Transaction::new();
            add_bucket(&mut transaction, &bucket);
            store.commit(transaction).map_err(of_store)
        })
        .await?;
    Ok(S3Response::new(CreateBucketOutput {
        location: Some(location),
    }))
}

/// DeleteBucket. Unfinished uploads do not keep a bucket alive; they end with it.
pub async fn delete(
    gateway: &Gateway,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<S3Response<DeleteBucketOutput>> {
    let bucket = request.input.bucket;
    gateway.call(move |store| remove(store, &bucket)).await?;
    Ok(S3Response::new(DeleteBucketOutput {}))
}

fn remove(store: &Store, bucket: &str) -> S3Result<()> {
    require(store, bucket)?;
    let uploads = uploads_of(bucket);
    loop {
        if !store.list(bucket, "", "", 1).map_err(of_store)?.is_empty() {
            let collection = bucket.to_owned();
            return Err(of_store(store::Error::CollectionNotEmpty { collection }));
        }
        multipart::discard_all(store, &uploads)?;
        let mut transaction = Transaction::new();
        transaction
            .remove_collection(bucket)
            .remove_collection(&uploads);
        match store.commit(transaction) {
            // A part arrived meanwhile.
            Err(store::Error::CollectionNotEmpty { collection }) if collection == uploads => {}
            result => return result.map_err(of_store),
        }
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
    // The first region has no name, for reasons of age.
    let constraint = (gateway.region != "us-east-1").then(|| gateway.region.clone().into());
    Ok(S3Response::new(GetBucketLocationOutput {
        location_constraint: constraint,
    }))
}

/// GetBucketVersioning: never switched on.
pub async fn versioning(
    gateway: &Gateway,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<S3Response<GetBucketVersioningOutput>> {
    let bucket = request.input.bucket;
    gateway.call(move |store| require(store, &bucket)).await?;
    Ok(S3Response::new(GetBucketVersioningOutput::default()))
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
    let mut found = gateway
        .call(|store| store.collections().map_err(of_store))
        .await?;
    found.retain(|info| {
        !elsewhere
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

/// A key on a page.
struct Entry {
    key: String,
    size: u64,
    modified_micros: u64,
    etag: String,
}

impl Keyed for Entry {
    fn key(&self) -> &str {
        &self.key
    }
}

impl Entry {
    fn of(info: ObjectInfo) -> Self {
        let etag = info
            .attributes
            .get(ETAG)
            .map(|tag| String::from_utf8_lossy(tag).into_owned());
        Self {
            key: info.name,
            size: info.size,
            modified_micros: info.modified_micros,
            etag: etag.unwrap_or_default(),
        }
    }

    /// The one version that there is of it.
    fn version(self, encode: &Encode) -> ObjectVersion {
        ObjectVersion {
            key: Some(encode.text(self.key)),
            version_id: Some(NULL_VERSION.to_owned()),
            is_latest: Some(true),
            size: i64::try_from(self.size).ok(),
            last_modified: Some(timestamp(self.modified_micros)),
            e_tag: Some(ETag::Strong(self.etag)),
            storage_class: Some(ObjectVersionStorageClass::from_static(
                ObjectVersionStorageClass::STANDARD,
            )),
            owner: Some(owner()),
            ..Default::default()
        }
    }

    fn object(self, encode: &Encode, with_owner: bool) -> Object {
        Object {
            key: Some(encode.text(self.key)),
            size: i64::try_from(self.size).ok(),
            last_modified: Some(timestamp(self.modified_micros)),
            e_tag: Some(ETag::Strong(self.etag)),
            storage_class: Some(ObjectStorageClass::from_static(
                ObjectStorageClass::STANDARD,
            )),
            owner: with_owner.then(owner),
            ..Default::default()
        }
    }
}

/// How names are written in a listing.
pub struct Encode(bool);

impl Encode {
    /// By the request's `encoding-type`.
    pub fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(|encoding| encoding.as_str()) {
            None => Ok(Self(false)),
            Some(EncodingType::URL) => Ok(Self(true)),
            Some(_) => Err(s3_error!(
                InvalidArgument,
                "Invalid Encoding Method specified in Request"
            )),
        }
    }

    /// Or as all of these names need it: XML has no place for some characters.
    pub fn for_names<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Self {
        Self(self.0 || names.any(|name| !xml::can_have(name)))
    }

    /// What the client is told of it.
    pub fn kind(&self) -> Option<EncodingType> {
        self.0.then(|| EncodingType::from_static(EncodingType::URL))
    }

    /// One name.
    pub fn text(&self, text: String) -> String {
        if self.0 {
            listing::url_encode(&text)
        } else {
            text
        }
    }

    /// One name, if there is one.
    pub fn option(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// Common prefixes.
    pub fn prefixes(&self, prefixes: Vec<String>) -> CommonPrefixList {
        prefixes
            .into_iter()
            .map(|p| CommonPrefix {
                prefix: Some(self.text(p)),
            })
            .collect()
    }
}

/// The size of a page from what the client asks for.
pub fn page_size(asked: Option<i32>) -> S3Result<usize> {
    match asked {
        None => Ok(MAX_PAGE),
        Some(n) => usize::try_from(n)
            .map(|n| n.min(MAX_PAGE))
            .map_err(|_| s3_error!(InvalidArgument, "A page must not have a negative size")),
    }
}

/// Reads a continuation token.
fn decode_token(token: &str) -> S3Result<String> {
    listing::decode_token(token).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The continuation token provided is incorrect"
        )
    })
}

/// What the three listings of objects are asked alike.
struct Ask {
    bucket: String,
    encode: Encode,
    limit: usize,
    prefix: String,
    delimiter: String,
}

/// Reads it from an input; all three have fields of these names.
macro_rules! ask {
    ($input:expr) => {
        Ask {
            bucket: $input.bucket,
            encode: Encode::of($input.encoding_type.as_ref())?,
            limit: page_size($input.max_keys)?,
            prefix: $input.prefix.unwrap_or_default(),
            delimiter: $input.delimiter.unwrap_or_default(),
        }
    };
}

/// What they answer alike.
struct Listing {
    name: Option<String>,
    prefix: Option<String>,
    delimiter: Option<String>,
    max_keys: Option<i32>,
    is_truncated: Option<bool>,
    entries: Vec<Entry>,
    common_prefixes: Option<CommonPrefixList>,
    /// The last item if more follow, as it is.
    next: Option<String>,
    encode: Encode,
}

impl Ask {
    /// The page behind `after`; `told` is a name that the answer repeats.
    async fn list(self, gateway: &Gateway, after: String, told: &str) -> S3Result<Listing> {
        let Self {
            bucket,
            encode,
            limit,
            prefix,
            delimiter,
        } = self;
        let list = move |store: &Store| {
            require(store, &bucket)?;
            let query = Query {
                prefix: &prefix,
                delimiter: &delimiter,
                after: &after,
                limit,
            };
            let page: Page<Entry> = listing::page(&query, |from, n| {
                let found = store.list(&bucket, &prefix, from, n);
                let entries = |found: Vec<ObjectInfo>| found.into_iter().map(Entry::of).collect();
                found.map(entries).map_err(of_store)
            })?;
            Ok((page, bucket, prefix, delimiter))
        };
        let (page, bucket, prefix, delimiter) = gateway.call(list).await?;
        let encode = encode.for_names(page.names().chain([&*prefix, &*delimiter, told]));
        Ok(Listing {
            name: Some(bucket),
            prefix: Some(encode.text(prefix)),
            delimiter: encode.option(Some(delimiter).filter(|delimiter| !delimiter.is_empty())),
            max_keys: i32::try_from(limit).ok(),
            is_truncated: Some(page.next.is_some()),
            entries: page.entries,
            common_prefixes: Some(encode.prefixes(page.prefixes)),
            next: page.next,
            encode,
        })
    }
}

/// ListObjects.
pub async fn list_objects(
    gateway: &Gateway,
    request: S3Request<ListObjectsInput>,
) -> S3Result<S3Response<ListObjectsOutput>> {
    let input = request.input;
    let marker = input.marker.unwrap_or_default();
    let found = ask!(input).list(gateway, marker.clone(), &marker).await?;
    let encode = found.encode;
    let contents = found.entries.into_iter();
    // Without a delimiter, the last key says it already.
    let next = found.next.filter(|_| found.delimiter.is_some());
    Ok(S3Response::new(ListObjectsOutput {
        name: found.name,
        prefix: found.prefix,
        marker: Some(encode.text(marker)),
        max_keys: found.max_keys,
        is_truncated: found.is_truncated,
        contents: Some(contents.map(|entry| entry.object(&encode, true)).collect()),
        common_prefixes: found.common_prefixes,
        delimiter: found.delimiter,
        next_marker: encode.option(next),
        encoding_type: encode.kind(),
        request_charged: None,
    }))
}

/// ListObjectsV2.
pub async fn list_objects_v2(
    gateway: &Gateway,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<S3Response<ListObjectsV2Output>> {
    let input = request.input;
    let after = match (&input.continuation_token, &input.start_after) {
        (Some(token), _) => decode_token(token)?,
        (None, Some(after)) => after.clone(),
        (None, None) => String::new(),
    };
    let told = input.start_after.as_deref().unwrap_or_default();
    let found = ask!(input).list(gateway, after, told).await?;
    let encode = found.encode;
    let prefixes = found.common_prefixes.as_ref().map_or(0, Vec::len);
    let count = found.entries.len() + prefixes;
    let with_owner = input.fetch_owner.unwrap_or(false);
    let contents = found.entries.into_iter();
    Ok(S3Response::new(ListObjectsV2Output {
        name: found.name,
        prefix: found.prefix,
        max_keys: found.max_keys,
        key_count: i32::try_from(count).ok(),
        continuation_token: input.continuation_token,
        is_truncated: found.is_truncated,
        next_continuation_token: found.next.as_deref().map(listing::encode_token),
        contents: Some(
            contents
                .map(|entry| entry.object(&encode, with_owner))
                .collect(),
        ),
        common_prefixes: found.common_prefixes,
        delimiter: found.delimiter,
        encoding_type: encode.kind(),
        start_after: encode.option(input.start_after),
        request_charged: None,
    }))
}

/// ListObjectVersions: every object is its only version.
pub async fn list_versions(
    gateway: &Gateway,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let input = request.input;
    let marker = input.key_marker.unwrap_or_default();
    let version_marker = input
        .version_id_marker
        .filter(|version| !version.is_empty());
    if version_marker.is_some() && marker.is_empty() {
        return Err(s3_error!(
            InvalidArgument,
            "A version-id marker cannot be specified without a key marker."
        ));
    }
    let found = ask!(input).list(gateway, marker.clone(), &marker).await?;
    let encode = found.encode;
    // The marker of a version is only one if the page ends with a key.
    let last = found.entries.last().map(|entry| &entry.key);
    let ends_with_key = found.next.is_some() && found.next.as_ref() == last;
    let versions = found.entries.into_iter();
    Ok(S3Response::new(ListObjectVersionsOutput {
        name: found.name,
        prefix: found.prefix,
        key_marker: Some(encode.text(marker)),
        version_id_marker: Some(version_marker.unwrap_or_default()),
        max_keys: found.max_keys,
        is_truncated: found.is_truncated,
        versions: Some(versions.map(|entry| entry.version(&encode)).collect()),
        common_prefixes: found.common_prefixes,
        delimiter: found.delimiter,
        next_key_marker: encode.option(found.next),
        next_version_id_marker: ends_with_key.then(|| NULL_VERSION.to_owned()),
        encoding_type: encode.kind(),
        ..Default::default()
    }))
}
