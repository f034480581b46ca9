//! Batches that readers see already and that a power cut may still lose.
//!
//! They are in the database's log without a flush, in order, so the next synced batch makes them durable. Until then,
//! nothing that outlives a power cut may depend on them: a zone that they have emptied is reset only after a synced
//! batch.

use crate::Result;
use kv::{Batch, Durability, Kv};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of batches without a flush. The log keeps the order of up to twice as many.
const MAX_BYTES: u64 = 512 << 10;

/// Counters since the mount, which only grow.
#[derive(Default)]
pub(crate) struct Unsynced {
    /// Batches that were written without a flush, in the order in which they became readable.
    readable: AtomicU64,
    /// How many of these are durable.
    durable: AtomicU64,
    /// Bytes of batches that were begun, of those whose write has ended, and of those that are durable.
    begun_bytes: AtomicU64,
    written_bytes: AtomicU64,
    durable_bytes: AtomicU64,
}

impl Unsynced {
    pub fn is_durable(&self, number: u64) -> bool {
        number <= self.durable.load(Ordering::Acquire)
    }

    /// Whether any batch is not durable yet, or is being written: readers may see it already.
    pub fn any(&self) -> bool {
        self.begun_bytes.load(Ordering::Acquire) > self.durable_bytes.load(Ordering::Acquire)
    }

    /// Writes a batch. Returns the number under which it becomes durable ([`Self::is_durable`]), or `None` if it is
    /// already.
    pub fn write(&self, kv: &Kv, batch: &Batch, durability: Durability) -> Result<Option<u64>> {
        let size = batch.byte_len() as u64;
        if durability == Durability::Buffered && self.may_wait(size) {
            let written = kv.write(batch, durability);
            self.written_bytes.fetch_add(size, Ordering::AcqRel);
            written?;
            return Ok(Some(self.readable.fetch_add(1, Ordering::AcqRel) + 1));
        }
        self.synced_by(|| Ok(kv.write(batch, Durability::Synced)?))?;
        Ok(None)
    }

    /// Counts a batch of `size` bytes among those without a flush; false if they would exceed [`MAX_BYTES`].
    fn may_wait(&self, size: u64) -> bool {
        let durable = self.durable_bytes.load(Ordering::Acquire);
        let with_it = |begun: u64| {
            let waiting = begun.saturating_sub(durable);
            (waiting + size <= MAX_BYTES).then_some(begun + size)
        };
        let counted = &self.begun_bytes;
        counted
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, with_it)
            .is_ok()
    }

    /// Calls `sync`, which makes durable all batches that were readable before the call.
    pub fn synced_by(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let bytes = self.written_bytes.load(Ordering::Acquire);
        let readable = self.readable.load(Ordering::Acquire);
        sync()?;
        self.durable.fetch_max(readable, Ordering::AcqRel);
        self.durable_bytes.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_waits_too_and_is_not_durable_by_a_flush_that_began_before() {
        let unsynced = Unsynced::default();
        let half = MAX_BYTES / 2;
        // Two writers beside each other.
        assert!(!unsynced.any());
        assert!(unsynced.may_wait(half) && unsynced.any() && unsynced.may_wait(half));
        assert!(!unsynced.may_wait(1));
        unsynced.synced_by(|| Ok(())).unwrap();
        assert!(!unsynced.may_wait(1), "neither was through");
        unsynced.written_bytes.fetch_add(half, Ordering::AcqRel);
        unsynced.synced_by(|| Ok(())).unwrap();
        assert!(unsynced.any());
        assert!(unsynced.may_wait(half) && !unsynced.may_wait(1));
        unsynced
            .written_bytes
            .fetch_add(MAX_BYTES, Ordering::AcqRel);
        unsynced.synced_by(|| Ok(())).unwrap();
        assert!(!unsynced.any());
    }
}
