//! What a salvage in place is going to do: which rows it writes, which zones stay as they are, and which bytes in them
//! nothing describes. Nothing is written here.

use super::Salvage;
use super::copy::{MARK, collection_of};
use super::found::FoundObject;
use super::index::Index;
use super::lost::Lost;
use super::report::SalvageReport;
use super::scan::written;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::format::summary::encode_places;
use crate::mkfs::default_copies;
use crate::owners::Owners;
use crate::{Attributes, Error, Result};
use bluefs::BlueFs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{Bytes, ZoneAddress, ZoneId, ZoneKind, count};

/// Where bytes go that nothing describes.
pub(super) const UNPLACED: &str = "salvaged-unplaced";

/// What is going to be done.
pub struct Plan {
    pub(super) index: Index,
    /// Zones that stay as they are.
    pub(super) kept: BTreeSet<ZoneId>,
    /// Written there, and described by nothing.
    pub(super) unplaced: Vec<(ZoneId, Vec<Range<u64>>)>,
    /// The number of the collection that these go to, and its row.
    pub(super) unplaced_collection: u32,
    pub(super) next_collection: u32,
    pub(super) copies: u32,
    /// Objects that stay where they are.
    pub placed: u64,
    /// Whole objects that share places with others in ways that no row can say, or have no collection: they are copied.
    pub copied: u64,
    /// Bytes that go to objects of their own.
    pub unplaced_bytes: u64,
    /// Bytes that nothing describes, and that go.
    pub dropped_bytes: u64,
}

impl Plan {
    /// In words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("stay in place: {}", count(self.placed, "object"))];
        if self.copied > 0 {
            let copied = count(self.copied, "object");
            lines.push(format!("copied within the drive: {copied}"));
        }
        let zones = self.unplaced.iter().filter(|(_, gaps)| !gaps.is_empty());
        if self.unplaced_bytes > 0 {
            lines.push(format!(
                "kept: {} in {} that nothing describes (what was replaced or removed, old metadata, or objects in no \
                 summary), as objects of the collection {UNPLACED}, one for each zone",
                Bytes(self.unplaced_bytes),
                count(zones.count() as u64, "zone"),
            ));
        }
        if self.dropped_bytes > 0 {
            lines.push(format!(
                "given up: {} that nothing describes (what was replaced or removed, old metadata, or objects in no \
                 summary)",
                Bytes(self.dropped_bytes)
            ));
        }
        lines
    }
}

impl Salvage {
    /// Plans a salvage in place. `report` is that of [`Salvage::copy`] without another store; with `drop_unplaced`, bytes
    /// that nothing describes are not kept.
    ///
    /// # Errors
    /// [`Error::NoRoomForMetadata`] if what is to be kept leaves too few zones.
    pub fn plan(&self, lost: &Lost, report: &SalvageReport, drop_unplaced: bool) -> Result<Plan> {
        let geometry = self.device.geometry();
        let (number, collection) = self.found.highest();
        let mut index = Index::new(number + 1, geometry.block_size);
        let (owners, unplaced_collection) = self.plan_collections(&mut index, collection + 1);
        let mut objects: Vec<FoundObject<'_>> = self.found.objects().collect();
        objects.sort_by_key(|object| Reverse(object.sequence));
        let (mut placed, mut copied) = (0, 0);
        // What is copied later lies there.
        let mut sources = BTreeSet::new();
        for object in &objects {
            let is_whole = report.whole.contains(object.key);
            if is_whole && owners.of(object.key).is_some() && index.add(&self.found, object) {
                placed += 1;
                continue;
            }
            copied += u64::from(is_whole);
            sources.extend(self.zones_of(object));
        }
        let mut plan = Plan {
            index,
            kept: BTreeSet::new(),
            unplaced: Vec::new(),
            unplaced_collection,
            next_collection: unplaced_collection.max(collection) + 1,
            copies: lost.copies.unwrap_or_else(|| default_copies(geometry)),
            placed,
            copied,
            unplaced_bytes: 0,
            dropped_bytes: 0,
        };
        self.plan_summaries(&mut plan);
        self.plan_zones(&mut plan, lost, &sources, drop_unplaced)?;
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

    fn plan_summaries(&self, plan: &mut Plan) {
        let block = u64::from(self.device.geometry().block_size);
        let mut places: BTreeMap<ZoneId, Vec<(u32, u32)>> = BTreeMap::new();
        for (at, length) in &self.summaries {
            let begins = (at.offset / block) as u32;
            places.entry(at.zone).or_default().push((begins, *length));
        }
        for (zone, places) in places {
            plan.index.put(key::summaries(zone), encode_places(&places));
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
        lost: &Lost,
        sources: &BTreeSet<ZoneId>,
        drop_unplaced: bool,
    ) -> Result<()> {
        let geometry = self.device.geometry();
        let summaries = self.summaries.iter().map(|(at, length)| {
            let end = at.offset + geometry.round_up(u64::from(*length));
            (*at, end)
        });
        let mut taken: Vec<(ZoneAddress, u64)> = plan.index.places().chain(summaries).collect();
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
            let is_dropped = drop_unplaced && !sources.contains(&zone.id);
            if here.is_empty() && (is_dropped || bytes == 0) {
                free += u32::from(zone.write_pointer_valid());
                plan.dropped_bytes += bytes;
                continue;
            }
            plan.kept.insert(zone.id);
            if is_dropped {
                plan.dropped_bytes += bytes;
            } else if bytes > 0 {
                plan.unplaced_bytes += bytes;
                plan.unplaced.push((zone.id, gaps));
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
