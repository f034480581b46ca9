//! Every stored byte against its checksum.

use super::maps::AllShown;
use super::report::{FsckReport, MAX_DETAILS};
use crate::Result;
use crate::blob_reader::{fragment_range, read_part};
use crate::format::onode::Onode;
use crate::format::{blob, extent, key};
use crate::inner::Inner;
use crate::owners::Owners;
use object::{Blob, Content};
use std::collections::BTreeMap;

const MISMATCH: &str = "checksum mismatch";
const UNREADABLE: &str = "unreadable extent";

/// A check of all bytes while it runs.
struct Reading<'a> {
    store: &'a Inner,
    /// Bytes in all, for `progress`.
    total: u64,
    report: &'a mut FsckReport,
    progress: &'a mut dyn FnMut(u64, u64),
    /// A map of the object that is damaged, and how.
    damaged: Vec<(u64, String)>,
}

impl Reading<'_> {
    fn verified(&mut self, bytes: usize) {
        self.report.bytes_verified += bytes as u64;
        (self.progress)(self.report.bytes_verified, self.total);
    }

    fn read(&mut self, blob: &Blob, map: u64) {
        for index in 0..blob.fragments.len() {
            if blob.fragments[index].at.is_none() {
                continue;
            }
            let failed = match read_part(&*self.store.device, blob, fragment_range(blob, index)) {
                Ok(bytes) => {
                    self.verified(bytes.len());
                    continue;
                }
                Err(failed) => failed,
            };
            let kind = if failed.is_mismatch() {
                MISMATCH
            } else {
                UNREADABLE
            };
            *self.report.errors.entry(kind.to_owned()).or_default() += 1;
            if self.damaged.len() < MAX_DETAILS {
                let words = format!("{kind}: {failed}");
                self.damaged.push((map, words));
            }
            return;
        }
    }
}

impl Inner {
    pub(super) fn check_bytes(
        &self,
        total: u64,
        shown: &AllShown,
        owners: &Owners,
        report: &mut FsckReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut reading = Reading {
            store: self,
            total,
            report,
            progress,
            damaged: Vec::new(),
        };
        let own = self.rows_of(key::EXTENT, |key, value| {
            match extent::decode(value).map(|extent| extent.content) {
                Some(Content::Own { blob, .. }) => {
                    reading.read(&blob, key::parse_extent(key).map_or(0, |(map, _)| map));
                }
                Some(Content::Inline(bytes)) => reading.verified(bytes.len()),
                _ => {}
            }
            Ok(())
        })?;
        let shared = self.rows_of(key::BLOB, |key, value| {
            if let (Some(id), Some(shared)) = (key::parse_blob(key), blob::decode_shared(value)) {
                reading.read(&shared.blob, shown.get(&id).map_or(0, |shown| shown.map));
            }
            Ok(())
        })?;
        let damaged = reading.damaged;
        own.count_in(report);
        shared.count_in(report);
        self.name_damaged(damaged, owners, report)
    }

    /// Puts the damaged extents' objects into words: one pass over the objects, and none without
    /// damage.
    fn name_damaged(
        &self,
        damaged: Vec<(u64, String)>,
        owners: &Owners,
        report: &mut FsckReport,
    ) -> Result<()> {
        let mut names: BTreeMap<u64, Option<String>> =
            damaged.iter().map(|(map, _)| (*map, None)).collect();
        if names.is_empty() {
            return Ok(());
        }
        for namespace in key::ONODES {
            self.rows_of(namespace, |key, value| {
                for segment in Onode::decode(value).into_iter().flat_map(|o| o.segments) {
                    if let Some(name) = names.get_mut(&segment.map) {
                        *name = Some(owners.words(key));
                    }
                }
                Ok(())
            })?
            .count_in(report);
        }
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
