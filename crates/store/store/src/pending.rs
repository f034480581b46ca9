//! A commit between its two moments: readable, and durable.

use crate::Result;
use crate::commit::Change;
use crate::inner::Inner;
use crate::staging::Staging;
use kv::{Batch, Durability};
use std::sync::Arc;

/// A transaction that was carried out: everybody sees what it did, and a power cut or a kill of the program may still take it, with
/// all that became readable later. If a later one is durable, this one is.
///
/// Dropped without [`Self::wait`], it becomes durable with the next [`crate::Store::commit`] of anybody, or when
/// the store is unmounted.
#[must_use = "the transaction may still be lost: wait, or drop it if that is no harm"]
pub struct Pending {
    pub(crate) store: Arc<Inner>,
    /// What it waits under; `None`: it is durable.
    pub(crate) number: Option<u64>,
}

impl Pending {
    /// Whether neither of them can take it any more. Waits for nothing.
    pub fn is_durable(&self) -> bool {
        self.number
            .is_none_or(|number| self.store.unsynced.is_durable(number))
    }

    /// Returns when it is durable. Those who wait at the same time share a flush.
    ///
    /// # Errors
    /// Whether it will be there after the next mount is unknown then, and nothing can be written before.
    pub fn wait(self) -> Result<()> {
        if self.is_durable() {
            return Ok(());
        }
        self.store.check_writable()?;
        let kv = self.store.kv()?;
        let nothing = Staging::new(&self.store, &kv);
        let (batch, holds) = (Batch::default(), Vec::new());
        let synced = self.store.write_batch(
            &kv,
            &nothing,
            batch,
            holds,
            Durability::Synced,
            Change::HasTo,
        );
        synced.map(drop)
    }
}
