//! Storage for the data of a model, which has only times.

use crate::block_device::Payload;
use drive_model::{BLOCK_BYTES, Request, RequestKind};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::io;

/// Bytes by offset; those that were never written are zeros.
pub trait Data: Send + Sync {
    /// Reads bytes.
    ///
    /// # Errors
    /// The host's error.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes bytes.
    ///
    /// # Errors
    /// The host's error.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes bytes zeros, or leaves them if that is not easy.
    ///
    /// # Errors
    /// The host's error.
    fn discard(&self, at: u64, length: u64) -> io::Result<()>;

    /// Makes all writes durable, if the storage outlives the process.
    ///
    /// # Errors
    /// The host's error.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// No storage, for uses where only times matter.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoData;

impl Data for NoData {
    fn read(&self, _at: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.fill(0);
        Ok(())
    }

    fn write(&self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self, _at: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Storage in memory, for blocks that were written.
#[derive(Default, Debug)]
pub struct Memory(Mutex<BTreeMap<u64, Box<[u8]>>>);

/// Splits a range at block boundaries: block, first byte in the block, and length.
fn pieces(at: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = at + length as u64;
    (at / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)).map(move |block| {
        let start = at.max(block * BLOCK_BYTES);
        let stop = end.min((block + 1) * BLOCK_BYTES);
        let from = (start % BLOCK_BYTES) as usize;
        (block, from, (stop - start) as usize)
    })
}

impl Data for Memory {
    fn read(&self, at: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        let blocks = self.0.lock();
        for (block, from, count) in pieces(at, buffer.len()) {
            let (piece, rest) = buffer.split_at_mut(count);
            match blocks.get(&block) {
                Some(bytes) => piece.copy_from_slice(&bytes[from..from + count]),
                None => piece.fill(0),
            }
            buffer = rest;
        }
        Ok(())
    }

    fn write(&self, at: u64, mut bytes: &[u8]) -> io::Result<()> {
        let mut blocks = self.0.lock();
        for (block, from, count) in pieces(at, bytes.len()) {
            let (piece, rest) = bytes.split_at(count);
            let empty = || vec![0; BLOCK_BYTES as usize].into();
            let block = blocks.entry(block).or_insert_with(empty);
            block[from..from + count].copy_from_slice(piece);
            bytes = rest;
        }
        Ok(())
    }

    fn discard(&self, at: u64, length: u64) -> io::Result<()> {
        let whole = at.div_ceil(BLOCK_BYTES)..(at + length) / BLOCK_BYTES;
        if !whole.is_empty() {
            self.0.lock().retain(|block, _| !whole.contains(block));
        }
        Ok(())
    }
}

/// Byte offset of a payload.
pub(crate) const fn place(request: &Request, skip: u32) -> u64 {
    request.lba.0 * BLOCK_BYTES + skip as u64
}

/// Applies the effect of a request to the data; its blocks have to exist. Reads are left to [`fetch`].
pub(crate) fn carry_out(data: &impl Data, request: &Request, payload: &Payload) -> io::Result<()> {
    match payload {
        Payload::Write { skip, bytes } if request.operation.is_write() => {
            data.write(place(request, *skip), bytes)
        }
        _ if request.operation == RequestKind::Trim && request.blocks > 0 => {
            data.discard(place(request, 0), request.bytes())
        }
        _ => Ok(()),
    }
}

/// The bytes that a request reads.
pub(crate) fn fetch(data: &impl Data, request: &Request, payload: &Payload) -> io::Result<Vec<u8>> {
    let Payload::Read { skip, length } = *payload else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; length as usize];
    data.read(place(request, skip), &mut bytes)?;
    Ok(bytes)
}
