//! Plans a salvage in place: which rows it writes, which zones it keeps, and which bytes in these no row describes.
//! Only reads the drive.

use super::Salvage;
use super::copy::{MARK, collection_of};
use super::found::FoundObject;
use super::index::{Index, Rows};
use super::lost::Lost;
use super::plan::{Copied, InPlaceOptions, Plan, UNPLACED, Unplaced};
use super::report::SalvageReport;
use super::scan::written;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::format::summary::encode_places;
use crate::mkfs::default_copies;
use crate::numbers::next_number;
use crate::options::MountOptions;
use crate::owners::Owners;
use crate::{Attributes, Error, Result};
use bluefs::BlueFs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// Highest numbers that a summary may have, far above those of any store: some are given to what is made anew.
const MOST_NUMBER: u64 = u64::MAX / 2;
const MOST_COLLECTION: u32 = u32::MAX / 2;

impl Salvage {
    /// Plans a salvage in place. `report` is that of [`Salvage::copy`] without another store. The drive is only read.
    ///
    /// # Errors
    /// [`Error::NoRoomForMetadata`] if the zones that are kept leave too few; [`Error::Invalid`] if a summary has a
    /// number that no store reaches; errors of a drive on which new metadata cannot be made.
    pub fn plan(
        &self,
        lost: &Lost,
        report: &SalvageReport,
        options: &MountOptions,
        how: InPlaceOptions,
    ) -> Result<Plan> {
        let geometry = self.device.geometry();
        let (number, collection) = self.found.highest();
        let mut index = Index::new(next_number(number, MOST_NUMBER)?, geometry.block_size);
        next_number(collection.into(), MOST_COLLECTION.into())?;
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
        // Zones with data of objects that will be copied later.
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
        // In the order of their keys, in which they are copied.
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

    /// Plans the collections that were found, and new ones for objects without one; returns the number of [`UNPLACED`].
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

    /// Zones of all fragments that an object shows.
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
        // Only metadata needs zones: objects have theirs already.
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

/// The gaps between the sorted ranges in `taken`, up to `end`.
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
