//! The bytes of one zone in memory: chunks are allocated only where data was written, and copies share them
//! until one of them is written to.
//!
//! Invariant: a missing chunk reads as zeros.

use std::sync::Arc;

const CHUNK_BYTES: usize = 64 << 10;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// A sparse sequence of bytes. A clone copies one pointer for each chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseBytes {
    chunks: Vec<Option<Arc<Vec<u8>>>>,
}

impl SparseBytes {
    /// Fills `buffer` from `offset`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) {
        for (index, inside, part) in pieces(offset, buffer.len()) {
            let into = &mut buffer[part];
            match self.chunks.get(index).and_then(Option::as_ref) {
                Some(chunk) => into.copy_from_slice(&chunk[inside..inside + into.len()]),
                None => into.fill(0),
            }
        }
    }

    /// Puts `data` at `offset`.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (index, inside, part) in pieces(offset, data.len()) {
            let from = &data[part];
            if self.chunks.len() <= index {
                self.chunks.resize(index + 1, None);
            }
            // A missing chunk reads as zeros already.
            if self.chunks[index].is_none() && *from == ZEROS[..from.len()] {
                continue;
            }
            let chunk = self.chunks[index].get_or_insert_with(|| Arc::new(vec![0; CHUNK_BYTES]));
            Arc::make_mut(chunk)[inside..inside + from.len()].copy_from_slice(from);
        }
    }

    /// Bytes held in memory, including those shared with clones.
    pub fn allocated_bytes(&self) -> u64 {
        self.chunks.iter().flatten().count() as u64 * CHUNK_BYTES as u64
    }
}

/// Splits a range at chunk borders into chunk index, offset in the chunk, and range in the buffer.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % CHUNK_BYTES as u64) as usize;
        let take = (CHUNK_BYTES - inside).min(length - done);
        let part = done..done + take;
        done += take;
        Some(((at / CHUNK_BYTES as u64) as usize, inside, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_over_chunk_borders_reads_back_and_zeros_surround_it() {
        let mut bytes = SparseBytes::default();
        let offset = CHUNK_BYTES as u64 - 3;
        let data: Vec<u8> = (0..CHUNK_BYTES + 10).map(|i| (i % 251) as u8 + 1).collect();
        bytes.write(offset, &data);
        let mut out = vec![9; data.len() + 6];
        bytes.read(offset - 3, &mut out);
        assert_eq!(out[..3], [0; 3]);
        assert_eq!(out[3..3 + data.len()], data);
        assert_eq!(out[3 + data.len()..], [0; 3]);
        assert_eq!(bytes.allocated_bytes(), 3 * CHUNK_BYTES as u64);
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut bytes = SparseBytes::default();
        bytes.write(0, &[1; 8]);
        let before = bytes.clone();
        bytes.write(4, &[2; 8]);
        let mut out = [9; 12];
        before.read(0, &mut out);
        assert_eq!(out, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    }
}
