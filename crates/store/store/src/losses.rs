//! Finds the bytes of objects that lie in given places of zones: what is lost if these cannot be read.

use crate::Result;
use crate::format::key;
use crate::format::onode::Onode;
use crate::found::Found;
use crate::inner::Inner;
use crate::owners::Owners;
use crate::rows::{corrupt, decode_extent, read_blob_row, read_extents};
use object::{Blob, BlobId, BlobName, Codec, Content, Extent};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use zone::{ZoneAddress, ZoneId};

/// The bytes of one object that lie in the given places.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// COLLECTION/OBJECT.
    pub object: String,
    /// The bytes, as sorted ranges that do not touch each other.
    pub ranges: Vec<Range<u64>>,
}

impl Loss {
    /// Number of these bytes.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// The ranges in words, at most four of them.
    pub(crate) fn words(&self) -> String {
        /// Most ranges that are listed.
        const MOST: usize = 4;
        let first = self.ranges.iter().take(MOST);
        let first: Vec<String> = first
            .map(|r| format!("{}-{}", r.start, r.end - 1))
            .collect();
        let mut words = format!("bytes {}", first.join(", "));
        if self.ranges.len() > MOST {
            words += &format!(" and {} more ranges", self.ranges.len() - MOST);
        }
        words
    }
}

/// Name and ranges in words.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.words())
    }
}

/// Byte ranges of zones.
pub(crate) type Places = BTreeMap<ZoneId, Vec<Range<u64>>>;

/// Whether any of these ranges, which are in order and do not overlap, has a byte of `range`.
pub(crate) fn touches(ranges: &[Range<u64>], range: &Range<u64>) -> bool {
    let next = ranges.partition_point(|before| before.end <= range.start);
    ranges.get(next).is_some_and(|next| next.start < range.end)
}

/// Byte ranges of maps, by map.
type InMaps = BTreeMap<u64, Vec<Range<u64>>>;

impl Inner {
    /// Calls `each` with every object that has bytes in these places: one pass over all objects, or none if no blob
    /// lies there. Returns descriptions of metadata that could not be read.
    pub(crate) fn objects_in(
        &self,
        places: &Places,
        each: &mut dyn FnMut(Loss),
    ) -> Result<Vec<String>> {
        let (mut maps, mut blobs) = (InMaps::new(), BTreeMap::new());
        let mut problems = Vec::new();
        for (zone, ranges) in places {
            let found = self.blobs_in(*zone, ranges, &mut maps, &mut blobs);
            problems.extend(found.err().map(|e| e.to_string()));
        }
        let shown = self.extents_showing(blobs, &mut maps);
        problems.extend(shown.err().map(|e| e.to_string()));
        if maps.is_empty() {
            return Ok(problems);
        }
        let owners = Owners::of_all(&self.collections());
        let kv = self.kv()?;
        let rows = |namespace: u8| kv.scan(&[namespace], Some(&[namespace + 1]));
        for row in key::ONODES.into_iter().flat_map(rows) {
            let (key, value) = row?;
            let onode = Onode::decode(&value);
            let onode = onode.ok_or_else(|| corrupt(&key, "no onode", value.len()))?;
            let ranges = of_object(&onode, &maps);
            if !ranges.is_empty() {
                each(Loss {
                    object: owners.words(&key),
                    ranges,
                });
            }
        }
        Ok(problems)
    }

    /// Adds what blobs have in these bytes of a zone: to `maps`, bytes of maps that show an own blob; to `blobs`, raw
    /// bytes of shared ones.
    fn blobs_in(
        &self,
        zone: ZoneId,
        ranges: &[Range<u64>],
        maps: &mut InMaps,
        blobs: &mut BTreeMap<BlobId, Vec<Range<u32>>>,
    ) -> Result<()> {
        let candidates = self.placed_in(zone, ranges)?;
        let kv = self.kv()?;
        let block = self.device.geometry().block_size;
        for (offset, name) in candidates {
            let Some(found) = Found::look_up(&kv, name)? else {
                continue;
            };
            for raw in raw_bytes(found.blob(), ZoneAddress::new(zone, offset), ranges, block) {
                match &found {
                    Found::Own(map, end, extent, _) => {
                        maps.entry(*map)
                            .or_default()
                            .extend(shown(*end, extent, &raw));
                    }
                    Found::Shared(id, _) => blobs.entry(*id).or_default().push(raw),
                }
            }
        }
        Ok(())
    }

    /// Offsets of fragments that may overlap these bytes of a zone, with the names of their blobs.
    pub(crate) fn placed_in(
        &self,
        zone: ZoneId,
        ranges: &[Range<u64>],
    ) -> Result<Vec<(u64, BlobName)>> {
        let mut candidates = Vec::new();
        let mut last: Option<(u64, BlobName)> = None;
        let mut ranges: Vec<_> = ranges.iter().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut ranges = ranges.into_iter().peekable();
        // End of the ranges that begin in front of the end of a fragment.
        let mut end = 0;
        // A fragment ends before the next one begins.
        let mut pass = |at: u64, next: Option<(u64, BlobName)>| {
            while let Some(range) = ranges.next_if(|range| range.start < at) {
                end = end.max(range.end);
            }
            if let Some((from, name)) = std::mem::replace(&mut last, next)
                && from < end
            {
                candidates.push((from, name));
            }
        };
        self.each_place(zone, &mut |at, name| {
            pass(at.offset, Some((at.offset, name)));
            true
        })?;
        pass(u64::MAX, None);
        Ok(candidates)
    }

    /// Adds the bytes of maps that show these raw bytes of shared blobs: one pass over all extents if several maps show
    /// one of the blobs.
    fn extents_showing(
        &self,
        mut blobs: BTreeMap<BlobId, Vec<Range<u32>>>,
        maps: &mut InMaps,
    ) -> Result<()> {
        let kv = self.kv()?;
        let mut add = |map: u64, end: u64, extent: &Extent, raws: &[Range<u32>]| {
            let bytes = raws.iter().filter_map(|raw| shown(end, extent, raw));
            maps.entry(map).or_default().extend(bytes);
        };
        let shows = |extent: &Extent, id: BlobId| matches!(extent.content, Content::Shared { blob, .. } if blob == id);
        for (id, raws) in std::mem::take(&mut blobs) {
            match read_blob_row(&*kv, id)?.map(|shared| shared.map) {
                Some(Some(map)) => {
                    for (offset, extent) in read_extents(&*kv, map, 0, u64::MAX, usize::MAX)? {
                        if shows(&extent, id) {
                            add(map, offset + extent.length, &extent, &raws);
                        }
                    }
                }
                Some(None) => _ = blobs.insert(id, raws),
                None => {}
            }
        }
        if blobs.is_empty() {
            return Ok(());
        }
        for row in kv.scan(&[key::EXTENT], Some(&[key::EXTENT + 1])) {
            let (key, value) = row?;
            let (map, start, extent) = decode_extent(&key, &value)?;
            if let Content::Shared { blob, .. } = extent.content
                && let Some(raws) = blobs.get(&blob)
            {
                add(map, start + extent.length, &extent, raws);
            }
        }
        Ok(())
    }
}

/// The raw bytes of a blob that are lost with these bytes of the zone, for its fragment at `at`: all of a compressed
/// blob, otherwise all bytes under the same checksums.
fn raw_bytes(blob: &Blob, at: ZoneAddress, ranges: &[Range<u64>], block: u32) -> Vec<Range<u32>> {
    let mut begins = 0;
    let mut found = Vec::new();
    for fragment in &blob.fragments {
        let here = fragment.at == Some(at);
        for range in ranges.iter().filter(|_| here) {
            let from = range.start.saturating_sub(at.offset);
            let to = range
                .end
                .saturating_sub(at.offset)
                .min(fragment.length.into());
            if from >= to {
                continue;
            }
            let (from, to) = (begins + from as u32, begins + to as u32);
            let raw = match blob.codec {
                Codec::None => {
                    let units = blob.units(from, to, block);
                    units.start..units.end.min(blob.raw)
                }
                _ => 0..blob.raw,
            };
            found.push(raw);
        }
        begins += fragment.length;
    }
    found
}

/// The bytes of the map with which an extent that ends at `end` shows these raw bytes of its blob.
fn shown(end: u64, extent: &Extent, raw: &Range<u32>) -> Option<Range<u64>> {
    let (Content::Own { skip, .. } | Content::Shared { skip, .. }) = extent.content else {
        return None;
    };
    let start = end.checked_sub(extent.length)?;
    let place = |raw: u32| (start + u64::from(raw)).saturating_sub(skip.into());
    let range = place(raw.start).max(start)..place(raw.end).min(end);
    (range.start < range.end).then_some(range)
}

/// The bytes of an object that show these bytes of maps.
fn of_object(onode: &Onode, maps: &InMaps) -> Vec<Range<u64>> {
    let mut begins = 0;
    let mut found: Vec<Range<u64>> = Vec::new();
    for segment in &onode.segments {
        for range in maps.get(&segment.map).into_iter().flatten() {
            let from = range.start.max(segment.start);
            let to = range.end.min(segment.start + segment.length);
            if from < to {
                let place = |at: u64| begins + (at - segment.start);
                found.push(place(from)..place(to));
            }
        }
        begins += segment.length;
    }
    found.sort_unstable_by_key(|range| range.start);
    found.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    found
}
