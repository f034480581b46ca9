//! The store as it was at a moment, read while others go on: rows from a walk that keeps its beginning, data from
//! zones that are not reset meanwhile. When zones run short, the moment is given up, never what somebody writes.
//!
//! It begins while no commit and no move is under way, so that rows, collections and live bytes of zones fit each
//! other. A read enters the gate and then looks whether the moment lasts; who gives it up does that before any reset.

use crate::extent_reader::{Extents, ObjectAt};
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::info::CollectionInfo;
use crate::inner::Inner;
use crate::moment_watch::MomentWatch;
use crate::object_list::{Listed, list};
use crate::omap;
use crate::rows::{onode_key, read_onode};
use crate::store::{info, object_info};
use crate::{Error, Result, Store};
use kv::{Kv, View};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long somebody who needs space waits for readers whose moments were given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The store as it was when this was made.
pub struct Moment<'a> {
    inner: &'a Arc<Inner>,
    rows: kv::Moment<'a>,
    collections: Arc<BTreeMap<String, CollectionRecord>>,
    lasts: Lasts<'a>,
}

/// Ends the moment, and behind the rows: what these keep is given back before anybody is told.
struct Lasts<'a> {
    inner: &'a Inner,
    watch: MomentWatch,
}

impl Drop for Lasts<'_> {
    fn drop(&mut self) {
        self.inner.freelist.end_moment(self.watch.number);
        *self.inner.readers.count.lock() -= 1;
        self.inner.readers.left.notify_all();
        // What was held may be worth cleaning.
        self.inner.cleaner.cleaned();
        self.inner.cleaner.nudge();
    }
}

impl Store {
    /// Reads the store as it is now, however long that takes. Zones that hold anything of it are not reset until it
    /// has ended, or others need them: every call then answers [`Error::MomentGivenUp`]. Waits for commits under way.
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
        *inner.readers.count.lock() += 1;
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

    /// Tells whether it was given up.
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
        list(&self.rows, &kind, prefix.as_ref(), from.as_ref(), limit)
    }

    /// Whether there is such an object.
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
        let info = object_info(object, onode.clone());
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
    /// Gives all moments up, and says why; false if there is none.
    pub(crate) fn give_up_moments(&self, why: &'static str) -> bool {
        let any = self.freelist.give_up_moments();
        if any {
            tracing::warn!(
                why,
                "a backup under way is given up: the zones that it held are needed"
            );
        }
        any
    }

    /// The same where zones of the metadata are needed, which come back when the readers have left: waits for that.
    /// False if there was none.
    pub(crate) fn give_up_moments_and_wait(&self, why: &'static str) -> bool {
        let any = self.give_up_moments(why);
        let until = self.runtime.now() + PATIENCE;
        let mut count = self.readers.count.lock();
        while any && *count > 0 {
            let left = until.saturating_sub(self.runtime.now());
            if left.is_zero() {
                break;
            }
            self.readers.left.wait_for(&mut count, left);
        }
        any
    }
}
