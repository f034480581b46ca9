//! The listings of a bucket's current objects, and what they share with the listing of versions.

use crate::attributes::Checksum;
use crate::collections::require;
use crate::dates::timestamp;
use crate::errors::of_store;
use crate::gateway::{Gateway, checksum_names, owner};
use crate::listing::{self, Keyed, Page, Query};
use crate::object::etag_of;
use crate::pages::{Encode, decode_token, page_size};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result};
use store::{ObjectInfo, Store};

/// An object in a listing.
struct Entry {
    key: String,
    size: u64,
    modified_micros: u64,
    etag: String,
    checksum: Option<Checksum>,
}

impl Keyed for Entry {
    fn key(&self) -> &str {
        &self.key
    }
}

impl Entry {
    /// `None` for a name that is not text, which S3 cannot show.
    fn of(info: ObjectInfo) -> Option<Self> {
        Some(Self {
            key: info.name.text()?.to_owned(),
            size: info.size,
            modified_micros: info.modified_micros,
            checksum: Checksum::of(&info.attributes),
            etag: etag_of(&info),
        })
    }

    fn object(self, encode: &Encode, with_owner: bool) -> Object {
        let (checksum_algorithm, checksum_type) = checksum_names(self.checksum.as_ref());
        Object {
            checksum_algorithm,
            checksum_type,
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

/// Parameters that ListObjects, ListObjectsV2 and ListObjectVersions share.
pub struct Ask {
    /// The bucket to list.
    pub bucket: String,
    /// Encoding of names in the answer.
    pub encode: Encode,
    /// Most names on a page.
    pub limit: usize,
    /// Only names that begin with this.
    pub prefix: String,
    /// Names are rolled up into common prefixes at this; empty for not at all.
    pub delimiter: String,
}

/// Makes an [`Ask`] from the input of any of the three.
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
pub(crate) use ask;

/// Parts of an answer that ListObjects and ListObjectsV2 share.
struct Listing {
    name: Option<String>,
    prefix: Option<String>,
    delimiter: Option<String>,
    max_keys: Option<i32>,
    is_truncated: Option<bool>,
    entries: Vec<Entry>,
    common_prefixes: Option<CommonPrefixList>,
    /// The last item if more follow, not encoded.
    next: Option<String>,
    encode: Encode,
}

impl Ask {
    /// The page after `after`; `told` is a name that the answer repeats.
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
            let seek = |from: &str, n| {
                let place = (&*bucket, &*prefix);
                entries(store, place, from, n, Entry::of, |error| {
                    Err(of_store(error))
                })
            };
            let page: Page<Entry> = listing::page(&query, seek)?;
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

/// At most `limit` entries of a collection from the name `from` on, for objects of which `entry` makes one; fewer
/// only at the end. Objects with damaged records are left out if `damaged` is `Ok` for their errors.
pub fn entries<T>(
    store: &Store,
    (collection, prefix): (&str, &str),
    from: &str,
    limit: usize,
    entry: impl Fn(ObjectInfo) -> Option<T>,
    damaged: impl Fn(store::Error) -> S3Result<()>,
) -> S3Result<Vec<T>> {
    let (mut entries, mut from) = (Vec::new(), from.as_bytes().to_vec());
    loop {
        let wanted = limit - entries.len();
        let found = store.list_damaged(collection, prefix, &from, wanted);
        let found = found.map_err(of_store)?;
        let last = found.last().filter(|_| found.len() == wanted);
        let next = last.map(|(last, _)| [&**last, b"\0"].concat());
        for (_, info) in found {
            match info {
                Ok(info) => entries.extend(entry(info)),
                Err(error) => damaged(error)?,
            }
        }
        match next {
            Some(next) if entries.len() < limit => from = next,
            _ => return Ok(entries),
        }
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
    // Without a delimiter, clients use the last key instead.
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
