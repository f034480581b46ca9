//! What was found, and what became of it.

use crate::Name;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use zone::{Bytes, count};

/// What was found when the drive was read.
#[derive(Clone, Default, Debug, Serialize)]
pub(super) struct Scanned {
    #[serde(serialize_with = "as_hex")]
    pub uuid: [u8; 16],
    /// That were read and are the store's.
    pub summaries: u64,
    /// Of other stores, which had the drive before, or within objects.
    pub foreign_summaries: u64,
    /// Zones with a summary, or with data that a row names.
    pub data_zones: u64,
    /// Written in these, summaries not counted.
    pub data_zone_bytes: u64,
    /// Written in all other sequential zones.
    pub other_zone_bytes: u64,
    /// Of the drive, said to be data by some row.
    pub described_bytes: u64,
    /// Written in data zones, and said by no row to be data. These are versions that were replaced, or the newest
    /// objects, in no summary yet.
    pub undescribed_bytes: u64,
    pub unreadable_bytes: u64,
    pub offline_zones: u32,
}

fn as_hex<S: serde::Serializer>(uuid: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{:032x}", u128::from_be_bytes(*uuid)))
}

/// An object of which some bytes are lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DamagedObject {
    /// Its collection.
    pub collection: String,
    /// Its name.
    pub object: Name,
    /// Bytes it had.
    pub size: u64,
    /// Which of them are lost.
    pub lost: Vec<Range<u64>>,
    /// Why the first of them are.
    pub why: String,
}

/// What was salvaged, and what was not.
#[derive(Clone, Default, Debug, Serialize)]
pub struct SalvageReport {
    #[serde(flatten)]
    pub(super) scanned: Scanned,
    /// Collections that were found.
    pub collections: u64,
    /// Objects that are whole.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of the objects, those that the other store had already. They were left as they are there.
    pub already_there: u64,
    /// Of the objects, those whose collection was not found. They are in one of their own, named `salvaged-…`.
    pub without_collection: u64,
    /// Bytes that have no checksum to compare them with.
    pub unverified_bytes: u64,
    /// Objects that had an omap, which no summary has.
    pub without_omap: u64,
    /// Objects of which bytes are lost.
    pub damaged: Vec<DamagedObject>,
    /// Objects for which there was no room.
    pub without_room: Vec<String>,
    /// The keys of the objects that are whole.
    #[serde(skip)]
    pub(super) whole: BTreeSet<Vec<u8>>,
}

impl SalvageReport {
    /// Written in data zones, and said by no row to be data.
    pub fn undescribed_bytes(&self) -> u64 {
        self.scanned.undescribed_bytes
    }

    /// Whether no byte of what was found is lost.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty() && self.without_omap == 0 && self.without_room.is_empty()
    }

    /// In words; `copied`: into another store.
    pub fn lines(&self, copied: bool) -> Vec<String> {
        let s = &self.scanned;
        let mut lines = vec![format!(
            "found: {} in {}, {} in {}",
            count(self.objects + self.damaged.len() as u64, "object"),
            count(self.collections, "collection"),
            count(s.summaries, "segment summary").replace("summarys", "summaries"),
            count(s.data_zones, "data zone"),
        )];
        let whole = match copied {
            true => "copied",
            false => "whole",
        };
        lines.push(format!(
            "{whole}: {}, {}",
            count(
                self.objects - if copied { self.already_there } else { 0 },
                "object"
            ),
            Bytes(self.bytes)
        ));
        let mut note = |number: u64, text: String| {
            if number > 0 {
                lines.push(text);
            }
        };
        note(
            self.already_there,
            format!(
                "left as they are in the other store: {}",
                count(self.already_there, "object")
            ),
        );
        note(
            self.without_collection,
            format!(
                "in collections named salvaged-…, for their own was not found: {}",
                count(self.without_collection, "object")
            ),
        );
        note(
            self.unverified_bytes,
            format!(
                "without a checksum to compare with: {}",
                Bytes(self.unverified_bytes)
            ),
        );
        note(
            self.without_omap,
            format!(
                "without their omap, which no summary has: {}",
                count(self.without_omap, "object")
            ),
        );
        note(
            u64::from(s.offline_zones) + s.unreadable_bytes,
            format!(
                "not readable: {} in zones, {} offline",
                Bytes(s.unreadable_bytes),
                count(s.offline_zones.into(), "zone")
            ),
        );
        note(
            s.foreign_summaries,
            format!(
                "passed over, of other stores: {} summaries",
                s.foreign_summaries
            ),
        );
        for object in &self.damaged {
            let lost: u64 = object
                .lost
                .iter()
                .map(|range| range.end - range.start)
                .sum();
            let first = object.lost.first().map_or(0, |range| range.start);
            lines.push(format!(
                "damaged: {}/{}: {} of {} lost, from byte {first} on: {}",
                object.collection,
                object.object,
                Bytes(lost),
                Bytes(object.size),
                object.why
            ));
        }
        for object in &self.without_room {
            lines.push(format!("no room for it: {object}"));
        }
        lines.extend(self.notes());
        lines
    }

    /// What may be stale, and what cannot be known, in words.
    pub fn notes(&self) -> [String; 5] {
        [
            format!(
                "known to no summary: {} in these zones (what was replaced or removed, or the newest objects: some of \
                 those above may be older versions)",
                Bytes(self.scanned.undescribed_bytes)
            ),
            format!(
                "not looked into: {} in other zones (metadata, and objects that are in no summary)",
                Bytes(self.scanned.other_zone_bytes)
            ),
            "in no summary: objects and parts of up to half a block, whose bytes were in the database".to_owned(),
            "may be back: objects that were removed, or replaced by one of up to half a block, in no summary since"
                .to_owned(),
            "may be older: attributes (tags, S3's locks) that were changed since the last summary".to_owned(),
        ]
    }
}
