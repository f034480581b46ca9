//! Reads omaps.

use crate::inner::Inner;
use crate::omap::scan;
use crate::rows::read_onode;
use crate::step::Target;
use crate::store::Store;
use crate::{Error, Result};
use kv::Kv;

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
