//! Repair of what is derived from extents and blobs: references, the cleaning index, the freelist and the counters.

use super::Repair;
use super::names::Names;
use crate::Result;
use crate::format::record::{
    decode_counters, decode_name, decode_number, encode_counters, encode_name,
};
use crate::format::scrub::DamageRecord;
use crate::format::summary::{self, decode_places};
use crate::format::{blob, extent, key, retired};
use crate::salvage::highest_in;
use object::{Blob, BlobId, BlobName, Content, References};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// What extents show of a shared blob.
#[derive(Default)]
struct Shown {
    references: References,
    map: u64,
    by_several: bool,
}

/// Places of all fragments with their blobs, and bytes in inline extents.
#[derive(Default)]
pub(super) struct Placed {
    fragments: Vec<(ZoneAddress, u64, BlobName)>,
    inline: u64,
}

impl Placed {
    fn add(&mut self, blob: &Blob, name: BlobName, block_size: u32) {
        let there = blob.fragments.iter();
        let there = there.filter_map(|f| Some((f.at?, f.padded(block_size), name)));
        self.fragments.extend(there);
    }
}

impl Repair<'_> {
    /// Plans references of shared blobs so that they match the extents; returns the places of all fragments.
    pub(super) fn plan_references(&mut self) -> Result<Placed> {
        let block = self.opened.device.geometry().block_size;
        let mut shown: BTreeMap<BlobId, Shown> = BTreeMap::new();
        let mut placed = Placed::default();
        self.rows(key::EXTENT, |key, value| {
            let (Some((map, end)), Some(extent)) = (key::parse_extent(key), extent::decode(value))
            else {
                return Ok(());
            };
            match &extent.content {
                Content::Own { blob, .. } => {
                    placed.add(blob, BlobName::Own { map, end }, block);
                }
                Content::Shared { blob, skip } => {
                    let shown = shown.entry(*blob).or_default();
                    shown.by_several |= shown.map != 0 && shown.map != map;
                    shown.map = map;
                    shown.references.add(*skip..skip + extent.length as u32);
                }
                Content::Inline(bytes) => placed.inline += bytes.len() as u64,
                Content::Hole => {}
            }
            Ok(())
        })?;
        let mut wrong = Vec::new();
        self.rows(key::BLOB, |key, value| {
            let (Some(id), Some(mut shared)) = (key::parse_blob(key), blob::decode_shared(value))
            else {
                return Ok(());
            };
            let Some(found) = shown.get(&id) else {
                wrong.push((key.to_vec(), None, "blob that no extent shows"));
                return Ok(());
            };
            let is_others = |map| found.by_several || map != found.map;
            let what = match found.references == shared.references {
                false => Some("blob with other references than extents"),
                true if shared.map.is_some_and(is_others) => Some("blob of another map"),
                true => None,
            };
            if let Some(what) = what {
                shared.references = found.references.clone();
                shared.blob.release(&shared.references, block);
                shared.map = shared.map.filter(|map| !is_others(*map));
                wrong.push((key.to_vec(), Some(blob::encode_shared(&shared)), what));
            }
            placed.add(&shared.blob, BlobName::Shared(id), block);
            Ok(())
        })?;
        for (key, value, what) in wrong {
            match value {
                None => self.drop_row(&key, what),
                Some(value) => self.write_row(&key, &value, what),
            }
        }
        placed.fragments.sort_unstable_by_key(|(at, ..)| *at);
        Ok(placed)
    }

    pub(super) fn plan_index(&mut self, placed: &Placed) -> Result<()> {
        let mut rest = placed.fragments.iter().peekable();
        let mut wrong = Vec::new();
        self.rows(key::CLEANING, |key, value| {
            let at = key::parse_cleaning(key);
            let Some(at) = at else {
                wrong.push((key.to_vec(), None, "undecodable cleaning entry"));
                return Ok(());
            };
            while let Some((at, _, name)) = rest.next_if(|(next, ..)| *next < at) {
                wrong.push((
                    key::cleaning(*at),
                    Some(*name),
                    "extent not in the cleaning index",
                ));
            }
            match rest.next_if(|(next, ..)| *next == at) {
                None => wrong.push((key.to_vec(), None, "cleaning entry without an extent")),
                Some((_, _, name)) if decode_name(value) != Some(*name) => {
                    wrong.push((
                        key.to_vec(),
                        Some(*name),
                        "cleaning entry of another object",
                    ));
                }
                Some(_) => {}
            }
            Ok(())
        })?;
        let missed = rest.map(|(at, _, name)| {
            (
                key::cleaning(*at),
                Some(*name),
                "extent not in the cleaning index",
            )
        });
        wrong.extend(missed);
        for (key, name, what) in wrong {
            match name {
                None => self.drop_row(&key, what),
                Some(name) => self.write_row(&key, &encode_name(name), what),
            }
        }
        self.plan_freelist(placed)?;
        let inline = placed.inline.to_le_bytes();
        let recorded = self.opened.kv.get(key::SUPER_INLINE)?;
        if recorded.as_deref().and_then(decode_number).unwrap_or(0) != placed.inline {
            self.write_row(key::SUPER_INLINE, &inline, "inline bytes counted wrong");
        }
        Ok(())
    }

    fn plan_freelist(&mut self, placed: &Placed) -> Result<()> {
        let mut live: BTreeMap<ZoneId, (i64, i64)> = BTreeMap::new();
        for (at, padded, _) in &placed.fragments {
            let (bytes, end) = live.entry(at.zone).or_default();
            *bytes += padded.cast_signed();
            *end = (*end).max(at.offset.saturating_add(*padded).cast_signed());
        }
        for (key, value) in self.all(key::FREELIST)? {
            let zone = key::parse_freelist(&key);
            let zone = zone.filter(|zone| zone.0 < self.opened.device.geometry().zone_count);
            let Some(zone) = zone else {
                self.drop_row(&key, "undecodable freelist entry");
                continue;
            };
            let (bytes, end) = live.remove(&zone).unwrap_or_default();
            let counters = decode_counters(&value);
            let sane = counters.filter(|(written, dead)| *dead >= 0 && dead <= written);
            if sane.map(|(written, dead)| written - dead) == Some(bytes) {
                continue;
            }
            // For a conventional zone, nothing else records how far it is written.
            let written = sane.map_or(0, |(written, _)| written).max(end).max(bytes);
            let counters = encode_counters(written, written - bytes);
            let what = match sane {
                Some(_) => "freelist counts other live bytes",
                None => "freelist counters make no sense",
            };
            self.write_row(&key, &counters, what);
        }
        for (zone, (bytes, end)) in live {
            let written = end.max(bytes);
            let counters = encode_counters(written, written - bytes);
            self.write_row(
                &key::freelist(zone),
                &counters,
                "zone with extents not in the freelist",
            );
        }
        let retired = self.opened.kv.get(key::SUPER_RETIRED)?;
        if retired.is_some_and(|value| retired::decode(&value).is_none()) {
            self.drop_row(key::SUPER_RETIRED, "undecodable list of zones out of use");
        }
        for (key, value) in self.all(key::DAMAGE)? {
            if key::parse_damage(&key).is_none() || DamageRecord::decode(&value).is_none() {
                self.drop_row(&key, "undecodable damage");
            }
        }
        for (key, value) in self.all(key::SUMMARIES)? {
            let zone = key::parse_summaries(&key);
            let is_there =
                zone.is_some_and(|zone| zone.0 < self.opened.device.geometry().zone_count);
            if !is_there || decode_places(&value).is_none() {
                self.drop_row(&key, "undecodable place of a summary");
            }
        }
        Ok(())
    }

    /// Raises the next numbers above those in use, so that no number is used twice.
    pub(super) fn plan_numbers(&mut self, names: &Names) -> Result<()> {
        let (number, collection) = self.highest_in_summaries()?;
        let collection = collection.max(names.highest_collection);
        let next = [
            (key::SUPER_NEXT_NUMBER, number.max(names.highest)),
            (key::SUPER_NEXT_COLLECTION, collection.into()),
        ];
        for (key, highest) in next {
            let recorded = self.opened.kv.get(key)?;
            // Without the record, numbering starts at 1.
            let is_right = match &recorded {
                None => highest == 0,
                Some(value) => decode_number(value).is_some_and(|next| next > highest),
            };
            if !is_right {
                let next = highest.saturating_add(1).to_le_bytes();
                self.write_row(key, &next, "number that is in use");
            }
        }
        Ok(())
    }

    /// The highest numbers in readable summaries, whose rows would otherwise count as newer than those of later ones.
    fn highest_in_summaries(&self) -> Result<(u64, u32)> {
        let geometry = self.opened.device.geometry();
        let block = u64::from(geometry.block_size);
        let (mut number, mut collection) = (0, 0);
        self.rows(key::SUMMARIES, |key, value| {
            let zone = key::parse_summaries(key).filter(|zone| zone.0 < geometry.zone_count);
            let (Some(zone), Some(places)) = (zone, decode_places(value)) else {
                return Ok(());
            };
            for (begins, bytes) in places {
                let at = ZoneAddress::new(zone, u64::from(begins) * block);
                let mut buffer = vec![0; geometry.round_up(bytes.into()) as usize];
                if at.offset + buffer.len() as u64 > geometry.capacity(zone) {
                    continue;
                }
                let read = self.opened.device.read(geometry.absolute(at), &mut buffer);
                if let Err(error @ ZoneError::PowerLost { .. }) = read {
                    return Err(error.into());
                }
                if let Some(summary) = summary::decode(&buffer, self.opened.record.uuid) {
                    let (highest, of_collections) = highest_in(summary);
                    number = number.max(highest);
                    collection = collection.max(of_collections);
                }
            }
            Ok(())
        })?;
        Ok((number, collection))
    }

    fn write_row(&mut self, key: &[u8], value: &[u8], what: &str) {
        self.changes.put(key, value);
        self.report.repaired(what);
    }
}
