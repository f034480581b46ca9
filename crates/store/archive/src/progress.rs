//! Progress of a restore, in attributes of an object in [`OWN`]. It is updated in the transaction that stores the
//! objects of a group.

use crate::place::{OWN, clear_own};
use crate::sum::Sum;
use store::{Attributes, Result, Store, Transaction};

pub const OBJECT: &str = "progress";
const HEADS: &str = "heads";
const SUM: &str = "sum";

/// Progress of a restore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Head checksums of the archives so far, the one that is being read included.
    pub heads: Vec<Sum>,
    /// Checksum of the last part of that archive that is stored; `None`: no part is.
    pub sum: Option<Sum>,
}

/// Checks that no restore into the store was interrupted: the next restore would treat objects that are written
/// meanwhile as its own, and keep or remove them without asking. Parts of objects that an interrupted import left are
/// removed.
///
/// # Errors
/// [`crate::Error::Unfinished`] if one was.
pub fn check_finished(store: &Store) -> crate::Result<()> {
    match Progress::of(store)? {
        Some(_) => Err(crate::Error::Unfinished),
        None => {
            // They are in nobody's way, so a store that cannot be changed keeps them.
            let _ = clear_own(store, true);
            Ok(())
        }
    }
}

impl Progress {
    /// Progress of the restore into this store that has not ended, if there is one.
    pub fn of(store: &Store) -> Result<Option<Self>> {
        if store.collection(OWN)?.is_none() {
            return Ok(None);
        }
        let found = store.stat(OWN, OBJECT)?;
        Ok(found.map(|found| {
            let sums = |name: &str| {
                let bytes = found.attributes.get(name).map_or(&[][..], Vec::as_slice);
                let (sums, _) = bytes.as_chunks::<16>();
                sums.iter()
                    .map(|sum| Sum(u128::from_le_bytes(*sum)))
                    .collect()
            };
            let last: Vec<Sum> = sums(SUM);
            Self {
                heads: sums(HEADS),
                sum: last.first().copied(),
            }
        }))
    }

    /// Adds the steps to `transaction` that record the progress.
    pub fn add(&self, transaction: &mut Transaction) {
        let bytes = |sums: &[Sum]| -> Vec<u8> {
            let sums = sums.iter().flat_map(|sum| sum.0.to_le_bytes());
            sums.collect()
        };
        let attributes = Attributes::from([
            (HEADS.to_owned(), bytes(&self.heads)),
            (SUM.to_owned(), bytes(self.sum.as_slice())),
        ]);
        transaction
            .touch(OWN, OBJECT)
            .set_attributes(OWN, OBJECT, attributes);
    }
}
