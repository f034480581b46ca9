//! Flushes, and records what they have made durable.

use crate::format::superblock::Superblock;
use crate::ring::Rings;
use crate::shared::Shared;
use crate::state::State;
use crate::{Error, Result};
use std::sync::atomic::Ordering;
use zone::ZoneId;

impl Shared {
    /// Writes a superblock to both rings and flushes. The caller holds `journaling`. If the drive's limit refuses both
    /// writes, zones to which nothing is written any more are finished, and the writes repeated: the rings', and those
    /// that the caller has `left`.
    pub fn write_superblock(
        &self,
        rings: &mut Rings,
        superblock: &Superblock,
        left: &[ZoneId],
    ) -> Result<()> {
        let written = rings.append(&*self.device, superblock, &|| self.flush());
        written.or_else(|error| {
            let left = [left, &rings.left(self.device.geometry())].concat();
            match self.makes_room(&error, &left)? {
                true => rings.append(&*self.device, superblock, &|| self.flush()),
                false => Err(error),
            }
        })?;
        // Here, the finish of an old journal counts, too.
        self.wake_for_unfinished();
        self.counters
            .superblock(2 * u64::from(superblock.block_size));
        self.flush()
    }

    /// Flushes the drive. A failure stops the file system: only a new mount can tell what the drive has kept.
    pub fn flush(&self) -> Result<()> {
        self.end.check()?;
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        let flushed = self.flusher.flush(|| self.device.flush());
        flushed
            .map_err(Error::from)
            .inspect_err(|error| self.stop_for(error))
    }

    /// Notes that the frames before this number are durable, with all that they name and the superblock that names
    /// their epoch.
    pub fn frames_are_durable(&self, state: &mut State, frames: u64) {
        state.journal.durable = state.journal.durable.max(frames);
        let mut witness = self.witness.lock();
        (witness.epoch, witness.frames) = (state.journal.epoch, state.journal.durable);
    }

    /// Notes that batches up to this one are in the journal. Zones that they take may be written to after flush number
    /// `flush`.
    pub fn is_in_journal(&self, state: &mut State, number: u64, flush: u64) {
        state.zones.is_in_journal(number, flush);
        self.batches.store(number, Ordering::Release);
    }
}
