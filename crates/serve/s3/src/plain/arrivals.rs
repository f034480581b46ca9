//! Imports of objects with their versions and locks, as from an archive. Existing versions and locked objects stay.

use super::{Locked, locked};
use crate::collections::{VERSIONS, is_bucket};
use crate::config::{Random, operating_system_random};
use crate::lock::Lock;
use crate::versions::{Change, ReplaceError, Versioning};
use room::{Room, room, room_beside};
use std::io;
use std::sync::Arc;
use store::{Attributes, CollectionInfo, Name, Store, Transaction};

mod room;

/// What to do with an object that is imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Put it under its name; it replaces an existing object.
    Put,
    /// Make it the newest version: [`put_above`].
    NewVersion,
    /// Skip it: the existing object is the same version, an equal object, or newer; or no version could follow it.
    Kept,
    /// Skip it: it is newer than the current version, which stays.
    Newer,
    /// Skip it: it is an earlier version, and its bucket keeps none.
    LeftOut,
    /// Refuse it: the existing object is locked.
    Locked(Locked),
}

/// Decides about an object with these attributes and this name in a collection. In a bucket that keeps versions, and
/// among its earlier versions, it replaces only the same version. `now` is in Unix microseconds.
///
/// # Errors
/// Those of the store.
pub fn arrival(
    store: &Store,
    (collection, name): (&str, &Name),
    attributes: &Attributes,
    overwrite: bool,
    now: u64,
) -> store::Result<Arrival> {
    let keeps = |bucket: &CollectionInfo| Versioning::of(bucket) != Versioning::Never;
    let of = match collection.strip_prefix(VERSIONS) {
        Some(bucket) => store.collection(bucket)?.filter(is_bucket),
        None => None,
    };
    if of.as_ref().is_some_and(|bucket| !keeps(bucket)) {
        return Ok(Arrival::LeftOut);
    }
    let bucket = store.collection(collection)?;
    let bucket = bucket.filter(|bucket| is_bucket(bucket) && keeps(bucket));
    let room = match (name.text(), &of, &bucket) {
        (Some(name), Some(bucket), _) => room_beside(store, &bucket.name, name, attributes)?,
        (Some(key), _, Some(_)) => room(store, collection, key, attributes)?,
        _ if store.stat(collection, name)?.is_some() => Room::Same,
        _ => Room::Free,
    };
    Ok(match room {
        Room::Free => Arrival::Put,
        Room::Same if overwrite => match locked(store, collection, name, now)? {
            Some(why) => Arrival::Locked(why),
            None => Arrival::Put,
        },
        Room::Taken | Room::Newer if overwrite && bucket.is_some() => Arrival::NewVersion,
        // One that is damaged is replaced by a copy.
        Room::Equal if overwrite && bucket.is_some() && !is_whole(store, collection, name) => {
            Arrival::NewVersion
        }
        // One that an earlier import put above what was there, too.
        Room::Same | Room::Equal | Room::Taken => Arrival::Kept,
        Room::Newer => Arrival::Newer,
    })
}

/// Whether all bytes of an object can be read.
fn is_whole(store: &Store, collection: &str, name: &Name) -> bool {
    let read = || {
        let reader = store.open(collection, name).ok()?;
        let mut all = reader.range(0..reader.info().size);
        io::copy(&mut all, &mut io::sink()).ok()
    };
    read().is_some()
}

/// Adds to `transaction` what makes an object the newest version of its key.
///
/// `put` adds it with its attributes, which include its lock. Its time is `now`, in Unix microseconds. Returns the lock
/// that forbids it, if it would replace a locked version.
///
/// # Errors
/// Those of the store.
pub fn put_above(
    store: &Store,
    transaction: &mut Transaction,
    (bucket, key): (&str, &str),
    attributes: Attributes,
    now: u64,
    put: impl FnOnce(&mut Transaction, Attributes),
) -> store::Result<Option<Locked>> {
    let there = store.collection(bucket)?;
    let random: Random = Arc::new(operating_system_random);
    let change = Change::alone(store, bucket, key, there.as_ref(), &random, now);
    let put = change.replace(transaction, Lock::default(), |transaction, next| {
        put(transaction, next.mark(attributes));
        // The version below is noncurrent as of now, whenever this one was put elsewhere.
        transaction.set_modified(bucket, key, now);
    });
    match put {
        Ok(_) => Ok(None),
        Err(ReplaceError::Locked(why)) => Ok(Some(why)),
        Err(ReplaceError::Store(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
