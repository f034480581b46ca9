//! Checks every stored byte against its checksum.

use super::report::{FsckReport, MAX_DETAILS};
use crate::Result;
use crate::blob_reader::{fragment_range, read_part};
use crate::format::record::encode_name;
use crate::format::{blob, extent, key};
use crate::inner::Inner;
use crate::losses::Places;
use crate::scrub::DamageFound;
use object::{Blob, BlobName, Content};

const MISMATCH: &str = "checksum mismatch";
const UNREADABLE: &str = "unreadable extent";

/// A check of all bytes while it runs.
struct Reading<'a> {
    store: &'a Inner,
    /// Bytes to read in all, for `progress`.
    total: u64,
    report: &'a mut FsckReport,
    progress: &'a mut dyn FnMut(u64, u64),
    /// Damaged places.
    found: DamageFound,
}

impl Reading<'_> {
    fn verified(&mut self, bytes: usize) {
        self.report.bytes_verified += bytes as u64;
        (self.progress)(self.report.bytes_verified, self.total);
    }

    fn read(&mut self, blob: &Blob, name: BlobName) -> Result<()> {
        let mut kind = None;
        for (index, fragment) in blob.fragments.iter().enumerate() {
            let Some(at) = fragment.at else { continue };
            let range = fragment_range(blob, index);
            match read_part(&*self.store.device, blob, range.clone()) {
                Ok(bytes) => self.verified(bytes.len()),
                Err(failed) => {
                    kind = Some(kind_of(failed.is_mismatch()));
                    self.store
                        .find_damage((at, name), blob, range, &mut self.found)?;
                }
            }
        }
        if let Some(kind) = kind {
            *self.report.errors.entry(kind.to_owned()).or_default() += 1;
        }
        Ok(())
    }
}

const fn kind_of(is_mismatch: bool) -> &'static str {
    if is_mismatch { MISMATCH } else { UNREADABLE }
}

impl Inner {
    pub(super) fn check_bytes(
        &self,
        total: u64,
        report: &mut FsckReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut reading = Reading {
            store: self,
            total,
            report,
            progress,
            found: DamageFound::new(),
        };
        let own = self.rows_of(key::EXTENT, |key, value| {
            match extent::decode(value).map(|extent| extent.content) {
                Some(Content::Own { blob, .. }) => match key::parse_extent(key) {
                    Some((map, end)) => reading.read(&blob, BlobName::Own { map, end }),
                    None => Ok(()),
                },
                Some(Content::Inline(bytes)) => {
                    reading.verified(bytes.len());
                    Ok(())
                }
                _ => Ok(()),
            }
        })?;
        let shared = self.rows_of(key::BLOB, |key, value| {
            match (key::parse_blob(key), blob::decode_shared(value)) {
                (Some(id), Some(shared)) => reading.read(&shared.blob, BlobName::Shared(id)),
                _ => Ok(()),
            }
        })?;
        let found = reading.found;
        own.count_in(report);
        shared.count_in(report);
        self.name_damaged(&found, report)
    }

    /// Adds the names of all objects that show the damaged bytes to the report: one pass over the objects for each kind
    /// of damage, and none without damage.
    fn name_damaged(&self, found: &DamageFound, report: &mut FsckReport) -> Result<()> {
        for is_mismatch in [true, false] {
            let kind = kind_of(is_mismatch);
            let mut places = Places::new();
            for (at, (damage, fragment, name)) in found {
                if damage.is_mismatch == is_mismatch {
                    // Objects are found by the cleaning index only.
                    let indexed = self.kv()?.get(&key::cleaning(*fragment))?;
                    report.unnamed += u64::from(indexed != Some(encode_name(*name)));
                    let bytes = at.offset..at.offset.saturating_add(damage.length.into());
                    places.entry(at.zone).or_default().push(bytes);
                }
            }
            self.name_objects(kind, &places, report);
        }
        Ok(())
    }

    /// Adds the objects with bytes in these places to the report, up to [`MAX_DETAILS`] of them in words.
    pub(super) fn name_objects(&self, kind: &str, places: &Places, report: &mut FsckReport) {
        let named = self.objects_in(places, &mut |loss| {
            if report.details.len() < MAX_DETAILS {
                let words = format!("{}: {kind}: {}", loss.object, loss.words());
                report.details.push(words);
            } else {
                report.unnamed += 1;
            }
        });
        // A record that the database cannot read is an error of its own, and may hide objects.
        let problems = match named {
            Ok(problems) => problems,
            Err(error) => vec![error.to_string()],
        };
        report.unnamed += problems.len() as u64;
        report.details.extend(problems);
    }
}
