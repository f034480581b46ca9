//! Versions of objects: what a bucket keeps, and how a change of an object keeps it.
//!
//! The current version lies in the bucket under its key, whether or not the bucket keeps versions, so that whoever asks
//! for no other finds it at once. Earlier ones and delete markers lie in a collection beside the bucket,
//! `.versions/BUCKET`. A version that becomes an earlier one, or the current one again, is renamed: no data moves, and it
//! is one transaction with what causes it. If there is no current version, the newest of the others is a delete marker.

use crate::attributes::{
    ETAG, OBJECT_LOCK, VERSION, VERSIONING, VERSIONING_ENABLED, VERSIONING_SUSPENDED,
};
use crate::collections::{add_versions, require, versions_of};
use crate::config::{Clock, Random};
use crate::errors::{condition_error, of_store};
use crate::lock::{self, BucketLock, Kept, Lock, Read, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use s3s::{S3Error, S3Result, s3_error};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use store::{Attributes, CollectionInfo, Condition, ObjectInfo, ObjectReader, Store, Transaction};

/// Attribute of a version that is a delete marker.
const MARKER: &str = "delete-marker";
/// The version of objects that were put while none were kept, as clients name it.
const NULL: &str = "null";
/// What ends a key in the name of an earlier version.
pub const END: &str = "\0\0";
/// Versions of a key that are looked at in one go.
const BATCH: usize = 1000;
/// How often a version is looked for again that may have been moved meanwhile.
const ATTEMPTS: u32 = 4;

/// Whether a response is about a delete marker.
const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// Which version a response is about.
const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// What a bucket does with versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versioning {
    /// It has never kept any.
    Never,
    /// It keeps all.
    Enabled,
    /// It keeps those that it has; what comes replaces the one without a number.
    Suspended,
}

impl Versioning {
    /// What this bucket does.
    pub fn of(bucket: &CollectionInfo) -> Self {
        match bucket.attributes.get(VERSIONING).map(Vec::as_slice) {
            None => Self::Never,
            Some(VERSIONING_SUSPENDED) => Self::Suspended,
            // Also of what cannot be read, because of damage or of a newer program: nothing is lost then.
            Some(_) => Self::Enabled,
        }
    }

    fn word(self) -> Option<&'static [u8]> {
        match self {
            Self::Never => None,
            Self::Enabled => Some(VERSIONING_ENABLED),
            Self::Suspended => Some(VERSIONING_SUSPENDED),
        }
    }
}

/// A version, and its place among the others of its key: 16 hexadecimal digits, the smaller the newer it is, and behind
/// them 16 random ones or `null`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(String);

impl Version {
    const DIGITS: usize = 16;

    fn new(number: u64, random: Option<u64>) -> Self {
        let number = !number;
        Self(match random {
            Some(random) => format!("{number:016x}{random:016x}"),
            None => format!("{number:016x}{NULL}"),
        })
    }

    /// Reads what an attribute, a name or a client says.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = |text: &str| {
            let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == Self::DIGITS && text.bytes().all(is_digit)
        };
        let (number, rest) = text.split_at_checked(Self::DIGITS)?;
        (digits(number) && (rest == NULL || digits(rest))).then(|| Self(text.to_owned()))
    }

    /// That of a current version. Those put before the bucket kept any are older than all others.
    pub fn of(attributes: &Attributes) -> Self {
        let said = attributes.get(VERSION);
        let said = said.and_then(|text| Self::parse(std::str::from_utf8(text).ok()?));
        said.unwrap_or_else(|| Self::new(0, None))
    }

    fn number(&self) -> u64 {
        let digits = self.0.get(..Self::DIGITS);
        digits.map_or(0, |digits| {
            !u64::from_str_radix(digits, 16).unwrap_or(u64::MAX)
        })
    }

    fn is_null(&self) -> bool {
        self.0.ends_with(NULL)
    }

    /// As clients name it.
    pub fn id(&self) -> &str {
        if self.is_null() { NULL } else { &self.0 }
    }

    /// As answers to puts say it: of one that has no number of its own they say nothing.
    pub fn told(self) -> Option<String> {
        (!self.is_null()).then_some(self.0)
    }

    /// As it is kept.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key in names of earlier versions. They are in order of keys, and those of a key in order of versions: what ends a
/// key sorts in front of everything that goes on.
pub fn escape(key: &str) -> String {
    key.replace('\0', "\0\u{1}")
}

/// The same of the beginning of a key.
pub fn escape_bytes(prefix: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = prefix.split(|byte| *byte == 0).collect();
    pieces.join(&b"\0\x01"[..])
}

/// The key that is so in names.
pub fn unescape(escaped: &str) -> String {
    escaped.replace("\0\u{1}", "\0")
}

/// The name of an earlier version, or the place of the current one among them.
pub fn name_of(key: &str, version: &Version) -> String {
    format!("{}{END}{}", escape(key), version.0)
}

/// What all names of a key's earlier versions begin with.
pub fn stem(key: &str) -> String {
    escape(key) + END
}

/// The key and the version of such a name. `None` of what we have not put there.
pub fn parse_name(name: &str) -> Option<(String, Version)> {
    let (key, version) = name.rsplit_once(END)?;
    Some((unescape(key), Version::parse(version)?))
}

/// Whether what lies beside a bucket is a delete marker.
pub fn is_marker(info: &ObjectInfo) -> bool {
    info.attributes.contains_key(MARKER)
}

/// What a request found.
pub struct Found<T> {
    /// The version.
    pub found: T,
    /// Its collection.
    pub collection: String,
    /// Its name there.
    pub name: String,
    /// Its id, if the bucket has ever kept versions.
    pub id: Option<String>,
    /// Its bucket, if it is the current one.
    pub bucket: Option<CollectionInfo>,
}

/// Opens the current version, or that of an id.
pub fn open(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
) -> S3Result<Found<ObjectReader>> {
    let open = |collection: &str, name: &str| match store.open(collection, name) {
        Ok(reader) => Ok(Some(reader)),
        Err(store::Error::NoObject { .. }) => Ok(None),
        Err(error) => Err(of_store(error)),
    };
    look(store, bucket, key, id, open, |reader| reader.info())
}

/// What is known of the current version, or of that of an id.
pub fn stat(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
) -> S3Result<Found<ObjectInfo>> {
    let stat = |collection: &str, name: &str| store.stat(collection, name).map_err(of_store);
    look(store, bucket, key, id, stat, |info| info)
}

fn look<T>(
    store: &Store,
    bucket: &str,
    key: &str,
    id: Option<&str>,
    get: impl Fn(&str, &str) -> S3Result<Option<T>>,
    info: impl Fn(&T) -> &ObjectInfo,
) -> S3Result<Found<T>> {
    let bucket_info = require(store, bucket)?;
    let keeps = Versioning::of(&bucket_info) != Versioning::Never;
    id.map_or(Ok(()), check_id)?;
    // While we look in one place, it may be moved to the other.
    for _ in 0..ATTEMPTS {
        if let Some(found) = get(bucket, key)? {
            let version = Version::of(&info(&found).attributes);
            if id.is_none_or(|id| id == version.id()) {
                return Ok(Found {
                    bucket: Some(bucket_info),
                    found,
                    collection: bucket.to_owned(),
                    name: key.to_owned(),
                    id: keeps.then(|| version.id().to_owned()),
                });
            }
        }
        let (true, Some(id)) = (keeps, id) else {
            break;
        };
        let earlier = Earlier { store, bucket, key };
        let Some(name) = earlier.name(id)? else {
            continue;
        };
        let collection = versions_of(bucket);
        if let Some(found) = get(&collection, &name)? {
            if is_marker(info(&found)) {
                return Err(about_marker(
                    s3_error!(
                        MethodNotAllowed,
                        "The specified method is not allowed against this resource: this version is a delete marker"
                    ),
                    id,
                ));
            }
            let id = Some(id.to_owned());
            return Ok(Found {
                found,
                collection,
                name,
                id,
                bucket: None,
            });
        }
    }
    match id {
        Some(_) => Err(s3_error!(
            NoSuchVersion,
            "The specified version does not exist"
        )),
        None => Err(no_current(store, bucket, key, keeps)?),
    }
}

/// Why there is nothing under a key: a delete marker, if there is one.
fn no_current(store: &Store, bucket: &str, key: &str, keeps: bool) -> S3Result<S3Error> {
    let error = s3_error!(NoSuchKey, "The specified key does not exist");
    if !keeps {
        return Ok(error);
    }
    let newest = Earlier { store, bucket, key }.newest().map_err(of_store)?;
    Ok(match newest {
        Some((version, true)) => about_marker(error, version.id()),
        _ => error,
    })
}

fn about_marker(mut error: S3Error, id: &str) -> S3Error {
    let mut headers = HeaderMap::from_iter([(DELETE_MARKER, HeaderValue::from_static("true"))]);
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(VERSION_ID, id);
    }
    if *error.code() == s3s::S3ErrorCode::MethodNotAllowed {
        headers.insert(header::ALLOW, HeaderValue::from_static("DELETE"));
    }
    error.set_headers(headers);
    error
}

/// Refuses what no version is called.
fn check_id(id: &str) -> S3Result<()> {
    let is_one = id == NULL || Version::parse(id).is_some_and(|version| !version.is_null());
    let invalid = || s3_error!(InvalidArgument, "Invalid version id specified");
    is_one.then_some(()).ok_or_else(invalid)
}

/// The versions of a key beside its current one.
struct Earlier<'a> {
    store: &'a Store,
    bucket: &'a str,
    key: &'a str,
}

impl Earlier<'_> {
    /// The newest ones, at most `count`, from `from` on: each, and whether it is a delete marker.
    fn list(&self, from: &str, count: usize) -> store::Result<Vec<(Version, bool)>> {
        let stem = stem(self.key);
        let from = if from.is_empty() { &stem } else { from };
        let found = match self
            .store
            .list(&versions_of(self.bucket), &stem, from, count)
        {
            // Salvage and repairs may have lost it.
            Err(store::Error::NoCollection { .. }) => Vec::new(),
            found => found?,
        };
        let version = |info: &ObjectInfo| {
            let (key, version) = parse_name(info.name.text()?)?;
            (key == self.key).then(|| (version, is_marker(info)))
        };
        Ok(found.iter().filter_map(version).collect())
    }

    fn newest(&self) -> store::Result<Option<(Version, bool)>> {
        Ok(self.list("", 1)?.into_iter().next())
    }

    /// Whether a version is newer than all of them, of which `newest` is the newest, and none has its id.
    fn has_room_for(&self, version: &Version, newest: Option<&Version>) -> store::Result<bool> {
        // The smaller the newer.
        let is_newer = newest.is_none_or(|newest| version < newest);
        Ok(is_newer && !(version.is_null() && self.null()?.is_some()))
    }

    /// The one without a number of its own.
    fn null(&self) -> store::Result<Option<Version>> {
        let mut from = String::new();
        loop {
            let found = self.list(&from, BATCH)?;
            if let Some((version, _)) = found.iter().find(|(version, _)| version.is_null()) {
                return Ok(Some(version.clone()));
            }
            match found.last() {
                Some((last, _)) => from = name_of(self.key, last) + "\0",
                None => return Ok(None),
            }
        }
    }

    /// The name of the one that a client calls so; `None` if there can be none.
    fn name(&self, id: &str) -> S3Result<Option<String>> {
        check_id(id)?;
        let version = match id {
            NULL => self.null().map_err(of_store)?,
            _ => Version::parse(id),
        };
        Ok(version.map(|version| name_of(self.key, &version)))
    }
}

/// Where a version that a client names is or was among all of its key.
pub fn place(store: &Store, bucket: &str, key: &str, id: &str) -> S3Result<Option<String>> {
    let current = store.stat(bucket, key).map_err(of_store)?;
    let current = current.map(|info| Version::of(&info.attributes));
    match current.filter(|version| version.id() == id) {
        Some(version) => Ok(Some(name_of(key, &version))),
        None => Earlier { store, bucket, key }.name(id),
    }
}

/// Whether a version that comes from elsewhere fits under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// It does: it is the newest, or among the earlier ones, and no other has its id.
    Free,
    /// That very version is there.
    Same,
    /// Another one with its id is there, or it would be the current version and older than others.
    Taken,
}

impl Room {
    /// Of a version with these attributes, where `there` has its place. All that were put while none were kept have one id: the
    /// same are those with one entity tag, and nothing else that differs.
    fn beside(there: &ObjectInfo, version: &Version, attributes: &Attributes) -> Self {
        let is_same = Version::of(&there.attributes) == *version;
        let has_tag = attributes.contains_key(ETAG) && there.attributes == *attributes;
        match is_same && (!version.is_null() || has_tag) {
            true => Self::Same,
            false => Self::Taken,
        }
    }
}

/// Whether an object with these attributes may become the current version under a key, with the version that it has.
pub fn room(
    store: &Store,
    bucket: &str,
    key: &str,
    attributes: &Attributes,
) -> store::Result<Room> {
    let earlier = Earlier { store, bucket, key };
    let version = Version::of(attributes);
    if let Some(current) = store.stat(bucket, key)? {
        return Ok(Room::beside(&current, &version, attributes));
    }
    let newest = earlier.newest()?.map(|(version, _)| version);
    Ok(match earlier.has_room_for(&version, newest.as_ref())? {
        true => Room::Free,
        false => Room::Taken,
    })
}

/// The same of an object with these attributes that is to be one of a bucket's earlier versions, with this name among them.
pub fn room_beside(
    store: &Store,
    bucket: &str,
    name: &str,
    attributes: &Attributes,
) -> store::Result<Room> {
    let there = store.stat(&versions_of(bucket), name)?;
    let Some((key, version)) = parse_name(name) else {
        return Ok(there.map_or(Room::Free, |_| Room::Same));
    };
    if let Some(there) = there {
        return Ok(Room::beside(&there, &version, attributes));
    }
    let current = store.stat(bucket, &key)?;
    let current = current.map(|info| Version::of(&info.attributes));
    let is_taken =
        current.is_some_and(|current| version <= current || version.is_null() && current.is_null());
    let key = &*key;
    let earlier = Earlier { store, bucket, key };
    let is_taken = is_taken || version.is_null() && earlier.null()?.is_some();
    Ok(if is_taken { Room::Taken } else { Room::Free })
}

/// Keeps changes of a key apart from each other, and all of them from a change of what their bucket does.
#[derive(Clone)]
pub struct Locks(Arc<Inner>);

struct Inner {
    switch: RwLock<()>,
    keys: [Mutex<()>; 64],
    hasher: RandomState,
    random: Random,
    clock: Clock,
}

impl Locks {
    /// Versions get their names from `random`; dates of their locks are judged by `clock`.
    pub fn new(random: Random, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            switch: RwLock::new(()),
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
        let switch = self.0.switch.read();
        let info = require(store, bucket)?;
        let mut change = Change::alone(store, bucket, key, Some(&info), &self.0.random, 0);
        change.locks.0 = Some(switch);
        if change.versioning != Versioning::Never {
            let hash = self.0.hasher.hash_one((bucket, key));
            change.locks.1 = Some(self.0.keys[hash as usize % self.0.keys.len()].lock());
        }
        // Whoever waited for others is judged by the time at which nobody else changes the key.
        change.now = (self.0.clock)();
        Ok(change)
    }

    /// While this is held, no bucket begins to keep versions.
    pub fn as_they_are(&self) -> RwLockReadGuard<'_, ()> {
        self.0.switch.read()
    }

    /// While this is held, no object changes.
    pub fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.switch.write()
    }

    /// Lets a bucket do so from now on. One with Object Lock goes on keeping versions.
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

    /// Changes a bucket's attributes, and what else belongs to that, while nobody else does.
    pub fn change_bucket(
        &self,
        store: &Store,
        bucket: &str,
        change: impl FnOnce(&mut Attributes, &mut Transaction) -> S3Result<()>,
    ) -> S3Result<()> {
        let _held = self.hold();
        let mut attributes = require(store, bucket)?.attributes;
        let mut transaction = Transaction::new();
        change(&mut attributes, &mut transaction)?;
        transaction.set_collection_attributes(bucket, attributes);
        store.commit(transaction).map_err(of_store)
    }

    /// Lets versions of a bucket be locked from now on, which has to keep them.
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

/// A change of what is under a key; as long as it is there, no other one begins.
pub struct Change<'a> {
    earlier: Earlier<'a>,
    versioning: Versioning,
    bucket_lock: Read<Option<BucketLock>>,
    /// The moment that it happens at, in Unix microseconds.
    pub now: u64,
    random: u64,
    locks: (Option<RwLockReadGuard<'a, ()>>, Option<MutexGuard<'a, ()>>),
}

/// How a transaction is carried out.
pub type Commit<P> = fn(&Store, Transaction) -> store::Result<P>;

/// What a deletion did.
#[derive(Default)]
pub struct Deleted {
    /// Whether it made or removed a delete marker.
    pub marker: bool,
    /// Which version it made or removed, if the bucket keeps any.
    pub id: Option<String>,
}

/// Why nothing takes the place of what is under a key.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The store's reason.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What would be lost is locked.
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

/// What a change makes the current version, or a delete marker.
pub struct Next<'v> {
    /// How it is to be marked, if the bucket keeps versions.
    pub version: Option<&'v Version>,
    /// Where in `.versions/BUCKET` the current one has been put, if it stays.
    pub moved: Option<String>,
    /// Its lock.
    lock: Lock,
}

impl Next<'_> {
    /// An object's attributes, with which version it is and how it is locked.
    pub fn mark(&self, mut attributes: Attributes) -> Attributes {
        attributes.extend(self.lock.encode());
        if let Some(version) = self.version {
            attributes.insert(VERSION.to_owned(), version.as_str().into());
        }
        attributes
    }
}

impl<'a> Change<'a> {
    /// Of a bucket that nobody else changes, at this moment; `info` is what there is of it so far.
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

    /// The lock of the version that comes, of which this was said.
    pub fn grant(&self, asked: Lock) -> Result<Lock, Refusal> {
        lock::grant(self.bucket_lock, asked, self.now)
    }

    /// Refuses what needs a bucket with Object Lock. One whose attribute cannot be read is one.
    pub fn require_lock(&self) -> Result<(), Refusal> {
        match self.bucket_lock {
            Ok(None) => Err(Refusal::NoBucketLock),
            _ => Ok(()),
        }
    }

    /// Refuses to lose a version that is locked, whatever its bucket does now.
    fn check_lock(&self, lost: &ObjectInfo, bypass: bool) -> Result<(), Refusal> {
        lock::may_delete(&Kept::of(&lost.attributes), self.now, bypass)
    }

    /// Lets `transaction` put something under the key, behind what it requires: the current version is kept if it has to
    /// be, and `put` adds what takes its place, with this lock. Answers which version that is.
    pub fn replace(
        &self,
        transaction: &mut Transaction,
        lock: Lock,
        put: impl FnOnce(&mut Transaction, Next<'_>),
    ) -> Result<Option<Version>, ReplaceError> {
        let Earlier { store, bucket, key } = self.earlier;
        let current = match store.stat(bucket, key) {
            // The transaction makes the bucket, too.
            Err(store::Error::NoCollection { .. }) => None,
            found => found?,
        };
        if self.versioning == Versioning::Never {
            // Programs without S3 may have brought it here with its lock.
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
        let newest = self.earlier.newest()?.map(|(version, _)| version);
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
        // A program may have put one here that is older than others, or has the id of one. It gets a number of its own.
        let kept = match kept {
            Some(version) if !self.earlier.has_room_for(&version, newest.as_ref())? => {
                Some(Version::new(next_number(), Some(self.random)))
            }
            kept => kept,
        };
        let moved = kept.map(|version| {
            let name = name_of(key, &version);
            let marked = Attributes::from([(VERSION.to_owned(), version.0.into())]);
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
        // There is one without a number at most.
        if !is_enabled
            && replaced.is_none()
            && let Some(null) = self.earlier.null()?
        {
            let name = name_of(key, &null);
            if let Some(lost) = store.stat(&versions, &name)? {
                self.check_lock(&lost, false)?;
            }
            transaction.remove(&versions, name);
        }
        Ok(Some(next))
    }

    /// Deletes: where versions are kept, that makes a delete marker.
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

    /// Deletes a version for good, if its lock lets it go; `bypass` is for who may bypass governance, and says so. If it
    /// was the current one, the newest of the others is so now.
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
            return Ok((Deleted { marker, id }, None));
        };
        self.check_lock(&found, bypass)?;
        let mut transaction = Transaction::new();
        for condition in requires {
            transaction.require(collection, &name, condition.clone());
        }
        // Where no versions are kept, changes of a key do not wait for each other.
        transaction.remove_if_present(collection, &name);
        if is_current || current.is_none() {
            let back = self.bring_back(&mut transaction, (!is_current).then_some(&*name));
            back.map_err(of_store)?;
        }
        let done = self.commit(transaction, requires, commit)?;
        Ok((Deleted { marker, id }, Some(done)))
    }

    /// Lets `transaction`, which removes the current version, or `without` where there is no current one, make the newest
    /// other version current, unless that is a delete marker.
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
        if let Some((next, false)) = others.next() {
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

#[cfg(test)]
mod tests;
