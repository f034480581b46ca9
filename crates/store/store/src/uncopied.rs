//! Rows that are in no summary when a store is mounted: they waited in memory for one at a crash, or the power cut took
//! theirs, or they were too few for one at the unmount. A mount finds the candidates in the log and in `Swaiting`,
//! without further reads; a background thread copies them after the mount.

use crate::Result;
use crate::copied_until::CopiedUntil;
use crate::format::copied::CopiedRecord;
use crate::format::{key, summary, waiting};
use crate::inner::Inner;
use crate::logged::{Logged, Uncopied};
use crate::recovery::Recovery;
use crate::scrubber::Goes;
use crate::summaries::Summaries;
use crate::summary_writer::Why;
use kv::Kv;
use std::collections::{BTreeMap, BTreeSet};

/// Rows that are compared under one lock, before commits may change rows again.
const ROWS: usize = 256;

/// Sequence of the last summary with a row, and what it has: a value, or that the row is deleted. `None`: no summary
/// has it.
type Latest = (u64, Option<Option<Vec<u8>>>);

/// The rows that may be in no summary, and what a mount knows of those that are.
pub(crate) fn at_mount(kv: &Kv, recovery: &mut Recovery) -> Result<(Uncopied, Summaries)> {
    let value = kv.get(key::SUPER_SUMMARIES)?;
    // A store of a version that wrote no record counts as new: its next deep scrub compares all rows.
    let record = value.and_then(|value| CopiedRecord::decode(&value));
    let record = record.unwrap_or(CopiedRecord::NEW);
    let value = kv.get(key::SUPER_WAITING)?;
    let noted = value.map_or(Some(BTreeSet::new()), |value| waiting::decode(&value));
    let logged = std::mem::take(&mut recovery.logged);
    let is_quiet = record.is_all && !logged.goes_behind(record.batch);
    let has_all = logged.has_all_behind(record.batch);
    let mut uncopied = Uncopied {
        any: noted.is_none() || !(is_quiet || has_all),
        logged: has_all.then_some(logged),
    };
    if let Some(noted) = noted.as_ref().filter(|noted| !noted.is_empty()) {
        let logged = uncopied.logged.get_or_insert_default();
        logged.add_waiting(noted.clone());
    }
    let until = CopiedUntil::new(record, recovery.highest, uncopied.is_none(), uncopied.any);
    Ok((uncopied, Summaries::new(until, noted)))
}

impl Inner {
    pub(crate) fn copy_uncopied(&self, goes: Goes<'_>) -> Result<bool> {
        let _alone = self.scrubber.working.lock();
        if self.uncopied.lock().is_none() {
            return Ok(true);
        }
        if !self.copy_logged(goes)? {
            return Ok(false);
        }
        if !self.uncopied.lock().any {
            self.all_rows_wait()?;
            return Ok(true);
        }
        tracing::info!(
            "rows that a crash has left in no segment summary are looked for everywhere"
        );
        let rows = self.copy_rows_again(goes)?;
        self.scrubber
            .note(|status| status.rows_copied += rows.unwrap_or(0));
        Ok(rows.is_some())
    }

    /// Copies rows that the log before the mount has, and those that waited at the last unmount; false if `goes` stopped
    /// it. Others stay uncopied.
    pub(crate) fn copy_logged(&self, goes: Goes<'_>) -> Result<bool> {
        let taken = self.uncopied.lock().logged.take();
        let Some(logged) = taken else {
            return Ok(true);
        };
        let misses = self.summaries.misses();
        let rows = self.copy_rows_of(&logged, goes);
        match rows {
            Ok(Some(Ok(rows))) => {
                self.summaries.looked_at_noted();
                self.scrubber.note(|status| status.rows_copied += rows);
                tracing::info!(rows, "rows that are in no summary wait for one");
            }
            // A summary is lost, whose rows may be older than the log: all rows have to be compared.
            Ok(Some(Err(Unreadable))) => self.uncopied.lock().any = true,
            Ok(None) | Err(_) => self.uncopied.lock().logged = Some(logged),
        }
        let is_done = rows?.is_some();
        if self.uncopied.lock().is_none() {
            self.summaries.looked_at_all(misses);
        }
        Ok(is_done)
    }

    /// Number of rows of the log that were in no summary and now wait for one; `None` if `goes` stopped it.
    fn copy_rows_of(
        &self,
        logged: &Logged,
        goes: Goes<'_>,
    ) -> Result<Option<std::result::Result<u64, Unreadable>>> {
        let mut latest = BTreeMap::new();
        for key in logged.rows() {
            latest.insert(key, (0, None));
        }
        for zone in logged.zones() {
            if !goes(self.freelist.summary_bytes_in(zone)) {
                return Ok(None);
            }
            let (found, unreadable) = self.summaries_in(&*self.kv()?, zone)?;
            if unreadable > 0 {
                return Ok(Some(Err(Unreadable)));
            }
            for summary::Summary { sequence, rows } in found {
                for (key, value) in rows {
                    if let Some(known) = latest.get_mut(key.as_slice())
                        && known.0 < sequence
                    {
                        *known = (sequence, Some(value));
                    }
                }
            }
        }
        let keys: Vec<_> = logged.rows().collect();
        let mut rows = 0;
        for keys in keys.chunks(ROWS) {
            if !goes(0) {
                return Ok(None);
            }
            rows += self.copy_those_without(keys, &latest)?;
            self.write_summaries(self.moved.of(0), Why::Enough);
        }
        Ok(Some(Ok(rows)))
    }

    fn copy_those_without(&self, keys: &[&[u8]], latest: &BTreeMap<&[u8], Latest>) -> Result<u64> {
        // A commit that changes one of the rows has ended, or comes after this.
        let _alone = self.mutators.write();
        let kv = self.kv()?;
        let mut rows = 0;
        for key in keys {
            let found = kv.get(key)?;
            let wanted = match found {
                Some(value) if self.wants_copy(key, &value)? => Some(value),
                // Removed extents and blobs need no copy: without a name, a salvage does not restore them.
                _ if matches!(key.first(), Some(&(key::EXTENT | key::BLOB))) => continue,
                _ => None,
            };
            let copied = latest.get(key).and_then(|(_, copied)| copied.as_ref());
            if copied != Some(&wanted) {
                self.summaries.keep(key, wanted.as_deref());
                rows += 1;
            }
        }
        Ok(rows)
    }

    /// Called when all rows without a copy wait for one: writes them to summaries, and records that.
    pub(crate) fn all_rows_wait(&self) -> Result<()> {
        self.write_summaries(self.moved.of(0), Why::All);
        self.tell_all_copied()
    }
}

/// A summary whose place is in the log cannot be read.
struct Unreadable;
