//! How metadata becomes durable: in batches.
//!
//! A change is made under the state's lock, in memory, and recorded there. Whoever needs it in the
//! journal takes `journaling`, in which he has the journal, the rings and the superblock to himself;
//! then, under the state's lock, everything recorded so far as one numbered batch; and writes it
//! without that lock. Those who come meanwhile wait for `journaling` and find that it is done, or take
//! the next batch together. So frames are in the order of the changes, and nobody who only looks ever
//! waits for the drive.
//!
//! A change is seen by all before it is durable. What depends on that waits for the batch: a zone that
//! lost its last extent is reset when the batch it was freed in is durable, one that was taken is
//! written to when the batch that takes it is. What builds on a change is recorded behind it, so that a
//! power cut takes both or the later one.

use crate::journal::{Change, Journal};
use crate::node::Node;
use crate::shared::Shared;
use crate::state::State;
use crate::{Error, Result};
use device::ZonedDevice;
use std::sync::atomic::Ordering;
use zone::ZoneError;

/// The journal is compacted when it is larger than this, or than a zone if that is less, and than
/// four snapshots.
const MIN_COMPACT_BYTES: u64 = 1 << 20;

/// What is written at once.
struct Batch {
    changes: Vec<Change>,
    without_witness: bool,
    journal: Journal,
}

impl Shared {
    /// Puts everything pending into the journal. Not durable yet.
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
                // What is in memory is ahead of the journal, and all of it goes into a new one.
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
            // It goes on as it is.
            (Err(Error::NoSpace { .. }), Ok(())) => Ok(()),
            // Space may come; what is recorded waits for it.
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
        result
    }

    /// Makes all changes of names durable. Nothing has to be done if they are in frames that a flush
    /// has covered: RocksDB syncs an SST, then its directory.
    pub fn commit_names(&self) -> Result<()> {
        let is_durable = {
            let state = self.state.lock();
            state.check()?;
            state.is_durable()
        };
        if is_durable { Ok(()) } else { self.commit() }
    }

    /// Makes what was written of one file durable. A flush is enough if the journal has what it needs
    /// to know.
    pub fn commit_file(&self, node: &Node) -> Result<()> {
        if node.named_in.load(Ordering::Acquire) > self.batches.load(Ordering::Acquire) {
            self.commit()
        } else {
            self.flush()
        }
    }

    /// Makes everything that was written and recorded so far durable, by one flush.
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
        self.reset_freed()
    }

    /// Gives back zones that durable batches have given up, and resets those that they have freed.
    fn reset_freed(&self) -> Result<()> {
        let zones = {
            let mut state = self.state.lock();
            let durable = state.durable_batch;
            for zone in state.zones.leave(durable) {
                self.give_back(zone);
            }
            state.zones.begin_resets(durable)
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
                // Nobody waits for them any more.
                zones
                    .iter()
                    .try_for_each(|zone| state.zones.forget(*zone))?;
                Err(error.into())
            }
        }
    }

    /// Makes everything durable, and says so in a superblock: whatever is missing at the next
    /// mount has been damaged.
    pub fn seal(&self) -> Result<()> {
        self.state.lock().note_written_ends();
        self.commit()?;
        let _alone = self.journaling.lock();
        let (superblock, mut rings) = {
            let state = self.state.lock();
            state.check()?;
            let mut superblock = state.superblock.next();
            superblock.journal_frames = state.journal.durable;
            (superblock, state.rings.clone())
        };
        self.write_superblock(&mut rings, &superblock)?;
        let mut state = self.state.lock();
        (state.superblock, state.rings) = (superblock, rings);
        Ok(())
    }

    /// Writes a snapshot of all metadata into a new zone and switches to it, if that `is_due`.
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
        self.reset_freed()?;
        Ok(true)
    }
}
