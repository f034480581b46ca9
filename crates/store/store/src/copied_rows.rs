//! Compares the rows of the database with their copies in segment summaries, and copies rows again that have none.

use crate::Result;
use crate::format::key;
use crate::format::onode::Onode;
use crate::format::summary::{Summary, encode_places};
use crate::inner::Inner;
use crate::logged::Uncopied;
use crate::scrubber::Goes;
use crate::summaries::is_inline;
use crate::summary_writer::{Why, read_places};
use kv::{Batch, Durability};
use runtime::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use zone::ZoneId;

/// Rows that are compared in one pass: their hashes take about 64 MiB.
const AT_ONCE: u64 = 4 << 20;
/// Estimated rows of a summary.
const IN_SUMMARY: u64 = 128;
/// Rows read from the database under one lock, before commits may change rows again.
const ROWS: usize = 256;
/// Inline extents of an object that are looked at for one that is not, because commits wait meanwhile. An object with
/// more is copied in any case, which costs the bytes of its onode.
const MOST_INLINE: usize = 256;

/// One of `of` parts of all rows, divided by hash.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// All rows.
    pub const ALL: Self = Self { number: 0, of: 1 };

    fn has(self, hash: u64) -> bool {
        hash % self.of == self.number
    }
}

/// Hashes of the rows of a part that summaries have.
pub(crate) struct Copied {
    hashes: HashSet<u64>,
    /// For collections and onodes, by hash of the key: sequence of the last summary with the key, and whether that has
    /// a value.
    names: HashMap<u64, (u64, bool)>,
    part: Part,
}

impl Copied {
    /// Whether a summary has the row; true for rows of other parts.
    pub fn has(&self, key: &[u8], value: &[u8]) -> bool {
        let hash = self.hash(key, value);
        !self.part.has(hash) || self.hashes.contains(&hash)
    }

    fn hash(&self, key: &[u8], value: &[u8]) -> u64 {
        self.hashes.hasher().hash_one((key, value))
    }

    fn hear_name(&mut self, sequence: u64, key: &[u8], is_there: bool) {
        let hash = self.hash(key, &[]);
        if is_name(key) && self.part.has(hash) {
            let latest = self.names.entry(hash).or_default();
            *latest = (sequence, is_there).max(*latest);
        }
    }

    /// Whether the summary with this sequence is the last one with the key, and has a value for it.
    fn is_named_last(&self, sequence: u64, key: &[u8]) -> bool {
        is_name(key) && self.names.get(&self.hash(key, &[])) == Some(&(sequence, true))
    }
}

/// Whether the row alone makes a salvage restore a name, unless a later summary says that it is deleted.
fn is_name(key: &[u8]) -> bool {
    let names = [key::COLLECTION, key::ONODE, key::HASHED_ONODE];
    key.first()
        .is_some_and(|namespace| names.contains(namespace))
}

impl Inner {
    /// The rows that summaries in these zones have, and the number of unreadable summaries; `None` if `goes` stopped
    /// it. Calls `see` with each summary.
    pub(crate) fn copied_rows(
        &self,
        zones: &[ZoneId],
        part: Part,
        see: &mut dyn FnMut(&Summary),
        goes: Goes<'_>,
    ) -> Result<Option<(Copied, u64)>> {
        let mut copied = Copied {
            hashes: HashSet::default(),
            names: HashMap::default(),
            part,
        };
        let mut lost = 0;
        for zone in zones {
            if !goes(self.freelist.summary_bytes_in(*zone)) {
                return Ok(None);
            }
            let (found, unreadable) = self.summaries_in(&*self.kv()?, *zone)?;
            lost += unreadable as u64;
            found.iter().for_each(&mut *see);
            let rows = found.into_iter().flat_map(|summary| {
                let rows = summary.rows.into_iter();
                rows.map(move |(key, value)| (summary.sequence, key, value))
            });
            for (sequence, key, value) in rows {
                copied.hear_name(sequence, &key, value.is_some());
                if let Some(value) = value {
                    let hash = copied.hash(&key, &value);
                    if part.has(hash) {
                        copied.hashes.insert(hash);
                    }
                }
            }
        }
        Ok(Some((copied, lost)))
    }

    /// Whether a row is copied to summaries: it describes data in zones, or collections.
    pub(crate) fn wants_copy(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        match key.first() {
            Some(&key::EXTENT) => Ok(!is_inline(value)),
            Some(&(key::ONODE | key::HASHED_ONODE)) => {
                let kv = self.kv()?;
                let mut inline = 0;
                for segment in Onode::decode(value).into_iter().flat_map(|o| o.segments) {
                    let map = key::map(segment.map);
                    for row in kv.scan(&map, key::after_prefix(&map).as_deref()) {
                        let (_, value) = row?;
                        inline += 1;
                        if inline > MOST_INLINE || !is_inline(&value) {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Removes unreadable summaries of a zone from the index.
    pub(crate) fn drop_lost_summaries(&self, zone: ZoneId) -> Result<()> {
        let kv = self.kv()?;
        // Until the end, the zone is not reset, so that its places stay those of these summaries.
        let _reading = self.gate.enter_in([zone]);
        let mut lost = BTreeSet::new();
        for place in read_places(&kv, zone)? {
            if self.read_summary(zone, place)?.is_none() {
                lost.insert(place);
            }
        }
        // Not held while the drive reads: a read that hangs would stop the resets of all zones.
        let _alone = self.summaries.writing.lock();
        let mut kept = read_places(&kv, zone)?;
        let before = kept.len();
        kept.retain(|place| !lost.contains(place));
        if kept.len() < before {
            let mut batch = Batch::default();
            match kept.is_empty() {
                true => batch.delete(&key::summaries(zone)),
                false => batch.put(&key::summaries(zone), &encode_places(&kept)),
            }
            self.write_rows(&batch, Durability::Buffered)?;
        }
        Ok(())
    }

    /// Copies rows that no summary has, and removals that none has, to summaries. Returns how many found a place; `None` if
    /// `goes` stopped it.
    pub(crate) fn copy_rows_again(&self, goes: Goes<'_>) -> Result<Option<u64>> {
        let zones: Vec<ZoneId> = self.freelist.ours().into_iter().map(|(z, ..)| z).collect();
        let mut summaries = 0;
        for zone in &zones {
            summaries += read_places(&*self.kv()?, *zone)?.len() as u64;
        }
        let of = (summaries * IN_SUMMARY).div_ceil(AT_ONCE).max(1);
        let (mut rows, misses) = (0, self.summaries.misses());
        for number in 0..of {
            let part = Part { number, of };
            let Some((copied, _)) = self.copied_rows(&zones, part, &mut |_| {}, goes)? else {
                return Ok(None);
            };
            for namespace in [
                key::COLLECTION,
                key::BLOB,
                key::EXTENT,
                key::ONODE,
                key::HASHED_ONODE,
            ] {
                let mut next = Some(vec![namespace]);
                while let Some(from) = next.take() {
                    if !goes(0) {
                        return Ok(None);
                    }
                    rows += self.copy_rows_from(&from, namespace, &copied, &mut next)?;
                    self.write_summaries(self.moved.of(0), Why::Enough);
                }
            }
            for zone in &zones {
                if !goes(self.freelist.summary_bytes_in(*zone)) {
                    return Ok(None);
                }
                rows += self.copy_names_gone(*zone, &copied)?;
                self.write_summaries(self.moved.of(0), Why::Enough);
            }
        }
        *self.uncopied.lock() = Uncopied::default();
        self.summaries.looked_at_all(misses);
        self.all_rows_wait()?;
        // On a full drive, or where summaries have all that is reserved for them, rows go on waiting.
        Ok(Some(rows.saturating_sub(self.summaries.waiting_rows())))
    }

    /// Copies removals of names: the last summary with such a name is in this zone and has a value, but the database
    /// has none.
    fn copy_names_gone(&self, zone: ZoneId, copied: &Copied) -> Result<u64> {
        let (found, _) = self.summaries_in(&*self.kv()?, zone)?;
        let mut rows = 0;
        for summary in found {
            // A commit that changes one of the rows has ended, or comes after this.
            let _alone = self.mutators.write();
            let kv = self.kv()?;
            for (key, _) in summary.rows {
                if !copied.is_named_last(summary.sequence, &key) {
                    continue;
                }
                let is_there = match kv.get(&key)? {
                    Some(value) => self.wants_copy(&key, &value)?,
                    None => false,
                };
                if !is_there {
                    self.summaries.keep(&key, None);
                    rows += 1;
                }
            }
        }
        Ok(rows)
    }

    fn copy_rows_from(
        &self,
        from: &[u8],
        namespace: u8,
        copied: &Copied,
        next: &mut Option<Vec<u8>>,
    ) -> Result<u64> {
        // A commit that changes one of the rows has ended, or comes after this.
        let _alone = self.mutators.write();
        let kv = self.kv()?;
        let mut rows = 0;
        for (count, row) in kv.scan(from, Some(&[namespace + 1])).enumerate() {
            let (key, value) = row?;
            if count == ROWS {
                *next = Some(key);
                break;
            }
            if !copied.has(&key, &value) && self.wants_copy(&key, &value)? {
                self.summaries.keep(&key, Some(&value));
                rows += 1;
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
