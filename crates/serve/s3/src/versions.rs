//! Versions of objects: what a bucket keeps, and how a change of an object keeps it.
//!
//! The current version lies in the bucket under its key, whether or not the bucket keeps versions, so that requests
//! for no other version find it at once. Earlier versions and delete markers lie in a collection beside the bucket,
//! `.versions/BUCKET`. A version that becomes an earlier one, or the current one again, is renamed: no data moves, in
//! the same transaction as the change that causes it. A key without a current version has a delete marker as the
//! newest of the others.

use crate::attributes::{
    ETAG, OBJECT_LOCK, VERSION, VERSIONING, VERSIONING_ENABLED, VERSIONING_SUSPENDED,
};
use crate::collections::{add_versions, bucket_maker, require, versions_of};
use crate::config::{Clock, Random};
use crate::errors::{condition_error, of_store};
use crate::lock::{self, BucketLock, Kept, Lock, Read, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use s3s::{S3Error, S3Result, s3_error};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use store::{Attributes, CollectionInfo, Condition, ObjectInfo, ObjectReader, Store, Transaction};

/// Attribute that makes an earlier version a delete marker.
const MARKER: &str = "delete-marker";
/// Id, for clients, of a version that was put while the bucket kept none.
pub const NULL: &str = "null";
/// Ends the key in the name of an earlier version.
pub const END: &str = "\0\0";
/// Versions of a key listed at a time.
const BATCH: usize = 1000;
/// How many times a version is looked up that may move between bucket and `.versions/BUCKET` meanwhile.
const ATTEMPTS: u32 = 4;

/// Header that says whether a response is about a delete marker.
const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// Header with the version that a response is about.
const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Versioning state of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versioning {
    /// The bucket has never kept versions.
    Never,
    /// The bucket keeps all versions.
    Enabled,
    /// The bucket keeps the versions it has; new objects replace the version with id `null`.
    Suspended,
}

impl Versioning {
    /// State of this bucket.
    pub fn of(bucket: &CollectionInfo) -> Self {
        match bucket.attributes.get(VERSIONING).map(Vec::as_slice) {
            None => Self::Never,
            Some(VERSIONING_SUSPENDED) => Self::Suspended,
            // Also for a value that is damaged or of a newer program: keeping versions loses nothing.
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

/// A version and its order among those of its key: 16 hexadecimal digits, smaller for newer versions, followed by 16
/// random ones or `null`.
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

    /// Parses a version from an attribute, a name or a client's id.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = |text: &str| {
            let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == Self::DIGITS && text.bytes().all(is_digit)
        };
        let (number, rest) = text.split_at_checked(Self::DIGITS)?;
        (digits(number) && (rest == NULL || digits(rest))).then(|| Self(text.to_owned()))
    }

    /// Version of an object with these attributes. Objects put before the bucket kept versions are older than all
    /// others.
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

    /// The id that clients use.
    pub fn id(&self) -> &str {
        if self.is_null() { NULL } else { &self.0 }
    }

    /// The id in answers to puts; none for the version `null`.
    pub fn told(self) -> Option<String> {
        (!self.is_null()).then_some(self.0)
    }

    /// The version as stored in attributes and names.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key as in names of earlier versions, which sort by key and then by version: [`END`] sorts before any character
/// that continues an escaped key.
pub fn escape(key: &str) -> String {
    key.replace('\0', "\0\u{1}")
}

/// [`escape`] of the first bytes of a key.
pub fn escape_bytes(prefix: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = prefix.split(|byte| *byte == 0).collect();
    pieces.join(&b"\0\x01"[..])
}

/// Undoes [`escape`].
pub fn unescape(escaped: &str) -> String {
    escaped.replace("\0\u{1}", "\0")
}

/// Name of an earlier version; for the current version, its place among those names.
pub fn name_of(key: &str, version: &Version) -> String {
    format!("{}{END}{}", escape(key), version.0)
}

/// Prefix of the names of all earlier versions of a key.
pub fn stem(key: &str) -> String {
    escape(key) + END
}

/// Key and version of such a name; `None` if the name is not of this form.
pub fn parse_name(name: &str) -> Option<(String, Version)> {
    let (key, version) = name.rsplit_once(END)?;
    Some((unescape(key), Version::parse(version)?))
}

/// Whether an object in `.versions/BUCKET` is a delete marker.
pub fn is_marker(info: &ObjectInfo) -> bool {
    info.attributes.contains_key(MARKER)
}

/// The version that a request asked for, and where it lies.
pub struct Found<T> {
    /// The version's reader or information.
    pub found: T,
    /// The collection that it lies in.
    pub collection: String,
    /// Its name in that collection.
    pub name: String,
    /// Its id for clients, if the bucket has ever kept versions.
    pub id: Option<String>,
    /// Its bucket, if it is the current version.
    pub bucket: Option<CollectionInfo>,
}

/// Opens the current version, or the one with this id.
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

/// Information on the current version, or on the one with this id.
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
    // During the lookup, a version may be moved between the two collections.
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

/// The error for a key without a current version; names the delete marker if there is one.
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

/// Refuses ids that no version can have.
fn check_id(id: &str) -> S3Result<()> {
    let is_one = id == NULL || Version::parse(id).is_some_and(|version| !version.is_null());
    let invalid = || s3_error!(InvalidArgument, "Invalid version id specified");
    is_one.then_some(()).ok_or_else(invalid)
}

/// Versions of a key other than the current one.
struct Earlier<'a> {
    store: &'a Store,
    bucket: &'a str,
    key: &'a str,
}

impl Earlier<'_> {
    /// The newest versions, at most `count`, from the name `from` on; each with whether it is a delete marker.
    fn list(&self, from: &str, count: usize) -> store::Result<Vec<(Version, bool)>> {
        let stem = stem(self.key);
        let from = if from.is_empty() { &stem } else { from };
        let found = match self
            .store
            .list(&versions_of(self.bucket), &stem, from, count)
        {
            // A salvage or a repair may have lost the collection.
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

    /// Whether a version is newer than all earlier ones, of which `newest` is the newest, and none has its id.
    fn has_room_for(&self, version: &Version, newest: Option<&Version>) -> store::Result<bool> {
        // Versions sort newest first.
        let is_newer = newest.is_none_or(|newest| version < newest);
        Ok(is_newer && !(version.is_null() && self.null()?.is_some()))
    }

    /// The version with id `null`.
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

    /// The name of the version with this id; `None` if there can be no such version.
    fn name(&self, id: &str) -> S3Result<Option<String>> {
        check_id(id)?;
        let version = match id {
            NULL => self.null().map_err(of_store)?,
            _ => Version::parse(id),
        };
        Ok(version.map(|version| name_of(self.key, &version)))
    }
}

/// The name, among all of its key, of the version with this id, whether it exists or not.
pub fn place(store: &Store, bucket: &str, key: &str, id: &str) -> S3Result<Option<String>> {
    let current = || {
        let current = store.stat(bucket, key).map_err(of_store)?;
        let current = current.map(|info| Version::of(&info.attributes));
        let current = current.filter(|version| version.id() == id);
        Ok(current.map(|version| name_of(key, &version)))
    };
    find_place(current, || Earlier { store, bucket, key }.name(id))
}

/// Looks for a version that may move between bucket and `.versions/BUCKET` meanwhile.
fn find_place(
    current: impl Fn() -> S3Result<Option<String>>,
    earlier: impl Fn() -> S3Result<Option<String>>,
) -> S3Result<Option<String>> {
    for _ in 0..ATTEMPTS {
        let found = match current()? {
            None => earlier()?,
            found => found,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Whether a version from elsewhere (an archive or another store) fits under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// The version fits: it is the newest, or among the earlier ones, and no other has its id.
    Free,
    /// This very version exists already.
    Same,
    /// Another version is in its place, which is the same object: entity tag and all other attributes are equal.
    Equal,
    /// Another version has its id, or it would be the current version but older than others.
    Taken,
}

impl Room {
    /// Compares a version that has these attributes with the one in its place. All versions `null` have one id, so
    /// they are the same only if the objects are equal.
    fn beside(there: &ObjectInfo, version: &Version, attributes: &Attributes) -> Self {
        let is_same = Version::of(&there.attributes) == *version;
        let of_object = |attributes: &Attributes| {
            let mut attributes = attributes.clone();
            attributes.remove(VERSION);
            attributes
        };
        let is_equal =
            attributes.contains_key(ETAG) && of_object(&there.attributes) == of_object(attributes);
        match (is_same, is_equal) {
            (true, is_equal) if is_equal || !version.is_null() => Self::Same,
            (_, true) => Self::Equal,
            (_, false) => Self::Taken,
        }
    }
}

/// Whether an object with these attributes may become the current version of a key and keep its version.
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

/// Whether an object with these attributes may become an earlier version with this name in `.versions/BUCKET`.
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

    fn switch(&self, bucket: &str) -> &RwLock<()> {
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

/// A change of a key. In a bucket that keeps versions, no other change of the key begins while this exists.
pub struct Change<'a> {
    earlier: Earlier<'a>,
    versioning: Versioning,
    bucket_lock: Read<Option<BucketLock>>,
    /// Time of the change, Unix time in microseconds.
    pub now: u64,
    random: u64,
    locks: (Option<RwLockReadGuard<'a, ()>>, Option<MutexGuard<'a, ()>>),
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
        // At most one version has the id `null`.
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
            None => self
                .earlier
                .newest()
                .map_err(of_store)?
                .map(|(version, _)| version),
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
    /// asks for it. After the current version, the newest of the others becomes current.
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
