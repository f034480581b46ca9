//! Compares everything with everything: the file system below with the drive, onodes ↔ extents ↔
//! cleaning index ↔ freelist ↔ write pointers, and with `deep` every stored byte with its checksum.

use crate::extent_reader::read_extent;
use crate::format::extent::Extent;
use crate::format::key;
use crate::format::onode::Onode;
use crate::format::record::{Place, decode_counters};
use crate::inner::Inner;
use crate::mount::inline_bytes;
use crate::{Error, Result};
use runtime::HashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::Owner;

/// Most errors that are described in words; all are counted.
const MAX_DETAILS: usize = 100;
const MISMATCH: &str = "checksum mismatch";
const UNREADABLE: &str = "unreadable extent";

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FsckReport {
    /// Collections.
    pub collections: u64,
    /// Objects.
    pub objects: u64,
    /// Extents, inline ones included.
    pub extents: u64,
    /// Bytes in objects.
    pub bytes: u64,
    /// Bytes that were read and compared with their checksums (deep check).
    pub bytes_verified: u64,
    /// How many errors of each kind; empty means clean.
    pub errors: BTreeMap<String, u64>,
    /// The first errors in words.
    pub details: Vec<String>,
}

impl FsckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    fn error(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        *self.errors.entry(kind.to_owned()).or_default() += 1;
        if self.details.len() < MAX_DETAILS {
            self.details.push(format!("{kind}: {}", detail()));
        }
    }
}

/// What ended a look at the database early.
#[must_use]
struct Damaged(Option<String>);

impl Damaged {
    fn count_in(self, report: &mut FsckReport) {
        if let Some(what) = self.0 {
            report.error("damaged database", || what);
        }
    }
}

/// One extent in a zone, by where it lies.
struct Lies {
    at: ZoneAddress,
    padded: u64,
    place: Place,
}

impl Inner {
    /// Nothing else changes the store while this runs. `progress` gets bytes done and bytes in
    /// all (of the deep check).
    pub(crate) fn fsck(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<FsckReport> {
        let _no_changes = self.collection_changes.read();
        let _alone = self.mutators.write();
        let mut report = FsckReport::default();
        self.check_file_system(deep, &mut report)?;
        let ids = self.check_collections(&mut report)?;
        let owners = self.check_onodes(&ids, &mut report)?;
        let lies = self.check_extents(&owners, &mut report)?;
        self.check_cleaning_index(&lies, &mut report)?;
        self.check_freelist(&lies, &mut report)?;
        if deep {
            let total = lies.iter().map(|l| l.padded).sum();
            self.check_bytes(total, &ids, &mut report, progress)?;
        }
        Ok(report)
    }

    /// What is wrong with the file system below.
    fn check_file_system(&self, deep: bool, report: &mut FsckReport) -> Result<()> {
        let below = self.fs.check(deep)?;
        for (kind, count) in below.errors {
            *report
                .errors
                .entry(format!("file system: {kind}"))
                .or_default() += count;
        }
        let details = below.details.into_iter().take(MAX_DETAILS);
        let details = details.map(|detail| format!("file system: {detail}"));
        report.details.extend(details);
        Ok(())
    }

    /// Every row of a namespace up to the first that the database cannot give, if there is one;
    /// what is behind that is checked no further, and the answer says why.
    fn rows(
        &self,
        namespace: u8,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<Damaged> {
        let kv = self.kv()?;
        for found in kv.scan(&[namespace], Some(&[namespace + 1])) {
            match found {
                Ok((key, value)) => row(&key, &value)?,
                Err(error @ kv::Error::Corruption { .. }) => {
                    let namespace = char::from(namespace);
                    return Ok(Damaged(Some(format!("records {namespace:?}: {error}"))));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Damaged(None))
    }

    fn check_collections(&self, report: &mut FsckReport) -> Result<BTreeMap<u32, String>> {
        let mut ids = BTreeMap::new();
        self.rows(key::COLLECTION, |key, value| {
            report.collections += 1;
            match crate::format::record::CollectionRecord::decode(value) {
                Some(record) => {
                    let name = key[1..].escape_ascii().to_string();
                    if let Some(other) = ids.insert(record.id, name) {
                        report.error("collection number used twice", || other);
                    }
                }
                None => report.error("undecodable collection", || key.escape_ascii().to_string()),
            }
            Ok(())
        })?
        .count_in(report);
        Ok(ids)
    }

    /// Maps and how much of each must be there: start and end of what its object shows.
    fn check_onodes(
        &self,
        ids: &BTreeMap<u32, String>,
        report: &mut FsckReport,
    ) -> Result<HashMap<u64, (u64, u64)>> {
        let mut owners = HashMap::default();
        self.rows(key::ONODE, |key, value| {
            report.objects += 1;
            let name = || key[1..].escape_ascii().to_string();
            let id = key::parse_onode(key).map(|(id, _)| id);
            if id.is_none_or(|id| !ids.contains_key(&id)) {
                report.error("object without a collection", name);
            }
            let Some(onode) = Onode::decode(value) else {
                report.error("undecodable onode", name);
                return Ok(());
            };
            report.bytes += onode.size();
            for s in &onode.segments {
                if owners
                    .insert(s.map, (s.start, s.start + s.length))
                    .is_some()
                {
                    report.error("map with two owners", name);
                }
            }
            Ok(())
        })?
        .count_in(report);
        self.rows(key::DOOMED, |key, _| {
            match key::parse_doomed(key) {
                // Whatever is still there is on its way out.
                Some(map) => {
                    if owners.insert(map, (0, 0)).is_some() {
                        report.error("doomed map with an owner", || map.to_string());
                    }
                }
                None => report.error("undecodable record", || key.escape_ascii().to_string()),
            }
            Ok(())
        })?
        .count_in(report);
        Ok(owners)
    }

    fn check_extents(
        &self,
        owners: &HashMap<u64, (u64, u64)>,
        report: &mut FsckReport,
    ) -> Result<Vec<Lies>> {
        let block = self.device.geometry().block_size;
        let mut lies = Vec::new();
        let mut inline = 0;
        let mut reached: HashMap<u64, u64> = HashMap::default();
        self.rows(key::EXTENT, |key, value| {
            report.extents += 1;
            let name = || key.escape_ascii().to_string();
            let (Some((map, offset)), Some(extent)) =
                (key::parse_extent(key), Extent::decode(value))
            else {
                report.error("undecodable extent", name);
                return Ok(());
            };
            match &extent {
                Extent::Inline(bytes) => inline += bytes.len() as u64,
                Extent::InZone(e) => lies.push(Lies {
                    at: e.at,
                    padded: e.padded(block),
                    place: Place { map, offset },
                }),
            }
            match owners.get(&map) {
                None => report.error("extent without an object", name),
                Some((_, 0)) => {}
                Some((start, end)) => {
                    let next = reached.entry(map).or_insert(*start);
                    if offset > *next {
                        report.error("hole in an object", name);
                    } else if offset < *next {
                        report.error("extents overlap in an object", name);
                    }
                    *next = offset + extent.length();
                    if *next > *end {
                        report.error("extent behind the end of an object", name);
                    }
                }
            }
            Ok(())
        })?
        .count_in(report);
        let recorded = inline_bytes(&*self.kv()?)?;
        if recorded != inline || self.freelist.totals().inline != inline {
            let memory = self.freelist.totals().inline;
            report.error("inline bytes counted wrong", || {
                format!("{recorded} recorded, {memory} in memory, {inline} in extents")
            });
        }
        for (map, (start, end)) in owners {
            if *end > *start && reached.get(map).copied().unwrap_or(*start) < *end {
                report.error("end of an object is missing", || format!("map {map}"));
            }
        }
        lies.sort_unstable_by_key(|l| l.at);
        for pair in lies.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            if a.at.zone == b.at.zone && a.at.offset + a.padded > b.at.offset {
                report.error("extents overlap in a zone", || b.at.to_string());
            }
        }
        Ok(lies)
    }

    fn check_cleaning_index(&self, lies: &[Lies], report: &mut FsckReport) -> Result<()> {
        let mut rest = lies.iter().peekable();
        self.rows(key::CLEANING, |key, value| {
            let (Some(at), Some(place)) = (key::parse_cleaning(key), Place::decode(value)) else {
                report.error("undecodable cleaning entry", || {
                    key.escape_ascii().to_string()
                });
                return Ok(());
            };
            while let Some(missed) = rest.next_if(|l| l.at < at) {
                report.error("extent not in the cleaning index", || missed.at.to_string());
            }
            match rest.next_if(|l| l.at == at) {
                None => report.error("cleaning entry without an extent", || at.to_string()),
                Some(l) if l.place != place => {
                    report.error("cleaning entry of another object", || at.to_string());
                }
                Some(_) => {}
            }
            Ok(())
        })?
        .count_in(report);
        for missed in rest {
            report.error("extent not in the cleaning index", || missed.at.to_string());
        }
        Ok(())
    }

    fn check_freelist(&self, lies: &[Lies], report: &mut FsckReport) -> Result<()> {
        let geometry = self.device.geometry();
        let mut live: BTreeMap<ZoneId, (u64, u64)> = BTreeMap::new();
        for l in lies {
            let (bytes, end) = live.entry(l.at.zone).or_default();
            *bytes += l.padded;
            *end = (*end).max(l.at.offset + l.padded);
        }
        let mut recorded: BTreeMap<ZoneId, i64> = BTreeMap::new();
        self.rows(key::FREELIST, |key, value| {
            match (key::parse_freelist(key), decode_counters(value)) {
                (Some(zone), Some((written, dead))) => {
                    if written < 0 || dead < 0 || dead > written {
                        report.error("freelist counters make no sense", || {
                            format!("zone {zone}: {written} written, {dead} dead")
                        });
                    }
                    recorded.insert(zone, written.saturating_sub(dead));
                }
                _ => report.error("undecodable freelist entry", || {
                    key.escape_ascii().to_string()
                }),
            }
            Ok(())
        })?
        .count_in(report);
        for (zone, recorded) in &recorded {
            let found = live.get(zone).map_or(0, |(bytes, _)| *bytes);
            if *recorded != found.cast_signed() {
                report.error("freelist counts other live bytes", || {
                    format!("zone {zone}: {recorded} recorded, {found} in extents")
                });
            }
        }
        for (zone, (bytes, end)) in &live {
            if !recorded.contains_key(zone) {
                report.error("zone with extents not in the freelist", || zone.to_string());
            }
            if zone.0 >= geometry.zone_count {
                report.error("extent behind the end of the drive", || zone.to_string());
                continue;
            }
            let drive = self.device.report_zone(*zone)?;
            if drive.write_pointer_valid() && drive.write_pointer < *end {
                report.error("extent above the write pointer", || {
                    format!("zone {zone}: {end} > {}", drive.write_pointer)
                });
            }
            if self.pool.owner(*zone) != Some(Owner::Store) {
                report.error("zone with extents not owned by the store", || {
                    zone.to_string()
                });
            }
            if self.freelist.zone(*zone).1 != *bytes {
                report.error("freelist in memory differs", || {
                    format!(
                        "zone {zone}: {} in memory, {bytes} in extents",
                        self.freelist.zone(*zone).1
                    )
                });
            }
        }
        Ok(())
    }

    fn check_bytes(
        &self,
        total: u64,
        ids: &BTreeMap<u32, String>,
        report: &mut FsckReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut buffer = Vec::new();
        let mut damaged: Vec<(u64, String)> = Vec::new();
        self.rows(key::EXTENT, |key, value| {
            let Some(extent) = Extent::decode(value) else {
                return Ok(());
            };
            buffer.resize(extent.length() as usize, 0);
            let (kind, error) = match read_extent(&*self.device, &extent, 0, &mut buffer) {
                Ok(()) => {
                    report.bytes_verified += extent.length();
                    progress(report.bytes_verified, total);
                    return Ok(());
                }
                Err(error @ Error::ChecksumMismatch { .. }) => (MISMATCH, error),
                Err(error) => (UNREADABLE, error),
            };
            *report.errors.entry(kind.to_owned()).or_default() += 1;
            if damaged.len() < MAX_DETAILS {
                let map = key::parse_extent(key).map_or(0, |(map, _)| map);
                damaged.push((map, format!("{kind}: {}", without_object(&error))));
            }
            Ok(())
        })?
        .count_in(report);
        self.name_damaged(damaged, ids, report)
    }

    /// Puts the damaged extents' objects into words: one pass over the objects, and none without
    /// damage.
    fn name_damaged(
        &self,
        damaged: Vec<(u64, String)>,
        ids: &BTreeMap<u32, String>,
        report: &mut FsckReport,
    ) -> Result<()> {
        let mut names: BTreeMap<u64, Option<String>> =
            damaged.iter().map(|(map, _)| (*map, None)).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.rows(key::ONODE, |key, value| {
            let (Some((id, object)), Some(onode)) = (key::parse_onode(key), Onode::decode(value))
            else {
                return Ok(());
            };
            for segment in &onode.segments {
                if let Some(name) = names.get_mut(&segment.map) {
                    let collection = ids.get(&id).map_or("?", String::as_str);
                    *name = Some(format!("{collection}/{object}"));
                }
            }
            Ok(())
        })?
        .count_in(report);
        for (map, error) in damaged {
            let name = names
                .get(&map)
                .and_then(Option::as_deref)
                .unwrap_or("removed object");
            if report.details.len() < MAX_DETAILS {
                report.details.push(format!("{name}: {error}"));
            }
        }
        Ok(())
    }
}

/// The error without the name of the object, which is not known where it was found.
fn without_object(error: &Error) -> String {
    match error {
        Error::ChecksumMismatch {
            offset,
            at,
            expected,
            found,
            ..
        } => format!("byte {offset} ({at}): {found:#010x}, expected {expected:#010x}"),
        other => other.to_string(),
    }
}
