//! Lists the objects of a collection.

use crate::format::key;
use crate::format::kind::Kind;
use crate::format::onode::Onode;
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
        list(&*kv, &kind, prefix.as_ref(), from.as_ref(), limit)
    }
}

/// See [`Store::list_damaged`].
pub(crate) fn list(
    kv: &dyn View,
    kind: &Kind,
    prefix: &[u8],
    from: &[u8],
    limit: usize,
) -> Result<Vec<Listed>> {
    let (lower, upper) = match kind {
        Kind::ByName(_) => {
            let all = kind.position(prefix);
            (kind.position(from.max(prefix)), key::after_prefix(&all))
        }
        Kind::ByHash(_) => (kind.position(from), kind.end()),
    };
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
