//! What a batch changes beside the rows themselves: the cleaning index, the counters of zones and the
//! bytes in inline extents. They move where a blob appears or goes, so that rows, index and counters cannot
//! drift apart.

use crate::{Blob, BlobName, Content, Extent, Fragment};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};

/// How the counters of a zone change.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Delta {
    /// Bytes written that a row points to.
    pub written: i64,
    /// Of these, bytes to which none points any more.
    pub dead: i64,
}

/// Bytes in inline extents.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Inline {
    /// That appear.
    pub added: u64,
    /// That go.
    pub removed: u64,
}

impl Inline {
    /// By how many bytes they grow.
    pub fn growth(self) -> i64 {
        self.added.cast_signed() - self.removed.cast_signed()
    }
}

/// What the rows of one batch add up to.
#[derive(Debug)]
pub struct Accounts {
    block_size: u32,
    index: BTreeMap<ZoneAddress, Option<BlobName>>,
    /// By how much counters of zones change.
    pub deltas: BTreeMap<ZoneId, Delta>,
    /// Bytes in inline extents that appear and that go.
    pub inline: Inline,
    /// Rows that go, or are replaced.
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

    /// Rows of the cleaning index; `None`: to be deleted.
    pub fn changed_index(&self) -> impl Iterator<Item = (ZoneAddress, Option<BlobName>)> {
        self.index.iter().map(|(at, name)| (*at, *name))
    }

    /// The first fragment between two places that the changes enter into the cleaning index.
    pub fn first_fragment(&self, from: ZoneAddress, to: ZoneAddress) -> Option<ZoneAddress> {
        let mut entries = self.index.range(from..to);
        entries.find(|(_, name)| name.is_some()).map(|(at, _)| *at)
    }

    /// The row of an extent appears.
    pub(crate) fn put(&mut self, extent: &Extent, map: u64, end: u64) {
        match &extent.content {
            Content::Inline(bytes) => self.inline.added += bytes.len() as u64,
            Content::Own { blob, .. } => self.remember(blob, BlobName::Own { map, end }),
            Content::Hole | Content::Shared { .. } => {}
        }
    }

    /// The row of an extent goes.
    pub(crate) fn take(&mut self, extent: &Extent) {
        self.rows_gone += 1;
        match &extent.content {
            Content::Inline(bytes) => self.inline.removed += bytes.len() as u64,
            Content::Own { blob, .. } => self.forget(blob),
            Content::Hole | Content::Shared { .. } => {}
        }
    }

    /// A row begins to point to a blob.
    pub(crate) fn remember(&mut self, blob: &Blob, name: BlobName) {
        self.count(&blob.fragments, -1);
        for at in blob.fragments.iter().filter_map(|f| f.at) {
            self.index.insert(at, Some(name));
        }
    }

    /// A row points to a blob no more.
    pub(crate) fn forget(&mut self, blob: &Blob) {
        self.count(&blob.fragments, 1);
        for at in blob.fragments.iter().filter_map(|f| f.at) {
            self.index.insert(at, None);
        }
    }

    /// Bytes that a row is about to point to are new, not dead ones that come back.
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
