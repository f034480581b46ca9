//! Repair of extents and shared blobs: which rows are valid, and which bytes objects lose with the others.

use super::Repair;
use super::names::Names;
use crate::blob_reader::read_blob;
use crate::format::key::{self, Holder};
use crate::format::onode::Onode;
use crate::format::{blob, extent};
use crate::limits::damaged_name;
use crate::rows::{read_blob_row, read_extent_row};
use crate::{Name, Result};
use object::{Blob, BlobId, BlobName, Content, Extent, part};
use runtime::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::Owner;

/// Prefix of the collections to which objects with lost bytes are moved, as `collection/name`.
const DAMAGED: &str = "fsck-damaged";

/// Place of a blob's fragment, to find overlaps.
struct Lies {
    at: ZoneAddress,
    end: u64,
    name: BlobName,
}

/// Which blobs can be shown.
#[derive(Default)]
struct Blobs {
    shared: HashMap<BlobId, Shared>,
    /// Blobs in places where no data of theirs can be.
    bad: HashSet<BlobName>,
    /// Raw bytes of divisible blobs in such places, with the bytes under the same checksums.
    lost: HashMap<BlobName, Vec<Range<u32>>>,
}

/// A blob with a row of its own.
struct Shared {
    raw: u32,
    is_divisible: bool,
    /// Raw bytes whose place was released.
    released: Vec<Range<u32>>,
}

/// Byte ranges, by map, that no valid row shows any more.
type Lost = BTreeMap<u64, Vec<Range<u64>>>;

/// A row to change: key, new value or `None` to remove it, and the reason.
type Row = (Vec<u8>, Option<Vec<u8>>, &'static str);

/// An extent's row and those that take its place.
type Replaced = Vec<Row>;

/// Whether a row of a map is kept.
enum Verdict {
    Keep(Extent),
    /// Removed, for this reason. Dropping a row that no object refers to is no loss.
    Drop(&'static str),
}

impl Repair<'_> {
    pub(super) fn plan_data(&mut self, names: &mut Names) -> Result<()> {
        let blobs = self.blobs(names)?;
        let (lost, rows) = self.plan_extents(names, &blobs)?;
        // Before the first hole: wherever the repair is interrupted, no object has one under its old name.
        self.plan_damaged(names, &lost)?;
        self.change_extents(rows, &lost);
        Ok(())
    }

    /// Finds out which blobs lie in valid places.
    fn blobs(&mut self, names: &mut Names) -> Result<Blobs> {
        let mut blobs = Blobs::default();
        let mut lies = Vec::new();
        let (mut undecodable, mut highest) = (Vec::new(), 0);
        self.rows(key::BLOB, |key, value| {
            let id = key::parse_blob(key);
            highest = highest.max(id.map_or(0, |id| id.0));
            match (id, blob::decode_shared(value)) {
                (Some(id), Some(found)) => {
                    blobs.shared.insert(id, shared(&found.blob));
                    self.lay(&found.blob, BlobName::Shared(id), &mut lies, &mut blobs);
                }
                _ => undecodable.push(key.to_vec()),
            }
            Ok(())
        })?;
        names.uses(highest);
        for key in undecodable {
            self.drop_row(&key, "undecodable blob");
        }
        let mut shown: HashSet<BlobId> = HashSet::default();
        self.rows(key::EXTENT, |key, value| {
            let Some((map, end)) =
                key::parse_extent(key).filter(|(map, _)| names.maps.contains_key(map))
            else {
                return Ok(());
            };
            match decoded(end, value).map(|extent| extent.content) {
                Some(Content::Own { blob, .. }) => {
                    self.lay(&blob, BlobName::Own { map, end }, &mut lies, &mut blobs);
                }
                Some(Content::Shared { blob, .. }) => {
                    shown.insert(blob);
                }
                _ => {}
            }
            Ok(())
        })?;
        // A shared blob that no extent shows conflicts with none.
        lies.retain(|l: &Lies| !matches!(l.name, BlobName::Shared(id) if !shown.contains(&id)));
        lies.sort_unstable_by_key(|l| l.at);
        let mut before: Option<Lies> = None;
        for next in lies {
            let Some(last) = before.take() else {
                before = Some(next);
                continue;
            };
            if last.at.zone != next.at.zone || last.end <= next.at.offset {
                before = Some(next);
                continue;
            }
            // Two blobs claim the same bytes: the one whose checksums match has them.
            let (wrong, right) = match self.matches(next.name)? && !self.matches(last.name)? {
                true => (last, next),
                false => (next, last),
            };
            blobs.bad.insert(wrong.name);
            before = Some(right);
        }
        Ok(blobs)
    }

    /// Enters the places of a blob's fragments. The parts that lie beyond what is written in their zone are lost, and
    /// all bytes that cannot be read without them.
    fn lay(&self, blob: &Blob, name: BlobName, lies: &mut Vec<Lies>, blobs: &mut Blobs) {
        let geometry = self.opened.device.geometry();
        let block = geometry.block_size;
        let mut ends = 0;
        for fragment in &blob.fragments {
            let begins = ends;
            ends += fragment.length;
            let Some(at) = fragment.at else { continue };
            let end = at.offset.saturating_add(fragment.padded(block));
            let written = self.written(at.zone);
            if end <= written {
                lies.push(Lies { at, end, name });
            } else if !blob.is_divisible() {
                blobs.bad.insert(name);
            } else {
                let there = written.saturating_sub(at.offset);
                let lost = blob.units(begins + there as u32, ends, block);
                if let Some(kept @ 1..) = lost.start.checked_sub(begins) {
                    let end = at.offset + geometry.round_up(kept.into());
                    lies.push(Lies { at, end, name });
                }
                blobs.lost.entry(name).or_default().push(lost);
            }
        }
    }

    /// Bytes of a zone that may hold the store's data: up to its write pointer; zero if BlueFS owns it.
    fn written(&self, zone: ZoneId) -> u64 {
        match self.opened.report.get(zone.index()) {
            None => 0,
            Some(_) if self.opened.pool.owner(zone) == Some(Owner::BlueFs) => 0,
            Some(told) if told.write_pointer_valid() => told.write_pointer,
            Some(told) => told.capacity,
        }
    }

    /// Whether a blob can be read whole and matches its checksums; false if it has none.
    fn matches(&self, name: BlobName) -> Result<bool> {
        let kv = &self.opened.kv;
        let blob = match name {
            BlobName::Shared(id) => read_blob_row(kv, id)?.map(|shared| shared.blob),
            BlobName::Own { map, end } => match read_extent_row(kv, map, end)?.map(|e| e.content) {
                Some(Content::Own { blob, .. }) => Some(blob),
                _ => None,
            },
        };
        let Some(blob) = blob.filter(|blob| !blob.checksums.is_empty()) else {
            return Ok(false);
        };
        let is_whole = blob.fragments.iter().all(|fragment| fragment.at.is_some());
        let mut bytes = vec![0; blob.raw as usize];
        if !is_whole {
            return Ok(false);
        }
        match read_blob(&*self.opened.device, &blob, 0, &mut bytes) {
            Ok(()) => Ok(true),
            Err(error) => error.check_answers(&*self.opened.device).map(|()| false),
        }
    }

    /// The bytes that objects lose, and the rows of maps to change.
    fn plan_extents(&self, names: &Names, blobs: &Blobs) -> Result<(Lost, Vec<Replaced>)> {
        let mut lost = Lost::new();
        let mut done: HashMap<u64, u64> = HashMap::default();
        let mut todo = Vec::new();
        let block = self.opened.device.geometry().block_size;
        self.rows(key::EXTENT, |key, value| {
            let (verdict, map, end) = match key::parse_extent(key) {
                None => (Verdict::Drop("undecodable extent"), 0, 0),
                Some((map, end)) => match names.maps.get(&map) {
                    None => (Verdict::Drop("extent without an object"), map, end),
                    Some((first, last)) => match verdict(blobs, map, end, value) {
                        // The map is doomed: its rows are left to the purge, unless that would fail.
                        Verdict::Keep(extent)
                            if first == last && blobs.lost_of(map, end, &extent).is_none() =>
                        {
                            return Ok(());
                        }
                        verdict => (verdict, map, end),
                    },
                },
            };
            let extent = match verdict {
                Verdict::Keep(extent) => extent,
                Verdict::Drop(why) => {
                    todo.push(vec![(key.to_vec(), None, why)]);
                    return Ok(());
                }
            };
            let mut replaced = Replaced::new();
            let (first, last) = names.maps.get(&map).copied().unwrap_or_default();
            let next = done.entry(map).or_insert(first);
            let start = end - extent.length;
            let parts = if start < *next {
                replaced.push((key.to_vec(), None, "extents overlap in an object"));
                Vec::new()
            } else if start >= last {
                replaced.push((key.to_vec(), None, "extent behind the end of an object"));
                Vec::new()
            } else if let Some(lost) = blobs.lost_of(map, end, &extent) {
                let why = "extent where it cannot be";
                replaced.push((key.to_vec(), None, why));
                let parts = parts_without(lost, &extent, block);
                let parts = parts.map(|(from, part)| (start + from, part));
                let parts: Vec<_> = parts.filter(|(start, _)| *start < last).collect();
                replaced.extend(parts.iter().map(|(start, part)| {
                    let key = key::extent(map, start + part.length);
                    (key, Some(extent::encode(part)), why)
                }));
                parts
            } else {
                vec![(start, extent)]
            };
            for (start, extent) in parts {
                let end = start + extent.length;
                if start > *next {
                    lost.entry(map).or_default().push(*next..start);
                }
                *next = end.min(last);
                if end > last {
                    let shorter = extent::encode(&shortened(extent, last - start));
                    let why = "extent behind the end of an object";
                    replaced.push((key::extent(map, end), None, why));
                    replaced.push((key::extent(map, last), Some(shorter), why));
                }
            }
            todo.extend(Some(replaced).filter(|rows| !rows.is_empty()));
            Ok(())
        })?;
        for (map, (first, last)) in &names.maps {
            let next = done.get(map).copied().unwrap_or(*first);
            if next < *last {
                lost.entry(*map).or_default().push(next..*last);
            }
        }
        Ok((lost, todo))
    }

    /// Plans the changes of rows of maps, and holes in place of lost bytes.
    fn change_extents(&mut self, rows: Vec<Replaced>, lost: &Lost) {
        for replaced in rows {
            // Between the removal and what takes its place, the next repair would find bytes lost that are not.
            let batch = self.changes.batch();
            for (key, value, why) in replaced {
                match value {
                    Some(value) => batch.put(&key, &value),
                    None => {
                        batch.delete(&key);
                        self.report.repaired(why);
                    }
                }
            }
        }
        for (map, ranges) in lost {
            for lost in ranges {
                let hole = Extent::hole(lost.end - lost.start);
                let key = key::extent(*map, lost.end);
                self.changes.put(&key, &extent::encode(&hole));
            }
        }
    }

    /// Plans the move of objects that lost bytes to collections of damaged objects.
    fn plan_damaged(&mut self, names: &mut Names, lost: &Lost) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let mut damaged = Vec::new();
        let mut look = |key: &[u8], onode: &Onode| {
            let ranges = lost_of(onode, lost);
            if !ranges.is_empty() {
                damaged.push((key.to_vec(), onode.clone(), ranges));
            }
        };
        for namespace in key::ONODES {
            self.rows(namespace, |key, value| {
                if !names.changed.contains_key(key) {
                    Onode::decode(value)
                        .iter()
                        .for_each(|onode| look(key, onode));
                }
                Ok(())
            })?;
        }
        for (key, onode) in &names.changed {
            onode.iter().for_each(|onode| look(key, onode));
        }
        let mut taken = HashSet::default();
        for (old, onode, ranges) in damaged {
            let Some((collection, name)) = names.collections.of(&old) else {
                continue;
            };
            let words = names.collections.words(&old);
            let name = damaged_name(collection, &name);
            let is_there_already =
                matches!(key::parse_onode(&old), Some((Holder::Collection(_), _)))
                    && collection.starts_with(DAMAGED);
            let bytes = ranges
                .iter()
                .map(|r| format!("{} to {}", r.start, r.end - 1));
            let bytes = bytes.collect::<Vec<_>>().join(", ");
            if is_there_already {
                self.report
                    .give_up(words, format!("bytes {bytes} of {}", onode.size()));
                continue;
            }
            let (number, collection) = self.by_name(names, DAMAGED)?;
            let mut new = key::onode(number, &name);
            for next in 2_u32.. {
                if taken.insert(new.clone()) && self.opened.kv.get(&new)?.is_none() {
                    break;
                }
                new = key::onode(number, &[&name, format!("-{next}").as_bytes()].concat());
            }
            let new_name = Name::from(&new[5..]);
            let what = format!(
                "bytes {bytes} of {}; the rest is in {collection}/{new_name}",
                onode.size()
            );
            self.report.give_up(words, what);
            self.move_onode(&old, &new, &onode, "hole in an object");
        }
        Ok(())
    }
}

impl Blobs {
    /// The lost raw bytes of the blob that an extent shows, if any.
    fn lost_of(&self, map: u64, end: u64, extent: &Extent) -> Option<&[Range<u32>]> {
        let name = match extent.content {
            Content::Own { .. } => BlobName::Own { map, end },
            Content::Shared { blob, .. } => BlobName::Shared(blob),
            _ => return None,
        };
        self.lost.get(&name).map(Vec::as_slice)
    }
}

/// The parts of an extent without the `lost` raw bytes of its blob, in order, with their offsets in the extent.
fn parts_without(
    lost: &[Range<u32>],
    extent: &Extent,
    block: u32,
) -> impl Iterator<Item = (u64, Extent)> {
    let (Content::Own { skip, .. } | Content::Shared { skip, .. }) = extent.content else {
        return Vec::new().into_iter();
    };
    let place = |raw: u32| u64::from(raw.saturating_sub(skip)).min(extent.length);
    let (mut parts, mut from) = (Vec::new(), 0);
    // Fragments are in order, and so are their lost ranges; the extent's end follows as the last.
    let lost = lost.iter().map(|lost| place(lost.start)..place(lost.end));
    for lost in lost.chain(std::iter::once(extent.length..extent.length)) {
        if from < lost.start {
            parts.push((from, part(extent, from, lost.start, block)));
        }
        from = from.max(lost.end);
    }
    parts.into_iter()
}

fn shared(blob: &Blob) -> Shared {
    let mut released = Vec::new();
    let mut begins = 0;
    for fragment in &blob.fragments {
        let ends = begins + fragment.length;
        if fragment.at.is_none() {
            released.push(begins..ends);
        }
        begins = ends;
    }
    Shared {
        raw: blob.raw,
        is_divisible: blob.is_divisible(),
        released,
    }
}

/// The extent of a row whose key says that it ends at `end`; `None` if it is invalid.
fn decoded(end: u64, value: &[u8]) -> Option<Extent> {
    extent::decode(value).filter(|extent| extent.length <= end)
}

fn verdict(blobs: &Blobs, map: u64, end: u64, value: &[u8]) -> Verdict {
    let Some(extent) = decoded(end, value) else {
        return Verdict::Drop("undecodable extent");
    };
    let name = match &extent.content {
        Content::Own { .. } => BlobName::Own { map, end },
        Content::Shared { blob, skip } => {
            let to = u64::from(*skip).saturating_add(extent.length);
            let is_shown = blobs.shared.get(blob).is_some_and(|shared| {
                let is_gone = |r: &Range<u32>| {
                    !shared.is_divisible || (u64::from(r.start) < to && *skip < r.end)
                };
                to <= shared.raw.into() && !shared.released.iter().any(is_gone)
            });
            if !is_shown {
                return Verdict::Drop("extents of a missing blob");
            }
            BlobName::Shared(*blob)
        }
        _ => return Verdict::Keep(extent),
    };
    match blobs.bad.contains(&name) {
        true => Verdict::Drop("extent where it cannot be"),
        false => Verdict::Keep(extent),
    }
}

/// An extent cut to its first `length` bytes.
fn shortened(mut extent: Extent, length: u64) -> Extent {
    if let Content::Inline(bytes) = &mut extent.content {
        bytes.truncate(length as usize);
    }
    extent.length = length;
    extent
}

/// The lost bytes of an object, as ranges of the object.
fn lost_of(onode: &Onode, lost: &Lost) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut begins = 0;
    for segment in &onode.segments {
        for range in lost.get(&segment.map).into_iter().flatten() {
            let at = |offset: u64| begins + (offset - segment.start);
            found.push(at(range.start)..at(range.end));
        }
        begins += segment.length;
    }
    found
}
