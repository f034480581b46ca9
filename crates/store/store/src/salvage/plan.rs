//! The plan of a salvage in place, for the user to agree to.

use super::index::Rows;
use super::report::SalvageReport;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{Bytes, ZoneId, count};

/// The caller's choices for a salvage in place.
#[derive(Clone, Copy, Debug)]
pub struct InPlaceOptions {
    /// The new file system's identity, which must be new each time.
    pub uuid: [u8; 16],
    /// Whether the rest of damaged objects is kept, in a collection of its own.
    pub damaged: bool,
    /// Whether bytes that no row describes are given up.
    pub drop_unplaced: bool,
}

/// Name of the collection for bytes that no row describes.
pub(super) const UNPLACED: &str = "salvaged-unplaced";

/// The plan of a salvage in place.
#[derive(Serialize)]
pub struct Plan {
    #[serde(skip)]
    pub(super) how: InPlaceOptions,
    /// Rows of the new database, except those derived from them.
    #[serde(skip)]
    pub(super) rows: Rows,
    /// Zones that are neither reset nor written to.
    #[serde(skip)]
    pub(super) kept: BTreeSet<ZoneId>,
    /// Number of zones that each byte of the new metadata is written to.
    #[serde(rename = "metadata_copies")]
    pub(super) copies: u32,
    /// Objects that stay where they are.
    pub placed: u64,
    /// Whole objects that are copied, because they conflict with others about places or have no collection.
    pub copied: u64,
    /// Zones with written bytes that no row describes and that are kept.
    pub unplaced: Vec<Unplaced>,
    /// Bytes that no row describes and that are given up.
    pub dropped_bytes: u64,
    /// Objects to copy for which there will be no room: keys, and names for people.
    #[serde(serialize_with = "names")]
    pub(super) without_room: BTreeMap<Vec<u8>, String>,
}

/// Bytes of a zone that no row describes and that become an object of their own.
#[derive(Clone, Debug, Serialize)]
pub struct Unplaced {
    /// The zone.
    pub zone: ZoneId,
    /// The bytes, as ranges of the zone; zeros among them are not kept.
    pub ranges: Vec<Range<u64>>,
    /// Name of the object in the collection `salvaged-unplaced`; `None` if all bytes are zeros.
    pub object: Option<String>,
}

impl Plan {
    /// The plan in words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("stay in place: {}", count(self.placed, "object"))];
        if self.copies == 1 {
            lines.push(
                "metadata: in one copy from now on; for two, `store backup`, `store mkfs --metadata-copies 2` and `store restore`"
                    .to_owned(),
            );
        }
        if self.copied > 0 {
            let copied = count(self.copied, "object");
            lines.push(format!("copied within the drive: {copied}"));
        }
        let kept = self.unplaced.iter().filter(|kept| kept.object.is_some());
        let bytes = kept.clone().flat_map(|kept| &kept.ranges);
        let bytes: u64 = bytes.map(|range| range.end - range.start).sum();
        if bytes > 0 {
            lines.push(format!(
                "kept: {} in {} that nothing describes (what was replaced or removed, old metadata, or objects in no \
                 summary), as objects of the collection {UNPLACED}, one for each zone",
                Bytes(bytes),
                count(kept.count() as u64, "zone"),
            ));
        }
        if self.dropped_bytes > 0 {
            lines.push(format!(
                "given up: {} that nothing describes (what was replaced or removed, old metadata, or objects in no \
                 summary)",
                Bytes(self.dropped_bytes)
            ));
        }
        for object in self.without_room.values() {
            lines.push(format!("no room for it: {object}"));
        }
        if !self.without_room.is_empty() {
            lines.push(
                "--to OTHER copies what there is no room for; in place, bytes of it go that others share or that are not kept"
                    .to_owned(),
            );
        }
        lines
    }

    /// Names of the objects for which there will be no room.
    pub fn without_room(&self) -> impl Iterator<Item = &str> {
        self.without_room.values().map(String::as_str)
    }

    /// Names of the objects for which there was no room, although the plan expected some.
    pub fn missed<'a>(&'a self, done: &'a SalvageReport) -> impl Iterator<Item = &'a str> {
        let planned: BTreeSet<&str> = self.without_room().collect();
        let names = done.without_room.iter().map(String::as_str);
        names.filter(move |name| !planned.contains(name))
    }
}

fn names<S: Serializer>(
    objects: &BTreeMap<Vec<u8>, String>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(objects.values())
}

/// An object to copy: a whole one that cannot stay in place, or a damaged one that is wanted.
pub(super) struct Copied {
    pub key: Vec<u8>,
    pub collection: String,
    pub name: Vec<u8>,
    pub size: u64,
}
