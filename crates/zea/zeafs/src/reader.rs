//! Reads ranges of files, chunk by chunk, and verifies each chunk's checksum.

use crate::error::{Error, Result};
use crate::file_map::File;
use crate::format::operation::{CHUNK, Piece};
use crate::inner::Inner;
use crate::shared::Shared;
use crc_fast::{CrcAlgorithm, checksum};
use device::ZonedDevice;
use runtime::sync::Mutex;
use std::sync::Arc;
use zone::ZoneAddress;

/// Most bytes of a read that are kept for the next one.
const MOST_KEPT: u64 = 64 << 10;

/// Bytes of one read of a verification.
const VERIFY_AT_ONCE: usize = 1 << 20;

/// An open file. It stays readable until it is dropped, even if the file is deleted.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    inode: u64,
    /// The chunks of the last read: a sequential reader needs the rest of the last chunk next.
    last: Mutex<Option<Chunks>>,
}

/// Verified consecutive chunks of a piece.
#[derive(Debug)]
struct Chunks {
    /// Address of the piece.
    at: ZoneAddress,
    /// Index of the first chunk in the piece.
    first: u64,
    bytes: Vec<u8>,
    /// The checksums of the chunks, which differ if the zone has been reset and rewritten.
    sums: Vec<u32>,
}

/// A part of a piece: the piece, the offset in it, and the number of bytes.
pub(crate) type Part = (Piece, u64, u64);

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>, inode: u64) -> Self {
        let last = Mutex::new(None);
        Self {
            shared,
            inode,
            last,
        }
    }

    /// Inode number of the file; not reused within a mount.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Size of the file in bytes, including data that is not durable.
    pub fn size(&self) -> u64 {
        self.shared.inner.lock().size(self.inode)
    }

    /// Reads all bytes and verifies their checksums.
    ///
    /// # Errors
    /// A part is damaged or cannot be read.
    pub fn verify(&self) -> Result<()> {
        let mut buffer = vec![0; VERIFY_AT_ONCE];
        let mut offset = 0;
        loop {
            match self.read_at(offset, &mut buffer)? {
                0 => return Ok(()),
                read => offset += read as u64,
            }
        }
    }

    /// Fills `buffer` from `offset` and returns the number of bytes, which is smaller only at the end of the
    /// file.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len() as u64;
        let inner = self.shared.inner.lock();
        let mut found = find(&inner, self.inode, offset, length);
        let device = inner.space.device.clone();
        drop(inner);
        loop {
            let error = match self.read_found(&*device, &found, buffer) {
                Ok(got) => return Ok(got),
                Err(error) => error,
            };
            // A zone may be cleaned and reset between lookup and read. Then the data is somewhere else. No lock is
            // held over the read, so that a slow or stuck one holds up no append.
            let again = find(&self.shared.inner.lock(), self.inode, offset, length);
            if again.0 == found.0 {
                return Err(error);
            }
            found = again;
        }
    }

    /// Fills `buffer` from parts of pieces, and after these from the bytes that were buffered.
    fn read_found(
        &self,
        device: &dyn ZonedDevice,
        (parts, buffered): &(Vec<Part>, Vec<u8>),
        buffer: &mut [u8],
    ) -> Result<usize> {
        if let ([part], true) = (&parts[..], buffered.is_empty())
            && part.2 <= MOST_KEPT
        {
            let kept = |last: &Chunks| last.part(part, buffer);
            if let Some(got) = self.last.lock().as_ref().and_then(kept) {
                return Ok(got);
            }
            if let Some(chunks) = Chunks::read(device, part)? {
                let got = chunks.part(part, buffer);
                *self.last.lock() = Some(chunks);
                if let Some(got) = got {
                    return Ok(got);
                }
            }
        }
        let mut bytes = read_pieces(device, parts)?;
        bytes.extend(buffered);
        let got = bytes.len().min(buffer.len());
        buffer[..got].copy_from_slice(&bytes[..got]);
        Ok(got)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.inner.lock().leave(self.inode);
    }
}

/// The parts of pieces that hold a range of a file, and the bytes of the range in its buffer.
fn find(inner: &Inner, inode: u64, offset: u64, length: u64) -> (Vec<Part>, Vec<u8>) {
    let Some(file) = inner.file(inode) else {
        return (Vec::new(), Vec::new());
    };
    let end = offset.saturating_add(length);
    let parts = parts(file, offset, end);
    let buffer = inner.buffers.get(&inode).map_or(&[][..], Vec::as_slice);
    let within = |at: u64| (at.saturating_sub(file.size) as usize).min(buffer.len());
    let buffered = if end > file.size {
        buffer[within(offset)..within(end)].to_vec()
    } else {
        Vec::new()
    };
    (parts, buffered)
}

/// The parts of a file's pieces from `offset` to `end`.
pub(crate) fn parts(file: &File, offset: u64, end: u64) -> Vec<Part> {
    let first = file
        .pieces
        .partition_point(|piece| piece.file_offset <= offset);
    let mut parts = Vec::new();
    for place in first.saturating_sub(1)..file.pieces.len() {
        let piece = &file.pieces[place];
        let (from, to) = (piece.file_offset.max(offset), file.end_of(place).min(end));
        if piece.file_offset >= end {
            break;
        }
        if from < to {
            parts.push((piece.clone(), from - piece.file_offset, to - from));
        }
    }
    parts
}

/// The first chunk of a piece that a part touches, and the checksums of all touched ones.
fn touched((piece, from, length): &Part) -> Option<(u64, &[u32])> {
    let (first, last) = (from / CHUNK, (from + length).checked_sub(1)? / CHUNK);
    Some((first, piece.sums.get(first as usize..=last as usize)?))
}

impl Chunks {
    /// The chunks that a part touches; `None` if the piece has no checksums for them.
    fn read(device: &dyn ZonedDevice, part: &Part) -> Result<Option<Self>> {
        let Some((first, sums)) = touched(part) else {
            return Ok(None);
        };
        let (piece, ..) = part;
        let start = first * CHUNK;
        let end = (start + sums.len() as u64 * CHUNK).min(piece.length);
        let bytes = read_pieces(device, &[(piece.clone(), start, end - start)])?;
        let (at, sums) = (piece.at, sums.to_vec());
        Ok(Some(Self {
            at,
            first,
            bytes,
            sums,
        }))
    }

    /// Copies a part into `buffer`, if its chunks are all here.
    fn part(&self, part: &Part, buffer: &mut [u8]) -> Option<usize> {
        let (piece, from, length) = part;
        let (first, sums) = touched(part)?;
        let skipped = first.checked_sub(self.first)? as usize;
        if self.at != piece.at || self.sums.get(skipped..)?.get(..sums.len())? != sums {
            return None;
        }
        let at = (from - self.first * CHUNK) as usize;
        let bytes = self.bytes.get(at..)?.get(..*length as usize)?;
        buffer.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(bytes.len())
    }
}

/// Reads parts of pieces one after the other, and verifies every chunk that they touch.
pub(crate) fn read_pieces(device: &dyn ZonedDevice, parts: &[Part]) -> Result<Vec<u8>> {
    let g = device.geometry();
    let mut out = Vec::new();
    for (piece, from, length) in parts {
        let (first, last) = (from / CHUNK, (from + length - 1) / CHUNK);
        let start = first * CHUNK;
        let end = ((last + 1) * CHUNK).min(piece.length);
        // A block may have several chunks.
        let before = start % u64::from(g.block_size);
        let at = ZoneAddress::new(piece.at.zone, piece.at.offset + start - before);
        let mut bytes = vec![0; g.round_up(before + end - start) as usize];
        device.read(g.absolute(at), &mut bytes)?;
        bytes.drain(..before as usize);
        bytes.truncate((end - start) as usize);
        for (chunk, number) in bytes.chunks(CHUNK as usize).zip(first..) {
            let found = checksum(CrcAlgorithm::Crc32Iscsi, chunk);
            let expected = piece
                .sums
                .get(number as usize)
                .copied()
                .map_or(u64::MAX, u64::from);
            if found != expected {
                return Err(Error::Corrupt {
                    at: ZoneAddress::new(piece.at.zone, piece.at.offset + number * CHUNK),
                    what: "checksum of a file's bytes",
                    expected,
                    found,
                });
            }
        }
        let skip = (from - start) as usize;
        out.extend_from_slice(&bytes[skip..skip + *length as usize]);
    }
    Ok(out)
}
