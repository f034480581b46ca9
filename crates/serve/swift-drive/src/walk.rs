//! Lists policies, partitions, suffixes and objects.

use crate::address::{Address, ObjectHash, Suffix, parse_file, parse_suffix};
use crate::drive::{SwiftDrive, behind, foreign};
use crate::error::{Error, Result};
use crate::record::PolicyKind;
use std::collections::BTreeMap;
use store::{Attributes, Name};
use swift_files::FileName;

/// Suffixes listed at a time. A partition has 4,096 at most.
const PAGE: usize = 1024;

/// Names listed at a time.
const FILES: usize = 256;

impl SwiftDrive {
    /// All policies with collections in the store, in order.
    ///
    /// # Errors
    /// Also if a policy is of a later version.
    pub fn policies(&self) -> Result<Vec<(u32, PolicyKind)>> {
        let mut found = Vec::new();
        for collection in self.store.collections()? {
            if let Some(policy) = Address::policy_of(&collection.name) {
                found.push((policy, self.kind(policy)?));
            }
        }
        found.sort_unstable_by_key(|(policy, _)| *policy);
        Ok(found)
    }

    /// At most `limit` quarantined objects, each with its files, in order.
    pub fn quarantined(&self, policy: u32, limit: usize) -> Result<Vec<(Address, Vec<FileName>)>> {
        let collection = Address::quarantined(policy);
        self.kind(policy)?;
        if self.store.collection(&collection)?.is_none() {
            return Ok(Vec::new());
        }
        let mut found: Vec<(Address, Vec<FileName>)> = Vec::new();
        let mut from = Vec::new();
        loop {
            let page = self.store.list_damaged(&collection, "", &from, FILES);
            let page = self.listed(policy, page)?;
            for (name, _) in &page {
                let parsed = name.text().and_then(|text| {
                    let partition = text.split('/').next()?.parse().ok()?;
                    let (hash, file) = parse_file(text)?;
                    Some((
                        Address {
                            policy,
                            partition,
                            hash,
                        },
                        file,
                    ))
                });
                let (address, file) = parsed.ok_or_else(|| foreign(&collection, name))?;
                let count = found.len();
                match found.last_mut() {
                    Some((last, files)) if *last == address => files.push(file),
                    _ if count == limit => return Ok(found),
                    _ => found.push((address, vec![file])),
                }
            }
            match page.last().filter(|_| page.len() == FILES) {
                Some((last, _)) => from = behind(last.as_ref()),
                None => return Ok(found),
            }
        }
    }

    /// At most `limit` partitions with a suffix, from `from` on, in order.
    pub fn partitions(&self, policy: u32, from: u32, limit: usize) -> Result<Vec<u32>> {
        let collection = Address::suffixes(policy);
        let mut found = Vec::new();
        let mut from = Some(from);
        while let Some(first) = from.filter(|_| found.len() < limit) {
            let from_name = format!("{first:010}/");
            let (name, _) = self.first_from(policy, &collection, from_name.as_bytes())?;
            let Some(name) = name else {
                break;
            };
            let parsed = name.text().and_then(parse_suffix);
            let (partition, _) = parsed.ok_or_else(|| foreign(&collection, &name))?;
            found.push(partition);
            from = partition.checked_add(1);
        }
        Ok(found)
    }

    /// The first name from `from` on in a collection of the policy, and whether rows of the database were passed over
    /// because they cannot be read: those behind them are whole.
    pub(crate) fn first_from(
        &self,
        policy: u32,
        collection: &str,
        from: &[u8],
    ) -> Result<(Option<Name>, bool)> {
        let error = match self.store.list_damaged(collection, "", from, 1) {
            Ok(mut page) => return Ok((page.pop().map(|(name, _)| name), false)),
            Err(error) => error,
        };
        match self.store.after_damage(collection, "", from) {
            Ok(next) => {
                tracing::error!(%error, collection, "names that cannot be read are passed over");
                Ok((next, true))
            }
            Err(_) => self.listed(policy, Err(error)),
        }
    }

    /// The suffixes of a partition, in order.
    pub fn suffixes(&self, policy: u32, partition: u32) -> Result<Vec<Suffix>> {
        let found = self.suffixes_with(policy, partition)?;
        Ok(found.into_iter().map(|(suffix, _)| suffix).collect())
    }

    /// The suffixes of a partition with their attributes, or why these cannot be read, in order.
    pub(crate) fn suffixes_with(
        &self,
        policy: u32,
        partition: u32,
    ) -> Result<Vec<(Suffix, Result<Attributes>)>> {
        let collection = Address::suffixes(policy);
        let prefix = format!("{partition:010}/");
        let mut from = prefix.as_bytes().to_vec();
        let mut found = Vec::new();
        loop {
            let page = self.store.list_damaged(&collection, &prefix, &from, PAGE);
            let page = self.listed(policy, page)?;
            let (count, last) = (
                page.len(),
                page.last().map(|(name, _)| behind(name.as_ref())),
            );
            for (name, info) in page {
                let parsed = name.text().and_then(parse_suffix);
                let (_, suffix) = parsed.ok_or_else(|| foreign(&collection, &name))?;
                let attributes = info.map(|info| info.attributes);
                found.push((suffix, attributes.map_err(Error::from)));
            }
            match last.filter(|_| count == PAGE) {
                Some(last) => from = last,
                None => return Ok(found),
            }
        }
    }

    /// The objects of a suffix, each with its files.
    pub fn objects(
        &self,
        policy: u32,
        partition: u32,
        suffix: Suffix,
    ) -> Result<BTreeMap<ObjectHash, Vec<FileName>>> {
        let mut objects: BTreeMap<_, Vec<FileName>> = BTreeMap::new();
        self.each_file(
            policy,
            &Address::suffix_folder(partition, suffix),
            |hash, file| {
                objects.entry(hash).or_default().push(file);
            },
        )?;
        Ok(objects)
    }
}
