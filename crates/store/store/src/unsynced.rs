//! Batches that everybody sees and that a power cut may still take.
//!
//! They are in the database's log without a flush, in order, so the next synced batch makes them durable.
//! Until then nothing may depend on them that outlives a power cut: a zone that they have emptied is reset
//! behind a synced batch.

use crate::Result;
use kv::{Batch, Durability, Kv};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of such batches. The log keeps the order of up to twice as many without a flush.
const MAX_BYTES: u64 = 512 << 10;

/// Counts since the mount; they only grow.
#[derive(Default)]
pub(crate) struct Unsynced {
    /// Batches that were written without a flush, in the order in which they became readable.
    readable: AtomicU64,
    /// So many of them are durable.
    durable: AtomicU64,
    /// Bytes of them, and of those that are durable.
    bytes: AtomicU64,
    durable_bytes: AtomicU64,
}

impl Unsynced {
    pub fn is_durable(&self, number: u64) -> bool {
        number <= self.durable.load(Ordering::Acquire)
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.is_durable(self.readable.load(Ordering::Acquire))
    }

    /// Writes a batch. The answer is the number that it waits under to be durable, if it is not yet.
    pub fn write(&self, kv: &Kv, batch: &Batch, durability: Durability) -> Result<Option<u64>> {
        let size = batch.byte_len() as u64;
        let waiting = self.bytes.load(Ordering::Acquire);
        let waiting = waiting.saturating_sub(self.durable_bytes.load(Ordering::Acquire));
        if durability == Durability::Buffered && waiting + size <= MAX_BYTES {
            self.bytes.fetch_add(size, Ordering::AcqRel);
            kv.write(batch, durability)?;
            return Ok(Some(self.readable.fetch_add(1, Ordering::AcqRel) + 1));
        }
        self.synced_by(|| Ok(kv.write(batch, Durability::Synced)?))?;
        Ok(None)
    }

    /// Makes durable what was readable before.
    pub fn synced_by(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let bytes = self.bytes.load(Ordering::Acquire);
        let readable = self.readable.load(Ordering::Acquire);
        sync()?;
        self.durable.fetch_max(readable, Ordering::AcqRel);
        self.durable_bytes.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }
}
