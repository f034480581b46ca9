//! Checks segment summaries against the rows that they copy.

use super::report::FsckReport;
use crate::Result;
use crate::copied_rows::Part;
use crate::format::key;
use crate::format::summary::{Summary, decode_places};
use crate::inner::Inner;
use crate::salvage::highest_in;

impl Inner {
    /// Checks the index of summaries; `deep` also reads them, and counts the rows that are in none. Returns the highest
    /// number of a readable summary, or of a map, omap or blob in one; 0 if none was read.
    pub(super) fn check_summaries(&self, deep: bool, report: &mut FsckReport) -> Result<u64> {
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
            return Ok(0);
        }
        let mut highest = 0;
        let see = &mut |summary: &Summary| highest = highest.max(highest_in(summary.clone()).0);
        let copied = self.copied_rows(&zones, Part::ALL, see, &mut |_| true)?;
        let Some((copied, unreadable)) = copied else {
            return Ok(0);
        };
        // Not an error: a power cut may lose a summary whose place was durable, and it is only a copy.
        report.summaries_unreadable += unreadable;
        let is_copied = |key: &[u8], value: &[u8]| copied.has(key, value);
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
        Ok(highest)
    }
}
