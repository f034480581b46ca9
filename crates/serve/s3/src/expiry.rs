//! Removes what lifecycle rules say: when the server starts, at midnight (UTC), and when rules have changed.
//!
//! A bucket is walked in the order of its versions, where its rules' prefixes are, in batches with pauses. What is due is judged from a listing, so its
//! removal requires that it is what was listed. A walk that a kill has cut short is made again at the next start.

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
use s3s::S3Result;
use std::time::Duration;
use store::{Condition, Pending, Store};
use tokio::time::Instant;

/// Versions that are looked at in one go.
const BATCH: usize = if cfg!(test) { 3 } else { 1000 };
/// Between two looks whether it is another day.
const LOOK: Duration = Duration::from_secs(60);
/// Until a pass is tried again that has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(3600);
/// For each second of work, so many of rest.
const REST: u32 = 2;

/// What went from a bucket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Current versions; where versions are kept, a delete marker is there in their place.
    pub objects: u64,
    /// Earlier versions.
    pub earlier: u64,
    /// Delete markers that were all there was of their key.
    pub markers: u64,
    /// Unfinished uploads.
    pub uploads: u64,
}

/// Carries out rules until it is dropped.
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

/// Carries out the rules of all buckets, once. A failure in one bucket keeps no other waiting; the last one is answered.
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
    let mut walk = Some(Walk::new(bucket.clone()));
    let mut gone = Gone::default();
    while let Some(mut at) = walk.take() {
        let begun = Instant::now();
        let (locks, clock) = (gateway.locks.clone(), gateway.clock.clone());
        let step = move |store: &Store| {
            let more = at.step(store, &locks, clock())?;
            Ok((at, more))
        };
        let (at, more) = gateway.call(step).await?;
        gone = at.gone;
        if more {
            walk = Some(at);
            tokio::time::sleep(begun.elapsed() * REST).await;
        }
    }
    if gone != Gone::default() {
        let Gone {
            objects,
            earlier,
            markers,
            uploads,
        } = gone;
        tracing::info!(target: AUDIT, bucket, objects, earlier, markers, uploads, "expired");
    }
    Ok(())
}

/// A walk through a bucket.
pub struct Walk {
    bucket: String,
    /// Where it goes on, as a version's place; `None` in front of the uploads, which come first.
    from: Option<String>,
    /// What was in front of that.
    newer: Option<Newer>,
    /// What went so far.
    pub gone: Gone,
}

/// A version, for the next one of its key.
struct Newer {
    key: String,
    modified_micros: u64,
    /// Versions that are not current, up to this one.
    earlier: usize,
}

/// What is to go, and what it has to be then.
struct Due {
    key: String,
    /// `None` of a current version.
    version: Option<String>,
    is_marker: bool,
    requires: Vec<Condition>,
}

impl Walk {
    /// From the begin.
    pub fn new(bucket: String) -> Self {
        Self {
            bucket,
            from: None,
            newer: None,
            gone: Gone::default(),
        }
    }

    /// Looks at the next ones and removes what is due. False: there are no more, or no rules any more.
    pub fn step(&mut self, store: &Store, locks: &Locks, now_micros: u64) -> S3Result<bool> {
        let rules = match require(store, &self.bucket) {
            Ok(bucket) => Rules::of(&bucket)?,
            // It went meanwhile.
            Err(_) => return Ok(false),
        };
        if rules.is_empty() {
            return Ok(false);
        }
        let is_due = |seen: &Seen<'_>| {
            let fate = rules.fate(seen);
            fate.is_some_and(|fate| fate.at_micros <= now_micros)
        };
        let Some(from) = self.from.take() else {
            self.gone.uploads += multipart::end_those(store, &self.bucket, |upload| {
                is_due(&Seen {
                    key: &upload.key,
                    modified_micros: upload.initiated_micros,
                    what: What::Upload,
                })
            })?;
            self.from = Some(String::new());
            return Ok(true);
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

    /// What is due of the next ones with this prefix, and where it goes on.
    fn look(
        &mut self,
        store: &Store,
        prefix: &str,
        from: &str,
        is_due: impl Fn(&Seen<'_>) -> bool,
    ) -> S3Result<(Vec<Due>, Option<String>)> {
        let found = entries(store, &self.bucket, prefix, from, BATCH)?;
        let mut due = Vec::new();
        for (index, entry) in found.iter().enumerate() {
            let behind = found.get(index + 1);
            if behind.is_none() && found.len() == BATCH {
                // Whether it is alone will be seen from there.
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
            (false, object) => What::Earlier(object, newer?.modified_micros, earlier),
        };
        let seen = Seen {
            key: &entry.plain,
            modified_micros,
            what,
        };
        if !is_due(&seen) {
            return None;
        }
        // Other tags, another fate.
        let tags = entry.info.attributes.get(TAGS);
        let tags = tags.map(|tags| Condition::AttributeIs(TAGS.to_owned(), tags.clone()));
        let modified = Condition::ModifiedAt(modified_micros);
        let is_current = entry.is_latest && !entry.is_marker;
        Some(Due {
            key: entry.plain.clone(),
            version: (!is_current).then(|| entry.version.id().to_owned()),
            is_marker: entry.is_latest,
            requires: [modified].into_iter().chain(tags).collect(),
        })
    }

    fn remove(&mut self, store: &Store, locks: &Locks, due: Vec<Due>) -> S3Result<()> {
        let mut last: Option<Pending> = None;
        for one in due {
            let change = locks.change(store, &self.bucket, &one.key)?;
            let removed = match &one.version {
                None => change
                    .delete(&one.requires, Store::commit_readable)
                    .map(|(_, pending)| Some(pending)),
                Some(version) => change
                    .delete_version(version, false, &one.requires, Store::commit_readable)
                    .map(|(_, pending)| pending),
            };
            let count = match (&one.version, one.is_marker) {
                (None, _) => &mut self.gone.objects,
                (Some(_), true) => &mut self.gone.markers,
                (Some(_), false) => &mut self.gone.earlier,
            };
            match removed {
                Ok(Some(pending)) => {
                    *count += 1;
                    last = Some(pending);
                }
                // Somebody else has removed it.
                Ok(None) => {}
                // It is another one by now, or must not go.
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // The last one is durable with all before it.
        last.map_or(Ok(()), Pending::wait).map_err(of_store)
    }
}

fn is_refusal(error: &s3s::S3Error) -> bool {
    let status = error.status_code().or(error.code().status_code());
    status.is_some_and(|status| status.is_client_error())
}

#[cfg(test)]
mod tests;
