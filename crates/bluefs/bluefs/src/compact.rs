//! Compaction of the journal: a snapshot of all metadata begins a new epoch.
//!
//! The snapshot is encoded under the state's lock, in the same step that takes the batch, so it contains the whole
//! batch. Changes that are recorded while it is written go after it, into the new epoch.

use crate::format::superblock::Superblock;
use crate::journal::Journal;
use crate::ring::Rings;
use crate::shared::Shared;
use crate::zone_table::SetAside;
use crate::{Error, Result};
use device::ZonedDevice;
use zone::{ZoneError, ZoneId};

/// A new journal that is to replace the present one; nothing of it is written yet.
struct Successor {
    number: u64,
    old: Journal,
    /// Payloads of the frames of a snapshot.
    frames: Vec<Vec<u8>>,
    /// Zones for all frames, except for those in the first zone, which is the spare one unless that could not be reset.
    zones: Vec<SetAside>,
    superblock: Superblock,
    rings: Rings,
    /// [`State::names_grown`](crate::state::State::names_grown) at the time of the snapshot, which has it in its length.
    names_grown: u64,
}

/// A snapshot that is on the drive.
struct Written {
    journal: Journal,
    /// Zones that were set aside for the snapshot and not needed.
    unused: Vec<SetAside>,
    /// Zones of failed attempts, without broken ones.
    in_vain: Vec<ZoneId>,
}

impl Shared {
    /// Writes a snapshot of all metadata into a new journal and switches to it. The caller must hold `journaling`. If
    /// there is no space, nothing has changed; any other failure stops the file system.
    ///
    /// Order: snapshot → flush (which also covers all data that it names) → superblock → flush → reset of the old
    /// journal. Other freed zones are reset by the next caller that resets zones.
    pub fn compact_alone(&self) -> Result<()> {
        let successor = self.successor()?;
        let begun = self.begin_epoch(successor);
        begun.inspect_err(|error| self.stop_for(error))
    }

    /// A snapshot of everything recorded so far, and zones for it.
    fn successor(&self) -> Result<Successor> {
        let spare = self.state.lock().superblock.spare_zone;
        // Now, while the old journal can still continue without a successor.
        let spare_does = match self.empty(spare) {
            Err(error) if !appender::is_of_zone(&error) => return Err(error.into()),
            emptied => emptied.is_ok(),
        };
        let mut state = self.state.lock();
        let frames = self.snapshot(&state);
        let old = state.journal.clone();
        let mut zones = Vec::new();
        let g = self.device.geometry();
        let needed = Journal::length_of(g, &frames).div_ceil(g.least_capacity());
        for _ in u64::from(spare_does)..needed {
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
        // They belong to the old journal until the successor takes over.
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
            names_grown: state.names_grown,
        })
    }

    fn begin_epoch(&self, successor: Successor) -> Result<()> {
        let Successor {
            number,
            old,
            frames,
            zones,
            mut superblock,
            mut rings,
            names_grown,
        } = successor;
        old.finish(&*self.device);
        let epoch = old.epoch.checked_add(1).ok_or_else(|| Error::Invalid {
            path: "/".to_owned(),
            what: "the journal's epoch",
            found: old.epoch,
            allowed: u64::MAX - 1,
        })?;
        let Written {
            journal,
            unused,
            in_vain,
        } = {
            let left = [&old.zones[..], &rings.left(self.device.geometry())].concat();
            self.write_snapshot(epoch, (&left, superblock.spare_zone), &frames, zones)?
        };
        self.flush()?;
        superblock.journal_epoch = journal.epoch;
        superblock.journal_zone = journal.zones[0];
        superblock.journal_frames = journal.next_frame;
        superblock.spare_zone = self.next_spare(old.zones[0]);
        superblock.journal_twin = self.device.twin(superblock.journal_zone);
        superblock.spare_twin = self.device.twin(superblock.spare_zone);
        if let Err(error) = self.unsynced.epoch_begins(journal.epoch)
            && self.has_tails_of_logs()
        {
            // The file system stops, and the superblock stays the one under which the notes of these tails count.
            return Err(error);
        }
        let left = left(&old.zones, &in_vain, &journal);
        self.write_superblock(&mut rings, &superblock, &left)?;
        {
            let mut state = self.state.lock();
            state.superblock = superblock;
            state.rings = rings;
            state.snapshot_bytes = journal.bytes;
            state.names_grown -= names_grown;
            state.journal = journal;
            for zone in unused {
                self.put_back(&mut state.zones, zone);
            }
            self.frames_are_durable(&mut state, superblock.journal_frames);
            state.durable_batch = state.durable_batch.max(number);
            self.is_in_journal(&mut state, number, 0);
        }
        // The next journal begins in the old journal's first zone. None of these zones has readers.
        let gone = old.zones.into_iter().chain(old.next).chain(in_vain);
        // A spare zone that is worn out is kept if there is no other.
        let is_kept = |zone: &ZoneId| *zone == superblock.spare_zone && self.is_worn_out(*zone);
        let gone: Vec<ZoneId> = gone.filter(|zone| !is_kept(zone)).collect();
        let outcome = self.reset(&gone)?;
        self.recycle(&mut self.state.lock(), outcome)
    }

    fn has_tails_of_logs(&self) -> bool {
        let state = self.state.lock();
        let mut logs = state.names.logs.values();
        logs.any(|node| !node.body.read().tail.is_empty())
    }

    /// The spare zone for the journal after the next: the old journal's first zone, unless that is worn out.
    fn next_spare(&self, old: ZoneId) -> ZoneId {
        if !self.is_worn_out(old) {
            return old;
        }
        let zone = self.journal_zone(&mut self.state.lock().zones);
        // Without another zone, the worn-out one is used.
        zone.map_or(old, |aside| aside.zone)
    }

    /// Begins the journal of `epoch`: in the spare zone or, if that fails, in another one. `zones` are for the frames
    /// that do not fit the first zone. Nothing is written to the `old` zones of metadata any more.
    fn write_snapshot(
        &self,
        epoch: u64,
        (old, spare): (&[ZoneId], ZoneId),
        frames: &[Vec<u8>],
        mut zones: Vec<SetAside>,
    ) -> Result<Written> {
        const ATTEMPTS: u32 = 4;
        let device = &*self.device;
        let mut in_vain = Vec::new();
        let mut first = spare;
        let mut attempt = 1;
        loop {
            let mut journal = Journal::new(epoch, first);
            let mut next = || self.next_of(&mut zones);
            let mut append = |frame: &Vec<u8>| journal.append_frame(device, frame, &mut next);
            let emptied = self.empty(first).map_err(Error::from);
            let is_empty = emptied.is_ok();
            let result = emptied.and_then(|()| frames.iter().try_for_each(&mut append));
            self.counters.journal(journal.bytes);
            match result {
                Ok(()) => {
                    return Ok(Written {
                        journal,
                        unused: zones,
                        in_vain,
                    });
                }
                Err(error)
                    if attempt < ATTEMPTS
                        && self.makes_room(&error, &left(old, &in_vain, &journal))? =>
                {
                    attempt += 1;
                    // Whatever was written to it, the next attempt resets it first.
                    first = journal.zone();
                    let others = journal.zones.into_iter().chain(journal.next);
                    in_vain.extend(others.filter(|zone| *zone != first));
                }
                Err(Error::Drive(error)) if attempt < ATTEMPTS && is_fault_of_zone(&error) => {
                    let broken = journal.zone();
                    tracing::warn!(%error, zone = %broken, "a journal cannot begin here");
                    attempt += 1;
                    let others = journal.zones.into_iter().chain(journal.next);
                    in_vain.extend(others.filter(|zone| *zone != broken));
                    let failed = self.broken_of(broken);
                    if is_empty || !self.may_be_reset_later(broken, &failed) {
                        appender::finish(device, broken);
                        self.state.lock().zones.forget(broken)?;
                        self.retire(broken, failed);
                    } else {
                        in_vain.push(broken);
                    }
                    first = self.next_of(&mut zones)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One of `zones` or, if they are used up, another zone for the journal.
    fn next_of(&self, zones: &mut Vec<SetAside>) -> Result<ZoneId> {
        let taken = zones.pop().map(Ok);
        let taken = taken.unwrap_or_else(|| self.journal_zone(&mut self.state.lock().zones));
        taken.map(|aside| aside.zone)
    }
}

/// The zones to which nothing is written any more when the journal that begins needs another one.
fn left(old: &[ZoneId], in_vain: &[ZoneId], begins: &Journal) -> Vec<ZoneId> {
    [old, in_vain, begins.left()].concat()
}

/// Whether the same write may succeed in another zone, and not in this one.
fn is_fault_of_zone(error: &ZoneError) -> bool {
    appender::is_of_zone(error) && !appender::is_of_limit(error)
}
