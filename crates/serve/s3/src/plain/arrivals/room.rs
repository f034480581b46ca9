//! Whether a version that is imported has a place among those that are there.

use crate::attributes::{ETAG, VERSION};
use crate::collections::versions_of;
use crate::versions::{Earlier, Version, parse_name};
use store::{Attributes, ObjectInfo, Store};

/// Whether a version from elsewhere (an archive or another store) fits under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// The version fits: it is the newest, or among the earlier ones, and no other has its id.
    Free,
    /// This very version exists already.
    Same,
    /// Another version is in its place, which is the same object: entity tag and all other attributes are equal.
    Equal,
    /// Another version has its id, or it would be the current version but older than others, or no version could follow
    /// it.
    Taken,
    /// It is newer than the current version.
    Newer,
}

impl Room {
    /// Compares a version that has these attributes with the one in its place. All versions `null` have one id, so
    /// they are the same only if the objects are equal.
    fn beside(there: &ObjectInfo, version: &Version, attributes: &Attributes) -> Self {
        let is_same = Version::of(&there.attributes) == *version;
        let of_object = |attributes: &Attributes| {
            let mut attributes = attributes.clone();
            attributes.remove(VERSION);
            attributes
        };
        let is_equal =
            attributes.contains_key(ETAG) && of_object(&there.attributes) == of_object(attributes);
        match (is_same, is_equal) {
            (true, is_equal) if is_equal || !version.is_null() => Self::Same,
            (_, true) => Self::Equal,
            (_, false) => Self::Taken,
        }
    }
}

/// Whether an object with these attributes may become the current version of a key and keep its version.
pub fn room(
    store: &Store,
    bucket: &str,
    key: &str,
    attributes: &Attributes,
) -> store::Result<Room> {
    let earlier = Earlier { store, bucket, key };
    let version = Version::of(attributes);
    if let Some(current) = store.stat(bucket, key)? {
        let room = Room::beside(&current, &version, attributes);
        let is_newer = version < Version::of(&current.attributes);
        return Ok(match room {
            Room::Taken if is_newer => Room::Newer,
            room => room,
        });
    }
    let newest = earlier.newest()?;
    let fits = version.leaves_room() && earlier.has_room_for(&version, newest.as_ref())?;
    Ok(if fits { Room::Free } else { Room::Taken })
}

/// Whether an object with these attributes may become an earlier version with this name in `.versions/BUCKET`.
pub fn room_beside(
    store: &Store,
    bucket: &str,
    name: &str,
    attributes: &Attributes,
) -> store::Result<Room> {
    let there = store.stat(&versions_of(bucket), name)?;
    let Some((key, version)) = parse_name(name) else {
        return Ok(there.map_or(Room::Free, |_| Room::Same));
    };
    if let Some(there) = there {
        return Ok(Room::beside(&there, &version, attributes));
    }
    let current = store.stat(bucket, &key)?;
    let current = current.map(|info| Version::of(&info.attributes));
    if current.as_ref().is_some_and(|current| version < *current) {
        return Ok(Room::Newer);
    }
    let is_taken =
        current.is_some_and(|current| version == current || version.is_null() && current.is_null());
    let key = &*key;
    let earlier = Earlier { store, bucket, key };
    let is_taken =
        is_taken || !version.leaves_room() || version.is_null() && earlier.null()?.is_some();
    Ok(if is_taken { Room::Taken } else { Room::Free })
}
