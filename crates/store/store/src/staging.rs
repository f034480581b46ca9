//! What a transaction is about to change: an overlay on the database, turned into one batch.
//!
//! All accounting happens in [`Staging::insert`] and [`Staging::remove`]: an extent that appears or
//! goes moves its zone's counters and its entry in the cleaning index with it, so that the three
//! can not drift apart.

use crate::checksum::CHUNK;
use crate::format::extent::{Extent, MAX_INLINE, MAX_STORED};
use crate::format::key;
use crate::format::onode::Onode;
use crate::format::record::{BatchNote, NotedExtent, Place, encode_counters};
use crate::freelist::Delta;
use crate::{Error, Result};
use kv::{Batch, Kv};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};

/// Most extents that one transaction gives back itself; larger maps are left to the purge.
pub(crate) const MAX_DROPPED: usize = 4096;

/// What a row of the database takes at the least, key and all.
const ROW: u64 = 64;

/// Answers the verified bytes of an extent between two offsets from its visible start.
pub(crate) type ReadExtent<'a> = &'a dyn Fn(&Extent, u64, u64) -> Result<Vec<u8>>;

/// An extent that has just been written, as opposed to what is left of an older one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Fresh,
    Remainder,
}

pub(crate) struct Staging<'a> {
    kv: &'a Kv,
    block_size: u32,
    onodes: BTreeMap<(u32, String), Option<Onode>>,
    extents: BTreeMap<(u64, u64), Option<Extent>>,
    places: BTreeMap<ZoneAddress, Option<Place>>,
    pub deltas: BTreeMap<ZoneId, Delta>,
    pub doomed: Vec<u64>,
    /// By how much the bytes in inline extents grow.
    pub inline: i64,
    /// Bytes of rows that go.
    pub removed: u64,
    noted: Vec<NotedExtent>,
    dropped: usize,
}

impl<'a> Staging<'a> {
    pub fn new(kv: &'a Kv, block_size: u32) -> Self {
        Self {
            kv,
            block_size,
            onodes: BTreeMap::new(),
            extents: BTreeMap::new(),
            places: BTreeMap::new(),
            deltas: BTreeMap::new(),
            doomed: Vec::new(),
            inline: 0,
            removed: 0,
            noted: Vec::new(),
            dropped: 0,
        }
    }

    pub fn onode(&self, collection: u32, object: &str) -> Result<Option<Onode>> {
        match self.onodes.get(&(collection, object.to_owned())) {
            Some(staged) => Ok(staged.clone()),
            None => read_onode(self.kv, collection, object),
        }
    }

    pub fn set_onode(&mut self, collection: u32, object: &str, onode: Option<Onode>) {
        self.removed += if onode.is_none() { ROW } else { 0 };
        self.onodes.insert((collection, object.to_owned()), onode);
    }

    /// Extents of `map` that hold any of the bytes `from..to`, in order.
    pub fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>> {
        let mut found: BTreeMap<u64, Extent> = read_extents(self.kv, map, from, to, usize::MAX)?
            .into_iter()
            .collect();
        let lowest = from.saturating_sub(MAX_STORED);
        for ((_, offset), staged) in self.extents.range((map, lowest)..(map, to)) {
            match staged {
                Some(extent) if offset + extent.length() > from => {
                    found.insert(*offset, extent.clone());
                }
                _ => {
                    found.remove(offset);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// An extent appears at `offset` of `map`.
    pub fn insert(&mut self, map: u64, offset: u64, extent: Extent, origin: Origin) {
        match &extent {
            Extent::Inline(bytes) => self.inline += bytes.len() as i64,
            Extent::InZone(e) => {
                let bytes = e.padded(self.block_size).cast_signed();
                let delta = self.deltas.entry(e.at.zone).or_default();
                if origin == Origin::Fresh {
                    delta.written += bytes;
                    self.noted.push(e.into());
                } else {
                    delta.dead -= bytes;
                }
                self.places.insert(e.at, Some(Place { map, offset }));
            }
        }
        self.extents.insert((map, offset), Some(extent));
    }

    /// An extent goes.
    pub fn remove(&mut self, map: u64, offset: u64, extent: &Extent) {
        self.removed += ROW;
        match extent {
            Extent::Inline(bytes) => {
                self.inline -= bytes.len() as i64;
                self.removed += bytes.len() as u64;
            }
            Extent::InZone(e) => {
                let bytes = e.padded(self.block_size).cast_signed();
                self.deltas.entry(e.at.zone).or_default().dead += bytes;
                self.places.insert(e.at, None);
            }
        }
        self.extents.insert((map, offset), None);
    }

    /// Makes a hole at the bytes `from..to` of `map`.
    pub fn cut(&mut self, map: u64, from: u64, to: u64, read: ReadExtent<'_>) -> Result<()> {
        for (offset, extent) in self.extents(map, from, to)? {
            let length = extent.length();
            let left = from.saturating_sub(offset);
            let right = to.saturating_sub(offset).min(length);
            self.remove(map, offset, &extent);
            match &extent {
                Extent::Inline(bytes) => {
                    for (start, part) in [
                        (0, &bytes[..left as usize]),
                        (right, &bytes[right as usize..]),
                    ] {
                        if !part.is_empty() {
                            let part = Extent::Inline(part.to_vec());
                            self.insert(map, offset + start, part, Origin::Remainder);
                        }
                    }
                }
                Extent::InZone(e) => {
                    // A chunk that both remainders need goes to the left one; the right one gets
                    // its bytes inline, for a chunk has one owner only.
                    let mut right = right;
                    if left > 0 && right < length {
                        let skip = u64::from(e.skip);
                        let chunk_of = |at: u64| (skip + at) / CHUNK;
                        if chunk_of(left - 1) == chunk_of(right) {
                            let end = ((chunk_of(right) + 1) * CHUNK - skip).min(length);
                            let bytes = read(&extent, right, end)?;
                            for (index, part) in bytes.chunks(MAX_INLINE as usize).enumerate() {
                                let at = offset + right + index as u64 * MAX_INLINE;
                                let part = Extent::Inline(part.to_vec());
                                self.insert(map, at, part, Origin::Remainder);
                            }
                            right = end;
                        }
                    }
                    for (start, end) in [(0, left), (right, length)] {
                        if start < end {
                            let part = Extent::InZone(e.slice(start as u32, end as u32));
                            self.insert(map, offset + start, part, Origin::Remainder);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives back all extents of `map`, or leaves it to the purge if `open` or if there are many.
    pub fn drop_map(&mut self, map: u64, open: bool) -> Result<()> {
        let budget = MAX_DROPPED - self.dropped;
        let rows = if open {
            Vec::new()
        } else {
            read_extents(self.kv, map, 0, u64::MAX, budget)?
        };
        if open || rows.len() >= budget {
            self.doomed.push(map);
            return Ok(());
        }
        self.dropped += rows.len();
        for (offset, extent) in self.extents(map, 0, u64::MAX)? {
            self.remove(map, offset, &extent);
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.onodes.is_empty() && self.extents.is_empty() && self.doomed.is_empty()
    }

    /// Everything as one batch; `note` gets the data that the batch points to.
    pub fn fill(&self, batch: &mut Batch, mut note: BatchNote) {
        for ((collection, object), onode) in &self.onodes {
            put_or_delete(
                batch,
                &key::onode(*collection, object),
                onode.as_ref().map(Onode::encode),
            );
        }
        for ((map, offset), extent) in &self.extents {
            put_or_delete(
                batch,
                &key::extent(*map, *offset),
                extent.as_ref().map(Extent::encode),
            );
        }
        for (at, place) in &self.places {
            put_or_delete(
                batch,
                &key::cleaning(*at),
                place.as_ref().map(Place::encode),
            );
        }
        for (zone, delta) in &self.deltas {
            if *delta != Delta::default() {
                batch.merge(
                    &key::freelist(*zone),
                    &encode_counters(delta.written, delta.dead),
                );
            }
        }
        if self.inline != 0 {
            batch.merge(key::SUPER_INLINE, &self.inline.to_le_bytes());
        }
        for map in &self.doomed {
            batch.put(&key::doomed(*map), &[]);
        }
        note.extents.clone_from(&self.noted);
        batch.log_data(&note.encode());
    }
}

fn put_or_delete(batch: &mut Batch, key: &[u8], value: Option<Vec<u8>>) {
    match value {
        Some(value) => batch.put(key, &value),
        None => batch.delete(key),
    }
}

pub(crate) fn corrupt(key: &[u8], what: &'static str, found: usize) -> Error {
    Error::CorruptMetadata {
        key: key.escape_ascii().to_string(),
        what,
        found: found as u64,
    }
}

pub(crate) fn read_onode(kv: &Kv, collection: u32, object: &str) -> Result<Option<Onode>> {
    let key = key::onode(collection, object);
    let Some(value) = kv.get(&key)? else {
        return Ok(None);
    };
    let onode = Onode::decode(&value).ok_or_else(|| corrupt(&key, "no onode", value.len()))?;
    Ok(Some(onode))
}

/// At most `limit` extents of `map` that hold any of the bytes `from..to`.
pub(crate) fn read_extents(
    kv: &Kv,
    map: u64,
    from: u64,
    to: u64,
    limit: usize,
) -> Result<Vec<(u64, Extent)>> {
    let lower = key::extent(map, from.saturating_sub(MAX_STORED));
    let upper = key::extent(map, to);
    let mut found = Vec::new();
    for row in kv.scan(&lower, Some(&upper)) {
        let (key, value) = row?;
        let (_, offset) =
            key::parse_extent(&key).ok_or_else(|| corrupt(&key, "no extent key", key.len()))?;
        let extent =
            Extent::decode(&value).ok_or_else(|| corrupt(&key, "no extent", value.len()))?;
        if offset.saturating_add(extent.length()) > from {
            found.push((offset, extent));
            if found.len() >= limit {
                break;
            }
        }
    }
    Ok(found)
}
