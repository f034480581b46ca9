//! Stores and removes objects and buckets for programs on this machine, without a server, as S3 would. Object Lock
//! holds here, too: locked objects are removed only where the caller says so.

use crate::attributes::ObjectAttributes;
use crate::collections::{
    FOLDERS, VERSIONS, add_uploads, add_versions, bucket_of, is_bucket, is_empty, is_uploads,
};
pub use crate::collections::{add_bucket, uploads_of, versions_of};
use crate::config::{Random, operating_system_random};
pub use crate::lock::Refusal as Locked;
use crate::lock::{Kept, Lock, may_delete};
use crate::versions::{Change, ReplaceError, Versioning, escape_bytes, parse_name};
use objects::digest::{Algorithm, Digester};
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use store::{Attributes, CollectionInfo, Listed, Name, ObjectWriter, Store, Transaction};

mod arrivals;
pub use arrivals::{Arrival, arrival, put_above};

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;
/// Objects removed in one transaction.
const PAGE: usize = 1000;

/// Why an object was not stored.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// The source could not be read.
    #[error(transparent)]
    Source(io::Error),
    /// The store could not write the object.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The version that would be replaced is locked.
    #[error(transparent)]
    Locked(#[from] Locked),
}

impl From<ReplaceError> for PutError {
    fn from(error: ReplaceError) -> Self {
        match error {
            ReplaceError::Store(error) => Self::Store(error),
            ReplaceError::Locked(why) => Self::Locked(why),
        }
    }
}

impl From<io::Error> for PutError {
    fn from(error: io::Error) -> Self {
        error.downcast().map_or_else(Self::Source, Self::Store)
    }
}

/// A writer that also computes the entity tag (MD5), by which conditions are judged.
struct Digested {
    object: ObjectWriter,
    digester: Digester,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.object.write(bytes).map_err(io::Error::other)?;
        self.digester.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stores the bytes of `source` durably (`size` if known); creates the bucket if it does not exist. `now`, in Unix
/// microseconds, decides whether locks have ended. Returns the number of bytes.
///
/// # Errors
/// Nothing was stored.
pub fn put(
    store: &Store,
    (bucket, key): (&str, &[u8]),
    source: &mut dyn Read,
    size: Option<u64>,
    now: u64,
) -> Result<u64, PutError> {
    let there = store.collection(bucket)?;
    let is_new = there.is_none();
    let mut new = Digested {
        object: store.writer(size)?.replacing(bucket, key),
        digester: Digester::new([Algorithm::Md5]),
    };
    let total = io::copy(&mut BufReader::with_capacity(CHUNK, source), &mut new)?;
    let written = new.object.finish()?;
    let mut transaction = Transaction::new();
    if is_new {
        add_bucket(&mut transaction, bucket);
    }
    let attributes = ObjectAttributes {
        etag: new.digester.finish().hex(Algorithm::Md5),
        ..Default::default()
    };
    match std::str::from_utf8(key) {
        Ok(key) => {
            let random: Random = Arc::new(operating_system_random);
            let change = Change::alone(store, bucket, key, there.as_ref(), &random, now);
            let lock = change.grant(Lock::default())?;
            change.replace(&mut transaction, lock, |transaction, next| {
                let attributes = next.mark(attributes.encode());
                transaction.put(bucket, key, written, attributes);
            })?;
        }
        // S3 can neither name nor lock a key that is not text.
        Err(_) => _ = transaction.put(bucket, key, written, attributes.encode()),
    }
    store.commit(transaction)?;
    Ok(total)
}

/// The lock that forbids removing or replacing an object with these attributes at `now`, in Unix microseconds.
pub fn why_locked(attributes: &Attributes, now: u64) -> Option<Locked> {
    may_delete(&Kept::of(attributes), now, false).err()
}

/// Whether objects of a collection can be locked. Unfinished uploads have lock attributes, but no version to keep
/// yet; S3 has no collections by hash.
fn can_lock(collection: &CollectionInfo) -> bool {
    collection.hashed.is_none() && !is_uploads(collection)
}

/// The first locked object of a collection whose name begins with `prefix`, and its lock.
///
/// # Errors
/// Those of the store.
pub fn first_locked(
    store: &Store,
    collection: &str,
    prefix: &[u8],
    now: u64,
) -> store::Result<Option<(Name, Locked)>> {
    if !store.collection(collection)?.as_ref().is_some_and(can_lock) {
        return Ok(None);
    }
    let mut from = Name::default();
    loop {
        let page = store.list_damaged(collection, prefix, &from, PAGE)?;
        let locked = page.iter().find_map(|(name, object)| {
            // Where the metadata is damaged, nothing is removed either.
            let why = why_locked(&object.as_ref().ok()?.attributes, now)?;
            Some((name.clone(), why))
        });
        match page.last() {
            Some((last, _)) if locked.is_none() && page.len() == PAGE => from = last.clone(),
            _ => return Ok(locked),
        }
    }
}

/// Key and version id of a name in [`versions_of`] a bucket.
pub fn version(name: &Name) -> Option<(String, String)> {
    let (key, version) = parse_name(name.text()?)?;
    Some((key, version.id().to_owned()))
}

/// The lock that forbids removing or replacing an object; `None` if the object is free or does not exist.
///
/// # Errors
/// Those of the store.
pub fn locked(
    store: &Store,
    collection: &str,
    object: &[u8],
    now: u64,
) -> store::Result<Option<Locked>> {
    if !store.collection(collection)?.as_ref().is_some_and(can_lock) {
        return Ok(None);
    }
    let found = store.stat(collection, object)?;
    Ok(found.and_then(|found| why_locked(&found.attributes, now)))
}

/// Number and total bytes of the objects of a collection whose names begin with `prefix`. Bytes of objects whose metadata is
/// damaged do not count.
///
/// # Errors
/// Those of the store.
pub fn total(store: &Store, collection: &str, prefix: &[u8]) -> store::Result<(u64, u64)> {
    let (mut objects, mut bytes) = (0, 0);
    for_each_page(PAGE, store, collection, prefix, &mut |page| {
        objects += page.len() as u64;
        let known = page.iter().filter_map(|(_, object)| object.as_ref().ok());
        bytes += known.map(|object| object.size).sum::<u64>();
        Ok(())
    })?;
    Ok((objects, bytes))
}

/// What [`remove`] has done.
#[derive(Debug, Default)]
pub struct Removed {
    /// Objects that are gone.
    pub objects: u64,
    /// Objects that are there still because their metadata is damaged: the error of each, which names it.
    pub damaged: Vec<store::Error>,
}

/// Removes all objects of a bucket whose keys begin with `prefix`; `each` is called with the number removed so far. Bytes of
/// objects are not read, so damaged ones do not matter. Objects with damaged metadata stay and keep no other from being
/// removed.
///
/// # Errors
/// Those of the store; objects already reported to `each` are removed.
pub fn remove(
    store: &Store,
    bucket: &str,
    prefix: &[u8],
    each: &mut dyn FnMut(u64),
) -> store::Result<Removed> {
    remove_by(PAGE, store, bucket, prefix, each)
}

fn remove_by(
    page: usize,
    store: &Store,
    bucket: &str,
    prefix: &[u8],
    each: &mut dyn FnMut(u64),
) -> store::Result<Removed> {
    let mut removed = Removed::default();
    for_each_page(page, store, bucket, prefix, &mut |page| {
        let count = page.len();
        let damaged = remove_listed(store, bucket, page)?;
        removed.objects += (count - damaged.len()) as u64;
        removed.damaged.extend(damaged);
        each(removed.objects);
        Ok(())
    })?;
    Ok(removed)
}

/// Removes the listed objects but those that are damaged so that they cannot be removed; returns the error of each of these.
///
/// # Errors
/// Those of the store; some of the objects may be removed.
pub fn remove_listed(
    store: &Store,
    collection: &str,
    listed: Vec<Listed>,
) -> store::Result<Vec<store::Error>> {
    let (mut names, mut damaged) = (Vec::with_capacity(listed.len()), Vec::new());
    for (name, object) in listed {
        match object {
            Ok(_) => names.push(name),
            Err(error) => damaged.push(error),
        }
    }
    damaged.extend(store.remove_around_damage(collection, &names)?);
    Ok(damaged)
}

/// Calls `each` with the objects whose names begin with `prefix`, at most `most` (2 or more) at a time. It may remove them.
fn for_each_page(
    most: usize,
    store: &Store,
    collection: &str,
    prefix: &[u8],
    each: &mut dyn FnMut(Vec<Listed>) -> store::Result<()>,
) -> store::Result<()> {
    let mut shown: Option<Name> = None;
    loop {
        // Starts at the end of the last page: in a collection by hash, names with other prefixes lie in between.
        let from = shown.clone().unwrap_or_default();
        let mut page = store.list_damaged(collection, prefix, from, most)?;
        page.retain(|(name, _)| shown.as_ref() != Some(name));
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        shown = Some(last.clone());
        each(page)?;
    }
}

/// Removes an object for good, whatever its lock. If that was the current version of a key, the newest of the earlier ones
/// becomes current, unless it is a delete marker.
///
/// # Errors
/// The store's.
pub fn remove_one(store: &Store, collection: &str, object: &Name) -> store::Result<()> {
    let mut transaction = Transaction::new();
    transaction.remove(collection, object);
    let earlier = collection.strip_prefix(VERSIONS).zip(version(object));
    let (bucket, key, without) = match &earlier {
        Some((bucket, (key, _))) => (*bucket, Some(&**key), object.text()),
        None => (collection, object.text(), None),
    };
    let found = store.collection(bucket)?.filter(is_bucket);
    if let Some((info, key)) = found.zip(key)
        && (without.is_none() || store.stat(bucket, key)?.is_none())
    {
        let random: Random = Arc::new(operating_system_random);
        let change = Change::alone(store, bucket, key, Some(&info), &random, 0);
        change.bring_back(&mut transaction, without)?;
    }
    store.commit(transaction)
}

/// Where the earlier versions of a bucket's objects are whose keys begin with `prefix`: their collection, if the bucket has ever
/// kept any, and what their names begin with.
///
/// # Errors
/// The store's.
pub fn earlier(
    store: &Store,
    bucket: &str,
    prefix: &[u8],
) -> store::Result<Option<(String, Vec<u8>)>> {
    let versions = versions_of(bucket);
    let found = store.collection(&versions)?;
    Ok(found.map(|_| (versions, escape_bytes(prefix))))
}

/// Whether a collection belongs to an existing bucket, with its unfinished uploads or its earlier versions, or has the name of a
/// folder of such collections.
///
/// # Errors
/// Those of the store.
pub fn comes_with_a_bucket(store: &Store, collection: &str) -> store::Result<bool> {
    match bucket_of(collection) {
        Some(bucket) => Ok(store.collection(bucket)?.is_some()),
        None => Ok(FOLDERS.contains(&collection)),
    }
}

/// Adds to `transaction` the creation of those collections for uploads and versions that a bucket lacks, such as one that
/// is copied. Other collections stay as they are.
///
/// # Errors
/// Those of the store.
pub fn complete_bucket(
    store: &Store,
    transaction: &mut Transaction,
    bucket: &CollectionInfo,
) -> store::Result<()> {
    if is_bucket(bucket) {
        if store.collection(&uploads_of(&bucket.name))?.is_none() {
            add_uploads(transaction, &bucket.name);
        }
        if Versioning::of(bucket) != Versioning::Never {
            add_versions(transaction, store, &bucket.name)?;
        }
    }
    Ok(())
}

/// Removes an empty bucket, with its unfinished uploads. One with earlier versions is not empty.
///
/// # Errors
/// Those of the store, also if the bucket is not empty, or has an upload with damaged metadata, which the error names.
pub fn remove_bucket(store: &Store, bucket: &str) -> store::Result<()> {
    let mut transaction = Transaction::new();
    let (uploads, versions) = (uploads_of(bucket), versions_of(bucket));
    transaction.remove_collection(bucket);
    if store.collection(&versions)?.is_some() {
        transaction.remove_collection(&versions);
    }
    if store.collection(&uploads)?.is_some() {
        // What is not empty refuses the transaction, and then they stay.
        let is_free = store.list_damaged(bucket, "", "", 1)?.is_empty();
        if is_free && is_empty(store, &versions)? {
            let removed = remove(store, &uploads, &[], &mut |_| ())?;
            if let Some(error) = removed.damaged.into_iter().next() {
                return Err(error);
            }
        }
        transaction.remove_collection(&uploads);
    }
    store.commit(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{MemoryDrive, profile};
    use kv_rocksdb::RocksDb;
    use store::{Attributes, HashPrefix, HashSource, Hashed, MkfsOptions, MountOptions};

    const ROUNDS: usize = 4;

    fn empty() -> Arc<MemoryDrive> {
        let shape = profile::by_name("test-small").unwrap();
        let drive = MemoryDrive::new(shape.geometry(512 << 20, None).unwrap());
        Arc::new(drive.unwrap())
    }

    /// Repairs and salvage may leave uploads of a bucket that is not there.
    #[test]
    fn uploads_stay_where_no_bucket_is_removed() {
        let drive = empty();
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let store = Store::mount(drive, MountOptions::new(RocksDb)).unwrap();
        let uploads = uploads_of("gone");
        let mut transaction = Transaction::new();
        add_uploads(&mut transaction, "gone");
        transaction.touch(&uploads, "part");
        store.commit(transaction).unwrap();
        assert!(remove_bucket(&store, "gone").is_err());
        assert!(store.stat(&uploads, "part").unwrap().is_some());
    }

    #[test]
    fn what_is_removed_by_the_page_is_looked_for_once() {
        let drive = empty();
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let mount = || Store::mount(drive.clone(), MountOptions::new(RocksDb)).unwrap();
        let store = mount();
        let hashed = Hashed {
            family: 1,
            source: HashSource::Xxh3,
            prefix: HashPrefix::ALL,
        };
        let mut transaction = Transaction::new();
        transaction.create_hashed_collection("c", hashed, Attributes::default());
        store.commit(transaction).unwrap();
        for thousand in 0..50 {
            let mut transaction = Transaction::new();
            for n in 0..1000 {
                transaction.touch("c", format!("keep {thousand} {n}"));
            }
            store.commit(transaction).unwrap();
        }
        for round in 0..ROUNDS {
            let mut transaction = Transaction::new();
            for n in 0..200 {
                transaction.touch("c", format!("go {round} {n}"));
            }
            store.commit(transaction).unwrap();
        }
        store.unmount().unwrap();
        let store = mount();
        let asked = |work: &dyn Fn() -> u64| {
            let count = || {
                let cache = store.caches().unwrap().metadata;
                cache.hits + cache.misses
            };
            let before = count();
            let found = work();
            (found, count() - before)
        };
        // A compaction of RocksDB asks its cache too: what it does not disturb counts.
        let (mut once, mut twenty) = (u64::MAX, u64::MAX);
        for round in 0..ROUNDS {
            let (_, blocks) = asked(&|| store.list("c", "nothing", "", 1).unwrap().len() as u64);
            once = once.min(blocks);
            let prefix = format!("go {round} ");
            let remove = || {
                let removed = remove_by(10, &store, "c", prefix.as_bytes(), &mut |_| ());
                removed.unwrap().objects
            };
            let (removed, blocks) = asked(&remove);
            assert_eq!(removed, 200);
            twenty = twenty.min(blocks);
        }
        assert!(
            once > 50 && twenty < 6 * once,
            "{twenty} blocks, {once} for all"
        );
        assert_eq!(store.list("c", "", "", 60_000).unwrap().len(), 50_000);
    }
}
