//! Iterates over all extents of a zone in the order of their puts, by reading the zone.

use crate::error::{Error, Result};
use crate::format::label::COPIES;
use crate::format::metadata::Decoded;
use crate::placed::Placed;
use crate::reading::ZoneReader;

/// Blocks of one read.
const STRIDE: u32 = 256;

/// Reads a zone from its start and yields the extents in it. It needs no back pointers, so damage costs only
/// the extents that it hits. A read error of the drive ends the iteration.
#[derive(Debug)]
pub struct Forward {
    reader: ZoneReader,
    /// The number of the first block read, and the bytes from there on.
    window: (u32, Vec<u8>),
    /// The next block to decode.
    next: u32,
    /// The block after the last extent found: no later extent begins before it.
    floor: u32,
    end: u32,
}

impl Forward {
    pub(crate) fn new(reader: ZoneReader, end: u32) -> Self {
        Self {
            reader,
            window: (COPIES, Vec::new()),
            next: COPIES,
            floor: COPIES,
            end,
        }
    }

    /// Decodes the next block.
    fn look(&mut self) -> Result<Decoded> {
        let block_size = self.reader.block_size();
        let in_window = |window: &(u32, Vec<u8>), next: u32| {
            let at = (next - window.0) as usize * block_size;
            window.1.get(at..at + block_size).map(<[u8]>::to_vec)
        };
        let bytes = match in_window(&self.window, self.next) {
            Some(bytes) => bytes,
            None => {
                let count = STRIDE.min(self.end - self.next);
                self.window = (self.next, self.reader.read_run(self.next, count)?);
                in_window(&self.window, self.next).unwrap_or_default()
            }
        };
        Ok(self.reader.decode(&bytes, self.next))
    }
}

impl Iterator for Forward {
    type Item = Result<Placed, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            let decoded = match self.look() {
                Ok(decoded) => decoded,
                Err(error) => {
                    self.next = self.end;
                    return Some(Err(error));
                }
            };
            self.next += 1;
            // A block inside an extent found before is that extent's data, even if it looks like metadata.
            if let Decoded::Valid(metadata) = decoded
                && metadata.start >= self.floor
            {
                self.floor = self.next;
                return Some(Ok(self.reader.placed(&metadata)));
            }
        }
        None
    }
}
