//! Checks extents against the objects that they belong to, and shared blobs against the extents that show them.

use super::report::FsckReport;
use super::zones::Lies;
use crate::Result;
use crate::format::{blob, key};
use crate::inner::Inner;
use crate::mount::inline_bytes;
use crate::rows::decode_extent;
use object::{Blob, BlobId, BlobName, Content, References};
use runtime::HashMap;
use std::collections::BTreeMap;

/// What extents show of a shared blob.
#[derive(Default)]
pub(super) struct Shown {
    pub references: References,
    /// The last map found that shows it, for messages.
    pub map: u64,
    by_several: bool,
}

/// Extents of a map that is to be purged.
#[derive(Default)]
struct Doomed {
    /// Bytes in those that can be decoded, without holes.
    bytes: u64,
    /// Whether one of them cannot be decoded, so that the purge fails.
    is_damaged: bool,
}

/// What extents show, by shared blob.
pub(super) type AllShown = BTreeMap<BlobId, Shown>;

impl Inner {
    pub(super) fn check_extents(
        &self,
        owners: &HashMap<u64, (u64, u64)>,
        lies: &mut Vec<Lies>,
        report: &mut FsckReport,
    ) -> Result<AllShown> {
        let mut shown = AllShown::new();
        let mut inline = 0;
        let mut reached: HashMap<u64, u64> = HashMap::default();
        let mut doomed: BTreeMap<u64, Doomed> = BTreeMap::new();
        let is_doomed = |map: u64| matches!(owners.get(&map), Some((_, 0)));
        self.rows_of(key::EXTENT, |key, value| {
            report.extents += 1;
            let name = || key.escape_ascii().to_string();
            let Ok((map, start, extent)) = decode_extent(key, value) else {
                report.error("undecodable extent", name);
                if let Some((map, _)) = key::parse_extent(key).filter(|(map, _)| is_doomed(*map)) {
                    doomed.entry(map).or_default().is_damaged = true;
                }
                return Ok(());
            };
            let end = start + extent.length;
            match &extent.content {
                Content::Hole => {}
                Content::Inline(bytes) => inline += bytes.len() as u64,
                Content::Own { blob, .. } => self.lay(blob, BlobName::Own { map, end }, lies),
                Content::Shared { blob, skip } => {
                    let shown = shown.entry(*blob).or_default();
                    shown.by_several |= shown.map != 0 && shown.map != map;
                    shown.map = map;
                    shown.references.add(*skip..skip + extent.length as u32);
                }
            }
            match owners.get(&map) {
                None => report.error("extent without an object", name),
                Some((_, 0)) => {
                    if extent.content != Content::Hole {
                        doomed.entry(map).or_default().bytes += extent.length;
                    }
                }
                Some((first, last)) => {
                    let next = reached.entry(map).or_insert(*first);
                    if start > *next {
                        report.error("hole in an object", name);
                    } else if start < *next {
                        report.error("extents overlap in an object", name);
                    }
                    *next = end;
                    if end > *last {
                        report.error("extent behind the end of an object", name);
                    }
                }
            }
            Ok(())
        })?
        .count_in(report);
        for (map, Doomed { bytes, .. }) in doomed.iter().filter(|(_, doomed)| doomed.is_damaged) {
            report.error("removed object whose space is held", || {
                format!("map {map}: {bytes} bytes, and those of its extents that cannot be decoded")
            });
        }
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
        Ok(shown)
    }

    pub(super) fn check_blobs(
        &self,
        shown: &AllShown,
        lies: &mut Vec<Lies>,
        report: &mut FsckReport,
    ) -> Result<()> {
        let mut rest = shown.keys().copied().peekable();
        self.rows_of(key::BLOB, |key, value| {
            let (Some(id), Some(shared)) = (key::parse_blob(key), blob::decode_shared(value))
            else {
                report.error("undecodable blob", || key.escape_ascii().to_string());
                return Ok(());
            };
            while let Some(missed) = rest.next_if(|next| *next < id) {
                report.error("extents of a missing blob", || format!("blob {}", missed.0));
            }
            rest.next_if_eq(&id);
            let name = || format!("blob {}", id.0);
            match shown.get(&id) {
                None => report.error("blob that no extent shows", name),
                Some(found) if found.references != shared.references => {
                    report.error("blob with other references than extents", name);
                }
                Some(found)
                    if shared
                        .map
                        .is_some_and(|map| found.by_several || map != found.map) =>
                {
                    report.error("blob of another map", name);
                }
                Some(_) => {}
            }
            self.lay(&shared.blob, BlobName::Shared(id), lies);
            Ok(())
        })?
        .count_in(report);
        for missed in rest {
            report.error("extents of a missing blob", || format!("blob {}", missed.0));
        }
        Ok(())
    }

    fn lay(&self, blob: &Blob, name: BlobName, lies: &mut Vec<Lies>) {
        let block = self.device.geometry().block_size;
        lies.extend(blob.fragments.iter().filter_map(|fragment| {
            let (at, padded) = (fragment.at?, fragment.padded(block));
            Some(Lies { at, padded, name })
        }));
    }
}
