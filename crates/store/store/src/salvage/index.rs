//! Rows of a new database for objects that stay where they are. Pure.
//!
//! Rows are as summaries have them, so that these go on to be their copies, as far as they fit each other: a map is of
//! one object, a place on the drive of one blob, and a blob that several extents show has a row of its own. Where two
//! objects do not agree, the one with the later onode comes first, and the other one has to be copied.

use super::found::{Found, FoundObject};
use crate::format::onode::Onode;
use crate::format::{blob, extent, key};
use object::{Blob, BlobId, Content, Extent, References, SharedBlob};
use std::collections::{BTreeMap, BTreeSet};
use zone::ZoneAddress;

/// Rows by key.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows that there are going to be.
pub(super) struct Index {
    rows: Rows,
    /// By the place of its first fragment that is there.
    blobs: BTreeMap<ZoneAddress, Placed>,
    /// By the first byte of a fragment: where its last block ends.
    places: BTreeMap<ZoneAddress, u64>,
    maps: BTreeSet<u64>,
    next_number: u64,
    block_size: u32,
}

/// A blob, and the extents that show it.
struct Placed {
    blob: Blob,
    id: Option<BlobId>,
    shown: Vec<Shown>,
}

struct Shown {
    map: u64,
    end: u64,
    length: u64,
    skip: u32,
}

/// A stretch of an object.
struct Stretch {
    segment: usize,
    end: u64,
    length: u64,
    /// None: a hole.
    shows: Option<(Blob, Option<BlobId>, u32)>,
}

impl Index {
    /// Numbers from `next_number` on are nobody's.
    pub fn new(next_number: u64, block_size: u32) -> Self {
        Self {
            rows: Rows::new(),
            blobs: BTreeMap::new(),
            places: BTreeMap::new(),
            maps: BTreeSet::new(),
            next_number,
            block_size,
        }
    }

    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.rows.insert(key, value);
    }

    pub fn has(&self, key: &[u8]) -> bool {
        self.rows.contains_key(key)
    }

    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Where blobs lie, in order: their first bytes, and where their last blocks end.
    pub fn places(&self) -> impl Iterator<Item = (ZoneAddress, u64)> {
        self.places.iter().map(|(at, end)| (*at, *end))
    }

    /// Adds an object with all that it shows; false, and nothing added, if some of that is in the place of another's.
    pub fn add(&mut self, found: &Found, object: &FoundObject<'_>) -> bool {
        let Some(stretches) = stretches(found, &object.onode) else {
            return false;
        };
        let mut added = Vec::new();
        for stretch in &stretches {
            let Some((blob, id, _)) = &stretch.shows else {
                continue;
            };
            match self.add_blob(blob, *id) {
                Some(new) => added.extend(new),
                None => {
                    for at in added {
                        self.remove_blob(at);
                    }
                    return false;
                }
            }
        }
        let mut onode = object.onode.clone();
        // Its keys are in no summary.
        onode.omap = None;
        for segment in &mut onode.segments {
            // A map that another object has already: an earlier name of it was in a summary, and its end was not.
            if !self.maps.insert(segment.map) {
                segment.map = self.number();
                self.maps.insert(segment.map);
            }
        }
        for stretch in stretches {
            let map = onode.segments[stretch.segment].map;
            match stretch.shows {
                None => {
                    let hole = extent::encode(&Extent::hole(stretch.length));
                    self.put(key::extent(map, stretch.end), hole);
                }
                Some((blob, _, skip)) => {
                    let shown = Shown {
                        map,
                        end: stretch.end,
                        length: stretch.length,
                        skip,
                    };
                    let placed = first_place(&blob).and_then(|at| self.blobs.get_mut(&at));
                    if let Some(placed) = placed {
                        placed.shown.push(shown);
                    }
                }
            }
        }
        self.put(object.key.to_vec(), onode.encode());
        true
    }

    /// An object of blobs that nothing else shows, by the offsets where they begin in it.
    pub fn add_new(&mut self, key: Vec<u8>, mut onode: Onode, blobs: Vec<(u64, Blob)>) {
        let map = self.number();
        let mut size = 0;
        for (start, blob) in blobs {
            if start > size {
                let hole = extent::encode(&Extent::hole(start - size));
                self.put(key::extent(map, start), hole);
            }
            let length = u64::from(blob.raw);
            size = start + length;
            let content = Content::Own { blob, skip: 0 };
            let row = extent::encode(&Extent { length, content });
            self.put(key::extent(map, size), row);
        }
        onode.segments = vec![object::Segment {
            map,
            start: 0,
            length: size,
        }];
        self.put(key, onode.encode());
    }

    /// The place of a blob that is new; `Some(None)` if it is there already, and `None` if it cannot be.
    fn add_blob(&mut self, blob: &Blob, id: Option<BlobId>) -> Option<Option<ZoneAddress>> {
        let first = first_place(blob)?;
        if let Some(there) = self.blobs.get_mut(&first) {
            let agrees =
                there.blob == *blob && (there.id.is_none() || id.is_none() || there.id == id);
            there.id = there.id.or(id).filter(|_| agrees).or(there.id);
            return agrees.then_some(None);
        }
        let mut entered = Vec::new();
        for fragment in &blob.fragments {
            let Some(at) = fragment.at else { continue };
            let end = at.offset.saturating_add(fragment.padded(self.block_size));
            let behind = ZoneAddress::new(at.zone, end);
            let before = self.places.range(..behind).next_back();
            if before.is_some_and(|(other, to)| other.zone == at.zone && *to > at.offset) {
                for at in entered {
                    self.places.remove(&at);
                }
                return None;
            }
            self.places.insert(at, end);
            entered.push(at);
        }
        let placed = Placed {
            blob: blob.clone(),
            id,
            shown: Vec::new(),
        };
        self.blobs.insert(first, placed);
        Some(Some(first))
    }

    fn remove_blob(&mut self, first: ZoneAddress) {
        if let Some(placed) = self.blobs.remove(&first) {
            for at in placed.blob.fragments.iter().filter_map(|f| f.at) {
                self.places.remove(&at);
            }
        }
    }

    /// All rows, with the first number that is nobody's.
    pub fn finish(mut self, found: &Found) -> Rows {
        for (_, placed) in std::mem::take(&mut self.blobs) {
            let Placed { blob, id, shown } = placed;
            if let (None, [only]) = (id, shown.as_slice()) {
                let content = Content::Own {
                    blob,
                    skip: only.skip,
                };
                self.put_extent(only, content);
                continue;
            }
            let number = match id {
                Some(id) => id,
                None => BlobId(self.number()),
            };
            let mut references = References::default();
            for shown in &shown {
                references.add(shown.skip..shown.skip + shown.length as u32);
                let content = Content::Shared {
                    blob: number,
                    skip: shown.skip,
                };
                self.put_extent(shown, content);
            }
            let told = id.and_then(|id| found.shared(id));
            let is_of =
                |map: Option<u64>| shown.iter().all(|shown| map.is_none_or(|m| m == shown.map));
            let row = match told {
                Some(told) if told.references == references && is_of(told.map) => told,
                // What is shown of it no more may be of an object that could not be placed: it stays.
                _ => SharedBlob {
                    blob,
                    map: None,
                    references,
                },
            };
            self.put(key::blob(number), blob::encode_shared(&row));
        }
        let next = self.next_number.to_le_bytes();
        self.put(key::SUPER_NEXT_NUMBER.to_vec(), next.to_vec());
        self.rows
    }

    fn put_extent(&mut self, shown: &Shown, content: Content) {
        let length = shown.length;
        let row = extent::encode(&Extent { length, content });
        self.put(key::extent(shown.map, shown.end), row);
    }
}

fn first_place(blob: &Blob) -> Option<ZoneAddress> {
    blob.fragments.iter().find_map(|fragment| fragment.at)
}

/// What an object shows; `None` if some of it is in no summary.
fn stretches(found: &Found, onode: &Onode) -> Option<Vec<Stretch>> {
    let mut all = Vec::new();
    for (segment, shows) in onode.segments.iter().enumerate() {
        let mut end = shows.start;
        let layers = found.map(shows.map);
        for stretch in layers.stretches(shows.start, shows.start.checked_add(shows.length)?) {
            let (extent, skipped) = stretch.extent?;
            let skip = |skip: u32| u32::try_from(u64::from(skip) + skipped).ok();
            end += stretch.length;
            all.push(Stretch {
                segment,
                end,
                length: stretch.length,
                shows: match &extent.content {
                    Content::Own { blob, skip: own } => Some((blob.clone(), None, skip(*own)?)),
                    Content::Shared { blob, skip: own } => {
                        let shared = found.shared(*blob)?;
                        Some((shared.blob, Some(*blob), skip(*own)?))
                    }
                    Content::Hole => None,
                    Content::Inline(_) => return None,
                },
            });
        }
    }
    Some(all)
}
