//! The changes of one batch: an overlay on the rows of the database that keeps extents, blobs and counters consistent.

use crate::accounts::Accounts;
use crate::divide::{Divided, divide, part};
use crate::{Blob, BlobId, BlobName, Content, Extent, Fragment, References, SharedBlob};
use std::collections::BTreeMap;
use std::ops::Range;

/// The rows without the changes, which an overlay reads.
pub trait Rows {
    /// Error of reading a row.
    type Error;

    /// The extents of `map` that overlap the bytes `from..to`, with their first offsets, in order.
    fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>, Self::Error>;

    /// A shared blob that an extent shows; an error if there is none.
    fn blob(&self, id: BlobId) -> Result<SharedBlob, Self::Error>;

    /// A number that was never used for a map or blob.
    fn number(&self) -> Result<u64, Self::Error>;

    /// The error for a blob whose references do not match the extents that show it.
    fn miscounted(&self, id: BlobId) -> Self::Error;

    /// The error for a map of which no extent has the byte `at`, or more than one has.
    fn broken(&self, map: u64, at: u64) -> Self::Error;
}

/// Bytes that have to be read and passed to [`Staged::copied`] before any other operation on the map.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Copy {
    /// Map to which they are copied.
    pub map: u64,
    /// Offset in the map.
    pub offset: u64,
    /// Blob from which they are copied.
    pub blob: Blob,
    /// The raw bytes of the blob; at most [`crate::MAX_INLINE`].
    pub raw: Range<u32>,
}

/// An overlay over rows: operations on maps and blobs change it, and the changed rows are written as one batch.
#[derive(Debug)]
pub struct Staged<R> {
    /// The rows without the changes.
    pub rows: R,
    block_size: u32,
    /// Changed extents by map and end; `None`: deleted.
    extents: BTreeMap<(u64, u64), Option<Extent>>,
    blobs: BTreeMap<BlobId, Option<SharedBlob>>,
    /// Changes of the cleaning index and of counters that follow from the changed rows.
    pub accounts: Accounts,
}

impl<R: Rows> Staged<R> {
    /// An overlay without changes. `block_size` is the drive's, in bytes.
    pub fn new(rows: R, block_size: u32) -> Self {
        Self {
            rows,
            block_size,
            extents: BTreeMap::new(),
            blobs: BTreeMap::new(),
            accounts: Accounts::new(block_size),
        }
    }

    /// Changed rows of extents, by map and end; `None`: to be deleted.
    pub fn changed_extents(&self) -> impl Iterator<Item = (u64, u64, Option<&Extent>)> {
        let rows = self.extents.iter();
        rows.map(|((map, end), extent)| (*map, *end, extent.as_ref()))
    }

    /// Changed rows of shared blobs; `None`: to be deleted.
    pub fn changed_blobs(&self) -> impl Iterator<Item = (BlobId, Option<&SharedBlob>)> {
        self.blobs.iter().map(|(id, blob)| (*id, blob.as_ref()))
    }

    /// Whether no extent has changed.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The extents of `map` that overlap the bytes `from..to`, with the changes, with their first offsets, in order.
    pub fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>, R::Error> {
        let found = self.rows.extents(map, from, to)?;
        Ok(self.changed(found, map, from, to))
    }

    /// Applies the changes to `found`, the extents in the range without them.
    pub fn changed(
        &self,
        mut found: Vec<(u64, Extent)>,
        map: u64,
        from: u64,
        to: u64,
    ) -> Vec<(u64, Extent)> {
        found.retain(|(start, extent)| {
            let end = start + extent.length;
            !self.extents.contains_key(&(map, end))
        });
        let old = found.len();
        let staged = self
            .extents
            .range((map, from.saturating_add(1))..=(map, u64::MAX));
        for ((_, end), extent) in staged {
            let Some(extent) = extent else { continue };
            let start = end - extent.length;
            if start >= to {
                break;
            }
            found.push((start, extent.clone()));
        }
        if old > 0 && old < found.len() {
            found.sort_unstable_by_key(|(start, _)| *start);
        }
        found
    }

    /// A shared blob, with the changes.
    pub fn blob(&self, id: BlobId) -> Result<SharedBlob, R::Error> {
        match self.blobs.get(&id) {
            Some(Some(blob)) => Ok(blob.clone()),
            Some(None) => Err(self.rows.miscounted(id)),
            None => self.rows.blob(id),
        }
    }

    /// Adds an extent at `offset` of `map`, where nothing is: a hole, inline bytes, or an own blob that has just been
    /// written.
    pub fn write(&mut self, map: u64, offset: u64, extent: Extent) {
        if let Content::Own { blob, .. } = &extent.content {
            let fragments = blob.fragments.clone();
            self.accounts.count_written(&fragments);
        }
        self.put(map, offset, extent);
    }

    /// Removes the bytes `from..to` from `map`. The result has to be copied; then other bytes have to be put in their
    /// place, unless they are the map's last.
    pub fn cut(&mut self, map: u64, from: u64, to: u64) -> Result<Vec<Copy>, R::Error> {
        let mut copies = Vec::new();
        for (offset, mut extent) in self.extents(map, from, to)? {
            let left = from.saturating_sub(offset);
            let right = (to - offset).min(extent.length);
            if divide(&extent, left, right, self.block_size) == Divided::ShareFirst {
                extent = self.share(map, offset, extent)?;
            }
            let Divided::Into {
                left: before,
                copy,
                right: behind,
            } = divide(&extent, left, right, self.block_size)
            else {
                continue; // Nothing that is shared has to be shared first.
            };
            self.take(map, offset, &extent);
            if let Content::Shared { blob, skip } = &extent.content {
                self.release(*blob, skip + left as u32..skip + right as u32)?;
            }
            if let (Some((first, end)), Content::Own { blob, skip }) = (copy, &extent.content) {
                copies.push(Copy {
                    map,
                    offset: offset + first,
                    blob: blob.clone(),
                    raw: skip + first as u32..skip + end as u32,
                });
            }
            let behind = behind.map(|(at, extent)| (offset + at, extent));
            for (at, part) in before.map(|part| (offset, part)).into_iter().chain(behind) {
                self.put(map, at, part);
            }
        }
        Ok(copies)
    }

    /// Adds the bytes that a `Copy` asked for.
    pub fn copied(&mut self, copy: &Copy, bytes: Vec<u8>) {
        self.put(copy.map, copy.offset, Extent::inline(bytes));
    }

    /// Replaces the bytes `from..to` of `map` by a hole, which is joined with adjacent holes. They may lie beyond the
    /// map's last byte.
    pub fn punch(&mut self, map: u64, from: u64, to: u64) -> Result<Vec<Copy>, R::Error> {
        let copies = self.cut(map, from, to)?;
        let (mut start, mut end) = (from, to);
        for (offset, extent) in self.extents(map, from.saturating_sub(1), to.saturating_add(1))? {
            // The extents found need not be adjacent: bytes that are still to be copied may lie between.
            let beside = offset + extent.length == from || offset == to;
            if beside && extent.content == Content::Hole {
                self.take(map, offset, &extent);
                (start, end) = (start.min(offset), end.max(offset + extent.length));
            }
        }
        self.put(map, start, Extent::hole(end - start));
        Ok(copies)
    }

    /// Extents for [`Self::paste`] that show the bytes `from..to` of `map`. Blobs become shared and get another
    /// reference; inline bytes are copied. An error if bytes have no extent: those behind them would move to their place.
    pub fn copy(&mut self, map: u64, from: u64, to: u64) -> Result<Vec<Extent>, R::Error> {
        let mut clip = Vec::new();
        let mut next = from;
        for (offset, mut extent) in self.extents(map, from, to)? {
            if offset.max(from) != next {
                return Err(self.rows.broken(map, next));
            }
            next = offset + extent.length;
            if matches!(extent.content, Content::Own { .. }) {
                extent = self.share(map, offset, extent)?;
            }
            let (low, high) = (from.max(offset) - offset, (to - offset).min(extent.length));
            let extent = part(&extent, low, high, self.block_size);
            if let Content::Shared { blob: id, skip } = extent.content {
                let mut shared = self.blob(id)?;
                if !shared.references.add(skip..skip + extent.length as u32) {
                    return Err(self.rows.miscounted(id));
                }
                self.blobs.insert(id, Some(shared));
            }
            clip.push(extent);
        }
        if next < to {
            return Err(self.rows.broken(map, next));
        }
        Ok(clip)
    }

    /// Puts the extents that [`Self::copy`] returned at `offset` of `map`, where nothing is.
    pub fn paste(&mut self, map: u64, mut offset: u64, clip: Vec<Extent>) -> Result<(), R::Error> {
        for extent in clip {
            if let Content::Shared { blob: id, .. } = extent.content {
                let shared = self.blob(id)?;
                let only = shared.map.filter(|only| *only == map);
                self.blobs.insert(
                    id,
                    Some(SharedBlob {
                        map: only,
                        ..shared
                    }),
                );
            }
            let length = extent.length;
            self.put(map, offset, extent);
            offset += length;
        }
        Ok(())
    }

    /// Removes an extent, and releases what it shows.
    pub fn remove(&mut self, map: u64, offset: u64, extent: &Extent) -> Result<(), R::Error> {
        self.take(map, offset, extent);
        match extent.content {
            Content::Shared { blob, skip } => {
                self.release(blob, skip..skip.saturating_add(extent.length as u32))
            }
            _ => Ok(()),
        }
    }

    /// Changes the places of an extent's own blob, of which the fragments `fresh` have just been written.
    pub fn move_own(&mut self, map: u64, end: u64, old: &Extent, to: Blob, fresh: &[Fragment]) {
        let Content::Own { skip, .. } = old.content else {
            return;
        };
        self.take(map, end - old.length, old);
        self.accounts.count_written(fresh);
        let content = Content::Own { blob: to, skip };
        self.put(map, end - old.length, Extent { content, ..*old });
    }

    /// Changes the places of a shared blob, of which the fragments `fresh` have just been written.
    pub fn move_shared(
        &mut self,
        id: BlobId,
        to: Blob,
        fresh: &[Fragment],
    ) -> Result<(), R::Error> {
        let shared = SharedBlob {
            blob: to,
            ..self.blob(id)?
        };
        self.accounts.count_written(fresh);
        self.set_blob(id, Some(shared))
    }

    /// Moves the own blob of an extent to a row of its own; returns the changed extent.
    fn share(&mut self, map: u64, offset: u64, extent: Extent) -> Result<Extent, R::Error> {
        let id = BlobId(self.rows.number()?);
        self.take(map, offset, &extent);
        let Content::Own { blob, skip } = extent.content else {
            return Ok(extent);
        };
        let shared = SharedBlob {
            references: References::one(skip..skip + extent.length as u32),
            map: Some(map),
            blob,
        };
        self.accounts.remember(&shared.blob, BlobName::Shared(id));
        self.blobs.insert(id, Some(shared));
        let content = Content::Shared { blob: id, skip };
        let extent = Extent { content, ..extent };
        self.put(map, offset, extent.clone());
        Ok(extent)
    }

    fn release(&mut self, id: BlobId, raw: Range<u32>) -> Result<(), R::Error> {
        let mut shared = self.blob(id)?;
        if !shared.references.remove(raw) {
            return Err(self.rows.miscounted(id));
        }
        let SharedBlob {
            blob, references, ..
        } = &mut shared;
        blob.release(references, self.block_size);
        let is_used = !references.is_empty();
        self.set_blob(id, is_used.then_some(shared))
    }

    fn set_blob(&mut self, id: BlobId, shared: Option<SharedBlob>) -> Result<(), R::Error> {
        let old = self.blob(id)?;
        self.accounts.forget(&old.blob);
        if let Some(new) = &shared {
            self.accounts.remember(&new.blob, BlobName::Shared(id));
        }
        self.blobs.insert(id, shared);
        Ok(())
    }

    /// Adds the row of an extent; references of shared blobs do not change.
    fn put(&mut self, map: u64, offset: u64, extent: Extent) {
        let end = offset + extent.length;
        self.accounts.put(&extent, map, end);
        self.extents.insert((map, end), Some(extent));
    }

    /// Removes the row of an extent; references of shared blobs do not change.
    fn take(&mut self, map: u64, offset: u64, extent: &Extent) {
        self.accounts.take(extent);
        self.extents.insert((map, offset + extent.length), None);
    }
}
