//! Checks all records against each other and against the drive: the file system below, onodes ↔ extents ↔ blobs with
//! their references ↔ cleaning index ↔ freelist ↔ write pointers; if `deep`, also every stored byte against its
//! checksum.

mod bytes;
mod maps;
mod report;
mod summaries;
mod zones;

pub use report::FsckReport;

use crate::Result;
use crate::format::key;
use crate::format::onode::Onode;
use crate::format::record::{CollectionRecord, decode_number};
use crate::format::retired;
use crate::format::scrub::DamageRecord;
use crate::inner::Inner;
use crate::owners::Owners;
use report::{Damaged, MAX_DETAILS};
use runtime::{HashMap, HashSet};

impl Inner {
    /// Checks the store, while commits wait. `progress` is called with bytes done and bytes in all, during the deep
    /// check.
    pub(crate) fn fsck(
        &self,
        deep: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<FsckReport> {
        let _no_changes = self.collection_changes.read();
        let _alone = self.mutators.write();
        let mut report = FsckReport::default();
        self.check_file_system(deep, &mut report)?;
        let owners = self.check_collections(&mut report)?;
        let maps = self.check_onodes(&owners, &mut report)?;
        let mut lies = Vec::new();
        let shown = self.check_extents(&maps, &mut lies, &mut report)?;
        self.check_blobs(&shown, &mut lies, &mut report)?;
        lies.sort_unstable_by_key(|l| l.at);
        self.check_cleaning_index(&lies, &mut report)?;
        self.check_freelist(&lies, &mut report)?;
        self.check_damage(&mut report)?;
        let copied = self.check_summaries(deep, &mut report)?;
        let used = maps.keys().copied().chain(shown.keys().map(|id| id.0));
        self.check_numbers(used.chain([copied]), &mut report)?;
        if deep {
            let total = lies.iter().map(|l| l.padded).sum();
            self.check_bytes(total, &mut report, progress)?;
        }
        Ok(report)
    }

    /// Checks the records of damage and of zones out of use.
    fn check_damage(&self, report: &mut FsckReport) -> Result<()> {
        self.rows_of(key::DAMAGE, |key, value| {
            if key::parse_damage(key).is_none() || DamageRecord::decode(value).is_none() {
                report.error("undecodable damage", || key.escape_ascii().to_string());
            }
            Ok(())
        })?
        .count_in(report);
        let retired = self.kv()?.get(key::SUPER_RETIRED)?;
        if retired.is_some_and(|value| retired::decode(&value).is_none()) {
            report.error("undecodable list of zones out of use", || {
                "Sretired".to_owned()
            });
        }
        Ok(())
    }

    /// Checks that new maps, blobs or summaries cannot get numbers that are in use.
    fn check_numbers(
        &self,
        used: impl Iterator<Item = u64>,
        report: &mut FsckReport,
    ) -> Result<()> {
        let recorded = self.kv()?.get(key::SUPER_NEXT_NUMBER)?;
        let next = recorded.and_then(|value| decode_number(&value));
        let highest = used.max().unwrap_or(0);
        if highest > 0 && next.is_none_or(|next| next <= highest) {
            report.error("number that is in use", || {
                format!("{highest} is, {next:?} is next")
            });
        }
        Ok(())
    }

    /// Checks the file system below.
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

    /// Calls `row` with every row of a namespace, up to the first that the database cannot read. Later rows are not
    /// checked, and the result says why.
    fn rows_of(
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

    fn check_collections(&self, report: &mut FsckReport) -> Result<Owners> {
        let mut owners = Owners::default();
        self.rows_of(key::COLLECTION, |key, value| {
            report.collections += 1;
            match CollectionRecord::decode(value) {
                Some(record) => {
                    let name = key[1..].escape_ascii().to_string();
                    if let Some(other) = owners.add(record.kind, name.clone()) {
                        report.error("collections overlap", || format!("{other} and {name}"));
                    }
                }
                None => report.error("undecodable collection", || key.escape_ascii().to_string()),
            }
            Ok(())
        })?
        .count_in(report);
        Ok(owners)
    }

    /// Checks onodes and omaps. Returns the maps, with the start and end of what their objects show; 0 and 0 if doomed.
    fn check_onodes(
        &self,
        collections: &Owners,
        report: &mut FsckReport,
    ) -> Result<HashMap<u64, (u64, u64)>> {
        let (mut owners, mut omaps) = (HashMap::default(), HashSet::default());
        let mut check = |key: &[u8], value: &[u8], report: &mut FsckReport| {
            report.objects += 1;
            let name = || key[1..].escape_ascii().to_string();
            if collections.of(key).is_none() {
                report.error("object without a collection", name);
            }
            let Some(onode) = Onode::decode(value) else {
                return report.error("undecodable onode", name);
            };
            report.bytes = report.bytes.saturating_add(onode.size());
            if let Some(number) = onode.omap
                && !omaps.insert(number)
            {
                report.error("omap with two owners", name);
            }
            for s in &onode.segments {
                if owners
                    .insert(s.map, (s.start, s.start + s.length))
                    .is_some()
                {
                    report.error("map with two owners", name);
                }
            }
        };
        for namespace in key::ONODES {
            self.rows_of(namespace, |key, value| {
                check(key, value, report);
                Ok(())
            })?
            .count_in(report);
        }
        self.rows_of(key::DOOMED, |key, _| {
            match key::parse_doomed(key) {
                // Its remaining rows are being purged.
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
        self.rows_of(key::OMAP, |key, _| {
            report.omap_keys += 1;
            match key::parse_omap(key) {
                Some((number, _)) if omaps.contains(&number) => {}
                Some((number, _)) if owners.get(&number) == Some(&(0, 0)) => {}
                _ => report.error("omap key without an object", || {
                    key.escape_ascii().to_string()
                }),
            }
            Ok(())
        })?
        .count_in(report);
        Ok(owners)
    }
}
