//! Checks the places of blobs against the cleaning index, the freelist and the drive's write pointers.

use super::report::FsckReport;
use crate::Result;
use crate::format::key;
use crate::format::record::{decode_counters, decode_name};
use crate::inner::Inner;
use crate::losses::Places;
use object::BlobName;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::Owner;

/// Place of a blob's fragment.
pub(super) struct Lies {
    pub at: ZoneAddress,
    pub padded: u64,
    pub name: BlobName,
}

impl Inner {
    pub(super) fn check_cleaning_index(
        &self,
        lies: &[Lies],
        report: &mut FsckReport,
    ) -> Result<()> {
        for pair in lies.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            if a.at.zone == b.at.zone && a.at.offset.saturating_add(a.padded) > b.at.offset {
                report.error("extents overlap in a zone", || b.at.to_string());
            }
        }
        let mut rest = lies.iter().peekable();
        self.rows_of(key::CLEANING, |key, value| {
            let (Some(at), Some(name)) = (key::parse_cleaning(key), decode_name(value)) else {
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
                Some(l) if l.name != name => {
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

    pub(super) fn check_freelist(&self, lies: &[Lies], report: &mut FsckReport) -> Result<()> {
        let geometry = self.device.geometry();
        let mut live: BTreeMap<ZoneId, (u64, u64)> = BTreeMap::new();
        for l in lies {
            let (bytes, end) = live.entry(l.at.zone).or_default();
            *bytes += l.padded;
            *end = (*end).max(l.at.offset.saturating_add(l.padded));
        }
        let mut recorded: BTreeMap<ZoneId, i64> = BTreeMap::new();
        self.rows_of(key::FREELIST, |key, value| {
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
        let mut lost = Places::new();
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
                lost.entry(*zone)
                    .or_default()
                    .push(drive.write_pointer..*end);
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
        self.name_objects("bytes above the write pointer", &lost, report);
        let (kept, counted) = self.freelist.audit();
        if kept != counted {
            report.error("the freelist's sums differ from its zones", || {
                format!("{kept:?} kept, {counted:?} counted")
            });
        }
        Ok(())
    }
}
