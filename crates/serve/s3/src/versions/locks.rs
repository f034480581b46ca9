//! Locks of keys and of buckets, and changes of a bucket's attributes under them.

use super::change::Change;
use super::versioning::Versioning;
use crate::attributes::{OBJECT_LOCK, VERSIONING, VERSIONING_ENABLED};
use crate::collections::{add_versions, bucket_maker, require};
use crate::config::{Clock, Random};
use crate::errors::of_store;
use crate::lock::BucketLock;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use s3s::{S3Result, s3_error};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use store::{Attributes, Store, Transaction};

/// Serialises changes of a key, and separates all of a bucket from changes of its attributes. Buckets and keys share
/// locks by their hashes; nobody holds those of two buckets.
#[derive(Clone)]
pub struct Locks(Arc<Inner>);

struct Inner {
    switches: [RwLock<()>; 256],
    keys: [Mutex<()>; 64],
    hasher: RandomState,
    random: Random,
    clock: Clock,
}

impl Locks {
    /// `random` makes the names of versions; `clock` decides whether locks have ended.
    pub fn new(random: Random, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            switches: [const { RwLock::new(()) }; 256],
            keys: [const { Mutex::new(()) }; 64],
            hasher: RandomState::new(),
            random,
            clock,
        }))
    }

    /// Begins a change of what is under `key`.
    pub fn change<'a>(
        &'a self,
        store: &'a Store,
        bucket: &'a str,
        key: &'a str,
    ) -> S3Result<Change<'a>> {
        let switch = self.as_they_are(bucket);
        let info = require(store, bucket)?;
        let mut change = Change::alone(store, bucket, key, Some(&info), &self.0.random, 0);
        change.locks.0 = Some(switch);
        if change.versioning != Versioning::Never {
            let hash = self.0.hasher.hash_one((bucket, key));
            change.locks.1 = Some(self.0.keys[hash as usize % self.0.keys.len()].lock());
        }
        // The time is taken once the locks are held, so that locks of versions are judged by the time of the change.
        change.now = (self.0.clock)();
        Ok(change)
    }

    pub(super) fn switch(&self, bucket: &str) -> &RwLock<()> {
        let hash = self.0.hasher.hash_one(bucket);
        &self.0.switches[hash as usize % self.0.switches.len()]
    }

    /// Read lock: while it is held, the bucket's attributes stay as they are.
    pub fn as_they_are(&self, bucket: &str) -> RwLockReadGuard<'_, ()> {
        self.switch(bucket).read()
    }

    /// Write lock: while it is held, no object of the bucket changes.
    pub fn hold(&self, bucket: &str) -> RwLockWriteGuard<'_, ()> {
        self.switch(bucket).write()
    }

    /// Sets a bucket's versioning state. A bucket with Object Lock has to go on keeping versions.
    pub fn set(&self, store: &Store, bucket: &str, versioning: Versioning) -> S3Result<()> {
        self.change_bucket(store, bucket, |attributes, transaction| {
            if versioning != Versioning::Enabled && BucketLock::of(attributes) != Ok(None) {
                return Err(s3_error!(
                    InvalidBucketState,
                    "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed."
                ));
            }
            if let Some(word) = versioning.word() {
                attributes.insert(VERSIONING.to_owned(), word.into());
            }
            add_versions(transaction, store, bucket).map_err(of_store)
        })
    }

    /// Changes a bucket's attributes, with what `change` adds to the transaction, while no object changes.
    pub fn change_bucket(
        &self,
        store: &Store,
        bucket: &str,
        change: impl FnOnce(&mut Attributes, &mut Transaction) -> S3Result<()>,
    ) -> S3Result<()> {
        let _held = self.hold(bucket);
        let mut attributes = require(store, bucket)?.attributes;
        let mut transaction = Transaction::new();
        change(&mut attributes, &mut transaction)?;
        transaction.set_collection_attributes(bucket, attributes);
        store.commit(transaction).map_err(of_store)
    }

    /// Creates a bucket of what there is of it, which no other caller changes meanwhile.
    pub fn create(&self, store: &Store, bucket: &str, lock: Option<BucketLock>) -> S3Result<()> {
        let _held = self.hold(bucket);
        let transaction = bucket_maker(store, bucket, lock)?;
        store.commit(transaction).map_err(of_store)
    }

    /// Turns Object Lock on for a bucket, which has to keep versions.
    pub fn set_lock(&self, store: &Store, bucket: &str, lock: BucketLock) -> S3Result<()> {
        self.change_bucket(store, bucket, |attributes, _| {
            let versioning = attributes.get(VERSIONING).map(Vec::as_slice);
            if versioning != Some(VERSIONING_ENABLED) {
                return Err(s3_error!(
                    InvalidBucketState,
                    "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"
                ));
            }
            attributes.insert(OBJECT_LOCK.to_owned(), lock.encode().into());
            Ok(())
        })
    }
}
