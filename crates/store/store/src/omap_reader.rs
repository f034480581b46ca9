//! Reads omaps.

use crate::omap;
use crate::rows::read_onode;
use crate::store::Store;
use crate::{Error, Result};
use kv::Kv;

impl Store {
    /// The value of a key in an object's omap.
    pub fn omap_get(
        &self,
        collection: &str,
        object: impl AsRef<[u8]>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
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
        object: impl AsRef<[u8]>,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let onode = self.onode_key(collection, object.as_ref())?;
        let number = |kv: &Kv| match read_onode(kv, &onode)? {
            Some(onode) => Ok(onode.omap),
            None => Err(Error::no_object(collection, object.as_ref())),
        };
        loop {
            let kv = self.inner.kv()?;
            let Some(found) = number(&kv)? else {
                return Ok(Vec::new());
            };
            let rows = omap::rows(&*kv, found, from, None).take(limit);
            let rows = rows.collect::<Result<_>>()?;
            // Otherwise the omap was cleared or replaced meanwhile, and the rows found may be incomplete.
            if number(&kv)? == Some(found) {
                return Ok(rows);
            }
        }
    }
}
