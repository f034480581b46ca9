//! [`Reader`]: reads a file at any offset, also while it is being written.

use crate::Result;
use crate::handle::Handle;
use crate::read_later::{Ask, Later, PendingRead, ReadsTogether};
use crate::read_through::Open;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A file that is open for reading. Clones share it; any number of threads may read.
#[derive(Clone)]
pub struct Reader {
    pub(crate) open: Arc<Open>,
    later: Arc<Later<Self>>,
    pub(crate) keeps: bool,
}

impl Reader {
    pub(crate) fn new(handle: Handle, later: Arc<Later<Self>>) -> Self {
        Self {
            open: Arc::new(Open::new(handle)),
            later,
            keeps: true,
        }
    }

    /// The same file; bytes read through this reader are not put into the cache.
    #[must_use]
    pub fn uncached(mut self) -> Self {
        self.keeps = false;
        self
    }

    /// Bytes in the file now, including those that are not written to the drive yet.
    pub fn size(&self) -> u64 {
        self.open.handle.node.body.read().size()
    }

    /// Inode number: identifies the file while the file system is mounted.
    pub fn inode(&self) -> u64 {
        self.open.handle.node.inode
    }

    /// Fills `buffer` from `offset` on and returns the number of bytes read; it is smaller than the buffer only at the
    /// file's end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let shared = &self.open.handle.shared;
        let body = self.open.handle.node.body.read();
        let length = (buffer.len() as u64).min(body.size().saturating_sub(offset)) as usize;
        let on_drive = (length as u64).min(body.written().saturating_sub(offset)) as usize;
        let (written, tail) = buffer[..length].split_at_mut(on_drive);
        if !tail.is_empty() {
            let from = (offset + on_drive as u64 - body.written()) as usize;
            tail.copy_from_slice(&body.tail[from..from + tail.len()]);
        }
        let found = usize::try_from(offset).ok();
        let found = found
            .and_then(|from| body.found.get(from..))
            .unwrap_or_default();
        let known = found.len().min(on_drive);
        let (first, written) = written.split_at_mut(known);
        first.copy_from_slice(&found[..known]);
        if !written.is_empty() {
            let offset = offset + known as u64;
            // A read may take long, and a writer that waits for the body's lock keeps other readers out, so the lock is
            // released before the read. The gate is entered before that, so no zone with these places is reset
            // meanwhile.
            let end = offset + written.len() as u64;
            if let Some(piece) = body.piece_at(offset).copied()
                && end <= piece.file_offset + piece.length
                && !shared.cache.is_on()
            {
                let _reading = shared.gate.enter_in([piece.at.zone]);
                drop(body);
                return self
                    .open
                    .handle
                    .take_piece(&piece, offset, written)
                    .map(|()| length);
            }
            let part = self.open.part(&body, offset, written.len() as u64);
            let _reading = shared.gate.enter_in(part.pieces.iter().map(|p| p.at.zone));
            drop(body);
            self.open.read_written(&part, offset, written, self.keeps)?;
        }
        Ok(length)
    }

    /// Does many reads like [`Self::read_at`]; those that go to the drive are issued together.
    pub fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> Vec<Result<usize>> {
        let asks = reads.iter_mut().map(|(offset, buffer)| Ask {
            reader: self,
            offset: *offset,
            buffer,
        });
        Self::read_all(&mut asks.collect::<Vec<_>>())
    }

    /// Begins a read of up to `length` bytes, which is issued together with other waiting reads.
    pub fn read_later(&self, offset: u64, length: usize) -> PendingRead {
        let shared = &self.open.handle.shared;
        shared.counters.reads_later.fetch_add(1, Ordering::Relaxed);
        self.later.begin(self, offset, length)
    }

    /// Reads the whole file from the drive and verifies every extent and record by its checksum. Returns the crc32c of
    /// all bytes. Extents that were truncated have no checksum and are not verified.
    pub fn verify(&self) -> Result<u32> {
        self.open.handle.verify_all()
    }
}
