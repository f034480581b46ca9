//! Changes of Swift's objects: put, make durable, purge, quarantine. Each is one transaction.

use crate::address::{Address, ObjectHash, Suffix, parse_file};
use crate::error::{Error, Result};
use crate::record::{METADATA, PolicyKind, revised};
use runtime::sync::{Mutex, MutexGuard};
use store::{Attributes, Store, Transaction, Written};
use swift_files::{FileName, Kind, choose};

/// Locks that suffixes are distributed over.
const LOCKS: u32 = 1024;
/// Names listed at a time.
const PAGE: usize = 256;

/// Swift's objects on one drive. Calls block; changes in one suffix exclude each other.
pub struct SwiftDrive {
    pub(crate) store: Store,
    /// A suffix's lock is found by its number.
    locks: Vec<Mutex<()>>,
}

/// Outcome of a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// The file was stored.
    Done,
    /// Existing files make the new one obsolete; nothing was changed.
    Obsolete,
}

impl SwiftDrive {
    /// The objects in this store. [`Self::find_suffixes`] has to be called beside the first requests.
    pub fn new(store: Store) -> Self {
        let locks = (0..LOCKS).map(|_| Mutex::new(())).collect();
        let drive = Self { store, locks };
        if let Err(error) = drive.make_suffix_collections() {
            tracing::error!(%error, "a policy may take no files until the next start");
        }
        drive
    }

    /// Creates the collections of a policy, unless they exist for a policy of this kind.
    pub fn add_policy(&self, policy: u32, kind: PolicyKind) -> Result<()> {
        let _alone = self.locks.first().map(Mutex::lock);
        match self.kind(policy) {
            Ok(found) if found == kind => self.make_quarantine(policy),
            Ok(found) => Err(other(policy, found.to_string(), kind)),
            Err(Error::OtherPolicy { found, .. }) => Err(other(policy, found, kind)),
            Err(Error::NoPolicy { .. }) => {
                let mut transaction = Transaction::new();
                let revised = revised(&self.store.revision()?);
                transaction.create_collection(&Address::collection(policy), kind.attributes());
                transaction.create_collection(&Address::suffixes(policy), revised);
                transaction.create_collection(&Address::quarantined(policy), Attributes::new());
                Ok(self.store.commit(transaction)?)
            }
            Err(error) => Err(error),
        }
    }

    /// The kind of an existing policy.
    pub fn kind(&self, policy: u32) -> Result<PolicyKind> {
        let found = self.store.collection(&Address::collection(policy))?;
        let found = found.ok_or(Error::NoPolicy { policy })?;
        PolicyKind::of(&found.attributes)
            .map_err(|found| other(policy, found, PolicyKind::Replication))
    }

    /// Adds a file to an object, and removes those that it replaces. `data` is the result of a finished writer of the
    /// store; tombstones and metadata have none.
    pub fn put(
        &self,
        address: Address,
        file: FileName,
        data: Option<Written>,
        metadata: Vec<u8>,
    ) -> Result<Put> {
        let kind = self.kind(address.policy)?;
        let is_allowed = match file.kind {
            Kind::Data => kind == PolicyKind::Replication,
            Kind::Fragment { .. } => kind == PolicyKind::ErasureCoding,
            Kind::Meta { .. } | Kind::Tombstone => true,
        };
        if !is_allowed {
            return Err(Error::WrongFile { file, kind });
        }
        // A tombstone that replaces what it deletes needs no space, so that a full drive can be emptied. What has no data
        // waits for space before it has the lock.
        let adds = file.kind != Kind::Tombstone || self.files(address)?.is_empty();
        let empty = (data.is_none() && adds).then(|| self.store.writer(Some(0)));
        let _lock = self.lock(address.policy, address.partition, address.hash.suffix());
        let there = self.files(address)?;
        let mut files = there.clone();
        files.retain(|other| *other != file);
        files.push(file);
        let obsolete = choose(&files, kind.policy()).obsolete;
        if obsolete.contains(&file) {
            return Ok(Put::Obsolete);
        }
        let is_removal = file.kind == Kind::Tombstone && !there.is_empty();
        let data = match (data, empty) {
            (Some(data), _) => data,
            (None, Some(writer)) if !is_removal => writer?.finish()?,
            (None, _) => self.store.nothing()?,
        };
        let mut transaction = Transaction::new();
        let attributes = Attributes::from([(METADATA.to_owned(), metadata)]);
        transaction.put(
            &Address::collection(address.policy),
            address.file(file),
            data,
            attributes,
        );
        remove(&mut transaction, address, &obsolete);
        self.mark(&mut transaction, address)?;
        self.store.commit(transaction)?;
        Ok(Put::Done)
    }

    /// Makes a fragment durable, and removes the files that it then replaces. A durable fragment stays as it is.
    pub fn make_durable(&self, address: Address, fragment: FileName) -> Result<()> {
        let Kind::Fragment { index, .. } = fragment.kind else {
            return Err(Error::NoFile { file: fragment });
        };
        let named = |is_durable| FileName {
            kind: Kind::Fragment { index, is_durable },
            ..fragment
        };
        let (from, to) = (named(false), named(true));
        let _lock = self.lock(address.policy, address.partition, address.hash.suffix());
        let mut files = self.files(address)?;
        let collection = Address::collection(address.policy);
        let mut transaction = Transaction::new();
        let is_there = files.contains(&to);
        match files.iter_mut().find(|file| **file == from) {
            None if is_there => return Ok(()),
            None => return Err(Error::NoFile { file: from }),
            Some(found) if !is_there => *found = to,
            // The fragment was put again since: the later one stays, under the durable name.
            Some(_) => {
                files.retain(|file| *file != from);
                transaction.remove_even_damaged(&collection, address.file(to));
            }
        }
        transaction.rename(
            (&collection, &address.file(from)),
            (&collection, &address.file(to)),
        );
        let kind = self.kind(address.policy)?;
        remove(
            &mut transaction,
            address,
            &choose(&files, kind.policy()).obsolete,
        );
        self.mark(&mut transaction, address)?;
        Ok(self.store.commit(transaction)?)
    }

    /// Removes files of an object in one transaction: a handoff that has reached its drives. Returns false, and removes
    /// nothing, if one of them is gone or was written at `since` (Unix time in microseconds) or later, or if metadata
    /// would be left without data: then something has come since the caller looked, and has to reach those drives too.
    /// `leaves_metadata` at the home of another fragment: there, metadata wait for that fragment.
    pub fn remove_all(
        &self,
        address: Address,
        files: &[FileName],
        since: Option<u64>,
        leaves_metadata: bool,
    ) -> Result<bool> {
        let _lock = self.lock(address.policy, address.partition, address.hash.suffix());
        let there = self.files(address)?.into_iter();
        let (going, left): (Vec<_>, Vec<_>) = there.partition(|file| files.contains(file));
        let has_data = |files: &[FileName]| files.iter().any(|file| file.kind.has_data());
        let mut left_kinds = left.iter().map(|file| file.kind);
        let strands = !leaves_metadata
            && has_data(&going)
            && !has_data(&left)
            && left_kinds.any(|kind| matches!(kind, Kind::Meta { .. }));
        if strands || going.is_empty() || going.len() != files.len() {
            return Ok(false);
        }
        if let Some(since) = since {
            for file in files {
                if self.is_since(address, *file, since)? {
                    return Ok(false);
                }
            }
        }
        self.commit_removal(address, files)?;
        Ok(true)
    }

    fn commit_removal(&self, address: Address, files: &[FileName]) -> Result<()> {
        let mut transaction = Transaction::new();
        remove(&mut transaction, address, files);
        self.mark(&mut transaction, address)?;
        Ok(self.store.commit(transaction)?)
    }

    /// Moves all files of an object to the policy's quarantine, for a person to examine. `file` is the one in which
    /// something is wrong, if known: if it is gone, what replaced it is another version, and stays.
    ///
    /// # Errors
    /// [`Error::NoObject`] if nothing is moved.
    pub fn quarantine(&self, address: Address, file: Option<FileName>) -> Result<()> {
        let _lock = self.lock(address.policy, address.partition, address.hash.suffix());
        let files = self.files(address)?;
        let is_there = file.is_none_or(|file| files.contains(&file));
        if files.is_empty() || !is_there {
            return Err(Error::NoObject);
        }
        let (from, to) = (
            Address::collection(address.policy),
            Address::quarantined(address.policy),
        );
        self.make_quarantine(address.policy)?;
        let mut transaction = Transaction::new();
        for file in files {
            let name = address.file(file);
            match self.store.stat(&from, &name) {
                // It cannot be moved.
                Err(error) if error.is_damage() => transaction.remove_even_damaged(&from, &name),
                found => {
                    found?;
                    transaction.rename((&from, &name), (&to, &name))
                }
            };
        }
        self.mark(&mut transaction, address)?;
        Ok(self.store.commit(transaction)?)
    }

    /// Removes all quarantined objects of a policy, whose space is free then; returns the number of their files. Bytes are
    /// not read, so only damaged metadata keeps a file, and it keeps no other.
    ///
    /// # Errors
    /// Also [`Error::NotEmptied`] if such files are left.
    pub fn empty_quarantine(&self, policy: u32) -> Result<u64> {
        self.kind(policy)?;
        let collection = Address::quarantined(policy);
        let (mut removed, mut left, mut first) = (0, 0, None);
        let mut from = Vec::new();
        loop {
            let page = match self.store.list_damaged(&collection, "", &from, PAGE) {
                // Only an empty one can have been removed.
                Err(store::Error::NoCollection { .. }) => return Ok(removed),
                page => page?,
            };
            let Some((last, _)) = page.last() else {
                break;
            };
            // What cannot be removed would be listed again.
            from = behind(last.as_ref());
            let names: Vec<_> = page.iter().map(|(name, _)| name).collect();
            let damaged = self.store.remove_around_damage(&collection, &names)?;
            removed += (names.len() - damaged.len()) as u64;
            left += damaged.len() as u64;
            first = first.or(damaged.into_iter().next());
        }
        match first {
            None => Ok(removed),
            Some(first) => Err(Error::NotEmptied {
                removed,
                left,
                first: Box::new(first),
            }),
        }
    }

    /// Creates the collection of a policy's quarantined files if somebody has removed it.
    fn make_quarantine(&self, policy: u32) -> Result<()> {
        let collection = Address::quarantined(policy);
        if self.store.collection(&collection)?.is_some() {
            return Ok(());
        }
        let mut transaction = Transaction::new();
        transaction.create_collection(&collection, Attributes::new());
        match self.store.commit(transaction) {
            // Another call has.
            Err(store::Error::CollectionExists { .. }) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Marks the address's suffix to be hashed again, and creates it if needed. If the suffix exists, as for an object with
    /// files, this needs no space, so that a full drive allows deletions.
    fn mark(&self, transaction: &mut Transaction, address: Address) -> Result<()> {
        let collection = Address::suffixes(address.policy);
        let name = Address::suffix_name(address.partition, address.hash.suffix());
        match self.store.stat(&collection, &name) {
            Ok(Some(_)) => {}
            Ok(None) => {
                transaction.touch(&collection, &name);
            }
            // A record that cannot be decoded has no hashes that could count. It cannot be written either, until a repair
            // removes it.
            Err(store::Error::CorruptMetadata { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        transaction.set_attributes(&collection, &name, Attributes::new());
        Ok(())
    }

    /// The files of an object, in order of their names.
    pub fn files(&self, address: Address) -> Result<Vec<FileName>> {
        let mut files = Vec::new();
        self.each_file(address.policy, &address.folder(), |_, file| {
            files.push(file)
        })?;
        Ok(files)
    }

    /// Calls `each` with hash and name of every file whose name in the store begins with `prefix`, in order.
    pub(crate) fn each_file(
        &self,
        policy: u32,
        prefix: &str,
        mut each: impl FnMut(ObjectHash, FileName),
    ) -> Result<()> {
        let collection = Address::collection(policy);
        let mut from = prefix.as_bytes().to_vec();
        loop {
            let page = self.listed(
                policy,
                self.store.list_damaged(&collection, prefix, &from, PAGE),
            )?;
            for (name, _) in &page {
                let found = name.text().and_then(parse_file);
                let (hash, file) = found.ok_or_else(|| foreign(&collection, name))?;
                each(hash, file);
            }
            let Some((last, _)) = page.last().filter(|_| page.len() == PAGE) else {
                return Ok(());
            };
            from = behind(last.as_ref());
        }
    }

    /// Translates a missing collection into [`Error::NoPolicy`].
    pub(crate) fn listed<T>(&self, policy: u32, listed: store::Result<T>) -> Result<T> {
        listed.map_err(|error| match error {
            store::Error::NoCollection { .. } => Error::NoPolicy { policy },
            error => error.into(),
        })
    }

    /// While this is held, no other call changes objects of the suffix.
    pub(crate) fn lock(&self, policy: u32, partition: u32, suffix: Suffix) -> MutexGuard<'_, ()> {
        let number = suffix
            .number()
            .wrapping_add(partition.wrapping_mul(0x9e37_79b1) >> 16)
            .wrapping_add(policy);
        self.locks[(number % LOCKS) as usize].lock()
    }
}

/// Adds the removal of these files to `transaction`. A damaged one would keep its object from being put and deleted.
pub(crate) fn remove(transaction: &mut Transaction, address: Address, files: &[FileName]) {
    let collection = Address::collection(address.policy);
    for file in files {
        transaction.remove_even_damaged(&collection, address.file(*file));
    }
}

/// The first name after this one.
pub(crate) fn behind(name: &[u8]) -> Vec<u8> {
    [name, &[0]].concat()
}

pub(crate) fn foreign(collection: &str, name: &store::Name) -> Error {
    Error::Foreign {
        collection: collection.to_owned(),
        name: name.to_string(),
    }
}

const fn other(policy: u32, found: String, wanted: PolicyKind) -> Error {
    Error::OtherPolicy {
        policy,
        found,
        wanted,
    }
}
