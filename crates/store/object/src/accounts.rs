//! Changes of a batch that follow from its changed rows: to the cleaning index, the counters of zones, and the number
//! of bytes in inline extents. They are updated where a blob appears or disappears, so that rows, index and counters
//! stay consistent.

use crate::{Blob, BlobName, Content, Extent, Fragment};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};

/// Change of the counters of a zone, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Delta {
    /// Bytes written to which a row points.
    pub written: i64,
    /// Bytes to which no row points any more.
    pub dead: i64,
}

/// Change of the bytes in inline extents.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Inline {
    /// Bytes that appear.
    pub added: u64,
    /// Bytes that are removed.
    pub removed: u64,
}

impl Inline {
    /// Bytes by which inline extents grow.
    pub fn growth(self) -> i64 {
        self.added.cast_signed() - self.removed.cast_signed()
    }
}

/// Sums over the changed rows of one batch.
#[derive(Debug)]
pub struct Accounts {
    block_size: u32,
    index: BTreeMap<ZoneAddress, Option<BlobName>>,
    /// Changes of the counters, by zone.
    pub deltas: BTreeMap<ZoneId, Delta>,
    /// Change of the bytes in inline extents.
    pub inline: Inline,
    /// Rows that are removed or replaced.
    pub rows_gone: u64,
}

impl Accounts {
    pub(crate) fn new(block_size: u32) -> Self {
        Self {
            block_size,
            index: BTreeMap::new(),
            deltas: BTreeMap::new(),
            inline: Inline::default(),
            rows_gone: 0,
        }
    }

    /// Changed entries of the cleaning index; `None`: to be deleted.
    pub fn changed_index(&self) -> impl Iterator<Item = (ZoneAddress, Option<BlobName>)> {
        self.index.iter().map(|(at, name)| (*at, *name))
    }

    /// Counts the row of an extent that appears.
    pub(crate) fn put(&mut self, extent: &Extent, map: u64, end: u64) {
        match &extent.content {
            Content::Inline(bytes) => self.inline.added += bytes.len() as u64,
            Content::Own { blob, .. } => self.remember(blob, BlobName::Own { map, end }),
            Content::Hole | Content::Shared { .. } => {}
        }
    }

    /// Counts the row of an extent that is removed.
    pub(crate) fn take(&mut self, extent: &Extent) {
        self.rows_gone += 1;
        match &extent.content {
            Content::Inline(bytes) => self.inline.removed += bytes.len() as u64,
            Content::Own { blob, .. } => self.forget(blob),
            Content::Hole | Content::Shared { .. } => {}
        }
    }

    /// Counts a blob to which a row points from now on.
    pub(crate) fn remember(&mut self, blob: &Blob, name: BlobName) {
        self.count(&blob.fragments, -1);
        for at in blob.fragments.iter().filter_map(|f| f.at) {
            self.index.insert(at, Some(name));
        }
    }

    /// Counts a blob to which a row does not point any more.
    pub(crate) fn forget(&mut self, blob: &Blob) {
        self.count(&blob.fragments, 1);
        for at in blob.fragments.iter().filter_map(|f| f.at) {
            self.index.insert(at, None);
        }
    }

    /// Counts new fragments as written and dead, before [`Self::remember`] makes them live: dead bytes that become live
    /// again are not counted as written.
    pub(crate) fn count_written(&mut self, fragments: &[Fragment]) {
        for fragment in fragments {
            if let Some(at) = fragment.at {
                let bytes = fragment.padded(self.block_size).cast_signed();
                let delta = self.deltas.entry(at.zone).or_default();
                delta.written += bytes;
                delta.dead += bytes;
            }
        }
    }

    fn count(&mut self, fragments: &[Fragment], sign: i64) {
        for fragment in fragments {
            if let Some(at) = fragment.at {
                let bytes = fragment.padded(self.block_size).cast_signed();
                self.deltas.entry(at.zone).or_default().dead += sign * bytes;
            }
        }
    }
}
