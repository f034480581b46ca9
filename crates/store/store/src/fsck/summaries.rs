//! Checks segment summaries against the rows that they copy.

use super::report::FsckReport;
use crate::Result;
use crate::copied_rows::Part;
use crate::format::key;
use crate::format::summary::decode_places;
use crate::inner::Inner;
use crate::salvage::highest_in;

impl Inner {
    /// The highest number of a readable summary, or of a map, omap or blob in one.
    pub(super) fn highest_in_summaries(&self) -> Result<u64> {
        let mut highest = 0;
        let read = self.rows_of(key::SUMMARIES, |key, value| {
            let (Some(zone), Some(places)) = (key::parse_summaries(key), decode_places(value))
            else {
                return Ok(());
            };
            for place in places {
                let summary = self.read_summary(zone, place)?;
                highest = summary
                    .map_or(0, |summary| highest_in(summary).0)
                    .max(highest);
            }
            Ok(())
        })?;
        // Rows that cannot be read are counted by `check_summaries`.
        drop(read);
        Ok(highest)
    }

    /// Checks the index of summaries; `deep` also reads them, and counts the rows that are in none.
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
        let copied = self.copied_rows(&zones, Part::ALL, &mut |_| true)?;
        let Some((copied, unreadable)) = copied else {
            return Ok(());
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
        Ok(())
    }
}
