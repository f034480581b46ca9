//! What a flush makes durable, and who hears of it.

use crate::format::superblock::Superblock;
use crate::ring::Rings;
use crate::shared::Shared;
use crate::state::State;
use crate::{Error, Result};
use std::sync::atomic::Ordering;

impl Shared {
    /// Makes a superblock durable, in both rings.
    pub fn write_superblock(&self, rings: &mut Rings, superblock: &Superblock) -> Result<()> {
        rings.append(&*self.device, superblock, &|| self.flush())?;
        self.counters
            .superblock(2 * u64::from(superblock.block_size));
        self.flush()
    }

    /// A failed flush is the end: what the drive has kept only a new mount can tell.
    pub fn flush(&self) -> Result<()> {
        self.end.check()?;
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        let flushed = self.flusher.flush(|| self.device.flush());
        flushed
            .map_err(Error::from)
            .inspect_err(|error| self.stop_for(error))
    }

    /// Frames in front of this number are durable, with all that they name, and the superblock that
    /// names their epoch.
    pub fn frames_are_durable(&self, state: &mut State, frames: u64) {
        state.journal.durable = state.journal.durable.max(frames);
        let mut witness = self.witness.lock();
        (witness.epoch, witness.frames) = (state.journal.epoch, state.journal.durable);
    }

    /// Batches up to this one are in the journal. Zones that they take may be written to after `flush`.
    pub fn is_in_journal(&self, state: &mut State, number: u64, flush: u64) {
        state.zones.is_in_journal(number, flush);
        self.batches.store(number, Ordering::Release);
    }
}
