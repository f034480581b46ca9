//! Appends to files.

use crate::error::{Error, Result};
use crate::format::operation::{Operation, Piece};
use crate::inner::Inner;
use crate::shared::Shared;
use crate::streams::Lifetime;
use runtime::sync::MutexGuard;
use std::sync::Arc;

/// Bytes of a file that are buffered before they are written to an extent, unless a sync comes first (section 5
/// of the paper).
pub const WRITE_BUFFER: usize = 5 << 20;

/// Bytes of metadata of a truncate.
const TRUNCATE: u64 = 17;

/// A file that is appended to. Dropping it writes out its buffer, as [`Self::close`] does.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    inode: u64,
    name: String,
    lifetime: Lifetime,
    /// The error of an append of which a part may be in the file. No append may follow, because a reader of a
    /// log would stop at that part.
    failed: Option<Error>,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, inode: u64, name: String) -> Self {
        Self {
            shared,
            inode,
            name,
            lifetime: Lifetime::Short,
            failed: None,
        }
    }

    /// The locked state, if no append of this writer has failed.
    fn inner(&self) -> Result<MutexGuard<'_, Inner>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let inner = self.shared.inner.lock();
        inner.check()?;
        Ok(inner)
    }

    /// Declares the lifetime of the file, before its first byte is appended.
    pub fn set_lifetime(&mut self, lifetime: Lifetime) {
        self.lifetime = lifetime;
    }

    /// Appends `data`. Readers see it at once; a crash may lose it until the next sync of any file. After a
    /// failure every further call fails.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if the drive has no room for it and all buffered data, or the drive's error if the host's
    /// disk has none: accepted data always has space.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        let appended = self.try_append(data);
        self.failed = appended.clone().err();
        appended
    }

    fn try_append(&self, data: &[u8]) -> Result<()> {
        let mut inner = self.inner()?;
        let mut rest = data;
        while !rest.is_empty() {
            let buffered = inner.buffers.get(&self.inode).map_or(0, Vec::len);
            let take = rest
                .len()
                .min(self.shared.write_buffer.saturating_sub(buffered));
            let waits = inner.may_wait(take)?;
            let buffer = inner.buffers.entry(self.inode).or_default();
            buffer.extend_from_slice(&rest[..take]);
            rest = &rest[take..];
            if !waits {
                inner.write_out_or_drop(self.inode, self.lifetime)?;
            } else if buffer.len() >= self.shared.write_buffer {
                inner.write_out(self.inode, self.lifetime)?;
            }
        }
        Ok(())
    }

    /// Makes the file durable, and all names and closed files with it.
    pub fn sync(&mut self) -> Result<()> {
        let mut inner = self.inner()?;
        inner.write_out(self.inode, self.lifetime)?;
        Shared::commit(&mut inner)
    }

    /// Writes out the buffer, which becomes durable with the next sync of any file.
    pub fn close(&mut self) -> Result<()> {
        let mut inner = self.inner()?;
        inner.write_out(self.inode, self.lifetime)
    }

    /// Truncates the file to `size` bytes.
    ///
    /// # Errors
    /// The file is shorter; [`Error::MetadataFull`] if the size is inside a piece; or the drive's error.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        let mut inner = self.inner()?;
        inner.write_out(self.inode, self.lifetime)?;
        let found = inner.size(self.inode);
        if size > found {
            return Err(Error::Longer {
                name: self.name.clone(),
                size: found,
                asked: size,
            });
        }
        let inode = self.inode;
        if let Some(file) = inner.map.files.get(&inode) {
            let begins = |piece: &Piece| piece.file_offset;
            let is_whole = size == 0
                || size == found
                || file.pieces.binary_search_by_key(&size, begins).is_ok();
            // A checkpoint has an operation for a piece that is cut.
            if !is_whole {
                inner.may_grow(TRUNCATE)?;
            }
            inner.change(Operation::Truncate { inode, size });
        }
        Ok(())
    }

    /// Inode number of the file; not reused within a mount.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.shared.inner.lock().size(self.inode)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, name = %self.name, "the end of a file could not be written");
        }
    }
}
