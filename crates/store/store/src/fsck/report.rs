//! What a check found.

use serde::Serialize;
use std::collections::BTreeMap;

/// Most errors that are described in words; all are counted.
pub(super) const MAX_DETAILS: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FsckReport {
    /// Collections.
    pub collections: u64,
    /// Objects.
    pub objects: u64,
    /// Extents, inline ones included.
    pub extents: u64,
    /// Bytes in objects.
    pub bytes: u64,
    /// Bytes that were read and compared with their checksums (deep check).
    pub bytes_verified: u64,
    /// Keys of omaps.
    pub omap_keys: u64,
    /// Segment summaries.
    pub summaries: u64,
    /// Those that cannot be read, or are not there after a power cut (deep check).
    pub summaries_unreadable: u64,
    /// Rows of data in zones that no segment summary has: a power cut costs the copies of the last rows,
    /// a full drive leaves them waiting (deep check).
    pub rows_without_copy: u64,
    /// How many errors of each kind; empty means clean.
    pub errors: BTreeMap<String, u64>,
    /// The first errors in words.
    pub details: Vec<String>,
    /// Objects with damaged bytes that are not in `details`: there are too many, or records that would name them are
    /// damaged (deep check).
    pub unnamed: u64,
}

impl FsckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// What a deep check says of the copies of rows in data zones.
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

/// What ended a look at the database early.
#[must_use]
pub(super) struct Damaged(pub Option<String>);

impl Damaged {
    pub fn count_in(self, report: &mut FsckReport) {
        if let Some(what) = self.0 {
            report.error("damaged database", || what);
        }
    }
}
