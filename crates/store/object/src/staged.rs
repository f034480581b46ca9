//! Changes on their way into one batch: an overlay on the rows that are there.

use crate::accounts::Accounts;
use crate::divide::{Divided, divide, part};
use crate::{Blob, BlobId, BlobName, Content, Extent, Fragment, References, SharedBlob};
use std::collections::BTreeMap;
use std::ops::Range;

/// The rows as they are, for an overlay to look into.
pub trait Rows {
    /// Why a row cannot be had.
    type Error;

    /// The extents of `map` that hold any of the bytes `from..to`, with their first offsets, in order.
    fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>, Self::Error>;

    /// A shared blob that an extent shows; that there is none is an error.
    fn blob(&self, id: BlobId) -> Result<SharedBlob, Self::Error>;

    /// A number that no map or blob has had.
    fn number(&self) -> Result<u64, Self::Error>;

    /// The error for a blob whose references do not fit the extents that show it.
    fn miscounted(&self, id: BlobId) -> Self::Error;
}

/// Bytes that have to be read and handed to [`Staged::copied`] before anything else is done with the map.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Copy {
    /// Where they go.
    pub map: u64,
    /// Where in the map they go.
    pub offset: u64,
    /// Where they are.
    pub blob: Blob,
    /// Which of the blob's raw bytes they are; at most [`crate::MAX_INLINE`].
    pub raw: Range<u32>,
}

/// The changes of one batch.
#[derive(Debug)]
pub struct Staged<R> {
    /// What is there without the changes.
    pub rows: R,
    block_size: u32,
    /// By map and end.
    extents: BTreeMap<(u64, u64), Option<Extent>>,
    blobs: BTreeMap<BlobId, Option<SharedBlob>>,
    /// What the changes add up to.
    pub accounts: Accounts,
}

impl<R: Rows> Staged<R> {
    /// No changes yet. `block_size` is the drive's.
    pub fn new(rows: R, block_size: u32) -> Self {
        Self {
            rows,
            block_size,
            extents: BTreeMap::new(),
            blobs: BTreeMap::new(),
            accounts: Accounts::new(block_size),
        }
    }

    /// Rows of extents by map and end; `None`: to be deleted.
    pub fn changed_extents(&self) -> impl Iterator<Item = (u64, u64, Option<&Extent>)> {
        let rows = self.extents.iter();
        rows.map(|((map, end), extent)| (*map, *end, extent.as_ref()))
    }

    /// Rows of shared blobs; `None`: to be deleted.
    pub fn changed_blobs(&self) -> impl Iterator<Item = (BlobId, Option<&SharedBlob>)> {
        self.blobs.iter().map(|(id, blob)| (*id, blob.as_ref()))
    }

    /// Whether no extent changes.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The extents of `map` that hold any of the bytes `from..to`, with their first offsets, in order.
    pub fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>, R::Error> {
        let found = self.rows.extents(map, from, to)?;
        Ok(self.changed(found, map, from, to))
    }

    /// The same, where `found` is what there is without the changes.
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

    /// A shared blob as it is with the changes.
    pub fn blob(&self, id: BlobId) -> Result<SharedBlob, R::Error> {
        match self.blobs.get(&id) {
            Some(Some(blob)) => Ok(blob.clone()),
            Some(None) => Err(self.rows.miscounted(id)),
            None => self.rows.blob(id),
        }
    }

    /// New bytes appear at `offset` of `map`, where nothing is: a hole, inline bytes, or a blob of its own
    /// that has just been written.
    pub fn write(&mut self, map: u64, offset: u64, extent: Extent) {
        if let Content::Own { blob, .. } = &extent.content {
            let fragments = blob.fragments.clone();
            self.accounts.count_written(&fragments);
        }
        self.put(map, offset, extent);
    }

    /// Takes the bytes `from..to` out of `map`. What is answered has to be copied; then something has to
    /// be put in their place, unless they are the map's last.
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

    /// Enters the bytes that a [`Copy`] asked for.
    pub fn copied(&mut self, copy: &Copy, bytes: Vec<u8>) {
        self.put(copy.map, copy.offset, Extent::inline(bytes));
    }

    /// Replaces the bytes `from..to` of `map` by a hole, which grows together with those beside it. They
    /// may lie behind the map's last byte.
    pub fn punch(&mut self, map: u64, from: u64, to: u64) -> Result<Vec<Copy>, R::Error> {
        let copies = self.cut(map, from, to)?;
        let (mut start, mut end) = (from, to);
        for (offset, extent) in self.extents(map, from.saturating_sub(1), to.saturating_add(1))? {
            // Bytes that are still to be copied lie between.
            let beside = offset + extent.length == from || offset == to;
            if beside && extent.content == Content::Hole {
                self.take(map, offset, &extent);
                (start, end) = (start.min(offset), end.max(offset + extent.length));
            }
        }
        self.put(map, start, Extent::hole(end - start));
        Ok(copies)
    }

    /// What [`Self::paste`] needs to show the bytes `from..to` of `map` elsewhere too. Blobs become
    /// shared and are counted for the second time; inline bytes are copied.
    pub fn copy(&mut self, map: u64, from: u64, to: u64) -> Result<Vec<Extent>, R::Error> {
        let mut clip = Vec::new();
        for (offset, mut extent) in self.extents(map, from, to)? {
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
        Ok(clip)
    }

    /// Puts what [`Self::copy`] answered at `offset` of `map`, where nothing is.
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

    /// An extent goes with all it shows.
    pub fn remove(&mut self, map: u64, offset: u64, extent: &Extent) -> Result<(), R::Error> {
        self.take(map, offset, extent);
        match extent.content {
            Content::Shared { blob, skip } => {
                self.release(blob, skip..skip.saturating_add(extent.length as u32))
            }
            _ => Ok(()),
        }
    }

    /// The blob of an extent has other places, of which `fresh` have just been written.
    pub fn move_own(&mut self, map: u64, end: u64, old: &Extent, to: Blob, fresh: &[Fragment]) {
        let Content::Own { skip, .. } = old.content else {
            return;
        };
        self.take(map, end - old.length, old);
        self.accounts.count_written(fresh);
        let content = Content::Own { blob: to, skip };
        self.put(map, end - old.length, Extent { content, ..*old });
    }

    /// A shared blob has other places, of which `fresh` have just been written.
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

    /// Gives the blob of an extent a row of its own; answers the extent as it is then.
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

    /// A row appears; what a shared blob counts stays as it is.
    fn put(&mut self, map: u64, offset: u64, extent: Extent) {
        let end = offset + extent.length;
        self.accounts.put(&extent, map, end);
        self.extents.insert((map, end), Some(extent));
    }

    /// A row goes; what a shared blob counts stays as it is.
    fn take(&mut self, map: u64, offset: u64, extent: &Extent) {
        self.accounts.take(extent);
        self.extents.insert((map, offset + extent.length), None);
    }
}
