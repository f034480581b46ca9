//! Carries out lifecycle rules: when the server starts, at midnight (UTC), and after rules have changed.
//!
//! A bucket is walked in the order of its versions, within its rules' prefixes, in batches with pauses. Expiry is
//! decided from a listing, so each removal requires that the version is still as listed. A walk that the end of the
//! process interrupted is repeated at the next start.

use crate::attributes::{LIFECYCLE, TAGS};
use crate::collections::{is_bucket, require};
use crate::dates::MICROS_PER_DAY;
use crate::errors::of_store;
use crate::gateway::Gateway;
use crate::lifecycle_rules::{Object, Rules, Seen, What};
use crate::multipart;
use crate::record::AUDIT;
use crate::version_listings::{Entry, entries};
use crate::versions::{self, Locks};
use s3s::{S3Error, S3Result};
use std::cell::RefCell;
use std::time::Duration;
use store::{Condition, Pending, Store};
use tokio::time::Instant;

/// Versions listed at a time.
const BATCH: usize = if cfg!(test) { 3 } else { 1000 };
/// Uploads looked at in one step. Each may have many parts, and waits for a flush of its own.
const UPLOADS: usize = if cfg!(test) { 3 } else { 100 };
/// Interval at which a new day is noticed.
const LOOK: Duration = Duration::from_secs(60);
/// Pause after a failed pass.
const AFTER_FAILURE: Duration = Duration::from_secs(3600);
/// Seconds of pause for each second of work.
const REST: u32 = 2;

/// Numbers of what has expired in a bucket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Current versions; where versions are kept, each is replaced by a delete marker.
    pub objects: u64,
    /// Earlier versions.
    pub earlier: u64,
    /// Delete markers without other versions of their key.
    pub markers: u64,
    /// Unfinished uploads.
    pub uploads: u64,
}

/// Carries out the rules of all buckets, until it is dropped.
pub async fn run(gateway: Gateway) {
    let mut done = None;
    loop {
        let day = (gateway.clock)() / MICROS_PER_DAY;
        let mut wait = LOOK;
        if done != Some(day) {
            match pass(&gateway).await {
                Ok(()) => done = Some(day),
                Err(error) => {
                    tracing::warn!(%error, "lifecycle rules are looked at again in an hour");
                    wait = AFTER_FAILURE;
                }
            }
        }
        tokio::select! {
            () = gateway.rules_changed.notified() => done = None,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Carries out the rules of all buckets once. After a failure in one bucket the others follow; the last failure is
/// returned.
async fn pass(gateway: &Gateway) -> S3Result<()> {
    let buckets = gateway
        .call(|store| store.collections().map_err(of_store))
        .await?;
    let mut done = Ok(());
    for bucket in buckets.into_iter().filter(is_bucket) {
        if !bucket.attributes.contains_key(LIFECYCLE) {
            continue;
        }
        let bucket = bucket.name;
        if let Err(error) = walk(gateway, bucket.clone()).await {
            tracing::warn!(bucket, %error, "lifecycle rules could not be carried out");
            done = Err(error);
        }
    }
    done
}

async fn walk(gateway: &Gateway, bucket: String) -> S3Result<()> {
    let mut walk = Some(Walk::new(bucket));
    let mut failed = None;
    while let Some(mut at) = walk.take() {
        let begun = Instant::now();
        let (locks, clock) = (gateway.locks.clone(), gateway.clock.clone());
        let step = move |store: &Store| {
            let more = at.step(store, &locks, clock())?;
            Ok((at, more))
        };
        let (mut at, more) = gateway.call(step).await?;
        if more {
            walk = Some(at);
            tokio::time::sleep(begun.elapsed() * REST).await;
        } else {
            failed = at.failed.take();
        }
    }
    failed.map_or(Ok(()), Err)
}

/// A walk through a bucket, in steps. Dropping it, wherever it has ended, tells the audit log what has expired.
pub struct Walk {
    bucket: String,
    /// Place of the next upload; uploads come before versions. `None` once all were looked at.
    uploads: Option<String>,
    /// Place of the next version; `None` once all were looked at.
    from: Option<String>,
    /// The version before that place.
    newer: Option<Newer>,
    /// The document of the rules that the batch was judged by.
    document: Option<Vec<u8>>,
    /// Key and id of the oldest version that the last batch removed.
    removed: Option<(String, String)>,
    /// Why the first of those that could not be judged or removed could not: one that is damaged, or the marker that a
    /// full drive has no room for, keeps no other from going.
    failed: Option<S3Error>,
    /// What has expired so far.
    pub gone: Gone,
}

/// What the next version of a key needs to know of the one before.
struct Newer {
    key: String,
    id: String,
    modified_micros: u64,
    /// Noncurrent versions of the key, including this one.
    earlier: usize,
}

/// An expired version, and the conditions of its removal.
struct Due {
    key: String,
    /// Id of the version; `None` for the current one.
    version: Option<String>,
    is_marker: bool,
    /// Id of the version before an earlier one, as of which that has been noncurrent.
    newer: Option<String>,
    requires: Vec<Condition>,
}

impl Walk {
    /// Begins at the bucket's uploads.
    pub fn new(bucket: String) -> Self {
        Self {
            bucket,
            uploads: Some(String::new()),
            from: Some(String::new()),
            newer: None,
            document: None,
            removed: None,
            failed: None,
            gone: Gone::default(),
        }
    }

    /// Reads the rules that the next batch is judged by; none if the bucket was removed meanwhile.
    fn read(&mut self, store: &Store) -> S3Result<Rules> {
        let Ok(bucket) = require(store, &self.bucket) else {
            return Ok(Rules::default());
        };
        self.document = bucket.attributes.get(LIFECYCLE).cloned();
        Rules::of(&bucket)
    }

    /// Whether the bucket still has the rules that the batch was judged by. Under a lock of the bucket, it keeps them.
    fn is_ruled(&self, store: &Store) -> S3Result<bool> {
        let bucket = store.collection(&self.bucket).map_err(of_store)?;
        Ok(bucket.is_some_and(|bucket| bucket.attributes.get(LIFECYCLE) == self.document.as_ref()))
    }

    /// Looks at the next batch of uploads or versions and removes what has expired. False after the last batch, or if the
    /// bucket has no rules any more.
    pub fn step(&mut self, store: &Store, locks: &Locks, now_micros: u64) -> S3Result<bool> {
        let rules = self.read(store)?;
        if rules.is_empty() {
            return Ok(false);
        }
        let is_due = |seen: &Seen<'_>| {
            let fate = rules.fate(seen);
            fate.is_some_and(|fate| fate.at_micros <= now_micros)
        };
        if let Some(from) = self.uploads.take() {
            let (ended, next, done) = self.end_uploads(store, locks, from, |upload| {
                is_due(&Seen {
                    key: &upload.key,
                    modified_micros: upload.initiated_micros,
                    what: What::Upload,
                })
            });
            self.gone.uploads += ended;
            self.uploads = next;
            self.failed = self.failed.take().or(done.err());
            return Ok(true);
        }
        let Some(from) = self.from.take() else {
            return Ok(false);
        };
        let prefixes = rules.prefixes();
        let places = prefixes
            .iter()
            .map(|prefix| (*prefix, versions::escape(prefix)));
        let mut ahead = places.filter(|(_, place)| from <= *place || from.starts_with(&**place));
        let Some((prefix, place)) = ahead.next() else {
            return Ok(false);
        };
        let (due, next) = self.look(store, prefix, from.as_str().max(&place), is_due)?;
        self.remove(store, locks, due)?;
        self.from = next.or_else(|| ahead.next().map(|(_, place)| place));
        Ok(self.from.is_some())
    }

    /// Ends those of the next batch of uploads that `which` selects, as long as the bucket has the same rules; returns what
    /// [`multipart::end_those`] does.
    fn end_uploads(
        &self,
        store: &Store,
        locks: &Locks,
        from: String,
        which: impl Fn(&multipart::Upload) -> bool,
    ) -> (u64, Option<String>, S3Result<()>) {
        multipart::end_those(store, &self.bucket, from, UPLOADS, which, || {
            let held = locks.as_they_are(&self.bucket);
            Ok(self.is_ruled(store)?.then_some(held))
        })
    }

    /// Expired versions of the next batch with this prefix, and the place to continue at. A version with a damaged record
    /// is left out. The next one may be taken for its successor, or for the latest, but a removal looks again under the
    /// key's lock.
    fn look(
        &mut self,
        store: &Store,
        prefix: &str,
        from: &str,
        is_due: impl Fn(&Seen<'_>) -> bool,
    ) -> S3Result<(Vec<Due>, Option<String>)> {
        let damaged = RefCell::new(None);
        let found = entries(store, (&self.bucket, prefix), from, BATCH, |error| {
            damaged.borrow_mut().get_or_insert_with(|| of_store(error));
            Ok(())
        })?;
        self.failed = self.failed.take().or(damaged.into_inner());
        let mut due = Vec::new();
        for (index, entry) in found.iter().enumerate() {
            let behind = found.get(index + 1);
            if behind.is_none() && found.len() == BATCH {
                // Only the next batch tells whether the key has further versions.
                let place = match entry.is_latest {
                    true => versions::stem(&entry.plain),
                    false => entry.place.clone(),
                };
                return Ok((due, Some(place)));
            }
            let is_alone = behind.is_none_or(|behind| behind.key != entry.key);
            due.extend(self.judge(entry, is_alone, &is_due));
        }
        Ok((due, None))
    }

    fn judge(
        &mut self,
        entry: &Entry,
        is_alone: bool,
        is_due: impl Fn(&Seen<'_>) -> bool,
    ) -> Option<Due> {
        let newer = self.newer.take().filter(|newer| newer.key == entry.key);
        let earlier = newer.as_ref().map_or(0, |newer| newer.earlier);
        let modified_micros = entry.info.modified_micros;
        self.newer = Some(Newer {
            key: entry.key.clone(),
            id: entry.version.id().to_owned(),
            modified_micros,
            earlier: earlier + usize::from(!entry.is_latest),
        });
        let object = (!entry.is_marker).then_some(Object {
            size: entry.info.size,
            attributes: &entry.info.attributes,
        });
        let what = match (entry.is_latest, object) {
            (true, Some(object)) => What::Current(object),
            (true, None) if is_alone => What::LoneMarker,
            (true, None) => return None,
            (false, object) => {
                // A version that was imported may have an earlier time than the one that it replaced.
                let since = newer.as_ref()?.modified_micros.max(modified_micros);
                What::Earlier(object, since, earlier)
            }
        };
        let seen = Seen {
            key: &entry.plain,
            modified_micros,
            what,
        };
        if !is_due(&seen) {
            return None;
        }
        // With other tags, other rules may apply.
        let tags = entry.info.attributes.get(TAGS);
        let tags = tags.map(|tags| Condition::AttributeIs(TAGS.to_owned(), tags.clone()));
        let modified = Condition::ModifiedAt(modified_micros);
        let is_current = entry.is_latest && !entry.is_marker;
        Some(Due {
            key: entry.plain.clone(),
            version: (!is_current).then(|| entry.version.id().to_owned()),
            is_marker: entry.is_latest,
            newer: newer.filter(|_| !entry.is_latest).map(|newer| newer.id),
            requires: [modified].into_iter().chain(tags).collect(),
        })
    }

    /// Removes what is due, as long as the bucket has the same rules.
    fn remove(&mut self, store: &Store, locks: &Locks, due: Vec<Due>) -> S3Result<()> {
        let mut last: Option<Pending> = None;
        let before = self.removed.take();
        // Oldest first: each is removed while the next newer one is still there.
        for one in due.into_iter().rev() {
            let change = locks.change(store, &self.bucket, &one.key)?;
            if !self.is_ruled(store)? {
                break;
            }
            let is_gone = |id: &String| {
                let before = before.as_ref();
                before.is_some_and(|(key, gone)| *key == one.key && gone == id)
            };
            // Since the listing, a client may have removed the newer version, or added one.
            let is_as_listed = || -> S3Result<bool> {
                Ok(match (&one.version, &one.newer) {
                    (Some(version), Some(newer)) => {
                        newer != version
                            && !change.is_latest(version)?
                            && (is_gone(newer) || change.has(newer)?)
                    }
                    (Some(version), None) => change.is_alone(version)?,
                    (None, _) => true,
                })
            };
            let removed = is_as_listed().and_then(|is_as_listed| match &one.version {
                _ if !is_as_listed => Ok(None),
                None => change
                    .delete(&one.requires, Store::commit_readable)
                    .map(|(_, pending)| Some(pending)),
                Some(version) => change
                    .delete_version(version, false, &one.requires, Store::commit_readable)
                    .map(|(_, pending)| pending),
            });
            let count = match (&one.version, one.is_marker) {
                (None, _) => &mut self.gone.objects,
                (Some(_), true) => &mut self.gone.markers,
                (Some(_), false) => &mut self.gone.earlier,
            };
            match removed {
                Ok(Some(pending)) => {
                    *count += 1;
                    if let (None, Some(version)) = (&last, &one.version) {
                        self.removed = Some((one.key.clone(), version.clone()));
                    }
                    last = Some(pending);
                }
                // Another request has removed it, or it has another place.
                Ok(None) => {}
                // It has changed since, or is locked.
                Err(error) if is_refusal(&error) => {}
                Err(error) => _ = self.failed.get_or_insert(error),
            }
        }
        // Commits are in order: once the last one is durable, so are those before it.
        last.map_or(Ok(()), Pending::wait).map_err(of_store)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        let Gone {
            objects,
            earlier,
            markers,
            uploads,
        } = self.gone;
        if self.gone != Gone::default() {
            let bucket = &*self.bucket;
            tracing::info!(target: AUDIT, bucket, objects, earlier, markers, uploads, "expired");
        }
    }
}

fn is_refusal(error: &S3Error) -> bool {
    let status = error.status_code().or(error.code().status_code());
    status.is_some_and(|status| status.is_client_error())
}

#[cfg(test)]
mod tests;
