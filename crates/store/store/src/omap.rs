//! Omaps: ordered keys and values of an object, in the database. An omap has a number of its own, so that
//! all of it goes by one row, whatever its size.

use crate::format::key;
use crate::inner::Inner;
use crate::operations::Work;
use crate::rows::{corrupt, read_onode};
use crate::staging::Staging;
use crate::store::Store;
use crate::transaction::Target;
use crate::{Error, Result};
use kv::Kv;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Keys in byte order, with their values.
pub type Omap = BTreeMap<Vec<u8>, Vec<u8>>;

/// What happens to an omap.
#[derive(Debug)]
pub(crate) enum OmapStep {
    Set(Omap),
    Remove(Vec<Vec<u8>>),
    /// From the first key on, up to the second, which stays.
    RemoveRange(Vec<u8>, Vec<u8>),
    Clear,
}

/// At most `limit` rows of omap `number` from key `from` on, those below `to` if there is one.
pub(crate) fn scan(
    kv: &Kv,
    number: u64,
    from: &[u8],
    to: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let lower = key::omap(number, from);
    let upper = match to {
        Some(to) => Some(key::omap(number, to)),
        None => key::after_prefix(&key::omap(number, &[])),
    };
    if upper.as_ref().is_some_and(|upper| *upper <= lower) {
        return Ok(Vec::new());
    }
    kv.scan(&lower, upper.as_deref())
        .take(limit)
        .map(|row| {
            let (key, value) = row?;
            let (_, name) = key::parse_omap(&key)
                .ok_or_else(|| corrupt(&key, "no key of an omap", key.len()))?;
            Ok((name.to_vec(), value))
        })
        .collect()
}

impl Staging<'_> {
    /// The rows of omap `number` from key `from` on, those below `to` if there is one, as the transaction
    /// has them by now.
    fn omap_rows(&self, number: u64, from: &[u8], to: Option<&[u8]>) -> Result<Omap> {
        let rows = scan(self.kv, number, from, to, usize::MAX)?;
        let mut rows: Omap = rows.into_iter().collect();
        let first = (number, from.to_vec());
        let changed = self.omaps.range((Bound::Included(first), Bound::Unbounded));
        for ((of, key), value) in changed {
            if *of != number || to.is_some_and(|to| key.as_slice() >= to) {
                break;
            }
            match value {
                Some(value) => _ = rows.insert(key.clone(), value.clone()),
                None => _ = rows.remove(key),
            }
        }
        Ok(rows)
    }
}

impl Work<'_> {
    pub(crate) fn change_omap(&mut self, target: &Target, step: OmapStep) -> Result<()> {
        let (id, mut onode) = self.existing(target)?;
        match step {
            OmapStep::Set(rows) => {
                let number = match onode.omap {
                    Some(number) => number,
                    None => *onode.omap.insert(self.inner.numbers.take(self.kv)?),
                };
                let rows = rows.into_iter();
                let rows = rows.map(|(key, value)| ((number, key), Some(value)));
                self.staging.omaps.extend(rows);
            }
            OmapStep::Remove(keys) => {
                let Some(number) = onode.omap else {
                    return Ok(());
                };
                let keys = keys.into_iter().map(|key| ((number, key), None));
                self.staging.omaps.extend(keys);
            }
            OmapStep::RemoveRange(from, to) => {
                let Some(number) = onode.omap else {
                    return Ok(());
                };
                let rows = self.staging.omap_rows(number, &from, Some(&to))?;
                let keys = rows.into_keys().map(|key| ((number, key), None));
                self.staging.omaps.extend(keys);
            }
            OmapStep::Clear => self.drop_omap(onode.omap.take()),
        }
        onode.modified_micros = self.now;
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }

    /// The rows of an omap, as one of another number.
    pub(crate) fn copy_omap(&mut self, from: Option<u64>) -> Result<Option<u64>> {
        let Some(from) = from else { return Ok(None) };
        let to = self.inner.numbers.take(self.kv)?;
        let rows = self.staging.omap_rows(from, &[], None)?;
        let rows = rows
            .into_iter()
            .map(|(key, value)| ((to, key), Some(value)));
        self.staging.omaps.extend(rows);
        Ok(Some(to))
    }

    /// Its rows are given back later.
    pub(crate) fn drop_omap(&mut self, number: Option<u64>) {
        self.staging.doomed.extend(number);
    }
}

impl Inner {
    fn omap_number(&self, kv: &Kv, collection: u32, target: Target) -> Result<Option<u64>> {
        match read_onode(kv, collection, &target.object)? {
            Some(onode) => Ok(onode.omap),
            None => Err(Error::NoObject {
                collection: target.collection,
                object: target.object,
            }),
        }
    }
}

impl Store {
    /// The value of a key of an object's omap.
    pub fn omap_get(&self, collection: &str, object: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let rows = self.omap(collection, object, key, 1)?;
        Ok(rows
            .into_iter()
            .next()
            .filter(|(found, _)| found == key)
            .map(|(_, value)| value))
    }

    /// At most `limit` rows of an object's omap in order, from key `from` (inclusive) on.
    pub fn omap(
        &self,
        collection: &str,
        object: &str,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let id = self.id(collection)?;
        let target = || Target {
            collection: collection.to_owned(),
            object: object.to_owned(),
        };
        let inner = &self.inner;
        loop {
            let kv = inner.kv()?;
            let Some(number) = inner.omap_number(&kv, id, target())? else {
                return Ok(Vec::new());
            };
            let rows = scan(&kv, number, from, None, limit)?;
            // Otherwise it was cleared or replaced, and what was found may be a part of it.
            if inner.omap_number(&kv, id, target())? == Some(number) {
                return Ok(rows);
            }
        }
    }
}
