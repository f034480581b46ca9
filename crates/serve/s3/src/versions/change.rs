//! Changes of what is under a key, which keep the versions that its bucket wants.

use super::earlier::Earlier;
use super::version::{MARKER, Version, check_id, is_marker, name_of};
use super::versioning::Versioning;
use crate::attributes::VERSION;
use crate::collections::versions_of;
use crate::config::Random;
use crate::errors::{condition_error, of_store};
use crate::lock::{self, BucketLock, Kept, Lock, Read, Refusal};
use parking_lot::{MutexGuard, RwLockReadGuard};
use s3s::{S3Error, S3Result};
use store::{Attributes, CollectionInfo, Condition, ObjectInfo, Store, Transaction};

/// A change of a key. In a bucket that keeps versions, no other change of the key begins while this exists.
pub struct Change<'a> {
    earlier: Earlier<'a>,
    pub(super) versioning: Versioning,
    bucket_lock: Read<Option<BucketLock>>,
    /// Time of the change, Unix time in microseconds.
    pub now: u64,
    random: u64,
    pub(super) locks: (Option<RwLockReadGuard<'a, ()>>, Option<MutexGuard<'a, ()>>),
}

/// Carries out a transaction.
pub type Commit<P> = fn(&Store, Transaction) -> store::Result<P>;

/// Outcome of a deletion.
#[derive(Default)]
pub struct Deleted {
    /// Whether it created or removed a delete marker.
    pub marker: bool,
    /// Id of the version that it created or removed, if the bucket keeps any.
    pub id: Option<String>,
}

/// Why an object under a key cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The version that would be lost is locked.
    #[error(transparent)]
    Locked(#[from] Refusal),
}

impl From<ReplaceError> for S3Error {
    fn from(why: ReplaceError) -> Self {
        match why {
            ReplaceError::Store(error) => of_store(error),
            ReplaceError::Locked(why) => why.into(),
        }
    }
}

/// The current version, or the delete marker, that a change creates.
pub struct Next<'v> {
    /// The version to mark it with, if the bucket keeps versions.
    pub version: Option<&'v Version>,
    /// Name in `.versions/BUCKET` that the version before was moved to, if it is kept.
    pub moved: Option<String>,
    /// Lock of the new version.
    lock: Lock,
}

impl Next<'_> {
    /// Adds version and lock to an object's attributes.
    pub fn mark(&self, mut attributes: Attributes) -> Attributes {
        attributes.extend(self.lock.encode());
        if let Some(version) = self.version {
            attributes.insert(VERSION.to_owned(), version.as_str().into());
        }
        attributes
    }
}

impl<'a> Change<'a> {
    /// A change at the time `now` in a bucket that no other caller changes; `info` is `None` if the bucket does not
    /// exist yet.
    pub fn alone(
        store: &'a Store,
        bucket: &'a str,
        key: &'a str,
        info: Option<&CollectionInfo>,
        random: &Random,
        now: u64,
    ) -> Self {
        let versioning = info.map_or(Versioning::Never, Versioning::of);
        let mut bytes = [0; 8];
        if versioning != Versioning::Never {
            random(&mut bytes);
        }
        Self {
            earlier: Earlier { store, bucket, key },
            versioning,
            bucket_lock: info.map_or(Ok(None), |info| BucketLock::of(&info.attributes)),
            now,
            random: u64::from_ne_bytes(bytes),
            locks: (None, None),
        }
    }

    /// The lock that a new version gets if `asked` was requested.
    pub fn grant(&self, asked: Lock) -> Result<Lock, Refusal> {
        lock::grant(self.bucket_lock, asked, self.now)
    }

    /// Refuses a bucket without Object Lock. A bucket whose lock attribute cannot be read counts as locked.
    pub fn require_lock(&self) -> Result<(), Refusal> {
        match self.bucket_lock {
            Ok(None) => Err(Refusal::NoBucketLock),
            _ => Ok(()),
        }
    }

    /// Refuses to lose a locked version, whatever the bucket's state is now.
    fn check_lock(&self, lost: &ObjectInfo, bypass: bool) -> Result<(), Refusal> {
        lock::may_delete(&Kept::of(&lost.attributes), self.now, bypass)
    }

    /// Adds to `transaction`, after its conditions, what puts a new version under the key: the current version is
    /// moved away if it is kept, and `put` adds its successor with this lock. Returns the new version, if versions
    /// are kept.
    pub fn replace(
        &self,
        transaction: &mut Transaction,
        lock: Lock,
        put: impl FnOnce(&mut Transaction, Next<'_>),
    ) -> Result<Option<Version>, ReplaceError> {
        let Earlier { store, bucket, key } = self.earlier;
        let current = match store.stat(bucket, key) {
            // The same transaction creates the bucket.
            Err(store::Error::NoCollection { .. }) => None,
            found => found?,
        };
        if self.versioning == Versioning::Never {
            // Programs other than S3 may have brought a locked object into this bucket.
            if let Some(current) = &current {
                self.check_lock(current, false)?;
            }
            put(
                transaction,
                Next {
                    version: None,
                    moved: None,
                    lock,
                },
            );
            return Ok(None);
        }
        let version = current.as_ref().map(|info| Version::of(&info.attributes));
        let newest = self.earlier.newest()?;
        let numbers = version.iter().chain(&newest).map(Version::number);
        let mut number = numbers.max().unwrap_or(0);
        let mut next_number = || {
            number = number.saturating_add(1);
            number
        };
        let is_enabled = self.versioning == Versioning::Enabled;
        let kept = version.filter(|version| is_enabled || !version.is_null());
        let replaced = current.filter(|_| kept.is_none());
        if let Some(replaced) = &replaced {
            self.check_lock(replaced, false)?;
        }
        let versions = versions_of(bucket);
        // A program may have put an object here that is older than earlier versions, or has the id of one: it gets a
        // new version.
        let kept = match kept {
            Some(version) if !self.earlier.has_room_for(&version, newest.as_ref())? => {
                Some(Version::new(next_number(), Some(self.random)))
            }
            kept => kept,
        };
        let moved = kept.map(|version| {
            let name = name_of(key, &version);
            let marked = Attributes::from([(VERSION.to_owned(), version.as_str().into())]);
            transaction
                .rename((bucket, key), (&versions, &name))
                .update_attributes(&versions, &name, marked, &[]);
            name
        });
        let next = Version::new(next_number(), is_enabled.then_some(self.random));
        put(
            transaction,
            Next {
                version: Some(&next),
                moved,
                lock,
            },
        );
        // At most one version that can be read has the id `null`.
        if !is_enabled
            && replaced.is_none()
            && let Some(null) = self.earlier.null()?
        {
            let name = name_of(key, &null);
            match store.stat(&versions, &name) {
                Ok(lost) => {
                    if let Some(lost) = lost {
                        self.check_lock(&lost, false)?;
                    }
                    transaction.remove(&versions, name);
                }
                // It may be locked, so it stays until a repair. Whoever asks for `null` gets the newer one.
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, "a damaged version `null` stays below a new one");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(next))
    }

    /// Deletes the key's object; where versions are kept, that creates a delete marker.
    pub fn delete<P>(&self, requires: &[Condition], commit: Commit<P>) -> S3Result<(Deleted, P)> {
        let Earlier { bucket, key, .. } = self.earlier;
        let mut transaction = Transaction::new();
        for condition in requires {
            transaction.require(bucket, key, condition.clone());
        }
        let no_lock = Lock::default();
        let id = self.replace(&mut transaction, no_lock, |transaction, next| {
            transaction.remove_if_present(bucket, key);
            if let Some(version) = next.version {
                let (versions, name) = (versions_of(bucket), name_of(key, version));
                let marker = [(MARKER.to_owned(), Vec::new())];
                transaction
                    .touch(&versions, &name)
                    .set_attributes(&versions, &name, marker.into());
            }
        });
        let id = id?;
        let done = self.commit(transaction, requires, commit)?;
        let marker = id.is_some();
        let id = id.map(|version| version.id().to_owned());
        Ok((Deleted { marker, id }, done))
    }

    /// Whether the key has a version with this id.
    pub fn has(&self, id: &str) -> S3Result<bool> {
        let Earlier { store, bucket, key } = self.earlier;
        let current = store.stat(bucket, key).map_err(of_store)?;
        if current.is_some_and(|info| Version::of(&info.attributes).id() == id) {
            return Ok(true);
        }
        let found = self
            .earlier
            .name(id)?
            .map(|name| store.stat(&versions_of(bucket), &name));
        let found = found.transpose().map_err(of_store)?;
        Ok(found.flatten().is_some())
    }

    /// Whether the version with this id is the key's latest.
    pub fn is_latest(&self, id: &str) -> S3Result<bool> {
        let Earlier { store, bucket, key } = self.earlier;
        let latest = match store.stat(bucket, key).map_err(of_store)? {
            Some(info) => Some(Version::of(&info.attributes)),
            None => self.earlier.newest().map_err(of_store)?,
        };
        Ok(latest.is_some_and(|version| version.id() == id))
    }

    /// Whether the version with this id, which is not in the bucket, is the only one of the key.
    pub fn is_alone(&self, id: &str) -> S3Result<bool> {
        let Earlier { store, bucket, key } = self.earlier;
        let others = self.earlier.list("", 2).map_err(of_store)?;
        let is_it = matches!(&others[..], [(version, _)] if version.id() == id);
        Ok(is_it && store.stat(bucket, key).map_err(of_store)?.is_none())
    }

    /// Deletes a version permanently, unless it is locked; `bypass` is true if the caller may bypass governance and
    /// asks for it. After the current version, the newest of the others becomes current. A version with a damaged record
    /// is not deleted, because its lock cannot be read.
    pub fn delete_version<P>(
        &self,
        id: &str,
        bypass: bool,
        requires: &[Condition],
        commit: Commit<P>,
    ) -> S3Result<(Deleted, Option<P>)> {
        let Earlier { store, bucket, key } = self.earlier;
        check_id(id)?;
        let current = store.stat(bucket, key).map_err(of_store)?;
        let is_current = |info: &ObjectInfo| Version::of(&info.attributes).id() == id;
        let is_current = current.as_ref().is_some_and(is_current);
        let versions = versions_of(bucket);
        let (collection, name) = match is_current {
            true => (bucket, Some(key.to_owned())),
            false => (&*versions, self.earlier.name(id)?),
        };
        let found = match &name {
            _ if self.versioning == Versioning::Never && !is_current => None,
            Some(name) => store.stat(collection, name).map_err(of_store)?,
            None => None,
        };
        let marker = found.as_ref().is_some_and(is_marker);
        let id = (self.versioning != Versioning::Never).then(|| id.to_owned());
        let (Some(name), Some(found)) = (name, found) else {
            // What has removed it may wait for a flush, and so does this answer.
            store.commit(Transaction::new()).map_err(of_store)?;
            return Ok((Deleted { marker, id }, None));
        };
        self.check_lock(&found, bypass)?;
        let mut transaction = Transaction::new();
        for condition in requires {
            transaction.require(collection, &name, condition.clone());
        }
        // Where no versions are kept, concurrent changes of a key are possible.
        transaction.remove_if_present(collection, &name);
        if is_current || current.is_none() {
            let back = self.bring_back(&mut transaction, (!is_current).then_some(&*name));
            back.map_err(of_store)?;
        }
        let done = self.commit(transaction, requires, commit)?;
        Ok((Deleted { marker, id }, Some(done)))
    }

    /// Lets `transaction`, which removes the current version, or `without` where there is no current one, make the newest
    /// other version current, unless that is a delete marker. Fails if its record is damaged: an older version does not
    /// take its place.
    pub fn bring_back(
        &self,
        transaction: &mut Transaction,
        without: Option<&str>,
    ) -> store::Result<()> {
        if self.versioning == Versioning::Never {
            return Ok(());
        }
        let Earlier { bucket, key, .. } = self.earlier;
        let others = self.earlier.list("", 2)?.into_iter();
        let others = others.map(|(other, is_marker)| (name_of(key, &other), is_marker));
        let mut others = others.filter(|(other, _)| without != Some(&**other));
        if let Some((next, is_marker)) = others.next()
            && !is_marker?
        {
            transaction.rename((&versions_of(bucket), next), (bucket, key.to_owned()));
        }
        Ok(())
    }

    fn commit<P>(
        &self,
        transaction: Transaction,
        requires: &[Condition],
        commit: Commit<P>,
    ) -> S3Result<P> {
        let Earlier { store, bucket, key } = self.earlier;
        let done = commit(store, transaction);
        done.map_err(|error| condition_error(store, bucket, key, requires, error))
    }
}
