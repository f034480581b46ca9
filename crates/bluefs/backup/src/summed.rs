//! Bytes on their way, with their checksum.

use crc_fast::{CrcAlgorithm, Digest};
use std::io::{self, Read};

/// Bytes on their way, with their checksum.
pub struct Summed<R> {
    from: R,
    sum: Digest,
}

impl<R> Summed<R> {
    /// Of what `from` gives from here on.
    pub fn new(from: R) -> Self {
        let sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
        Self { from, sum }
    }

    /// Of what was read so far.
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
