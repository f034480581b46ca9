//! Objects that are brought to a store as they were elsewhere. Versions that are there stay, and so does what is locked.

use super::{Locked, locked};
use crate::collections::{VERSIONS, is_bucket};
use crate::config::{Random, operating_system_random};
use crate::lock::Lock;
use crate::versions::{Change, ReplaceError, Room, Versioning, room, room_beside};
use std::sync::Arc;
use store::{Attributes, CollectionInfo, Name, Store, Transaction};

/// What becomes of an object that is brought here as it was elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is put under its name, in place of what is there.
    Put,
    /// It becomes a version of its own: [`put_above`].
    NewVersion,
    /// It does not come: what is there is the same version, or newer.
    Kept,
    /// It does not come: it is an earlier version, and its bucket keeps none.
    LeftOut,
    /// It must not come: what is there is locked.
    Locked(Locked),
}

/// Judges an object with these attributes that is to have this name in a collection. In a bucket that keeps versions, and among
/// its earlier ones, it takes the place of nothing but the same version. `now` is in Unix microseconds.
///
/// # Errors
/// The store's.
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
        Room::Taken if overwrite && bucket.is_some() => Arrival::NewVersion,
        Room::Same | Room::Taken => Arrival::Kept,
    })
}

/// Adds to a transaction what makes an object the newest version under its key; `put` puts it with its attributes, which say how
/// it is locked. Answers why, if it would replace what is locked. `now` is in Unix microseconds.
///
/// # Errors
/// The store's.
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
    });
    match put {
        Ok(_) => Ok(None),
        Err(ReplaceError::Locked(why)) => Ok(Some(why)),
        Err(ReplaceError::Store(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
