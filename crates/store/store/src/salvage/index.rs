//! Rows of a new database for objects that stay where they are. Pure.
//!
//! Rows are kept as the summaries have them, so that the summaries remain their copies, as far as they are consistent:
//! a map belongs to one object, a place on the drive to one blob, and a blob that several extents show has a row of its
//! own. Where two objects conflict, the one with the later onode stays, and the other has to be copied.

use super::found::{Found, FoundObject};
use crate::format::onode::Onode;
use crate::format::{blob, extent, key};
use object::{Blob, BlobId, Content, Extent, References, SharedBlob};
use std::collections::{BTreeMap, BTreeSet};
use zone::ZoneAddress;

/// Rows by key.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows of the new database.
pub(super) struct Index {
    rows: Rows,
    /// Blobs by the place of their first fragment that has one.
    blobs: BTreeMap<ZoneAddress, Placed>,
    /// End of each fragment's last block, by the fragment's place.
    places: BTreeMap<ZoneAddress, u64>,
    maps: BTreeSet<u64>,
    next_number: u64,
    block_size: u32,
}

/// A blob with the extents that show it.
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

/// A run of bytes of an object.
struct Stretch {
    segment: usize,
    end: u64,
    length: u64,
    /// The blob, its number if it is shared, and the first raw byte shown; `None`: a hole.
    shows: Option<(Blob, Option<BlobId>, u32)>,
}

impl Index {
    /// An empty index; numbers from `next_number` on are unused.
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

    /// Places of fragments, in order, with the ends of their last blocks.
    pub fn places(&self) -> impl Iterator<Item = (ZoneAddress, u64)> {
        self.places.iter().map(|(at, end)| (*at, *end))
    }

    /// Adds an object with all that it shows; false, and nothing is added, if some of it conflicts with another object.
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
        // The keys of an omap are in no summary.
        onode.omap = None;
        for segment in &mut onode.segments {
            // Another object has the map already: a summary has an earlier name of it, but none has that name's
            // removal.
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

    /// Adds an object of blobs that no other object shows; each blob with its offset in the object.
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

    /// Adds a blob. Returns its place if it is new, `Some(None)` if it is there already, and `None` if it conflicts.
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

    /// All rows, among them the first unused number.
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
                // Extents that the row counts may be of an object that could not be placed: the blob's unshown bytes
                // stay.
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

/// The stretches that an object shows; `None` if no summary describes some of them.
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
