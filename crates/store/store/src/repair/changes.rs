//! Rows that are to change.

use crate::Result;
use kv::{Batch, Durability, Kv};

/// What goes into one batch. A repair that is cut off between two is begun again.
const BATCH_BYTES: usize = 1 << 20;

/// Changes in the order in which they are made.
#[derive(Default)]
pub(crate) struct Changes {
    batches: Vec<Batch>,
}

impl Changes {
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.last().put(key, value);
    }

    pub fn delete(&mut self, key: &[u8]) {
        self.last().delete(key);
    }

    fn last(&mut self) -> &mut Batch {
        let is_full = |batch: &Batch| batch.byte_len() >= BATCH_BYTES;
        if self.batches.last().is_none_or(is_full) {
            self.batches.push(Batch::default());
        }
        let last = self.batches.len() - 1;
        &mut self.batches[last]
    }

    /// Makes them, durably.
    pub fn apply(self, kv: &Kv) -> Result<()> {
        for batch in self.batches {
            kv.write(&batch, Durability::Synced)?;
        }
        Ok(())
    }
}
