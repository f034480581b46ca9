//! How metadata becomes durable: batches, and the journal's compaction.
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
//!
//! A compaction encodes its snapshot under the state's lock, together with taking the batch: the
//! snapshot has all of it. What is recorded while it is written goes behind it, into the new epoch.

use crate::format::journal::{JournalOperation, Kind};
use crate::format::superblock::Superblock;
use crate::journal::{Change, Journal, extent_operations, frame_of, payload_limit};
use crate::namespace::Namespace;
use crate::node::Node;
use crate::ring::Rings;
use crate::shared::{Shared, log_operations};
use crate::state::State;
use crate::zone_table::{SetAside, Stage};
use crate::{Error, Result};
use device::ZonedDevice;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use zone::{ZoneError, ZoneId};

/// The journal is compacted when it is larger than this, or than a zone if that is less, and than
/// four snapshots.
const MIN_COMPACT_BYTES: u64 = 1 << 20;

/// What is written at once.
struct Batch {
    changes: Vec<Change>,
    without_witness: bool,
    journal: Journal,
}

/// A journal that is to take the place of the present one.
struct Successor {
    number: u64,
    old: Journal,
    /// Payloads of the frames of a snapshot.
    frames: Vec<Vec<u8>>,
    /// For all of them but the first, whose is the spare one.
    zones: Vec<SetAside>,
    superblock: Superblock,
    rings: Rings,
}

impl State {
    /// Everything recorded so far counts as one batch from now on.
    fn begin_batch(&mut self) -> u64 {
        let number = self.next_batch;
        self.next_batch += 1;
        number
    }

    /// Whether all that was recorded is durable.
    pub fn is_durable(&self) -> bool {
        let is_recorded =
            self.pending.is_empty() && self.zones.count(|s| matches!(s, Stage::Freed { .. })) == 0;
        is_recorded && self.durable_batch + 1 >= self.next_batch
    }

    /// Batches up to this one are in the journal. Zones that they take may be written to after `flush`.
    fn is_in_journal(&mut self, shared: &Shared, number: u64, flush: u64) {
        self.zones.is_in_journal(number, flush);
        shared.batches.store(number, Ordering::Release);
    }
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
                state.is_in_journal(self, number, self.flusher.next());
                let least = MIN_COMPACT_BYTES.min(self.device.geometry().zone_capacity);
                state.journal.bytes > least.max(4 * state.snapshot_bytes)
            }
            Err(error @ (Error::Drive(ZoneError::PowerLost { .. }) | Error::Unmounted)) => {
                self.stop();
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
                self.stop();
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
                self.pool.give_back(zone);
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

    /// Frames in front of this number are durable, with all that they name, and the superblock that
    /// names their epoch.
    fn frames_are_durable(&self, state: &mut State, frames: u64) {
        state.journal.durable = state.journal.durable.max(frames);
        let mut witness = self.witness.lock();
        (witness.epoch, witness.frames) = (state.journal.epoch, state.journal.durable);
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

    /// Makes a superblock durable, in both rings.
    fn write_superblock(&self, rings: &mut Rings, superblock: &Superblock) -> Result<()> {
        rings.append(&*self.device, superblock, &|| self.flush())?;
        self.counters
            .superblock(2 * u64::from(superblock.block_size));
        self.flush()
    }

    /// A failed flush is the end: what the drive has kept only a new mount can tell.
    pub fn flush(&self) -> Result<()> {
        self.check_mounted()?;
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        self.flusher.flush(|| self.device.flush()).map_err(|error| {
            self.mounted.store(false, Ordering::Release);
            error.into()
        })
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

    /// The same for whoever has the journal to himself. Without space for it nothing has changed; any
    /// other failure is the end.
    ///
    /// Order: snapshot → flush (with it all data that it points to) → superblock → flush → the
    /// old journal is reset, and, by whoever is next to, everything that was waiting.
    fn compact_alone(&self) -> Result<()> {
        let successor = self.successor()?;
        let result = self.begin_epoch(successor);
        if result.is_err() {
            self.stop();
        }
        result
    }

    /// A snapshot of everything recorded so far, and the zones for it.
    fn successor(&self) -> Result<Successor> {
        let mut state = self.state.lock();
        let frames = self.snapshot(&state);
        let old = state.journal.clone();
        let mut zones = Vec::new();
        let g = self.device.geometry();
        for _ in 1..Journal::length_of(g, &frames).div_ceil(g.zone_capacity) {
            match self.journal_zone(&mut state.zones) {
                Ok(zone) => zones.push(zone),
                Err(error) => {
                    for zone in zones {
                        self.put_back(&mut state.zones, zone);
                    }
                    return Err(error);
                }
            }
        }
        // Until the successor takes over.
        state
            .journal
            .zones
            .extend(zones.iter().map(|aside| aside.zone));
        state.pending.clear();
        state.pending_without_witness = false;
        Ok(Successor {
            number: state.begin_batch(),
            old,
            frames,
            zones,
            superblock: state.superblock.next(),
            rings: state.rings.clone(),
        })
    }

    /// All metadata, as the payloads of frames.
    pub fn snapshot(&self, state: &State) -> Vec<Vec<u8>> {
        let limit = payload_limit(&*self.device);
        let changes = snapshot(&state.names);
        let mut rest = &changes[..];
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let (payload, count) = frame_of(rest, limit);
            frames.push(payload);
            rest = &rest[count..];
        }
        frames
    }

    fn begin_epoch(&self, successor: Successor) -> Result<()> {
        let Successor {
            number,
            old,
            frames,
            zones,
            mut superblock,
            mut rings,
        } = successor;
        old.finish(&*self.device)?;
        let epoch = old.epoch + 1;
        let (journal, unused) =
            self.write_snapshot(epoch, superblock.spare_zone, &frames, zones)?;
        self.flush()?;
        superblock.journal_epoch = journal.epoch;
        superblock.journal_zone = journal.zones[0];
        superblock.journal_frames = journal.next_frame;
        superblock.spare_zone = old.zones[0];
        self.unsynced.epoch_begins(journal.epoch);
        self.write_superblock(&mut rings, &superblock)?;
        // The next one begins in its first zone, and none of them has readers.
        {
            let mut state = self.state.lock();
            state.superblock = superblock;
            state.rings = rings;
            state.snapshot_bytes = journal.bytes;
            state.journal = journal;
            for zone in unused {
                self.put_back(&mut state.zones, zone);
            }
            self.frames_are_durable(&mut state, superblock.journal_frames);
            state.durable_batch = state.durable_batch.max(number);
            state.is_in_journal(self, number, 0);
        }
        let outcome = self.reset(&old.zones)?;
        self.recycle(&mut self.state.lock(), outcome)
    }

    /// Begins the journal of the next epoch: in the spare zone or, should that fail, in another. Answers
    /// also which of `zones` it did not need.
    fn write_snapshot(
        &self,
        epoch: u64,
        spare: ZoneId,
        frames: &[Vec<u8>],
        mut zones: Vec<SetAside>,
    ) -> Result<(Journal, Vec<SetAside>)> {
        const ATTEMPTS: u32 = 4;
        let device = &*self.device;
        let mut first = spare;
        let mut attempt = 1;
        loop {
            let mut journal = Journal::new(epoch, first);
            let mut next = || self.next_of(&mut zones);
            let mut append = |frame: &Vec<u8>| journal.append_frame(device, frame, &mut next);
            let result = self
                .empty(first)
                .map_err(Error::from)
                .and_then(|()| frames.iter().try_for_each(&mut append));
            self.counters.journal(journal.bytes);
            match result {
                Ok(()) => return Ok((journal, zones)),
                Err(Error::Drive(error))
                    if attempt < ATTEMPTS && !matches!(error, ZoneError::PowerLost { .. }) =>
                {
                    tracing::warn!(%error, zone = %first, "a journal cannot begin here; the zone is out of use");
                    attempt += 1;
                    self.state.lock().zones.forget(first)?;
                    self.pool.retire(first);
                    first = self.next_of(&mut zones)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One of `zones` or, should they not be enough, another for the journal.
    fn next_of(&self, zones: &mut Vec<SetAside>) -> Result<ZoneId> {
        let taken = zones.pop().map(Ok);
        let taken = taken.unwrap_or_else(|| self.journal_zone(&mut self.state.lock().zones));
        taken.map(|aside| aside.zone)
    }
}

/// All metadata.
fn snapshot(names: &Namespace) -> Vec<Change> {
    let mut operations = vec![JournalOperation::NextInode {
        inode: names.next_inode,
    }];
    let owned = names.owned.iter();
    operations.extend(owned.map(|zone| JournalOperation::Take { zone: *zone }));
    let directories = names.directories.iter();
    operations
        .extend(directories.map(|path| JournalOperation::MakeDirectory { path: path.clone() }));
    let mut made = BTreeSet::new();
    for (path, inode) in &names.names {
        let Some(node) = names.nodes.get(inode) else {
            continue;
        };
        let (inode, path) = (*inode, path.clone());
        if !made.insert(inode) {
            operations.push(JournalOperation::Link { inode, path });
            continue;
        }
        let body = node.body.read();
        let (kind, modified_micros) = (node.kind, body.modified_micros);
        operations.push(JournalOperation::Create {
            inode,
            kind,
            modified_micros,
            path,
        });
        if kind == Kind::Plain {
            operations.extend(extent_operations(inode, modified_micros, &body.pieces));
        }
        operations.extend(log_operations(inode, &body, &body.segments));
    }
    operations.into_iter().map(Change::from).collect()
}
