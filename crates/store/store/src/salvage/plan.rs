//! What a salvage in place is going to do.

use super::index::Rows;
use super::report::SalvageReport;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{Bytes, ZoneId, count};

/// What the caller has to say of a salvage in place.
#[derive(Clone, Copy, Debug)]
pub struct InPlaceOptions {
    /// The new file system's identity: another one each time.
    pub uuid: [u8; 16],
    /// What is left of damaged objects goes to a collection of its own.
    pub damaged: bool,
    /// Bytes that nothing describes are not kept.
    pub drop_unplaced: bool,
}

/// Where bytes go that nothing describes.
pub(super) const UNPLACED: &str = "salvaged-unplaced";

/// What is going to be done.
#[derive(Serialize)]
pub struct Plan {
    #[serde(skip)]
    pub(super) how: InPlaceOptions,
    /// Of the new database, but for what follows from them.
    #[serde(skip)]
    pub(super) rows: Rows,
    /// Zones that stay as they are.
    #[serde(skip)]
    pub(super) kept: BTreeSet<ZoneId>,
    /// Of the metadata.
    #[serde(rename = "metadata_copies")]
    pub(super) copies: u32,
    /// Objects that stay where they are.
    pub placed: u64,
    /// Whole objects that share places with others in ways that no row can say, or have no collection: they are copied.
    pub copied: u64,
    /// Where written bytes that nothing describes are kept.
    pub unplaced: Vec<Unplaced>,
    /// Bytes that nothing describes, and that go.
    pub dropped_bytes: u64,
    /// Of what is to be copied, what there will be no room for: keys, and names for people.
    #[serde(serialize_with = "names")]
    pub(super) without_room: BTreeMap<Vec<u8>, String>,
}

/// Bytes of a zone that nothing describes, and that go to an object of their own.
#[derive(Clone, Debug, Serialize)]
pub struct Unplaced {
    /// The zone.
    pub zone: ZoneId,
    /// Which of its bytes; zeros among them are not kept.
    pub ranges: Vec<Range<u64>>,
    /// The object of the collection `salvaged-unplaced`; `None` if all of them are zeros.
    pub object: Option<String>,
}

impl Plan {
    /// In words.
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

    /// What there will be no room for.
    pub fn without_room(&self) -> impl Iterator<Item = &str> {
        self.without_room.values().map(String::as_str)
    }

    /// What there was no room for although the plan said so.
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

/// A whole object that cannot stay where it is, or a damaged one that is wanted.
pub(super) struct Copied {
    pub key: Vec<u8>,
    pub collection: String,
    pub name: Vec<u8>,
    pub size: u64,
}
