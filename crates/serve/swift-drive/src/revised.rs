//! Suffixes that a repair, a salvage or an import has left without their objects in `swift-P-suffixes`.

use crate::address::{Address, parse_suffix};
use crate::drive::{SwiftDrive, behind};
use crate::error::Result;
use crate::record::{is_of, looked_until, revised, revised_until};
use store::{Attributes, Transaction};

/// Names that are looked at before what they have shown is committed.
const AT_ONCE: usize = 256;

/// A look for the suffixes of a policy.
struct Look {
    /// The first name of a file that was not looked at yet, or a name before it.
    from: Vec<u8>,
    /// Where `from` was when rows could not be read for the first time.
    passed_over: Option<Vec<u8>>,
    /// Makes the suffixes that were found to be missing.
    made: Transaction,
}

impl Look {
    fn pass_over(&mut self) {
        if self.passed_over.is_none() {
            self.passed_over = Some(self.from.clone());
        }
    }
}

impl SwiftDrive {
    /// Makes the suffixes that are missing after a repair, a salvage or an import, of all policies. If there may be any,
    /// this looks at each suffix, which takes minutes if there are millions. Other calls may run meanwhile, and find the
    /// suffixes that were made so far.
    ///
    /// `goes_on` is asked before every 256 suffixes. If it returns false, the next call goes on there, also after another
    /// mount. The answer is whether all suffixes are there. What could not be read, or found no space, is looked at again by
    /// the next call.
    ///
    /// # Errors
    /// The last policy's that has one; errors of all are logged. There is no space, or the store fails. Rows that cannot be
    /// read are passed over, which is no error.
    pub fn find_suffixes(&self, goes_on: impl Fn() -> bool) -> Result<bool> {
        let policies = self.known_policies();
        let policies =
            policies.inspect_err(|error| tracing::error!(%error, "suffixes may be missing"))?;
        let mut has_all = Ok(true);
        for policy in policies {
            let found = self.find_suffixes_of(policy, &goes_on);
            let found = found
                .inspect_err(|error| tracing::error!(%error, policy, "suffixes may be missing"));
            has_all = match (has_all, found) {
                (Ok(all), Ok(found)) => Ok(all && found),
                (_, Err(error)) | (Err(error), _) => Err(error),
            };
        }
        has_all
    }

    /// Creates the collections of suffixes that a salvage has left out. A policy without one takes no files.
    pub(crate) fn make_suffix_collections(&self) -> Result<()> {
        for policy in self.known_policies()? {
            let suffixes = Address::suffixes(policy);
            if self.store.collection(&suffixes)?.is_none() {
                let mut transaction = Transaction::new();
                transaction.create_collection(&suffixes, Attributes::new());
                self.store.commit(transaction)?;
            }
        }
        Ok(())
    }

    /// The policies of this version. Nothing is known about the names of another.
    fn known_policies(&self) -> Result<Vec<u32>> {
        let collections = self.store.collections()?;
        let policies = collections
            .iter()
            .filter_map(|collection| Address::policy_of(&collection.name));
        Ok(policies
            .filter(|policy| self.kind(*policy).is_ok())
            .collect())
    }

    fn find_suffixes_of(&self, policy: u32, goes_on: &impl Fn() -> bool) -> Result<bool> {
        let revision = self.store.revision()?;
        let suffixes = Address::suffixes(policy);
        let known = self.store.collection(&suffixes)?;
        let known = known.map(|known| known.attributes).unwrap_or_default();
        if is_of(&known, &revision) {
            return Ok(true);
        }
        tracing::info!(
            policy,
            "looking for all suffixes, because objects were changed from outside"
        );
        let mut look = Look {
            from: looked_until(&known, &revision),
            passed_over: None,
            made: Transaction::new(),
        };
        while goes_on() {
            let looked = self.look(policy, &mut look);
            let has_all = matches!(looked, Ok(true)) && look.passed_over.is_none();
            let attributes = match has_all {
                true => revised(&revision),
                // After rows that could not be read, the next call looks again.
                false => revised_until(&revision, look.passed_over.as_ref().unwrap_or(&look.from)),
            };
            let mut made = std::mem::take(&mut look.made);
            made.set_collection_attributes(&suffixes, attributes);
            // If a power cut takes it, the next start makes them.
            drop(self.store.commit_readable(made)?);
            if looked? {
                if !has_all {
                    tracing::error!(policy, "suffixes may be missing");
                }
                return Ok(has_all);
            }
        }
        Ok(false)
    }

    /// Looks at the next suffixes of a policy. Returns whether there are no more.
    fn look(&self, policy: u32, look: &mut Look) -> Result<bool> {
        let (files, suffixes) = (Address::collection(policy), Address::suffixes(policy));
        for _ in 0..AT_ONCE {
            let (name, passes_over) = self.first_from(policy, &files, &look.from)?;
            if passes_over {
                look.pass_over();
            }
            let Some(name) = name else {
                return Ok(true);
            };
            let Some(suffix) = name.text().and_then(suffix_of) else {
                look.from = behind(name.as_ref());
                continue;
            };
            match self.store.stat(&suffixes, suffix) {
                Ok(None) => {
                    look.made.touch(&suffixes, suffix);
                }
                // One whose record cannot be decoded is there.
                Ok(Some(_)) | Err(store::Error::CorruptMetadata { .. }) => {}
                Err(error) => {
                    tracing::error!(%error, policy, suffix, "a suffix cannot be looked for");
                    look.pass_over();
                }
            }
            // Behind all names that begin with the suffix and a slash.
            look.from = format!("{suffix}0").into_bytes();
        }
        Ok(false)
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
