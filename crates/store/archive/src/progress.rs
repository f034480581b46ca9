//! How far a restore into a store has come: attributes of an object beside those that are put together. They change
//! with the objects of a group, by the same transaction.

use crate::place::OWN;
use crate::sum::Sum;
use store::{Attributes, Result, Store, Transaction};

const OBJECT: &str = "progress";
const HEADS: &str = "heads";
const SUM: &str = "sum";

/// How far a restore has come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The checksums in the heads of the archives so far, the one that is being read among them.
    pub heads: Vec<Sum>,
    /// The checksum of the last part of that one that is stored; `None`: no part of it.
    pub sum: Option<Sum>,
}

/// That no restore into the store has stopped half-way: what is written to it meanwhile, the next one takes for what is to
/// go or to stay, and does not ask.
///
/// # Errors
/// One has.
pub fn check_finished(store: &Store) -> crate::Result<()> {
    match Progress::of(store)? {
        Some(_) => Err(crate::Error::Unfinished),
        None => Ok(()),
    }
}

impl Progress {
    /// Of the restore into this store that was not ended, if there is one.
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

    /// Remembers it with the transaction.
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
