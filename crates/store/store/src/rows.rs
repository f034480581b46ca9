//! Reads and decodes rows of the database; a row that cannot be decoded is [`Error::CorruptMetadata`].

use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::format::{blob, extent, key};
use crate::{Error, Result};
use kv::{Kv, View};
use object::{BlobId, Content, Extent, Rows, SharedBlob};
use runtime::sync::{Mutex, MutexGuard};
use std::cell::RefCell;

pub(crate) fn corrupt(key: &[u8], what: &'static str, found: usize) -> Error {
    Error::CorruptMetadata {
        object: None,
        key: key.escape_ascii().to_string(),
        what,
        found: found as u64,
    }
}

/// The key of an object's onode in a collection of this kind. The empty name is refused in a collection by hash: a
/// listing that starts at it starts before all names.
pub(crate) fn onode_key(kind: &Kind, collection: &str, object: &[u8]) -> Result<Vec<u8>> {
    if let (Kind::ByHash(_), []) = (kind, object) {
        return Err(Error::NoName {
            collection: collection.to_owned(),
        });
    }
    kind.onode(object).map_err(|hash| Error::HashNotCovered {
        collection: collection.to_owned(),
        object: object.into(),
        hash,
    })
}

pub(crate) fn read_onode(kv: &dyn View, key: &[u8]) -> Result<Option<Onode>> {
    let Some(value) = kv.get(key)? else {
        return Ok(None);
    };
    let onode = Onode::decode(&value).ok_or_else(|| corrupt(key, "no onode", value.len()))?;
    Ok(Some(onode))
}

pub(crate) fn decode_extent(key: &[u8], value: &[u8]) -> Result<(u64, u64, Extent)> {
    let (map, end) =
        key::parse_extent(key).ok_or_else(|| corrupt(key, "no extent key", key.len()))?;
    let extent = extent::decode(value).ok_or_else(|| corrupt(key, "no extent", value.len()))?;
    let start = end
        .checked_sub(extent.length)
        .ok_or_else(|| corrupt(key, "an extent longer than its map", value.len()))?;
    Ok((map, start, extent))
}

/// At most `limit` extents of `map` that overlap the bytes `from..to`, with their first offsets, in order.
pub(crate) fn read_extents(
    kv: &dyn View,
    map: u64,
    from: u64,
    to: u64,
    limit: usize,
) -> Result<Vec<(u64, Extent)>> {
    let lower = key::extent(map, from.saturating_add(1));
    let upper = key::after_prefix(&key::map(map));
    let mut found = Vec::new();
    for row in kv.scan(&lower, upper.as_deref()) {
        let (key, value) = row?;
        let (_, start, extent) = decode_extent(&key, &value)?;
        if start >= to || found.len() >= limit {
            break;
        }
        found.push((start, extent));
    }
    Ok(found)
}

/// The extent of `map` that ends at offset `end`.
pub(crate) fn read_extent_row(kv: &dyn View, map: u64, end: u64) -> Result<Option<Extent>> {
    let key = key::extent(map, end);
    let Some(value) = kv.get(&key)? else {
        return Ok(None);
    };
    decode_extent(&key, &value).map(|(_, _, extent)| Some(extent))
}

pub(crate) fn read_blob_row(kv: &dyn View, id: BlobId) -> Result<Option<SharedBlob>> {
    let key = key::blob(id);
    let Some(value) = kv.get(&key)? else {
        return Ok(None);
    };
    let shared =
        blob::decode_shared(&value).ok_or_else(|| corrupt(&key, "no blob", value.len()))?;
    Ok(Some(shared))
}

pub(crate) fn no_blob(id: BlobId) -> Error {
    corrupt(&key::blob(id), "no blob for an extent that shows it", 0)
}

/// The extents of `map` that overlap the bytes `from..to`, with shared blobs looked up and shown as the extents' own.
pub(crate) fn resolved_extents(
    kv: &dyn View,
    map: u64,
    from: u64,
    to: u64,
) -> Result<Vec<(u64, Extent)>> {
    let mut rows = read_extents(kv, map, from, to, usize::MAX)?;
    let is_shared = |(_, extent): &(u64, Extent)| matches!(extent.content, Content::Shared { .. });
    while rows.iter().any(is_shared) {
        let mut resolved = rows.clone();
        let mut missing = None;
        for (_, extent) in &mut resolved {
            let Content::Shared { blob: id, skip } = extent.content else {
                continue;
            };
            match read_blob_row(kv, id)? {
                Some(SharedBlob { blob, .. }) => extent.content = Content::Own { blob, skip },
                None => missing = Some(id),
            }
        }
        let Some(id) = missing else {
            return Ok(resolved);
        };
        // A commit may have changed the rows in between. Numbers are never reused: if the extent still shows the blob,
        // the blob's row is missing.
        let now = read_extents(kv, map, from, to, usize::MAX)?;
        if now == rows {
            return Err(no_blob(id));
        }
        rows = now;
    }
    Ok(rows)
}

/// The database as seen by the changes of one batch.
pub(crate) struct Table<'a> {
    kv: &'a Kv,
    /// Takes a new number.
    number: Box<dyn Fn() -> Result<u64> + 'a>,
    shared_blobs: &'a Mutex<()>,
    /// Lock of `shared_blobs`, from the first read of a blob that several maps show until the batch is written.
    alone: RefCell<Option<MutexGuard<'a, ()>>>,
}

impl<'a> Table<'a> {
    pub fn new(
        kv: &'a Kv,
        number: impl Fn() -> Result<u64> + 'a,
        shared_blobs: &'a Mutex<()>,
    ) -> Self {
        let alone = RefCell::new(None);
        Self {
            kv,
            number: Box::new(number),
            shared_blobs,
            alone,
        }
    }
}

impl Rows for Table<'_> {
    type Error = Error;

    fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>> {
        read_extents(self.kv, map, from, to, usize::MAX)
    }

    /// A blob that one map shows is changed only under the lock of that map's object; one that several maps show, by
    /// one commit at a time.
    fn blob(&self, id: BlobId) -> Result<SharedBlob> {
        let shared = read_blob_row(self.kv, id)?.ok_or_else(|| no_blob(id))?;
        let mut alone = self.alone.borrow_mut();
        if shared.map.is_some() || alone.is_some() {
            return Ok(shared);
        }
        *alone = Some(self.shared_blobs.lock());
        read_blob_row(self.kv, id)?.ok_or_else(|| no_blob(id))
    }

    fn number(&self) -> Result<u64> {
        (self.number)()
    }

    fn miscounted(&self, id: BlobId) -> Error {
        corrupt(
            &key::blob(id),
            "a blob whose references do not fit its extents",
            0,
        )
    }

    fn broken(&self, map: u64, at: u64) -> Error {
        corrupt(&key::extent(map, at), "no extent for bytes of an object", 0)
    }
}
