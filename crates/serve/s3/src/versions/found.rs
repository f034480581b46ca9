//! Looks for versions of a key: the current one, and those with an id.

use super::earlier::Earlier;
use super::version::{Version, check_id, is_marker, name_of};
use super::versioning::Versioning;
use crate::collections::{require, versions_of};
use crate::errors::of_store;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use s3s::{S3Error, S3Result, s3_error};
use store::{CollectionInfo, ObjectInfo, ObjectReader, Store};

/// How many times a version is looked up that may move between bucket and `.versions/BUCKET` meanwhile.
const ATTEMPTS: u32 = 4;

/// Header that says whether a response is about a delete marker.
const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// Header with the version that a response is about.
const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// The version that a request asked for, and where it lies.
pub struct Found<T> {
    /// The version's reader or information.
    pub found: T,
    /// The collection that it lies in.
    pub collection: String,
    /// Its name in that collection.
    pub name: String,
    /// Its id for clients, if the bucket has ever kept versions.
    pub id: Option<String>,
    /// Its bucket, if it is the current version.
    pub bucket: Option<CollectionInfo>,
}

/// Opens the current version, or the one with this id.
pub fn open(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
) -> S3Result<Found<ObjectReader>> {
    let open = |collection: &str, name: &str| match store.open(collection, name) {
        Ok(reader) => Ok(Some(reader)),
        Err(store::Error::NoObject { .. }) => Ok(None),
        Err(error) => Err(of_store(error)),
    };
    look(store, bucket, key, id, open, |reader| reader.info())
}

/// Information on the current version, or on the one with this id.
pub fn stat(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
) -> S3Result<Found<ObjectInfo>> {
    let stat = |collection: &str, name: &str| store.stat(collection, name).map_err(of_store);
    look(store, bucket, key, id, stat, |info| info)
}

fn look<T>(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
    get: impl Fn(&str, &str) -> S3Result<Option<T>>,
    info: impl Fn(&T) -> &ObjectInfo,
) -> S3Result<Found<T>> {
    let bucket_info = require(store, bucket)?;
    let keeps = Versioning::of(&bucket_info) != Versioning::Never;
    id.map_or(Ok(()), check_id)?;
    // During the lookup, a version may be moved between the two collections.
    for _ in 0..ATTEMPTS {
        if let Some(found) = get(bucket, key)? {
            let version = Version::of(&info(&found).attributes);
            if id.is_none_or(|id| id == version.id()) {
                return Ok(Found {
                    bucket: Some(bucket_info),
                    found,
                    collection: bucket.to_owned(),
                    name: key.to_owned(),
                    id: keeps.then(|| version.id().to_owned()),
                });
            }
        }
        let (true, Some(id)) = (keeps, id) else {
            break;
        };
        let earlier = Earlier { store, bucket, key };
        let Some(name) = earlier.name(id)? else {
            continue;
        };
        let collection = versions_of(bucket);
        if let Some(found) = get(&collection, &name)? {
            if is_marker(info(&found)) {
                return Err(about_marker(
                    s3_error!(
                        MethodNotAllowed,
                        "The specified method is not allowed against this resource: this version is a delete marker"
                    ),
                    id,
                ));
            }
            let id = Some(id.to_owned());
            return Ok(Found {
                found,
                collection,
                name,
                id,
                bucket: None,
            });
        }
    }
    match id {
        Some(_) => Err(s3_error!(
            NoSuchVersion,
            "The specified version does not exist"
        )),
        None => Err(no_current(store, bucket, key, keeps)?),
    }
}

/// The error for a key without a current version; names the delete marker if there is one.
fn no_current(store: &Store, bucket: &str, key: &str, keeps: bool) -> S3Result<S3Error> {
    let error = s3_error!(NoSuchKey, "The specified key does not exist");
    if !keeps {
        return Ok(error);
    }
    let newest = Earlier { store, bucket, key }.list("", 1);
    if let Some((version, is_marker)) = newest.map_err(of_store)?.pop()
        && is_marker.map_err(of_store)?
    {
        return Ok(about_marker(error, version.id()));
    }
    Ok(error)
}

fn about_marker(mut error: S3Error, id: &str) -> S3Error {
    let mut headers = HeaderMap::from_iter([(DELETE_MARKER, HeaderValue::from_static("true"))]);
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(VERSION_ID, id);
    }
    if *error.code() == s3s::S3ErrorCode::MethodNotAllowed {
        headers.insert(header::ALLOW, HeaderValue::from_static("DELETE"));
    }
    error.set_headers(headers);
    error
}

/// The name, among all of its key, of the version with this id, whether it exists or not.
pub fn place(store: &Store, bucket: &str, key: &str, id: &str) -> S3Result<Option<String>> {
    let current = || {
        let current = store.stat(bucket, key).map_err(of_store)?;
        let current = current.map(|info| Version::of(&info.attributes));
        let current = current.filter(|version| version.id() == id);
        Ok(current.map(|version| name_of(key, &version)))
    };
    find_place(current, || Earlier { store, bucket, key }.name(id))
}

/// Looks for a version that may move between bucket and `.versions/BUCKET` meanwhile.
pub(super) fn find_place(
    current: impl Fn() -> S3Result<Option<String>>,
    earlier: impl Fn() -> S3Result<Option<String>>,
) -> S3Result<Option<String>> {
    for _ in 0..ATTEMPTS {
        let found = match current()? {
            None => earlier()?,
            found => found,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
