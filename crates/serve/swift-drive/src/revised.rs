//! Suffixes that a repair, a salvage or an import has left without their objects in `swift-P-suffixes`.

use crate::address::{Address, parse_suffix};
use crate::drive::{SwiftDrive, behind};
use crate::error::Result;
use crate::record::{is_of, revised};
use store::{Attributes, Transaction};

/// Suffixes that are made in one transaction.
const AT_ONCE: usize = 256;

impl SwiftDrive {
    /// Makes the suffixes that are missing, of all policies. The next start tries again what does not succeed.
    pub(crate) fn find_suffixes(&self) {
        if let Err(error) = self.find_all_suffixes() {
            tracing::error!(%error, "suffixes may be missing until the next start");
        }
    }

    fn find_all_suffixes(&self) -> Result<()> {
        for collection in self.store.collections()? {
            let policy = Address::policy_of(&collection.name);
            // Nothing is known about the names of another version.
            if let Some(policy) = policy.filter(|policy| self.kind(*policy).is_ok()) {
                self.find_suffixes_of(policy)?;
            }
        }
        Ok(())
    }

    fn find_suffixes_of(&self, policy: u32) -> Result<()> {
        let revision = self.store.revision()?;
        let (files, suffixes) = (Address::collection(policy), Address::suffixes(policy));
        let mut made = Transaction::new();
        match self.store.collection(&suffixes)? {
            Some(known) if is_of(&known.attributes, &revision) => return Ok(()),
            Some(_) => {}
            None => {
                made.create_collection(&suffixes, Attributes::new());
                self.store.commit(std::mem::take(&mut made))?;
            }
        }
        tracing::info!(
            policy,
            "looking for all suffixes, because objects were changed from outside"
        );
        let (mut from, mut waiting) = (Vec::<u8>::new(), 0);
        while let Some(name) = self.first_from(policy, &files, &from)? {
            let suffix = name.text().and_then(suffix_of);
            let Some(suffix) = suffix else {
                from = behind(name.as_ref());
                continue;
            };
            // One whose record is damaged is there.
            if let Ok(None) = self.store.stat(&suffixes, suffix) {
                made.touch(&suffixes, suffix);
                waiting += 1;
            }
            if waiting == AT_ONCE {
                self.store.commit(std::mem::take(&mut made))?;
                waiting = 0;
            }
            // Behind all names that begin with the suffix and a slash.
            from = format!("{suffix}0").into_bytes();
        }
        made.set_collection_attributes(&suffixes, revised(&revision));
        Ok(self.store.commit(made)?)
    }
}

/// The name of the suffix of a file with this name.
fn suffix_of(file: &str) -> Option<&str> {
    let (suffix, _) = file
        .match_indices('/')
        .nth(1)
        .map(|(at, _)| file.split_at(at))?;
    parse_suffix(suffix).map(|_| suffix)
}
