//! A reader that computes the checksum of the bytes read through it.

use crc_fast::{CrcAlgorithm, Digest};
use std::io::{self, Read};

/// A reader with the crc32c of the bytes read through it.
pub struct Summed<R> {
    from: R,
    sum: Digest,
}

impl<R> Summed<R> {
    /// Reads from `from`, beginning with an empty checksum.
    pub fn new(from: R) -> Self {
        let sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
        Self { from, sum }
    }

    /// The checksum of the bytes read so far.
    pub fn crc32c(&self) -> u32 {
        self.sum.finalize() as u32
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.sum.update(&buffer[..read]);
        Ok(read)
    }
}
