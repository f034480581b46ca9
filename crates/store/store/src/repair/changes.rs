//! Planned changes of rows, in batches.

use crate::Result;
use crate::format::copied::CopiedRecord;
use crate::format::{key, waiting};
use kv::{Batch, Durability, Kv};

/// Bytes after which a batch is full. A repair that is interrupted between two batches has to be run again; in tests
/// that may be between any two changes.
const BATCH_BYTES: usize = if cfg!(test) { 1 } else { 1 << 20 };

/// Records that any row may be in no summary, since batches follow that have no numbers. The next mounts compare all
/// rows until one has ended that; later batches, which have numbers, change nothing about it.
pub(crate) fn forget_copies(batch: &mut Batch) {
    batch.put(key::SUPER_SUMMARIES, &CopiedRecord::UNKNOWN.encode());
    batch.put(key::SUPER_WAITING, &waiting::UNKNOWN);
}

/// Changes, in the order in which they will be written.
#[derive(Default)]
pub(crate) struct Changes {
    batches: Vec<Batch>,
}

impl Changes {
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.batch().put(key, value);
    }

    pub fn delete(&mut self, key: &[u8]) {
        self.batch().delete(key);
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The batch for the next changes: those that the caller adds to it are written together or not at all.
    pub fn batch(&mut self) -> &mut Batch {
        let is_full = |batch: &Batch| batch.byte_len() >= BATCH_BYTES;
        if self.batches.last().is_none_or(is_full) {
            self.batches.push(Batch::default());
        }
        let last = self.batches.len() - 1;
        &mut self.batches[last]
    }

    /// Writes all batches, each durably.
    pub fn apply(self, kv: &Kv) -> Result<()> {
        for batch in self.batches {
            kv.write(&batch, Durability::Synced)?;
        }
        Ok(())
    }
}
