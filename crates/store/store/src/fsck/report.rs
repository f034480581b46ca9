//! Report of a check.

use serde::Serialize;
use std::collections::BTreeMap;

/// Most errors that are described in words; all are counted.
pub(super) const MAX_DETAILS: usize = 100;

/// Result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FsckReport {
    /// Number of collections.
    pub collections: u64,
    /// Number of objects.
    pub objects: u64,
    /// Number of extents, inline ones included.
    pub extents: u64,
    /// Bytes in objects.
    pub bytes: u64,
    /// Bytes that were read and compared with their checksums (deep check).
    pub bytes_verified: u64,
    /// Number of keys in omaps.
    pub omap_keys: u64,
    /// Number of segment summaries.
    pub summaries: u64,
    /// Summaries that cannot be read, or that a power cut has lost (deep check).
    pub summaries_unreadable: u64,
    /// Rows about data in zones that no segment summary has: a power cut costs the copies of the last rows, a full
    /// drive leaves them waiting (deep check).
    pub rows_without_copy: u64,
    /// Number of errors by kind; empty: the store is clean.
    pub errors: BTreeMap<String, u64>,
    /// The first errors in words.
    pub details: Vec<String>,
    /// Objects with damaged bytes that are not in `details`, because there are too many or because records that would
    /// name them are damaged (deep check).
    pub unnamed: u64,
}

impl FsckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The results of a deep check for the copies of rows, in words.
    pub fn copies(&self) -> String {
        let Self {
            summaries,
            summaries_unreadable,
            rows_without_copy,
            ..
        } = self;
        format!(
            "segment summaries: {summaries}, unreadable: {summaries_unreadable}, \
             rows in none: {rows_without_copy}"
        )
    }

    pub(super) fn error(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        *self.errors.entry(kind.to_owned()).or_default() += 1;
        if self.details.len() < MAX_DETAILS {
            self.details.push(format!("{kind}: {}", detail()));
        }
    }
}

/// Why a scan of the database ended early, if it did.
#[must_use]
pub(super) struct Damaged(pub Option<String>);

impl Damaged {
    pub fn count_in(self, report: &mut FsckReport) {
        if let Some(what) = self.0 {
            report.error("damaged database", || what);
        }
    }
}
