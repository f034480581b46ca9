//! What a salvage in place is going to do: which rows it writes, which zones stay as they are, and which bytes in them
//! nothing describes. Nothing is written here.

use super::Salvage;
use super::copy::{MARK, collection_of};
use super::found::FoundObject;
use super::in_place::InPlaceOptions;
use super::index::{Index, Rows};
use super::lost::Lost;
use super::rehearsal::Copied;
use super::report::SalvageReport;
use super::scan::written;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::format::summary::encode_places;
use crate::mkfs::default_copies;
use crate::options::MountOptions;
use crate::owners::Owners;
use crate::{Attributes, Error, Result};
use bluefs::BlueFs;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{Bytes, ZoneAddress, ZoneId, ZoneKind, count};

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

impl Salvage {
    /// Plans a salvage in place. `report` is that of [`Salvage::copy`] without another store. The drive is only read.
    ///
    /// # Errors
    /// [`Error::NoRoomForMetadata`] if what is to be kept leaves too few zones, and those of a drive on which new metadata
    /// cannot be made.
    pub fn plan(
        &self,
        lost: &Lost,
        report: &SalvageReport,
        options: &MountOptions,
        how: InPlaceOptions,
    ) -> Result<Plan> {
        let geometry = self.device.geometry();
        let (number, collection) = self.found.highest();
        let mut index = Index::new(number + 1, geometry.block_size);
        let (owners, unplaced) = self.plan_collections(&mut index, collection + 1);
        let next_collection = u64::from(unplaced.max(collection) + 1);
        let mut objects: Vec<FoundObject<'_>> = self.found.objects().collect();
        objects.sort_by_key(|object| Reverse(object.sequence));
        let mut plan = Plan {
            how,
            rows: Rows::new(),
            kept: BTreeSet::new(),
            copies: lost.copies.unwrap_or_else(|| default_copies(geometry)),
            placed: 0,
            copied: 0,
            unplaced: Vec::new(),
            dropped_bytes: 0,
            without_room: BTreeMap::new(),
        };
        // What is copied later lies there.
        let mut sources = BTreeSet::new();
        for object in &objects {
            let is_whole = report.whole.contains(object.key);
            if is_whole && owners.of(object.key).is_some() && index.add(&self.found, object) {
                plan.placed += 1;
                continue;
            }
            plan.copied += u64::from(is_whole);
            sources.extend(self.zones_of(object));
        }
        self.plan_summaries(&mut index);
        self.plan_zones(&mut plan, &index, lost, &sources)?;
        // As they are copied: in the order of their keys.
        let copied = self.found.objects().filter(|object| {
            !index.has(object.key) && (how.damaged || report.whole.contains(object.key))
        });
        let copied: Vec<Copied> = copied
            .map(|object| Copied {
                key: object.key.to_vec(),
                collection: match owners.of(object.key) {
                    Some((collection, _)) => collection.to_owned(),
                    None => collection_of(object.holder),
                },
                name: object.name.to_vec(),
                size: object.onode.size(),
            })
            .collect();
        if !lost.is_placed() {
            let now = options.runtime.unix_micros();
            self.keep_unplaced(&mut plan, &mut index, unplaced, now)?;
        }
        plan.rows = index.finish(&self.found);
        let next = next_collection.to_le_bytes().to_vec();
        plan.rows.insert(key::SUPER_NEXT_COLLECTION.to_vec(), next);
        self.rehearse(lost, &mut plan, &copied, options)?;
        Ok(plan)
    }

    /// Collections as they were found, and those for objects whose own was not; the number of [`UNPLACED`].
    fn plan_collections(&self, index: &mut Index, next: u32) -> (Owners, u32) {
        let found = self.found.collections();
        let mut owners = Owners::default();
        let mut numbers = BTreeSet::new();
        for (name, record) in &found {
            owners.add(record.kind, (*name).to_owned());
            index.put(key::collection(name), record.encode());
            if let Kind::ByName(number) = record.kind {
                numbers.insert(number);
            }
        }
        let mut make = |base: &str, number: u32| {
            let names = (2_u32..).map(|n| format!("{base}-{n}"));
            let mut names = std::iter::once(base.to_owned()).chain(names);
            let name = names.find(|name| !found.contains_key(name.as_str()));
            let mark = [&self.scanned.uuid[..], base.as_bytes()].concat();
            let record = CollectionRecord {
                kind: Kind::ByName(number),
                created_micros: 0,
                attributes: Attributes::from([(MARK.to_owned(), mark)]),
            };
            let name = name.unwrap_or_default();
            index.put(key::collection(&name), record.encode());
            owners.add(record.kind, name);
        };
        for object in self.found.objects() {
            if let Holder::Collection(number) = object.holder
                && numbers.insert(number)
            {
                make(&collection_of(object.holder), number);
            }
        }
        let unplaced = found.get(UNPLACED).map(|record| record.kind);
        let number = match unplaced {
            Some(Kind::ByName(number)) => number,
            _ => {
                make(UNPLACED, next);
                next
            }
        };
        (owners, number)
    }

    fn plan_summaries(&self, index: &mut Index) {
        let block = u64::from(self.device.geometry().block_size);
        let mut places: BTreeMap<ZoneId, Vec<(u32, u32)>> = BTreeMap::new();
        for (at, length) in &self.summaries {
            let begins = (at.offset / block) as u32;
            places.entry(at.zone).or_default().push((begins, *length));
        }
        for (zone, places) in places {
            index.put(key::summaries(zone), encode_places(&places));
        }
    }

    /// Zones of everything that an object shows.
    fn zones_of(&self, object: &FoundObject<'_>) -> Vec<ZoneId> {
        let maps = object.onode.segments.iter().map(|s| self.found.map(s.map));
        let mut zones = Vec::new();
        for (layers, segment) in maps.zip(&object.onode.segments) {
            let end = segment.start.saturating_add(segment.length);
            for stretch in layers.stretches(segment.start, end) {
                let blob = stretch.extent.and_then(|(e, _)| self.found.blob_of(e));
                let fragments = blob.into_iter().flat_map(|blob| blob.fragments);
                zones.extend(fragments.filter_map(|fragment| Some(fragment.at?.zone)));
            }
        }
        zones
    }

    fn plan_zones(
        &self,
        plan: &mut Plan,
        index: &Index,
        lost: &Lost,
        sources: &BTreeSet<ZoneId>,
    ) -> Result<()> {
        let geometry = self.device.geometry();
        let summaries = self.summaries.iter().map(|(at, length)| {
            let end = at.offset + geometry.round_up(u64::from(*length));
            (*at, end)
        });
        let mut taken: Vec<(ZoneAddress, u64)> = index.places().chain(summaries).collect();
        taken.sort_unstable();
        let mut free = 0;
        let rings = BlueFs::superblock_zones(geometry);
        for zone in self.device.report(ZoneId(0), geometry.zone_count)? {
            if zone.kind == ZoneKind::Conventional || rings.contains(&zone.id) {
                continue;
            }
            let end = written(geometry, &zone);
            let from = taken.partition_point(|(at, _)| at.zone < zone.id);
            let here = taken[from..]
                .iter()
                .take_while(|(at, _)| at.zone == zone.id);
            let here: Vec<_> = here.map(|(at, end)| at.offset..*end).collect();
            let is_known = lost.metadata.contains(&zone.id) && !sources.contains(&zone.id);
            let gaps = match here.is_empty() && is_known {
                true => Vec::new(),
                false => gaps(&here, end),
            };
            let bytes: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
            let is_dropped = plan.how.drop_unplaced && !sources.contains(&zone.id);
            if here.is_empty() && (is_dropped || bytes == 0) {
                free += u32::from(zone.write_pointer_valid());
                plan.dropped_bytes += bytes;
                continue;
            }
            plan.kept.insert(zone.id);
            if is_dropped {
                plan.dropped_bytes += bytes;
            } else if bytes > 0 {
                plan.unplaced.push(Unplaced {
                    zone: zone.id,
                    ranges: gaps,
                    object: None,
                });
            }
        }
        // Objects have their zones already.
        let least = |copies| bluefs::zones_for(bluefs::LEAST_ZONES, copies);
        if free < least(plan.copies) {
            plan.copies = 1;
        }
        let needed = least(plan.copies);
        match free < needed && !lost.is_placed() {
            true => Err(Error::NoRoomForMetadata { free, needed }),
            false => Ok(()),
        }
    }
}

/// What lies between, up to `end`.
fn gaps(taken: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let (mut gaps, mut next) = (Vec::new(), 0);
    for taken in taken {
        if taken.start > next {
            gaps.push(next..taken.start.min(end));
        }
        next = next.max(taken.end);
    }
    if next < end {
        gaps.push(next..end);
    }
    gaps.retain(|gap| gap.start < gap.end);
    gaps
}
