//! How metadata becomes durable: in batches of changes.
//!
//! A change is made in memory under the state's lock, and recorded there. A thread that needs it in the journal takes
//! `journaling`, which gives it exclusive use of the journal, the rings and the superblock; then, under the state's
//! lock, it takes everything recorded so far as one numbered batch, and writes the batch without that lock. Threads
//! that arrive meanwhile wait for `journaling`; then their changes are written already, or go into the next batch
//! together. So frames are in the order of the changes, and lookups never wait for the drive.
//!
//! A change is visible before it is durable. Whatever depends on its durability waits for the batch: a zone that lost
//! its last extent is reset when the batch that freed it is durable, and a zone that was taken is written to when the
//! batch that takes it is. A change that builds on another is recorded after it, so a power cut loses both or the later
//! one.

use crate::journal::{Change, Journal};
use crate::node::Node;
use crate::shared::Shared;
use crate::state::State;
use crate::{Error, Result};
use device::ZonedDevice;
use std::sync::atomic::Ordering;
use zone::{ZoneError, ZoneId};

/// The journal is compacted when it is larger than four snapshots, and larger than this or than a zone, whichever is
/// less.
const MIN_COMPACT_BYTES: u64 = 1 << 20;

/// The changes that are written to the journal together.
struct Batch {
    changes: Vec<Change>,
    without_witness: bool,
    journal: Journal,
}

impl Shared {
    /// Writes all pending changes to the journal, without a flush.
    pub fn write_frames(&self) -> Result<()> {
        let _alone = self.journaling.lock();
        let mut state = self.state.lock();
        state.check()?;
        if !state.pending.is_empty() {
            self.top_up(&mut state)?;
            state.note_written_ends();
        }
        if state.pending.is_empty() && !state.zones.has_freed_in(state.next_batch) {
            return Ok(());
        }
        let number = state.begin_batch();
        let mut batch = Batch {
            changes: std::mem::take(&mut state.pending),
            without_witness: std::mem::take(&mut state.pending_without_witness),
            journal: state.journal.clone(),
        };
        drop(state);
        let result = self.append(&mut batch);
        let Batch {
            changes,
            mut journal,
            ..
        } = batch;
        let mut state = self.state.lock();
        journal.durable = state.journal.durable;
        state.journal = journal;
        let is_long = match &result {
            Ok(()) => {
                self.is_in_journal(&mut state, number, self.flusher.next());
                let least = MIN_COMPACT_BYTES.min(self.device.geometry().least_capacity());
                state.journal.bytes > least.max(4 * state.snapshot_bytes)
            }
            Err(error)
                if matches!(error, Error::Drive(ZoneError::PowerLost { .. }))
                    || error.is_of_the_end() =>
            {
                self.stop_for(error);
                return Err(error.clone());
            }
            Err(error) => {
                // The state in memory is ahead of the journal, so a new journal with all of it is begun.
                tracing::warn!(%error, "the journal cannot be continued; beginning a new one");
                state.pending.splice(0..0, changes);
                true
            }
        };
        drop(state);
        if !is_long {
            return Ok(());
        }
        match (self.compact_alone(), result) {
            (Ok(()), _) => Ok(()),
            // Without space for a new journal, the old one continues.
            (Err(Error::NoSpace { .. }), Ok(())) => Ok(()),
            // There may be space later; the recorded changes wait for it.
            (Err(error @ Error::NoSpace { .. }), Err(Error::NoSpace { .. })) => Err(error),
            (Err(error), _) => {
                self.stop_for(&error);
                Err(error)
            }
        }
    }

    fn append(&self, batch: &mut Batch) -> Result<()> {
        if batch.without_witness {
            self.flush()?;
        }
        let before = batch.journal.bytes;
        let mut next = || self.next_journal_zone(&mut self.state.lock());
        let journal = &mut batch.journal;
        let result = journal.append(&*self.device, &mut batch.changes, &mut next);
        self.counters.journal(journal.bytes - before);
        self.wake_for_unfinished();
        result
    }

    /// Makes all changes of names durable. Nothing is flushed if a flush has covered their frames already: RocksDB
    /// syncs an SST, then its directory.
    pub fn commit_names(&self) -> Result<()> {
        let is_durable = {
            let state = self.state.lock();
            state.check()?;
            state.is_durable()
        };
        if is_durable { Ok(()) } else { self.commit() }
    }

    /// Makes the written bytes of one file durable. A flush suffices if its metadata is in the journal already.
    pub fn commit_file(&self, node: &Node) -> Result<()> {
        if node.named_in.load(Ordering::Acquire) > self.batches.load(Ordering::Acquire) {
            self.commit()
        } else {
            self.flush()
        }
    }

    /// Makes everything written and recorded so far durable, with one flush.
    pub fn commit(&self) -> Result<()> {
        self.write_frames()?;
        let (epoch, frames, batch) = {
            let state = self.state.lock();
            let batch = self.batches.load(Ordering::Acquire);
            (state.journal.epoch, state.journal.next_frame, batch)
        };
        self.flush()?;
        {
            let mut state = self.state.lock();
            state.durable_batch = state.durable_batch.max(batch);
            if state.journal.epoch == epoch {
                self.frames_are_durable(&mut state, frames);
            }
        }
        self.reset_freed(None)
    }

    /// Waits for the readers of a freed zone that commits have left to them, and resets it.
    pub fn reset_behind_readers(&self) -> Result<()> {
        let left = {
            let state = self.state.lock();
            state.zones.freed(state.durable_batch).next()
        };
        let Some(zone) = left else {
            return Ok(());
        };
        self.gate.wait_for_readers(zone);
        self.reset_freed(Some(zone))
    }

    /// Returns zones to the pool whose release is durable, and resets those whose freeing is durable. A zone with
    /// readers is left to a later call, because a read may hang; only for `awaited` the caller has waited for them.
    fn reset_freed(&self, awaited: Option<ZoneId>) -> Result<()> {
        let zones = {
            let mut state = self.state.lock();
            let durable = state.durable_batch;
            for zone in state.zones.leave(durable) {
                self.give_back(zone);
            }
            let may_be = |zone| Some(zone) == awaited || !self.gate.has_readers(zone);
            state.zones.begin_resets(durable, may_be)
        };
        if zones.is_empty() {
            return Ok(());
        }
        let outcome = self.reset(&zones);
        let mut state = self.state.lock();
        self.recycled.notify_all();
        match outcome {
            Ok(outcome) => self.recycle(&mut state, outcome),
            Err(error) => {
                // The resets are given up, so no thread may wait for these zones.
                zones
                    .iter()
                    .try_for_each(|zone| state.zones.forget(*zone))?;
                Err(error.into())
            }
        }
    }

    /// Makes everything durable and records that in a superblock: data that is missing at the next mount is then
    /// damage.
    pub fn seal(&self) -> Result<()> {
        self.state.lock().note_written_ends();
        self.commit()?;
        let _alone = self.journaling.lock();
        let (superblock, mut rings, left) = {
            let state = self.state.lock();
            state.check()?;
            let mut superblock = state.superblock.next();
            superblock.journal_frames = state.journal.durable;
            let left = state.journal.left().to_vec();
            (superblock, state.rings.clone(), left)
        };
        self.write_superblock(&mut rings, &superblock, &left)?;
        let mut state = self.state.lock();
        (state.superblock, state.rings) = (superblock, rings);
        Ok(())
    }

    /// If `is_due`, writes a snapshot of all metadata into a new journal and switches to it; returns whether it did.
    pub fn compact_if(&self, is_due: &dyn Fn(&State) -> bool) -> Result<bool> {
        {
            let _alone = self.journaling.lock();
            let state = self.state.lock();
            state.check()?;
            if !is_due(&state) {
                return Ok(false);
            }
            drop(state);
            self.compact_alone()?;
        }
        self.reset_freed(None)?;
        Ok(true)
    }
}
