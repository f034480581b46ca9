//! Report of a salvage: what the scan found, and which objects are whole, damaged or copied.

use crate::Name;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use zone::{Bytes, count};

/// Result of the scan.
#[derive(Clone, Default, Debug, Serialize)]
pub(super) struct Scanned {
    #[serde(serialize_with = "as_hex")]
    pub uuid: [u8; 16],
    /// Readable summaries of the store.
    pub summaries: u64,
    /// Summaries of the store that could be read once, and not when their rows were needed.
    pub unreadable_summaries: u64,
    /// Summaries of stores that had the drive before, or within objects.
    pub foreign_summaries: u64,
    /// Zones with a summary, or with data that a row names.
    pub data_zones: u64,
    /// Bytes written in data zones, without summaries.
    pub data_zone_bytes: u64,
    /// Bytes written in all other sequential zones.
    pub other_zone_bytes: u64,
    /// Bytes of the drive that some row describes as data.
    pub described_bytes: u64,
    /// Bytes written in data zones that no row describes: replaced versions, or the newest objects, which are in no
    /// summary yet.
    pub undescribed_bytes: u64,
    pub unreadable_bytes: u64,
    pub offline_zones: u32,
}

fn as_hex<S: serde::Serializer>(uuid: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{:032x}", u128::from_be_bytes(*uuid)))
}

/// An object with lost bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DamagedObject {
    /// Its collection.
    pub collection: String,
    /// Its name.
    pub object: Name,
    /// Size of the object in bytes.
    pub size: u64,
    /// The lost bytes, as ranges of the object.
    pub lost: Vec<Range<u64>>,
    /// Reason for the first loss.
    pub why: String,
}

/// Result of a salvage.
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
    /// Whole objects that the other store had already, and that were left there as they are.
    pub already_there: u64,
    /// Whole objects whose collection was not found: they are in collections named `salvaged-…`.
    pub without_collection: u64,
    /// Bytes without a checksum.
    pub unverified_bytes: u64,
    /// Objects that had an omap: its keys are in no summary.
    pub without_omap: u64,
    /// Objects of which bytes are lost.
    pub damaged: Vec<DamagedObject>,
    /// Objects for which there was no room, as COLLECTION/OBJECT.
    pub without_room: Vec<String>,
    /// Keys of the whole objects' onodes.
    #[serde(skip)]
    pub(super) whole: BTreeSet<Vec<u8>>,
}

impl SalvageReport {
    /// Bytes written in data zones that no row describes.
    pub fn undescribed_bytes(&self) -> u64 {
        self.scanned.undescribed_bytes
    }

    /// Whether nothing that was found is lost.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty()
            && self.without_omap == 0
            && self.without_room.is_empty()
            && self.scanned.unreadable_summaries == 0
    }

    /// The report in words; `copied`: objects were copied to another store.
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
            s.unreadable_summaries,
            format!(
                "not readable any more, after they were found: {}",
                count(s.unreadable_summaries, "summary").replace("summarys", "summaries")
            ),
        );
        note(
            s.foreign_summaries,
            format!(
                "passed over, of other stores: {}",
                count(s.foreign_summaries, "summary").replace("summarys", "summaries")
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

    /// Limits of a salvage in words: what may be outdated, and what no summary can tell.
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
