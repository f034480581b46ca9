//! The collections of a bucket in the store: one with the objects, one with the unfinished uploads, and one with
//! earlier versions if the bucket has ever kept any.

use crate::attributes::{
    KIND, KIND_BUCKET, KIND_UPLOADS, KIND_VERSIONS, OBJECT_LOCK, VERSIONING, VERSIONING_ENABLED,
};
use crate::errors::of_store;
use crate::lock::BucketLock;
use s3s::S3Result;
use store::{Attributes, CollectionInfo, Store, Transaction};

/// Names of buckets begin with a letter or a digit, so no bucket has such a name.
const UPLOADS: &str = ".uploads/";
pub const VERSIONS: &str = ".versions/";
/// The same, as collections of their own would be called.
pub const FOLDERS: [&str; 2] = [".uploads", ".versions"];

/// The collection with a bucket's unfinished uploads.
pub fn uploads_of(bucket: &str) -> String {
    format!("{UPLOADS}{bucket}")
}

/// The collection with noncurrent versions of a bucket's objects.
pub fn versions_of(bucket: &str) -> String {
    format!("{VERSIONS}{bucket}")
}

/// Adds to `transaction` the creation of a bucket's collection of earlier versions, if it does not exist.
pub fn add_versions(
    transaction: &mut Transaction,
    store: &Store,
    bucket: &str,
) -> store::Result<()> {
    let versions = versions_of(bucket);
    if store.collection(&versions)?.is_none() {
        transaction.create_collection(&versions, kind(KIND_VERSIONS));
    }
    Ok(())
}

/// Adds to `transaction` the creation of a bucket and its uploads; neither may exist.
pub fn add_bucket(transaction: &mut Transaction, bucket: &str) {
    transaction.create_collection(bucket, kind(KIND_BUCKET));
    add_uploads(transaction, bucket);
}

/// Adds to `transaction` the creation of a bucket's collection of uploads.
pub fn add_uploads(transaction: &mut Transaction, bucket: &str) {
    transaction.create_collection(&uploads_of(bucket), kind(KIND_UPLOADS));
}

/// Whether a collection is a bucket.
pub fn is_bucket(collection: &CollectionInfo) -> bool {
    let kind = collection.attributes.get(KIND);
    kind.is_some_and(|kind| kind == KIND_BUCKET)
}

/// A transaction that creates a bucket from what exists of it.
///
/// A collection of this name without an S3 kind, such as
/// salvage and repairs make, becomes the bucket with all its objects; existing uploads and versions of that name
/// become the bucket's. With a `lock`, the bucket keeps versions from the beginning.
pub fn bucket_maker(
    store: &Store,
    bucket: &str,
    lock: Option<BucketLock>,
) -> S3Result<Transaction> {
    // Both in one listing: a bucket and its uploads are created and removed together.
    let mut found = store.collections().map_err(of_store)?;
    let uploads = uploads_of(bucket);
    let versions = versions_of(bucket);
    found.retain(|c| c.name == bucket || c.name == uploads || c.name == versions);
    let is_known = |c: &CollectionInfo| c.hashed.is_some() || c.attributes.contains_key(KIND);
    let mut attributes = kind(KIND_BUCKET);
    let has_kept = found.iter().any(|c| c.name == versions);
    if has_kept || lock.is_some() {
        // Versions that exist must not be lost without a request.
        attributes.insert(VERSIONING.to_owned(), VERSIONING_ENABLED.to_vec());
    }
    if let Some(lock) = lock {
        attributes.insert(OBJECT_LOCK.to_owned(), lock.encode().into());
    }
    let mut transaction = Transaction::new();
    match found.iter().find(|c| c.name == bucket) {
        Some(there) if is_known(there) => {
            // The commit fails, unless the bucket is removed meanwhile.
            add_bucket(&mut transaction, bucket);
            return Ok(transaction);
        }
        Some(there) => {
            let mut kept = there.attributes.clone();
            kept.extend(attributes);
            transaction.set_collection_attributes(bucket, kept);
        }
        None => _ = transaction.create_collection(bucket, attributes),
    }
    if !found.iter().any(is_uploads) {
        add_uploads(&mut transaction, bucket);
    }
    if lock.is_some() && !has_kept {
        transaction.create_collection(&versions, kind(KIND_VERSIONS));
    }
    Ok(transaction)
}

/// Whether a collection holds the unfinished uploads of a bucket.
pub fn is_uploads(collection: &CollectionInfo) -> bool {
    collection.name.starts_with(UPLOADS)
        && collection
            .attributes
            .get(KIND)
            .is_some_and(|kind| kind == KIND_UPLOADS)
}

/// The bucket that a collection of uploads or versions belongs to, by its name; `None` for other names.
pub fn bucket_of(collection: &str) -> Option<&str> {
    let uploads = collection.strip_prefix(UPLOADS);
    uploads.or_else(|| collection.strip_prefix(VERSIONS))
}

/// Whether nothing is in a collection, or there is no such one.
pub fn is_empty(store: &Store, collection: &str) -> store::Result<bool> {
    match store.list_damaged(collection, "", "", 1) {
        Err(store::Error::NoCollection { .. }) => Ok(true),
        found => Ok(found?.is_empty()),
    }
}

/// Information on the bucket, or `NoSuchBucket`.
pub fn require(store: &Store, name: &str) -> S3Result<CollectionInfo> {
    match store.collection(name).map_err(of_store)? {
        Some(info) if is_bucket(&info) => Ok(info),
        _ => Err(of_store(store::Error::NoCollection {
            collection: name.to_owned(),
        })),
    }
}

fn kind(kind: &[u8]) -> Attributes {
    Attributes::from([(KIND.to_owned(), kind.to_vec())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{MemoryDrive, profile};
    use kv_rocksdb::RocksDb;
    use std::sync::Arc;
    use store::{MkfsOptions, MountOptions};

    /// What salvage and repairs may leave of a bucket.
    #[test]
    fn a_bucket_is_made_of_what_there_is_of_it() {
        let shape = profile::by_name("test-small").unwrap();
        let drive = MemoryDrive::new(shape.geometry(256 << 20, None).unwrap());
        let drive = Arc::new(drive.unwrap());
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let store = Store::mount(drive, MountOptions::new(RocksDb)).unwrap();
        for (name, objects, uploads) in [
            ("nothing", false, false),
            ("objects", true, false),
            ("uploads", false, true),
            ("both", true, true),
        ] {
            let mut transaction = Transaction::new();
            if objects {
                transaction.create_collection(name, Attributes::new());
                transaction.touch(name, "there");
            }
            if uploads {
                transaction.create_collection(&uploads_of(name), kind(KIND_UPLOADS));
            }
            store.commit(transaction).unwrap();
            store
                .commit(bucket_maker(&store, name, None).unwrap())
                .unwrap();
            require(&store, name).unwrap();
            assert_eq!(store.stat(name, "there").unwrap().is_some(), objects);
            let made = store.collection(&uploads_of(name)).unwrap();
            assert!(made.is_some_and(|made| is_uploads(&made)), "{name}");
            assert!(
                store
                    .commit(bucket_maker(&store, name, None).unwrap())
                    .is_err()
            );
        }
    }
}
