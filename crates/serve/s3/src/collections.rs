//! Buckets are collections of the store: one with the objects, one with the unfinished uploads.

use crate::attributes::{KIND, KIND_BUCKET, KIND_UPLOADS};
use crate::errors::of_store;
use s3s::S3Result;
use store::{Attributes, CollectionInfo, Store, Transaction};

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

/// Lets `transaction` make a bucket of a collection that is nothing to S3 so far, with all that is in it: salvage
/// makes such. False if there is none of that name, or it is something.
pub fn adopt(store: &Store, transaction: &mut Transaction, name: &str) -> S3Result<bool> {
    let Some(found) = store.collection(name).map_err(of_store)? else {
        return Ok(false);
    };
    if found.hashed.is_some() || found.attributes.contains_key(KIND) {
        return Ok(false);
    }
    let mut attributes = found.attributes;
    attributes.extend(kind(KIND_BUCKET));
    transaction
        .set_collection_attributes(name, attributes)
        .create_collection(&uploads_of(name), kind(KIND_UPLOADS));
    Ok(true)
}

/// Whether a bucket's unfinished uploads are in this collection.
pub fn is_uploads(collection: &CollectionInfo) -> bool {
    collection.name.starts_with(UPLOADS)
        && collection
            .attributes
            .get(KIND)
            .is_some_and(|kind| kind == KIND_UPLOADS)
}

/// The bucket that this is the name of the unfinished uploads of, if it is one.
pub fn bucket_of(uploads: &str) -> Option<&str> {
    uploads.strip_prefix(UPLOADS)
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
