//! Reads of the store as it was at a moment, while commits go on: rows come from a snapshot of the database, data from
//! zones that are not reset meanwhile. When zones run short, the moment is given up, so that no write fails for it.
//!
//! It begins while no commit and no move is under way, so that rows, collections and live bytes of zones are
//! consistent. A read enters the gate and then checks whether the moment lasts; it is always given up before any reset.

use crate::extent_reader::{Extents, ObjectAt};
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::info::CollectionInfo;
use crate::inner::Inner;
use crate::moment_watch::MomentWatch;
use crate::object_list::{Listed, after_damage, list, named};
use crate::omap;
use crate::rows::{onode_key, read_onode};
use crate::store::{info, opened_info};
use crate::{Error, Name, Result, Store};
use kv::{Kv, View};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a writer that needs space waits for readers whose moments were given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of the store at one moment, for reading. Objects that are changed or removed later are read as they
/// were.
pub struct Moment<'a> {
    inner: &'a Arc<Inner>,
    rows: kv::Moment<'a>,
    collections: Arc<BTreeMap<String, CollectionRecord>>,
    lasts: Lasts<'a>,
}

/// Ends the moment on drop; dropped after the rows, so that the snapshot is released before waiters are notified.
struct Lasts<'a> {
    inner: &'a Inner,
    watch: MomentWatch,
}

impl Drop for Lasts<'_> {
    fn drop(&mut self) {
        self.inner.freelist.end_moment(self.watch.number);
        self.inner.readers.there.lock().count -= 1;
        self.inner.readers.left.notify_all();
        // Zones that the moment held may be worth cleaning.
        self.inner.cleaner.cleaned();
        self.inner.cleaner.nudge();
    }
}

impl Store {
    /// Lets `read` read the store as it is now, however long that takes. Zones with any of its data are not reset until
    /// `read` ends or writers need them: every call then returns [`Error::MomentGivenUp`]. Waits for commits under way.
    pub fn at_moment<T, E: From<Error>>(
        &self,
        read: impl FnOnce(&Moment<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let inner = &self.inner;
        let kv = inner.kv()?;
        read(&Moment::new(inner, &kv))
    }
}

impl<'a> Moment<'a> {
    fn new(inner: &'a Arc<Inner>, kv: &'a Kv) -> Self {
        let _alone = inner.mutators.write();
        inner.readers.there.lock().count += 1;
        let watch = MomentWatch {
            freelist: inner.freelist.clone(),
            number: inner.freelist.begin_moment(),
        };
        let lasts = Lasts { inner, watch };
        Self {
            inner,
            rows: kv.moment(),
            collections: inner.collections(),
            lasts,
        }
    }

    /// A handle that tells whether the moment was given up.
    pub fn watch(&self) -> &MomentWatch {
        &self.lasts.watch
    }

    /// The store's identity.
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.uuid
    }

    /// All collections in order of their names.
    pub fn collections(&self) -> Vec<CollectionInfo> {
        let all = self.collections.iter();
        all.map(|(name, record)| info(name, record)).collect()
    }

    /// See [`Store::list_damaged`].
    pub fn list_damaged(
        &self,
        collection: &str,
        prefix: impl AsRef<[u8]>,
        from: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<Vec<Listed>> {
        self.lasts.watch.check()?;
        let kind = self.kind(collection)?;
        let found = list(&self.rows, &kind, prefix.as_ref(), from.as_ref(), limit)?;
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
        self.lasts.watch.check()?;
        let kind = self.kind(collection)?;
        after_damage(&self.rows, &kind, prefix.as_ref(), from.as_ref())
    }

    /// Whether the object existed at the moment.
    pub fn has(&self, collection: &str, object: impl AsRef<[u8]>) -> Result<bool> {
        let key = onode_key(&self.kind(collection)?, collection, object.as_ref())?;
        Ok(self.rows.get(&key)?.is_some())
    }

    /// Opens an object for reading.
    pub fn open(&self, collection: &str, object: impl AsRef<[u8]>) -> Result<ObjectAt<'_>> {
        let object = object.as_ref();
        let key = onode_key(&self.kind(collection)?, collection, object)?;
        let onode = read_onode(&self.rows, &key)?;
        let onode = onode.ok_or_else(|| Error::no_object(collection, object))?;
        let (onode, info) = opened_info(object, onode);
        let extents = Extents::Moment(&self.rows, &self.lasts.watch);
        let label = format!("{collection}/{}", info.name);
        Ok(ObjectAt::at(
            self.inner.clone(),
            label,
            onode,
            info,
            extents,
        ))
    }

    /// See [`Store::omap`].
    pub fn omap(
        &self,
        collection: &str,
        object: impl AsRef<[u8]>,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let object = object.as_ref();
        let key = onode_key(&self.kind(collection)?, collection, object)?;
        match read_onode(&self.rows, &key)? {
            None => Err(Error::no_object(collection, object)),
            Some(onode) => match onode.omap {
                None => Ok(Vec::new()),
                Some(number) => omap::rows(&self.rows, number, from, None)
                    .take(limit)
                    .collect(),
            },
        }
    }

    fn kind(&self, collection: &str) -> Result<Kind> {
        let record = self.collections.get(collection);
        record
            .map(|record| record.kind)
            .ok_or_else(|| Error::no_collection(collection))
    }
}

impl Inner {
    /// Gives all moments up and logs `why`; false if there were none.
    pub(crate) fn give_up_moments(&self, why: &'static str) -> bool {
        let any = self.freelist.give_up_moments();
        if any {
            self.readers.there.lock().awaited_until = self.runtime.now() + PATIENCE;
            tracing::warn!(
                why,
                "a backup under way is given up: the zones that it held are needed"
            );
        }
        any
    }

    /// Like [`Self::give_up_moments`], and waits for the readers to leave, also for those whose moments another thread
    /// has given up: zones of the metadata come back only then. At most 10 seconds after the last one was given up.
    /// False if there were none and no reader has left.
    pub(crate) fn give_up_moments_and_wait(&self, why: &'static str) -> bool {
        let any = self.give_up_moments(why);
        let mut there = self.readers.there.lock();
        let before = there.count;
        while there.count > 0 {
            let left = there.awaited_until.saturating_sub(self.runtime.now());
            if left.is_zero() {
                break;
            }
            self.readers.left.wait_for(&mut there, left);
        }
        any || there.count < before
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
