//! Streams an object's bytes onto the drive in bounded memory, with a checksum for every block.
//!
//! Bytes are collected up to [`PIECE`]; these go to the data stream, which may
//! spread it over zones. Pieces that come to lie side by side become one blob. An object of
//! at most [`MAX_INLINE`] bytes costs no block at all: it travels with its metadata.

use crate::checksum::{self, BLOCK};
use crate::format::note::Piece;
use crate::inner::Inner;
use crate::stream::{AppendError, Placed, Stream};
use crate::written::{Hold, Written};
use crate::{Error, Result};
use object::{MAX_INLINE, MAX_STORED};
use std::sync::Arc;
use zone::ZoneAddress;
use zone_alloc::History;

/// Bytes that a writer collects before it writes.
pub(crate) const PIECE: usize = 1 << 20;

/// Streams bytes onto the drive in bounded memory (about 1 MiB a writer).
pub struct ObjectWriter {
    store: Arc<Inner>,
    buffer: Vec<u8>,
    length: u64,
    hold: Hold,
    history: History,
    /// Of the streams of user data.
    stream: usize,
}

impl ObjectWriter {
    pub(crate) fn new(store: Arc<Inner>, expected: Option<u64>) -> Self {
        let hold = store.hold();
        let capacity = expected.map_or(0, |e| e.min(PIECE as u64) as usize);
        let buffer = Vec::with_capacity(capacity);
        let history = store.lifetimes.of_new();
        Self {
            store,
            buffer,
            length: 0,
            hold,
            history,
            stream: 0,
        }
    }

    /// Says before the first byte what the data is going to replace. It is placed beside data that is
    /// expected to live as long; nothing else follows from it.
    #[must_use]
    pub fn replacing(mut self, collection: &str, object: &str) -> Self {
        let lifetimes = &self.store.lifetimes;
        self.history = lifetimes.of_object(collection, object);
        self.stream = lifetimes.written(self.history, self.store.freelist.live());
        self
    }

    /// Takes more bytes. [`Error::NoSpace`] when they would not fit; what was written so far is
    /// then given up by dropping the writer.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        self.length += data.len() as u64;
        while !data.is_empty() {
            let take = data.len().min(PIECE - self.buffer.len());
            let (head, tail) = data.split_at(take);
            data = tail;
            if take == PIECE {
                self.put_piece(head)?;
                continue;
            }
            self.buffer.extend_from_slice(head);
            if self.buffer.len() == PIECE {
                let buffer = std::mem::take(&mut self.buffer);
                self.put_piece(&buffer)?;
                self.buffer = buffer;
                self.buffer.clear();
            }
        }
        Ok(())
    }

    /// Writes out the rest.
    pub fn finish(mut self) -> Result<Written> {
        let buffer = std::mem::take(&mut self.buffer);
        let is_small = self.hold.is_empty() && buffer.len() as u64 <= MAX_INLINE;
        let inline = if is_small && !buffer.is_empty() {
            self.store.admit_metadata()?;
            Some(buffer)
        } else {
            self.put_piece(&buffer)?;
            None
        };
        Ok(Written {
            length: self.length,
            inline,
            hold: self.hold,
        })
    }

    fn put_piece(&mut self, piece: &[u8]) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let geometry = self.store.device.geometry();
        let padded = geometry.round_up(piece.len() as u64);
        self.store.admit_data(padded)?;
        self.hold.add_reserved(padded);
        let (store, history) = (&self.store, self.history);
        store.lifetimes.count(padded);
        let place = (store.data.of(self.stream), history);
        append_run(store, place, piece, &mut self.hold)
    }
}

/// Appends `run`, which has this history, to a stream and enters it in `hold`. Cleans where the stream
/// needs a zone and there is none; goes on in another of its kind if that gains none.
pub(crate) fn append_run<'a>(
    store: &'a Inner,
    (mut stream, history): (&'a Stream, History),
    run: &[u8],
    hold: &mut Hold,
) -> Result<()> {
    let block_size = store.device.geometry().block_size;
    let padded = appender::padded(run, block_size);
    let mut blocks = &*padded;
    let mut left = run.len() as u64;
    while !blocks.is_empty() {
        let placed = match stream.append(blocks) {
            Ok(placed) => placed,
            Err(AppendError::NeedsZone) => {
                stream = store.make_room(stream, blocks.len() as u64)?;
                continue;
            }
            Err(AppendError::Drive(error)) => return Err(Error::Drive(error)),
        };
        let (head, rest) = blocks.split_at(placed.length as usize);
        blocks = rest;
        store.lifetimes.placed(placed.at, placed.length, history);
        let stored = placed.length.min(left);
        left -= stored;
        hold.add(placed.at.zone, placed.length, |pieces| {
            add(pieces, placed, &head[..stored as usize], block_size.into());
        });
    }
    Ok(())
}

/// Adds a placed run of bytes to the last piece if it continues it, or as one of its own.
fn add(pieces: &mut Vec<Piece>, placed: Placed, mut data: &[u8], block: u64) {
    let mut at = placed.at;
    while !data.is_empty() {
        let room = match pieces.last() {
            Some(last) => {
                let length = u64::from(last.length);
                let next = ZoneAddress::new(last.at.zone, last.at.offset + length);
                let grows = next == at && length.is_multiple_of(BLOCK.max(block));
                if grows { MAX_STORED - last.length } else { 0 }
            }
            None => 0,
        };
        if room == 0 {
            pieces.push(Piece::empty(at));
        }
        let room = if room == 0 { MAX_STORED } else { room };
        let (head, tail) = data.split_at(data.len().min(room as usize));
        if let Some(last) = pieces.last_mut() {
            last.checksums.extend(checksum::of_blocks(head));
            last.length += head.len() as u32;
        }
        at.offset += head.len() as u64;
        data = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneId;

    fn placed(offset: u64, length: u64) -> Placed {
        Placed {
            at: ZoneAddress::new(ZoneId(3), offset),
            length,
        }
    }

    #[test]
    fn neighbours_grow_together_up_to_the_largest_blob() {
        let piece = vec![7; PIECE];
        let mut pieces = Vec::new();
        for i in 0..5 {
            add(
                &mut pieces,
                placed(i * PIECE as u64, PIECE as u64),
                &piece,
                4096,
            );
        }
        let sizes: Vec<_> = pieces.iter().map(|p| p.length).collect();
        assert_eq!(sizes, [4 << 20, 1 << 20]);
        assert_eq!(pieces[0].checksums.len(), 64);
    }

    #[test]
    fn a_short_block_ends_a_piece() {
        let mut pieces = Vec::new();
        add(&mut pieces, placed(0, 4096), &[1; 4000], 4096);
        add(&mut pieces, placed(4096, 4096), &[1; 4096], 4096);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].checksums, checksum::of_blocks(&[1; 4000]));
    }
}
