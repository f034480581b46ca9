//! A transaction that is readable and may not be durable yet.

use crate::Result;
use crate::commit::Change;
use crate::inner::Inner;
use crate::staging::Staging;
use kv::{Batch, Durability};
use std::sync::Arc;

/// A transaction whose effects all readers see, but that a power cut or a kill of the program may still lose, with all
/// that became readable later. If a later one is durable, this one is.
///
/// Dropped without [`Self::wait`], it becomes durable with the next [`crate::Store::commit`] of any thread, or when the
/// store is unmounted.
#[must_use = "the transaction may still be lost: wait, or drop it if that is no harm"]
pub struct Pending {
    pub(crate) store: Arc<Inner>,
    /// The number under which it becomes durable; `None`: it is durable.
    pub(crate) number: Option<u64>,
}

impl Pending {
    /// Whether the transaction is durable, so that neither a power cut nor a kill can lose it. Never blocks.
    pub fn is_durable(&self) -> bool {
        self.number
            .is_none_or(|number| self.store.unsynced.is_durable(number))
    }

    /// Returns once it is durable. Callers that wait at the same time share a flush.
    ///
    /// # Errors
    /// Whether the transaction is there after the next mount is unknown then, and nothing can be written before that.
    pub fn wait(self) -> Result<()> {
        if self.is_durable() {
            return Ok(());
        }
        self.store.check_writable()?;
        let kv = self.store.kv()?;
        // As every batch: none begins while another thread records that everything is copied.
        let _no_moves = self.store.mutators.read();
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

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
