//! Reads everything that is stored before a user needs it, and verifies checksums: both copies of the metadata, all
//! data of objects and every segment summary. Damage that another copy can repair is rewritten; other damage is
//! recorded, so that `Health` can name it: of objects in rows, of metadata in a file (`metadata_damage.rs`).
//!
//! A pass over the data goes zone by zone; its position is in the database (`Sscrub`), so the next mount resumes it. No
//! lock is held while it waits for its pace, and the read gate only for one piece at a time.

use crate::blob_reader::{ReadError, fragment_range, read_part};
use crate::database::give_up_text_logs;
use crate::format::key;
use crate::format::record::encode_name;
use crate::format::scrub::{DamageRecord, ScrubRecord};
use crate::found::Found;
use crate::inner::Inner;
use crate::losses::touches;
use crate::scrubber::{Goes, Scrubber, Seen, believed};
use crate::{Error, Result};
use kv::{Batch, Durability};
use object::{Blob, BlobName};
use runtime::thread::JoinHandle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// Most bytes of one read.
const PIECE: u32 = 512 << 10;
/// Entries of the cleaning index that are read at once.
const PLACES: usize = 256;
/// The position of a pass is recorded, between two zones, after this many bytes or this long.
const REMEMBER: (u64, Duration) = (64 << 20, Duration::from_secs(5));

/// Damage by its place, with the place of its fragment and the name of its blob.
pub(crate) type DamageFound = BTreeMap<ZoneAddress, (DamageRecord, ZoneAddress, BlobName)>;

/// The thread that scrubs in the background. Dropping this stops it after the current piece and waits for it.
pub(crate) struct ScrubThread {
    scrubber: Arc<Scrubber>,
    thread: Option<JoinHandle<()>>,
}

impl ScrubThread {
    pub fn start(store: &Arc<Inner>) -> std::io::Result<Self> {
        let (scrubber, mine) = (store.scrubber.clone(), store.clone());
        let thread = store.runtime.spawn("scrub", move || {
            let see = || {
                mine.write_down_met();
                if mine.scrubber.may_heal_again()
                    && let Ok(kv) = mine.kv()
                {
                    kv.heal_again();
                }
                let record = mine.scrub_record().unwrap_or_default();
                Seen {
                    metadata_micros: record.metadata_micros,
                    data_micros: record.data_micros,
                    is_under_way: record.began_micros > 0,
                    damaged_copies: mine.fs.usage().damaged_copies,
                }
            };
            let goes = &mut |bytes| mine.scrubber.next_copy(bytes, || mine.requests.seen());
            if let Err(error) = mine.copy_uncopied(goes) {
                tracing::error!(%error, "rows that a crash has left in no summary wait for the next deep scrub");
            }
            while let Some(deep) = mine.scrubber.wait_for_work(see) {
                let goes = &mut |bytes| mine.scrubber.next(bytes, || mine.requests.seen());
                if let Err(error) = mine.scrub(deep, goes) {
                    tracing::error!(%error, "the scrub has failed; it is tried again in an hour");
                    mine.scrubber.failed();
                }
            }
        })?;
        let thread = Some(thread);
        Ok(Self { scrubber, thread })
    }
}

impl Drop for ScrubThread {
    fn drop(&mut self) {
        self.scrubber.shutdown();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the scrub's thread had panicked");
        }
    }
}

impl Inner {
    /// Scrubs all metadata and, if `deep`, all data; false if it was stopped.
    pub(crate) fn scrub(&self, deep: bool, goes: Goes<'_>) -> Result<bool> {
        let _alone = self.scrubber.working.lock();
        self.scrubber.note(|status| status.running = true);
        let done = self
            .check_writable()
            .and_then(|()| self.scrub_all(deep, goes));
        if let Err(error) = &done
            && error.is_damage()
        {
            self.remember_damage(error);
        }
        self.scrubber.note(|status| {
            status.running = false;
            status.zone = None;
        });
        done
    }

    fn scrub_all(&self, deep: bool, goes: Goes<'_>) -> Result<bool> {
        if !self.scrub_metadata(goes)? {
            return Ok(false);
        }
        let mut record = self.scrub_record()?;
        record.metadata_micros = self.runtime.unix_micros();
        self.remember(&record)?;
        Ok(!deep || self.scrub_data(record, goes)?)
    }

    /// When the last passes ended, and the position of a pass that has not.
    pub(crate) fn scrub_record(&self) -> Result<ScrubRecord> {
        let value = self.kv()?.get(key::SUPER_SCRUB)?;
        // An unknown version or a damaged record counts as none: everything is scrubbed again.
        let record = value
            .and_then(|value| ScrubRecord::decode(&value))
            .unwrap_or_default();
        let believed = |micros| believed(micros, self.runtime.unix_micros());
        Ok(ScrubRecord {
            metadata_micros: believed(record.metadata_micros),
            data_micros: believed(record.data_micros),
            ..record
        })
    }

    fn remember(&self, record: &ScrubRecord) -> Result<()> {
        let mut batch = Batch::default();
        batch.put(key::SUPER_SCRUB, &record.encode());
        // Written seldom enough for a flush, so that a pass resumes here after a kill.
        self.write_rows(&batch, Durability::Synced)
    }

    fn scrub_metadata(&self, goes: Goes<'_>) -> Result<bool> {
        self.worn_zones();
        let Some(mut report) = self.fs.scrub(goes)? else {
            return Ok(false);
        };
        if give_up_text_logs(&self.fs, &mut report.lost) > 0 {
            self.fs.sync_metadata()?;
        }
        for path in &report.lost {
            tracing::error!(%path, "metadata is damaged in all copies");
        }
        self.remember_lost_files(&report.lost)?;
        let write = |batch: &Batch| self.write_rows(batch, Durability::Synced);
        self.retired.learn(self.fs.worn_out(), write)?;
        if report.repaired > 0 {
            // Rows that the database could not read before may be readable now.
            self.kv()?.heal_again();
            self.open_maps.doom_stuck();
            self.cleaner.nudge();
        }
        Ok(true)
    }

    fn scrub_data(&self, mut record: ScrubRecord, goes: Goes<'_>) -> Result<bool> {
        if record.began_micros == 0 {
            record.began_micros = self.runtime.unix_micros().max(1);
            (record.next_zone, record.bytes_read) = (0, 0);
            self.remember(&record)?;
        }
        // What an earlier part of the pass has found stays known until the next one; clocks are set back, too.
        let found_before = match record.next_zone {
            0 => u64::MAX,
            _ => record.began_micros,
        };
        // Whether this call has met no damaged row.
        let mut has_all = true;
        let mut remembered = (record.bytes_read, self.runtime.now());
        let zones = self.freelist.ours().into_iter().map(|(zone, ..)| zone);
        let zones: Vec<ZoneId> = zones.filter(|zone| zone.0 >= record.next_zone).collect();
        for zone in zones {
            self.scrubber.note(|status| {
                status.zone = Some(zone);
                status.bytes_read = record.bytes_read;
            });
            self.write_down_met();
            let read = self.scrub_zone(zone, goes);
            let read = read.and_then(|read| self.drop_lost_summaries(zone).map(|()| read));
            let (read, is_whole) = self.past_damage(read, &mut has_all)?.unwrap_or((0, true));
            record.bytes_read += read;
            record.next_zone = zone.0 + u32::from(is_whole);
            let (bytes, at) = remembered;
            let now = self.runtime.now();
            if !is_whole || record.bytes_read - bytes >= REMEMBER.0 || now - at >= REMEMBER.1 {
                remembered = (record.bytes_read, now);
                self.remember(&record)?;
            }
            if !is_whole {
                return Ok(false);
            }
        }
        // Rows of damaged summaries, and those that waited in memory when a process was killed.
        let copied = self.copy_rows_again(goes);
        let Some(rows) = self.past_damage(copied, &mut has_all)?.unwrap_or(Some(0)) else {
            return Ok(false);
        };
        self.scrubber.note(|status| status.rows_copied += rows);
        self.remember(&ScrubRecord {
            data_micros: self.runtime.unix_micros(),
            began_micros: 0,
            ..record
        })?;
        if has_all {
            let is_gone = self.forget_damage_of_rows(found_before)?;
            if is_gone && self.damage_rows(None)?.is_empty() {
                // Everything could be read, so what was unreadable once is readable or gone.
                self.freelist.try_unreadable_again();
            }
        }
        // Nobody but a purge reads all rows of what was removed: it can read them now, or finds their damage again.
        self.open_maps.doom_stuck();
        let goes = RefCell::new(goes);
        if let Err(error) = self.purge_doomed(|| (*goes.borrow_mut())(0)) {
            tracing::warn!(%error, "what was removed is given back later");
        }
        Ok(true)
    }

    /// Goes on after damage to rows, which is remembered: `None`, and not all was read.
    fn past_damage<T>(&self, done: Result<T>, has_all: &mut bool) -> Result<Option<T>> {
        match done.map_err(|error| self.of_rows(error)) {
            Err(error) if error.is_damage() => {
                tracing::error!(%error, "the scrub goes on after a damaged row");
                self.remember_damage(&error);
                *has_all = false;
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// Reads the live data in a zone and records its damage. Returns the bytes read, and whether the zone was read to
    /// its end.
    fn scrub_zone(&self, zone: ZoneId, goes: Goes<'_>) -> Result<(u64, bool)> {
        let (mut read, mut found) = (0, BTreeMap::new());
        let done = self.scrub_fragments(zone, (&mut read, goes), &mut found);
        let done = done.map_err(|error| self.of_rows(error));
        match &done {
            Ok(true) => self.write_damage(zone, &found, true)?,
            // What lies in front of the damaged row.
            Err(error) if error.is_damage() => self.write_damage(zone, &found, false)?,
            _ => {}
        }
        done.map(|is_whole| (read, is_whole))
    }

    /// Reads the fragments in a zone; false if the scrub was stopped.
    fn scrub_fragments(
        &self,
        zone: ZoneId,
        (read, goes): (&mut u64, Goes<'_>),
        found: &mut DamageFound,
    ) -> Result<bool> {
        let mut next = Some(ZoneAddress::new(zone, 0));
        while let Some(from) = next.take() {
            let mut places = Vec::new();
            let listed = self.each_place_from(from, &mut |at, name| {
                if places.len() == PLACES {
                    next = Some(at);
                } else {
                    places.push((at, name));
                }
                next.is_none()
            });
            for (at, name) in places {
                if !self.scrub_fragment(at, name, (&mut *read, goes), found)? {
                    return Ok(false);
                }
            }
            listed?;
        }
        Ok(true)
    }

    /// Reads the fragment of a blob that begins at `at`, if it is still there; false if the scrub was stopped.
    fn scrub_fragment(
        &self,
        at: ZoneAddress,
        name: BlobName,
        (read, goes): (&mut u64, Goes<'_>),
        found: &mut DamageFound,
    ) -> Result<bool> {
        let (mut done, mut owed) = (0, 0);
        loop {
            // The pace is charged after the read, when its size is known.
            if !goes(std::mem::take(&mut owed)) {
                return Ok(false);
            }
            // The fragment may have moved or gone meanwhile; from here on it stays.
            let reading = self.gate.enter();
            let Some(blob) = Found::look_up(&*self.kv()?, name)? else {
                return Ok(true);
            };
            let blob = blob.blob();
            let here = blob.fragments.iter().position(|f| f.at == Some(at));
            let Some(index) = here else { return Ok(true) };
            // Bytes beside it in other zones may be under the same checksum.
            reading.only_in(blob.fragments.iter().filter_map(|f| f.at.map(|at| at.zone)));
            let range = fragment_range(blob, index);
            let from = range.start + done;
            let to = range.end.min(from.saturating_add(PIECE));
            if from >= to {
                return Ok(true);
            }
            if let Err(failed) = read_part(&*self.device, blob, from..to) {
                check_power(&failed)?;
                self.find_damage((at, name), blob, from..to, found)?;
            }
            *read += u64::from(to - from);
            done += to - from;
            owed = u64::from(to - from);
        }
    }

    /// Reads a part that could not be read once more, unit by unit of its checksums, and adds the damaged units to
    /// `found`.
    pub(crate) fn find_damage(
        &self,
        (fragment, name): (ZoneAddress, BlobName),
        blob: &Blob,
        part: Range<u32>,
        found: &mut DamageFound,
    ) -> Result<()> {
        let block = self.device.geometry().block_size;
        let mut from = part.start;
        while from < part.end {
            let to = blob.units(from, from + 1, block).end.min(part.end);
            if to <= from {
                break;
            }
            if let (Err(failed), Some(at)) =
                (read_part(&*self.device, blob, from..to), blob.place(from))
            {
                check_power(&failed)?;
                tracing::error!(%at, %failed, "bytes of an object are damaged");
                let damage = DamageRecord {
                    length: to - from,
                    is_mismatch: failed.is_mismatch(),
                    found_micros: self.runtime.unix_micros(),
                };
                found.insert(at, (damage, fragment, name));
            }
            from = to;
        }
        Ok(())
    }

    /// Records the damage found in a zone, as far as its fragments are still there: the zone may have been reset
    /// meanwhile and have new data in that place. If `found` `is_all` of the zone's damage, older records that it does
    /// not confirm are removed, but for losses of bytes without a checksum.
    pub(crate) fn write_damage(
        &self,
        zone: ZoneId,
        found: &DamageFound,
        is_all: bool,
    ) -> Result<()> {
        // No commit empties the zone until this is written; a later reset removes the rows.
        let _alone = self.mutators.write();
        let kv = self.kv()?;
        let mut there = BTreeMap::new();
        for (at, (damage, fragment, name)) in found {
            if kv.get(&key::cleaning(*fragment))?.as_ref() == Some(&encode_name(*name)) {
                there.insert(*at, *damage);
            }
        }
        let mut found = there;
        let rows = self.damage_rows(Some(zone))?;
        // Whether a row may tell of a loss that no read shows, and would go.
        let is_doubtful = |(at, damage): &(ZoneAddress, DamageRecord)| {
            let would_go = match found.get(at) {
                Some(now) => now.length != damage.length,
                None => is_all,
            };
            damage.is_mismatch && would_go
        };
        let doubtful = rows.iter().filter_map(|(_, row)| row.filter(is_doubtful));
        let doubtful: BTreeMap<_, _> = doubtful.map(|(at, row)| (at, row.bytes(at))).collect();
        let places: Vec<_> = doubtful.values().cloned().collect();
        let unchecked = match self.unchecked(zone, &places) {
            // Any may be over bytes without a checksum.
            Err(error) if error.is_damage() => std::iter::once(0..u64::MAX).collect(),
            unchecked => unchecked?,
        };
        let is_kept =
            |at: &ZoneAddress| doubtful.get(at).is_some_and(|row| touches(&unchecked, row));
        let mut batch = Batch::default();
        let mut known = BTreeMap::new();
        for (key, damage) in rows {
            match damage {
                // With what was found in front of it.
                Some((at, _)) if is_kept(&at) => _ = found.remove(&at),
                Some((at, damage)) if found.contains_key(&at) => _ = known.insert(at, damage),
                _ if is_all => batch.delete(&key),
                _ => {}
            }
        }
        for (at, damage) in &found {
            if known.get(at).is_none_or(|k| k.length != damage.length) {
                batch.put(&key::damage(*at), &damage.encode());
            }
        }
        if batch.changes().next().is_none() {
            return Ok(());
        }
        // Known to who comes behind a kill, too.
        self.write_rows(&batch, Durability::Synced)
    }
}

/// Passes on a loss of the drive's power, which is not damage.
fn check_power(failed: &ReadError) -> Result<()> {
    match failed.drive() {
        Some(error @ ZoneError::PowerLost { .. }) => Err(Error::Drive(error.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
