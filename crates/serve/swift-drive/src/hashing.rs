//! Hashes of suffixes, which replicas compare: kept until an object of the suffix changes.

use crate::address::{Address, Suffix};
use crate::drive::{SwiftDrive, remove};
use crate::error::Result;
use crate::record::{hashed, hashes};
use store::{Attributes, Transaction};
use swift_files::{FileName, FragmentHashes, Reclaim, SuffixHash, choose};

/// Hashes in order of suffixes.
pub type Hashes = Vec<(Suffix, FragmentHashes)>;

/// Ages beyond which files are removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ages {
    /// Ages of tombstones, and of files whose data never arrived.
    pub reclaim: Reclaim,
    /// Unix time in microseconds. A fragment that was written at this time or later may still be made durable,
    /// however old its object is, so it is kept (Swift's `commit_window`).
    pub committing_since: u64,
}

impl SwiftDrive {
    /// The hashes of a partition, and how many of them were computed: those of suffixes that have changed, and of
    /// those in `again`. Files that are too old are removed before.
    pub fn hashes(
        &self,
        policy: u32,
        partition: u32,
        again: &[Suffix],
        ages: Ages,
    ) -> Result<(Hashes, usize)> {
        let mut found = Hashes::new();
        let mut computed = 0;
        let revision = self.store.revision()?;
        for (suffix, attributes) in self.suffixes_with(policy, partition)? {
            // A suffix whose record is damaged has no hashes; its objects can be read nevertheless.
            let kept = hashes(&attributes.unwrap_or_default(), &revision);
            let hashes = match kept.filter(|_| !again.contains(&suffix)) {
                Some(hashes) => Some(hashes),
                None => {
                    computed += 1;
                    self.hash((policy, partition, suffix), ages, &revision)?
                }
            };
            if let Some(hashes) = hashes {
                found.push((suffix, hashes));
            }
        }
        Ok((found, computed))
    }

    /// Computes the hashes of a suffix; `None` if it has no files left.
    fn hash(
        &self,
        (policy, partition, suffix): (u32, u32, Suffix),
        ages: Ages,
        revision: &[u8],
    ) -> Result<Option<FragmentHashes>> {
        let kind = self.kind(policy)?.policy();
        let _lock = self.lock(policy, partition, suffix);
        let mut transaction = Transaction::new();
        let mut hash = SuffixHash::new();
        let (mut is_empty, mut reclaims) = (true, false);
        for (of, mut files) in self.objects(policy, partition, suffix)? {
            let address = Address {
                policy,
                partition,
                hash: of,
            };
            // What cannot be looked at is not removed for its age.
            let since = ages.committing_since;
            let is_young = |file: &FileName| self.is_since(address, *file, since).unwrap_or(true);
            let going = choose(&files, kind).reclaim(ages.reclaim, is_young);
            reclaims |= !going.is_empty();
            remove(&mut transaction, address, &going);
            files.retain(|file| !going.contains(file));
            if !files.is_empty() {
                is_empty = false;
                hash.add(&choose(&files, kind));
            }
        }
        let (collection, name) = (
            Address::suffixes(policy),
            Address::suffix_name(partition, suffix),
        );
        let Some(found) = (!is_empty).then(|| hash.finish(kind)) else {
            transaction.remove_if_present(&collection, &name);
            unless_damaged(self.store.commit(transaction))?;
            return Ok(None);
        };
        if reclaims {
            transaction.set_attributes(&collection, &name, Attributes::new());
            unless_damaged(self.store.commit(transaction))?;
        }
        let mut transaction = Transaction::new();
        transaction.set_attributes(&collection, &name, hashed(&found, revision));
        // If a power cut takes this, the suffix is hashed again, so there is no need to wait for the drive. The same
        // holds if a full drive has no room for it, nor is any waited for: moving its objects to another drive begins
        // with the hashes.
        if !self.store.has_room(0) {
            return Ok(Some(found));
        }
        match self.store.commit_readable(transaction) {
            Err(error) if error.is_no_space() => {}
            done => unless_damaged(done.map(drop))?,
        }
        Ok(Some(found))
    }

    /// Whether a file was written at `micros` (Unix time) or later.
    pub(crate) fn is_since(&self, address: Address, file: FileName, micros: u64) -> Result<bool> {
        let collection = Address::collection(address.policy);
        let found = self.store.stat(&collection, address.file(file))?;
        Ok(found.is_some_and(|found| found.modified_micros >= micros))
    }
}

/// What a damaged record keeps from being written waits for `store fsck --repair`: the other suffixes have their hashes.
fn unless_damaged(done: store::Result<()>) -> Result<()> {
    match done {
        Err(error) if error.is_damage() => {
            tracing::warn!(%error, "the hashes of a suffix are not kept");
            Ok(())
        }
        done => Ok(done?),
    }
}
