//! Reads a file at any offset, also while it is being written.

use crate::handle::Handle;
use crate::node::read_bytes;
use crate::{Error, Result};
use std::sync::Arc;
use zone::ZoneAddress;

/// An open file for reading. Clones share it; any number of threads may read.
#[derive(Clone)]
pub struct Reader {
    handle: Arc<Handle>,
}

impl Reader {
    pub(crate) fn new(handle: Handle) -> Self {
        Self {
            handle: Arc::new(handle),
        }
    }

    /// Bytes in the file now, those that a writer has not put on the drive yet included.
    pub fn size(&self) -> u64 {
        self.handle.node.body.read().size()
    }

    /// Names the file for as long as the file system is mounted.
    pub fn inode(&self) -> u64 {
        self.handle.node.inode
    }

    /// Fills `buffer` from `offset` and answers how many bytes that were; fewer than asked for only
    /// at the file's end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let shared = &self.handle.shared;
        let _no_reset = shared.gate.read();
        let body = self.handle.node.body.read();
        let size = body.size();
        if offset >= size {
            return Ok(0);
        }
        let length = (buffer.len() as u64).min(size - offset) as usize;
        let buffer = &mut buffer[..length];
        let end = offset + length as u64;
        let mut next = offset;
        let first = body
            .pieces
            .partition_point(|p| p.file_offset + p.length <= offset);
        for piece in &body.pieces[first..] {
            if piece.file_offset >= end {
                break;
            }
            if piece.file_offset > next {
                return Err(Error::Corrupt {
                    at: piece.at,
                    what: "a hole in a file before",
                    expected: next,
                    found: piece.file_offset,
                });
            }
            let to = end.min(piece.file_offset + piece.length);
            let at = ZoneAddress::new(piece.at.zone, piece.at.offset + (next - piece.file_offset));
            let target = &mut buffer[(next - offset) as usize..(to - offset) as usize];
            read_bytes(&*shared.device, at, target)?;
            next = to;
        }
        if next < end {
            let from = (next - body.written()) as usize;
            let rest = &mut buffer[(next - offset) as usize..];
            rest.copy_from_slice(&body.tail[from..from + rest.len()]);
        }
        Ok(length)
    }
}
