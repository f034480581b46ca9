//! Segment summaries: the rows that describe data in zones are also written to zones, beside the database, so that a
//! salvage can restore objects without it (docs/format/store.md, "Segment summaries").
//!
//! Rows that a commit has changed wait in memory until they fill a block, which is then appended to a stream. No commit
//! waits for that block and no flush is made for it, so a power cut costs the rows of the last blocks; on a full drive
//! rows keep waiting. Before a zone is reset, the rows of its summaries that the database still has wait again: so each
//! current row is in some summary.

use crate::Result;
use crate::copied_until::CopiedUntil;
use crate::format::copied::CopiedRecord;
use crate::format::onode::Onode;
use crate::format::{extent, key, summary};
use kv::{Batch, Change};
use object::Segment;
use runtime::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Bytes of objects after which the rows that describe them are written even if they do not fill a summary.
pub(crate) const MAX_DESCRIBED: u64 = 32 << 20;
/// Most bytes of rows that wait where no summary can be written; later rows have no copy.
const MAX_WAITING: usize = 4 << 20;

/// Most bytes of keys of waiting rows that an unmount writes down.
const MAX_NOTED: usize = 64 << 10;

/// Value of a row, `None` if it is deleted, and the batch that wrote it: 0 for any, `None` if `Swaiting` has the row's
/// key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    value: Option<Vec<u8>>,
    batch: Option<u64>,
}

/// Rows that wait for a summary.
struct Waiting {
    rows: BTreeMap<Vec<u8>, Row>,
    bytes: usize,
    /// Bytes of rows that are expected to fill a summary.
    full_at: usize,
    /// No place for a summary is looked for while fewer bytes of rows wait.
    retry_at: usize,
    /// Bytes of objects that rows noted since the last summary describe.
    described: u64,
    /// The key after those taken last: rows are taken in turn, so that none waits for ever.
    next: Vec<u8>,
    /// Keys of the rows taken last that have not changed since.
    unchanged: BTreeSet<Vec<u8>>,
    until: CopiedUntil,
    /// The keys that `Swaiting` has; `None` if that is not known.
    noted: Option<BTreeSet<Vec<u8>>>,
    /// Rows with the keys that `Swaiting` had at the mount may be without a copy and not wait either.
    is_to_compare: bool,
}

impl Waiting {
    fn new(until: CopiedUntil, noted: Option<BTreeSet<Vec<u8>>>) -> Self {
        Self {
            rows: BTreeMap::new(),
            bytes: 0,
            full_at: 0,
            retry_at: 0,
            described: 0,
            next: Vec::new(),
            unchanged: BTreeSet::new(),
            until,
            is_to_compare: noted.as_ref().is_none_or(|keys| !keys.is_empty()),
            noted,
        }
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>, batch: Option<u64>) {
        let bytes = summary::raw_bytes(key, value);
        self.forget(key);
        if self.bytes + bytes <= MAX_WAITING {
            self.bytes += bytes;
            let value = value.map(<[u8]>::to_vec);
            self.rows.insert(key.to_vec(), Row { value, batch });
        } else {
            self.until.miss(batch.unwrap_or(0));
        }
    }

    /// The batch that wrote the oldest row that is not in `Swaiting`.
    fn oldest(&self) -> Option<u64> {
        self.rows.values().filter_map(|row| row.batch).min()
    }

    fn is_due(&self, size: usize, all: bool) -> bool {
        let enough = if all { 1 } else { size.max(self.full_at) };
        self.bytes >= enough.max(self.retry_at)
    }

    fn forget(&mut self, key: &[u8]) {
        self.unchanged.remove(key);
        if let Some(row) = self.rows.remove(key) {
            self.bytes -= summary::raw_bytes(key, row.value.as_deref());
        }
    }

    /// Takes as many rows as fill `size` bytes, as a summary; fewer only if `all`. A row that no summary holds is
    /// dropped.
    fn take(&mut self, size: usize, all: bool, uuid: [u8; 16], number: u64) -> Option<Taken> {
        let mut has_shrunk = false;
        loop {
            let (count, raw) = self.first_rows();
            if count == 0 || (!all && self.bytes < self.full_at) {
                return None;
            }
            let rows = self.in_turn().take(count);
            let rows = rows.map(|(key, row)| (key.as_slice(), row.value.as_deref()));
            let bytes = summary::encode(uuid, number, rows);
            if bytes.is_none() && self.drop_unfit(count) {
                continue;
            }
            let packed = bytes.as_ref().map_or(usize::MAX, Vec::len);
            if packed > size && count > 1 {
                has_shrunk = true;
                self.full_at = (raw.saturating_mul(size) / packed * 15 / 16).min(raw - 1);
                continue;
            }
            let is_last = count == self.rows.len();
            if packed < size / 8 * 7 && !has_shrunk && !(all && is_last) {
                self.full_at = raw * size / packed;
                // The next row may be too large to fit.
                if is_last || self.first_rows().0 > count {
                    continue;
                }
            }
            let bytes = bytes?;
            let keys: Vec<_> = self.in_turn().take(count + 1).map(|(key, _)| key).collect();
            let mut keys: Vec<_> = keys.into_iter().cloned().collect();
            self.next = keys.split_off(count).pop().unwrap_or_default();
            let taken = |key: Vec<u8>| self.rows.remove(&key).map(|row| (key, row));
            let rows: BTreeMap<_, _> = keys.into_iter().filter_map(taken).collect();
            self.unchanged = rows.keys().cloned().collect();
            self.bytes -= raw;
            self.described = 0;
            let is_rest = self.rows.is_empty();
            return Some(Taken {
                rows,
                bytes,
                is_rest,
            });
        }
    }

    /// Drops the first of the next `count` rows that no summary holds, so that those beside it do not wait for ever; false
    /// if there is none.
    fn drop_unfit(&mut self, count: usize) -> bool {
        let unfit = self.in_turn().take(count).find(|(key, row)| {
            let row = (key.as_slice(), row.value.as_deref());
            summary::encode([0; 16], 0, [row].into_iter()).is_none()
        });
        let Some((key, batch)) = unfit.map(|(key, row)| (key.clone(), row.batch)) else {
            return false;
        };
        self.forget(&key);
        self.until.miss(batch.unwrap_or(0));
        tracing::warn!(
            key_bytes = key.len(),
            "a row that fits in no segment summary has no copy"
        );
        true
    }

    /// All rows, starting with the one whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = (&Vec<u8>, &Row)> {
        let before = (Bound::Unbounded, Bound::Excluded(&self.next));
        let later = self.rows.range::<Vec<u8>, _>(&self.next..);
        later.chain(self.rows.range::<Vec<u8>, _>(before))
    }

    /// How many of the next rows, at least one, have no more than `full_at` bytes together, and these bytes.
    fn first_rows(&self) -> (usize, usize) {
        let (mut count, mut raw) = (0, 0);
        for (key, row) in self.in_turn() {
            let bytes = summary::raw_bytes(key, row.value.as_deref());
            if count > 0 && raw + bytes > self.full_at {
                break;
            }
            (count, raw) = (count + 1, raw + bytes);
        }
        (count, raw)
    }
}

/// Rows that were taken, and their encoded summary.
pub(crate) struct Taken {
    rows: BTreeMap<Vec<u8>, Row>,
    pub bytes: Vec<u8>,
    /// No other rows waited.
    pub is_rest: bool,
}

/// The rows that wait for a summary, and the record of those that have one.
pub(crate) struct Summaries {
    waiting: Mutex<Waiting>,
    /// Held while summaries are written, from taking rows until these are in the index or wait again.
    pub writing: Mutex<()>,
}

impl Summaries {
    /// `noted` are the keys that `Swaiting` has, if that is known.
    pub fn new(until: CopiedUntil, noted: Option<BTreeSet<Vec<u8>>>) -> Self {
        Self {
            waiting: Mutex::new(Waiting::new(until, noted)),
            writing: Mutex::default(),
        }
    }

    /// Begins a batch. Returns its number, and the record that has to be part of it, if any.
    pub fn begin(&self) -> (u64, Option<CopiedRecord>) {
        let mut waiting = self.waiting.lock();
        // Most batches have no record, and many rows may wait.
        let oldest = match waiting.until.says_all() {
            true => waiting.oldest(),
            false => None,
        };
        waiting.until.begin(oldest)
    }

    /// Ends a batch of which nothing was written.
    pub fn abandon(&self, number: u64) {
        self.waiting.lock().until.end(number, false);
    }

    /// The record of the batch up to which all rows are in summaries.
    pub fn copied(&self) -> CopiedRecord {
        let waiting = self.waiting.lock();
        waiting.until.record(waiting.oldest())
    }

    /// The keys to be written to `Swaiting`, and the record of [`CopiedUntil::all_copied`], if any: those of the rows that
    /// wait and, until their rows are compared, those of the mount. `None` if so many wait that they are not written, or
    /// if the drive has all that.
    pub fn to_note(&self) -> Option<(BTreeSet<Vec<u8>>, Option<CopiedRecord>)> {
        let mut waiting = self.waiting.lock();
        let mut keys: BTreeSet<Vec<u8>> = waiting.rows.keys().cloned().collect();
        let says_all = waiting.until.says_all();
        let record = waiting.until.all_copied().filter(|_| !says_all);
        if waiting.is_to_compare {
            // Where they are not known the row stays, so that the next mount compares all rows.
            keys.extend(waiting.noted.as_ref()?.iter().cloned());
        }
        let is_known = waiting.noted.as_ref() == Some(&keys);
        (can_be_noted(&keys) && (record.is_some() || !is_known)).then_some((keys, record))
    }

    /// Notes that `Swaiting` has the keys of all rows that wait. None may have changed since [`Self::to_note`].
    pub fn are_noted(&self, keys: BTreeSet<Vec<u8>>) {
        let mut waiting = self.waiting.lock();
        for row in waiting.rows.values_mut() {
            row.batch = None;
        }
        waiting.noted = Some(keys);
    }

    /// Whether an unmount can leave the rows that wait to the next mount.
    pub fn can_be_noted(&self) -> bool {
        can_be_noted(self.waiting.lock().rows.keys())
    }

    /// See [`CopiedUntil::says_not_all`].
    pub fn says_not_all(&self) {
        self.waiting.lock().until.says_not_all();
    }

    /// Bytes of objects that the rows that wait describe.
    pub fn describes(&self) -> u64 {
        let waiting = self.waiting.lock();
        let extents = waiting.rows.iter();
        let extents = extents.filter(|(key, _)| key.first() == Some(&key::EXTENT));
        let values = extents.filter_map(|(_, row)| extent::decode(row.value.as_deref()?));
        values.map(|extent| extent.length).sum()
    }

    /// See [`CopiedUntil::misses`].
    pub fn misses(&self) -> u64 {
        self.waiting.lock().until.misses()
    }

    /// See [`CopiedUntil::looked_at_all`].
    pub fn looked_at_all(&self, misses: u64) {
        let mut waiting = self.waiting.lock();
        waiting.until.looked_at_all(misses);
        waiting.is_to_compare = false;
    }

    /// Notes that the rows whose keys `Swaiting` had at the mount, as far as these are known, were compared, and those
    /// without a copy wait.
    pub fn looked_at_noted(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_to_compare = waiting.noted.is_none();
    }

    /// Rows that wait.
    pub fn waiting_rows(&self) -> u64 {
        self.waiting.lock().rows.len() as u64
    }

    /// Whether the rows that wait suffice for a summary of `size` bytes, or, if `all`, whether there are any.
    pub fn is_due(&self, size: usize, all: bool) -> bool {
        self.waiting.lock().is_due(size, all)
    }

    /// Takes rows that fill `size` bytes, or fewer if `all`, as a summary; a single row may need more. The `number` is
    /// taken while no row can change, so that of two summaries with a row the later has the higher number.
    pub fn take(
        &self,
        (size, all): (usize, bool),
        uuid: [u8; 16],
        number: impl FnOnce() -> Result<u64>,
    ) -> Result<Option<Taken>> {
        let mut waiting = self.waiting.lock();
        Ok(waiting.take(size, all, uuid, number()?))
    }

    /// Whether so much data depends on the waiting rows that they should be written although they do not fill a
    /// summary.
    pub fn describe_much(&self) -> bool {
        self.waiting.lock().described >= MAX_DESCRIBED
    }

    /// Records that there may be a place for a summary again.
    pub fn try_again(&self) {
        self.waiting.lock().retry_at = 0;
    }

    /// Puts rows back for which there was no place, unless they have changed since; they wait for `size` more bytes of
    /// rows.
    pub fn put_back(&self, taken: Taken, size: usize) {
        let mut waiting = self.waiting.lock();
        for (key, row) in &taken.rows {
            if waiting.unchanged.contains(key) {
                waiting.put(key, row.value.as_deref(), row.batch);
            }
        }
        waiting.retry_at = waiting.bytes + size;
    }

    /// Adds a row, or its deletion, of which there is no other copy or soon will not be.
    pub fn keep(&self, key: &[u8], value: Option<&[u8]>) {
        self.waiting.lock().put(key, value, Some(0));
    }

    /// Adds the rows of a batch that was written, as far as they describe data in zones. Small objects, whose bytes are
    /// in the database, are left out. The caller keeps others from changing the same rows.
    pub fn note(&self, number: u64, batch: &Batch) {
        let mut inline: BTreeMap<u64, u64> = BTreeMap::new();
        for change in batch.changes() {
            if let Change::Put(key, value) = change
                && let Some((map, _)) = key::parse_extent(key)
                && is_inline(value)
            {
                let length = extent::decode(value).map_or(0, |extent| extent.length);
                *inline.entry(map).or_default() += length;
            }
        }
        let mut waiting = self.waiting.lock();
        for change in batch.changes() {
            match change {
                Change::Put(key, value) => match key.first() {
                    Some(&(key::COLLECTION | key::BLOB)) => {
                        waiting.put(key, Some(value), Some(number));
                    }
                    Some(&key::EXTENT) if !is_inline(value) => {
                        waiting.described += extent::decode(value).map_or(0, |e| e.length);
                        waiting.put(key, Some(value), Some(number));
                    }
                    // For an object with inline bytes only, a deletion: the object that had its name before is gone.
                    Some(&(key::ONODE | key::HASHED_ONODE)) => {
                        let is_copied = !is_of(value, &inline);
                        waiting.put(key, is_copied.then_some(value), Some(number));
                    }
                    _ => waiting.forget(key),
                },
                Change::Delete(key) => match key.first() {
                    Some(&(key::COLLECTION | key::ONODE | key::HASHED_ONODE)) => {
                        waiting.put(key, None, Some(number));
                    }
                    _ => waiting.forget(key),
                },
                Change::Merge(..) | Change::LogData(_) => {}
            }
        }
        let record = |change| matches!(change, Change::Put(key::SUPER_SUMMARIES, _));
        waiting.until.end(number, batch.changes().any(record));
    }
}

fn can_be_noted<'a>(keys: impl IntoIterator<Item = &'a Vec<u8>>) -> bool {
    keys.into_iter().map(Vec::len).sum::<usize>() <= MAX_NOTED
}

/// Whether the value of an extent's row is inline; only its first byte counts, so that a damaged one is no error.
pub(crate) fn is_inline(extent: &[u8]) -> bool {
    extent.first() == Some(&extent::INLINE)
}

/// Whether the batch has written all that an object shows inline: these maps with their inline bytes. Other extents may
/// be older than the batch, or come from a clone.
fn is_of(onode: &[u8], inline: &BTreeMap<u64, u64>) -> bool {
    let has = |segment: &Segment| {
        inline
            .get(&segment.map)
            .is_some_and(|bytes| *bytes >= segment.length)
    };
    !inline.is_empty() && Onode::decode(onode).is_some_and(|onode| onode.segments.iter().all(has))
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use object::BlobId;

    /// Rows of a few bytes and rows of a megabyte, which compress well or not at all.
    #[test]
    fn every_row_comes_off_once_whatever_its_size() {
        const SIZE: usize = 4096;
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20 {
            let until = CopiedUntil::new(CopiedRecord::NEW, 0, true, false);
            let (mut waiting, mut expected) = (Waiting::new(until, None), BTreeMap::new());
            let (mut found, mut number) = (BTreeMap::new(), 0);
            for n in 0..random.u32(1..600) {
                let length = match random.u8(..50) {
                    0 => random.usize(..400_000),
                    _ => random.usize(..200),
                };
                let mut value = vec![random.u8(..); length];
                if random.bool() {
                    random.fill(&mut value);
                }
                if waiting.bytes + length + 100 > MAX_WAITING {
                    break;
                }
                let key = random.u64(..).to_be_bytes();
                waiting.put(&key, Some(&value), Some(1));
                expected.insert(key.to_vec(), Some(value));
                let all = n % 97 == 96;
                while let Some(taken) = waiting.take(SIZE, all, [1; 16], number) {
                    number += 1;
                    let decoded = summary::decode(&taken.bytes, [1; 16]).unwrap();
                    assert!(taken.bytes.len() <= SIZE || taken.rows.len() == 1);
                    let rows = taken.rows.into_iter().map(|(key, row)| (key, row.value));
                    let rows: BTreeMap<_, _> = rows.collect();
                    assert!(decoded.rows.into_iter().collect::<BTreeMap<_, _>>() == rows);
                    found.extend(rows);
                }
            }
            while let Some(taken) = waiting.take(SIZE, true, [1; 16], number) {
                found.extend(taken.rows.into_iter().map(|(key, row)| (key, row.value)));
            }
            assert_eq!((waiting.bytes, waiting.rows.len()), (0, 0));
            assert!(found == expected);
        }
    }

    #[test]
    fn a_row_that_no_summary_holds_keeps_no_other_waiting() {
        let until = CopiedUntil::new(CopiedRecord::NEW, 0, true, false);
        let mut waiting = Waiting::new(until, None);
        let name = |number: u32| [b"C", number.to_string().as_bytes()].concat();
        (0..99).for_each(|n| waiting.put(&name(n), Some(b"row"), Some(1)));
        let too_long = [b"C5".as_slice(), &[b'5'; 1 << 16]].concat();
        waiting.put(&too_long, Some(b"row"), Some(2));
        let (mut found, mut summaries) = (BTreeSet::new(), 0);
        while let Some(taken) = waiting.take(4096, true, [1; 16], 1) {
            found.extend(taken.rows.into_keys());
            summaries += 1;
        }
        assert!(summaries < 3, "{summaries}");
        assert_eq!(found, (0..99).map(name).collect());
        assert_eq!((waiting.bytes, waiting.rows.len()), (0, 0));
        assert_eq!(waiting.until.misses(), 1);
    }

    fn nothing_waits() -> Summaries {
        let record = CopiedRecord {
            batch: 7,
            is_all: true,
        };
        let until = CopiedUntil::new(record, 7, true, false);
        Summaries::new(until, Some(BTreeSet::new()))
    }

    /// The write of the keys may have failed.
    #[test]
    fn a_row_that_is_not_noted_is_not_in_the_record_of_the_next_batch() {
        let summaries = nothing_waits();
        summaries.keep(b"Cname", Some(b"row"));
        let (keys, _) = summaries.to_note().unwrap();
        assert_eq!(summaries.begin().1.unwrap().batch, 0);
        let summaries = nothing_waits();
        summaries.keep(b"Cname", Some(b"row"));
        summaries.are_noted(keys);
        assert_eq!(summaries.begin().1.unwrap().batch, 7);
    }

    /// A summary with it would count as newer than the rows that took its place.
    #[test]
    fn a_row_that_a_commit_removes_while_it_is_taken_does_not_wait_again() {
        let summaries = nothing_waits();
        let mut batch = Batch::default();
        let (gone, stays) = (key::blob(BlobId(1)), key::blob(BlobId(2)));
        batch.put(&gone, b"blob");
        batch.put(&stays, b"blob");
        summaries.note(summaries.begin().0, &batch);
        let taken = summaries.take((4096, true), [1; 16], || Ok(1)).unwrap();
        let mut batch = Batch::default();
        batch.delete(&gone);
        summaries.note(summaries.begin().0, &batch);
        summaries.put_back(taken.unwrap(), 4096);
        assert_eq!(
            summaries.to_note().unwrap().0,
            BTreeSet::from([stays.to_vec()])
        );
    }
}
