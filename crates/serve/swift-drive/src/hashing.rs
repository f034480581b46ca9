//! Hashes of suffixes: kept until something changes.

use crate::address::{Address, Suffix};
use crate::drive::{SwiftDrive, remove};
use crate::error::Result;
use crate::record::{hashed, hashes};
use std::collections::BTreeMap;
use store::Transaction;
use swift_files::{Digest, Reclaim, SuffixHash, choose};

/// Hashes by suffix, then by fragment; `None` is what is no fragment's.
pub type Hashes = BTreeMap<Suffix, BTreeMap<Option<u32>, Digest>>;

impl SwiftDrive {
    /// The hashes of a partition. Those of suffixes that have changed, and of those in `again`, are computed:
    /// what is too old to matter goes before that. Answers also how many were computed.
    pub fn hashes(
        &self,
        policy: u32,
        partition: u32,
        again: &[Suffix],
        reclaim: Reclaim,
    ) -> Result<(Hashes, usize)> {
        let mut found = Hashes::new();
        let mut computed = 0;
        for (suffix, attributes) in self.suffixes_with(policy, partition)? {
            let kept = hashes(&attributes).filter(|_| !again.contains(&suffix));
            let hashes = match kept {
                Some(hashes) => Some(hashes),
                None => {
                    computed += 1;
                    self.hash(policy, partition, suffix, reclaim)?
                }
            };
            if let Some(hashes) = hashes {
                found.insert(suffix, hashes);
            }
        }
        Ok((found, computed))
    }

    /// `None`: nothing is left of the suffix.
    fn hash(
        &self,
        policy: u32,
        partition: u32,
        suffix: Suffix,
        reclaim: Reclaim,
    ) -> Result<Option<BTreeMap<Option<u32>, Digest>>> {
        let kind = self.kind(policy)?.policy();
        let _lock = self.lock(policy, partition, suffix);
        let mut transaction = Transaction::new();
        let mut hash = SuffixHash::new();
        let mut is_empty = true;
        for (of, mut files) in self.objects(policy, partition, suffix)? {
            let going = choose(&files, kind).reclaim(reclaim, |_| false);
            remove(
                &mut transaction,
                Address {
                    policy,
                    partition,
                    hash: of,
                },
                &going,
            );
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
        let found = (!is_empty).then(|| hash.finish(kind));
        match &found {
            Some(found) => {
                transaction.touch(&collection, &name);
                transaction.set_attributes(&collection, &name, hashed(found));
            }
            None => {
                transaction.remove_if_present(&collection, &name);
            }
        }
        self.store.commit(transaction)?;
        Ok(found)
    }
}
