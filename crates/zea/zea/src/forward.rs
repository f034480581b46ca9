//! Iterates over all extents of a zone in the order of their puts, by reading the zone.

use crate::error::{Error, Result};
use crate::format::label::COPIES;
use crate::format::metadata::Decoded;
use crate::placed::Placed;
use crate::reading::ZoneReader;

/// Blocks of one read.
const STRIDE: u32 = 256;

/// Blocks that are passed over because they cannot be read.
const MOST_UNREADABLE: u32 = 64;

/// Reads a zone from its start and yields the extents in it. It needs no back pointers, so damage costs only
/// the extents that it hits. A block that cannot be read yields an error in its place. Any other error of the drive
/// ends the iteration, and so do more than 64 such blocks.
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
    /// Blocks before this one are read one at a time.
    singly: u32,
    unreadable: u32,
}

impl Forward {
    pub(crate) fn new(reader: ZoneReader, end: u32) -> Self {
        Self {
            reader,
            window: (COPIES, Vec::new()),
            next: COPIES,
            floor: COPIES,
            end,
            singly: 0,
            unreadable: 0,
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
                let most = if self.next < self.singly { 1 } else { STRIDE };
                let count = most.min(self.end - self.next);
                let run = match self.reader.read_run(self.next, count) {
                    Err(error) if error.is_unreadable() && count > 1 => {
                        self.singly = self.next + count;
                        self.reader.read_run(self.next, 1)?
                    }
                    run => run?,
                };
                self.window = (self.next, run);
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
                    self.unreadable += 1;
                    let goes_on = error.is_unreadable() && self.unreadable <= MOST_UNREADABLE;
                    self.next = if goes_on { self.next + 1 } else { self.end };
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
