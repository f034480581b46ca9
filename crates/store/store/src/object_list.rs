//! Lists the objects of a collection.

use crate::format::key;
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::past_damage::readable_after;
use crate::rows::corrupt;
use crate::store::object_info;
use crate::{Name, ObjectInfo, Result, Store};
use kv::View;

/// An object's name, and its description or the error of its record.
pub type Listed = (Name, Result<ObjectInfo>);

impl Store {
    /// At most `limit` objects whose names begin with `prefix`, from `from` (inclusive) on, in byte order of names. In
    /// a collection by hash they are in order of hashes, and of names where these are equal; `from` need not exist, the
    /// empty name comes before all others, and with a prefix all rows up to the last one returned are read.
    pub fn list(
        &self,
        collection: &str,
        prefix: impl AsRef<[u8]>,
        from: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<Vec<ObjectInfo>> {
        let found = self.list_damaged(collection, prefix, from, limit)?;
        found.into_iter().map(|(_, info)| info).collect()
    }

    /// Like [`Self::list`], but goes on after objects whose records are damaged.
    pub fn list_damaged(
        &self,
        collection: &str,
        prefix: impl AsRef<[u8]>,
        from: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<Vec<Listed>> {
        let _request = self.inner.requests.begin();
        let kind = self.kind(collection)?;
        let kv = self.inner.kv()?;
        let found = list(&*kv, &kind, prefix.as_ref(), from.as_ref(), limit)?;
        Ok(named(collection, found))
    }

    /// The name from which [`Self::list_damaged`] can go on after it has failed at `from`, because rows of the database
    /// there cannot be read; `None` if there are no more rows.
    ///
    /// # Errors
    /// Other rows of the database cannot be read either, as when the drive is gone.
    pub fn after_damage(
        &self,
        collection: &str,
        prefix: impl AsRef<[u8]>,
        from: impl AsRef<[u8]>,
    ) -> Result<Option<Name>> {
        let _request = self.inner.requests.begin();
        let kind = self.kind(collection)?;
        let kv = self.inner.kv()?;
        after_damage(&*kv, &kind, prefix.as_ref(), from.as_ref())
    }
}

/// Names the objects in the errors of a listing of `collection`.
pub(crate) fn named(collection: &str, found: Vec<Listed>) -> Vec<Listed> {
    let named = found.into_iter().map(|(name, info)| {
        let info = info.map_err(|error| error.of_object(&format!("{collection}/{name}")));
        (name, info)
    });
    named.collect()
}

/// See [`Store::list_damaged`].
pub(crate) fn list(
    kv: &dyn View,
    kind: &Kind,
    prefix: &[u8],
    from: &[u8],
    limit: usize,
) -> Result<Vec<Listed>> {
    let (lower, upper) = range(kind, prefix, from);
    if upper.as_ref().is_some_and(|upper| *upper <= lower) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for row in kv.scan(&lower, upper.as_deref()) {
        if found.len() >= limit {
            break;
        }
        let (key, value) = row?;
        let bad = || corrupt(&key, "no onode", value.len());
        let (_, name) = key::parse_onode(&key).ok_or_else(bad)?;
        if name.starts_with(prefix) {
            let onode = Onode::decode(&value).ok_or_else(bad);
            found.push((name.into(), onode.map(|onode| object_info(name, onode))));
        }
    }
    Ok(found)
}

/// The keys of the rows of a listing: from the first, and up to the second (exclusive), if any.
fn range(kind: &Kind, prefix: &[u8], from: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    match kind {
        Kind::ByName(_) => {
            let all = kind.position(prefix);
            (kind.position(from.max(prefix)), key::after_prefix(&all))
        }
        Kind::ByHash(_) => (kind.position(from), kind.end()),
    }
}

/// The first name in a listing after rows that cannot be read; `None` if there is none.
pub(crate) fn after_damage(
    kv: &dyn View,
    kind: &Kind,
    prefix: &[u8],
    from: &[u8],
) -> Result<Option<Name>> {
    let (lower, upper) = range(kind, prefix, from);
    let key = readable_after(kv, &lower, upper.as_deref())?;
    key.map(|key| match key::parse_onode(&key) {
        Some((_, name)) => Ok(name.into()),
        None => Err(corrupt(&key, "no onode", 0)),
    })
    .transpose()
}
