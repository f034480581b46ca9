//! Segment summaries against the rows that they copy.

use super::report::FsckReport;
use crate::Result;
use crate::format::onode::Onode;
use crate::format::summary::decode_places;
use crate::format::{extent, key};
use crate::inner::Inner;
use crate::rows::read_extents;
use object::Content;
use runtime::HashSet;
use std::hash::{BuildHasher, Hash};
use zone::ZoneId;

impl Inner {
    /// What the index says of summaries; `deep` reads them, and counts the rows that are in none.
    pub(super) fn check_summaries(&self, deep: bool, report: &mut FsckReport) -> Result<()> {
        let mut zones = Vec::new();
        self.rows_of(key::SUMMARIES, |key, value| {
            match (key::parse_summaries(key), decode_places(value)) {
                (Some(zone), Some(places)) => {
                    report.summaries += places.len() as u64;
                    zones.push(zone);
                }
                _ => report.error("undecodable place of a summary", || {
                    key.escape_ascii().to_string()
                }),
            }
            Ok(())
        })?
        .count_in(report);
        if !deep {
            return Ok(());
        }
        let copied = self.copied_rows(&zones, report)?;
        let is_copied = |key: &[u8], value: &[u8]| copied.contains(&hash(&copied, key, value));
        let others = [key::COLLECTION, key::BLOB, key::EXTENT];
        for namespace in others.into_iter().chain(key::ONODES) {
            let mut without = 0;
            self.rows_of(namespace, |key, value| {
                if !is_copied(key, value) && self.wants_copy(key, value)? {
                    without += 1;
                }
                Ok(())
            })?
            .count_in(report);
            report.rows_without_copy += without;
        }
        Ok(())
    }

    /// Hashes of all rows that summaries have.
    fn copied_rows(&self, zones: &[ZoneId], report: &mut FsckReport) -> Result<HashSet<u64>> {
        let mut copied = HashSet::default();
        for zone in zones {
            let (found, unreadable) = self.summaries_in(&*self.kv()?, *zone)?;
            // No error: a power cut may have cost a summary whose place was durable, and it is but a copy.
            report.summaries_unreadable += unreadable as u64;
            for (key, value) in found.into_iter().flat_map(|summary| summary.rows) {
                if let Some(value) = value {
                    let hash = hash(&copied, &key, &value);
                    copied.insert(hash);
                }
            }
        }
        Ok(copied)
    }

    /// Whether a row says something of data in zones, or of collections.
    fn wants_copy(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        match key.first() {
            Some(&key::EXTENT) => Ok(value.first() != Some(&extent::INLINE)),
            Some(&(key::ONODE | key::HASHED_ONODE)) => {
                let Some(onode) = Onode::decode(value) else {
                    return Ok(false);
                };
                for segment in onode.segments {
                    let rows = read_extents(&*self.kv()?, segment.map, 0, u64::MAX, 1)?;
                    let is_inline = |e: &object::Extent| matches!(e.content, Content::Inline(_));
                    if rows.iter().any(|(_, extent)| !is_inline(extent)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}

fn hash(set: &HashSet<u64>, key: &[u8], value: &[u8]) -> u64 {
    let mut state = set.hasher().build_hasher();
    (key, value).hash(&mut state);
    std::hash::Hasher::finish(&state)
}
