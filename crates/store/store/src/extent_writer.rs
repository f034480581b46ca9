//! Streams an object's bytes onto the drive in bounded memory, with a checksum for every checksum block.
//!
//! Bytes are collected up to [`ObjectWriter::PIECE`] and appended to a data stream, which may spread them over zones.
//! Pieces that lie side by side become one blob. An object of at most half a block takes no block at all: it is stored
//! with its metadata.

use crate::checksum;
use crate::compression::{self, Compression};
use crate::format::note::Piece;
use crate::inner::Inner;
use crate::options::{DataOptions, WriteHints};
use crate::stream::{AppendError, Placed, Stream};
use crate::written::{Hold, Run, Written};
use crate::{Error, Result};
use appender::IN_NEED;
use object::{ChecksumBlock, ChecksumKind, Codec, MAX_STORED};
use std::borrow::Cow;
use std::sync::Arc;
use zone::{Geometry, ZoneAddress};
use zone_alloc::History;

/// Zone ends tried for compressed data, which has to lie in one zone, before the write fails.
const MOST_ENDS: u32 = 4;
/// How often a write that the drive's limit of active zones refuses is tried again: other writers take what is finished, too.
const MOST_AGAIN: u32 = 3;

/// How a writer's bytes are stored: codec and checksums.
pub(crate) struct Shape {
    codec: Codec,
    compression: Compression,
    checksum_kind: ChecksumKind,
    checksum_block: ChecksumBlock,
}

impl Shape {
    pub fn new(options: &DataOptions, hints: WriteHints) -> Self {
        Self {
            codec: options.compression.codec_for(hints.compressible),
            compression: options.compression,
            checksum_kind: hints.checksum.unwrap_or(options.checksum),
            checksum_block: hints.checksum_block.unwrap_or(options.checksum_block),
        }
    }

    pub fn compresses(&self) -> bool {
        self.codec != Codec::None
    }

    fn plain<'a>(&self, bytes: &'a [u8]) -> Stored<'a> {
        Stored {
            codec: Codec::None,
            raw: bytes.len() as u32,
            bytes: Cow::Borrowed(bytes),
            checksum_kind: self.checksum_kind,
            checksum_block: self.checksum_block,
        }
    }

    /// `bytes` in the form to store, compressed where that is worth it.
    fn stored<'a>(&self, bytes: &'a [u8], geometry: &Geometry) -> Vec<Stored<'a>> {
        if !self.compresses() {
            return vec![self.plain(bytes)];
        }
        // Compressed data is appended in one go, and lies in one zone.
        let most = match geometry.max_append_bytes {
            0 => geometry.zone_capacity,
            most => geometry.zone_capacity.min(most.into()),
        };
        let unit = compression::UNIT.min(most as usize);
        let block_size = geometry.block_size as usize;
        let (mut stored, mut plain) = (Vec::new(), 0..0);
        for raw in bytes.chunks(unit) {
            let end = plain.end + raw.len();
            let packed = compression::compress(self.codec, raw).filter(|packed| {
                self.compression
                    .is_worth(raw.len(), packed.len(), block_size)
            });
            let Some(packed) = packed else {
                plain.end = end;
                continue;
            };
            if !plain.is_empty() {
                stored.push(self.plain(&bytes[plain]));
            }
            plain = end..end;
            stored.push(Stored {
                codec: self.codec,
                raw: raw.len() as u32,
                bytes: Cow::Owned(packed),
                checksum_kind: self.checksum_kind,
                checksum_block: self.checksum_block,
            });
        }
        if !plain.is_empty() {
            stored.push(self.plain(&bytes[plain]));
        }
        stored
    }
}

/// Bytes in their stored form.
pub(crate) struct Stored<'a> {
    bytes: Cow<'a, [u8]>,
    codec: Codec,
    /// Bytes before compression.
    raw: u32,
    checksum_kind: ChecksumKind,
    checksum_block: ChecksumBlock,
}

impl<'a> Stored<'a> {
    /// A part of a blob that is moved. The blob keeps its checksums: these are for the log alone.
    pub fn part(bytes: &'a [u8]) -> Self {
        Shape::new(&DataOptions::default(), WriteHints::default()).plain(bytes)
    }

    /// The stored bytes of a run, to be written again.
    pub fn again(run: &Run, bytes: &'a [u8]) -> Self {
        Self {
            bytes: Cow::Borrowed(bytes),
            codec: run.codec,
            raw: run.raw,
            checksum_kind: run.piece.checksum_kind,
            checksum_block: run.piece.checksum_block,
        }
    }

    /// The run for `bytes`, a part of these, at `at`.
    fn placed(&self, at: ZoneAddress, bytes: &[u8]) -> Run {
        Run {
            codec: self.codec,
            raw: match self.codec {
                Codec::None => bytes.len() as u32,
                _ => self.raw,
            },
            piece: Piece {
                at,
                length: bytes.len() as u32,
                checksum_kind: self.checksum_kind,
                checksum_block: self.checksum_block,
                checksums: checksum::of_blocks(self.checksum_kind, self.checksum_block, bytes),
            },
        }
    }
}

/// Streams bytes onto the drive in bounded memory (about 1 MiB a writer).
pub struct ObjectWriter {
    store: Arc<Inner>,
    shape: Shape,
    buffer: Vec<u8>,
    /// Room that `buffer` gets with its first byte.
    room: usize,
    length: u64,
    hold: Hold,
    history: History,
    /// Index among the streams of user data.
    stream: usize,
}

impl ObjectWriter {
    /// Bytes that a writer collects before it writes: 1 MiB. A caller's bytes are not copied when they come in pieces
    /// of this size, aligned to it from the object's start.
    pub const PIECE: usize = 1 << 20;

    pub(crate) fn new(store: Arc<Inner>, expected: Option<u64>, shape: Shape) -> Self {
        let hold = store.hold();
        let room = expected.map_or(0, |e| e.min(Self::PIECE as u64) as usize);
        let history = store.lifetimes.of_new();
        Self {
            store,
            shape,
            buffer: Vec::new(),
            room,
            length: 0,
            hold,
            history,
            stream: 0,
        }
    }

    /// Names, before the first byte, the object that the data will replace. The data is placed beside data that is
    /// expected to live as long; this has no other effect.
    #[must_use]
    pub fn replacing(mut self, collection: &str, object: impl AsRef<[u8]>) -> Self {
        let lifetimes = &self.store.lifetimes;
        self.history = lifetimes.of_object(collection, object.as_ref());
        self.stream = lifetimes.written(self.history, self.store.freelist.live());
        self
    }

    /// Takes more bytes. [`Error::NoSpace`] if they do not fit; dropping the writer then gives up what was written so
    /// far.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        self.length += data.len() as u64;
        while !data.is_empty() {
            let take = data.len().min(Self::PIECE - self.buffer.len());
            let (head, tail) = data.split_at(take);
            data = tail;
            if take == Self::PIECE {
                self.put_piece(head)?;
                continue;
            }
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(self.room);
            }
            self.buffer.extend_from_slice(head);
            if self.buffer.len() == Self::PIECE {
                let buffer = std::mem::take(&mut self.buffer);
                self.put_piece(&buffer)?;
                self.buffer = buffer;
                self.buffer.clear();
            }
        }
        Ok(())
    }

    /// Takes the last bytes, like [`Self::write`], and does not copy them if none before them wait to be written.
    pub fn write_last(&mut self, data: &[u8]) -> Result<()> {
        let is_small = self.hold.is_empty() && self.store.is_inline(data.len() as u64);
        if is_small || !self.buffer.is_empty() || data.len() > Self::PIECE {
            return self.write(data);
        }
        self.length += data.len() as u64;
        self.put_piece(data)
    }

    /// Writes out the rest, and returns the data for a transaction.
    pub fn finish(mut self) -> Result<Written> {
        let buffer = std::mem::take(&mut self.buffer);
        let is_small = self.hold.is_empty() && self.store.is_inline(buffer.len() as u64);
        let inline = if is_small && !buffer.is_empty() {
            self.store.admit_metadata(0)?;
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
        let _request = self.store.requests.begin();
        let geometry = self.store.device.geometry();
        for stored in self.shape.stored(piece, geometry) {
            let padded = geometry.round_up(stored.bytes.len() as u64);
            self.store.admit_data(padded)?;
            self.hold.add_reserved(padded);
            let (store, history) = (&self.store, self.history);
            store.lifetimes.count(padded);
            let place = (store.data.of(self.stream), history);
            append(store, place, stored, &mut self.hold)?;
        }
        Ok(())
    }
}

/// Appends `stored`, with the lifetime `history`, to a stream and enters its place in `hold`. Where the stream needs a
/// zone and none is free, cleans; if that frees none, goes on in another stream of the same kind. Where the drive allows no
/// other active zone, finishes those that could not be finished before. Only the holder of the turn appends to a stream of
/// the cleaner's.
pub(crate) fn append<'a>(
    store: &'a Inner,
    (mut stream, history): (&'a Stream, History),
    stored: Stored<'_>,
    hold: &mut Hold,
) -> Result<()> {
    let block_size = store.device.geometry().block_size;
    let padded = appender::padded(&stored.bytes, block_size);
    let mut blocks = &*padded;
    let mut left = stored.bytes.len() as u64;
    let mut ends = 0;
    let mut again = 0;
    while !blocks.is_empty() {
        let placed = match stream.append(blocks) {
            Ok(placed) => placed,
            Err(AppendError::NeedsZone) => {
                stream = store.make_room(stream, blocks.len() as u64)?;
                continue;
            }
            Err(AppendError::Drive(error))
                if again < MOST_AGAIN && appender::is_of_limit(&error) =>
            {
                again += 1;
                match store.moved.has(stream) {
                    true => store.finish_in_turn(IN_NEED),
                    false => store.finish_again(IN_NEED),
                }
                store.fs.finish_again(IN_NEED);
                // Whoever has finished a zone: this thread or another.
                continue;
            }
            Err(AppendError::Drive(error)) => return Err(Error::Drive(error)),
        };
        again = 0;
        let Placed { at, length } = placed;
        if stored.codec != Codec::None && length < blocks.len() as u64 {
            // The zone's rest is too short: compressed data lies in one zone, so it is written again in the next. A
            // full drive may have nothing but such rests.
            store.freelist.unpin(at.zone);
            ends += 1;
            if ends > MOST_ENDS {
                return Err(store.no_space(blocks.len() as u64));
            }
            continue;
        }
        let (head, rest) = blocks.split_at(length as usize);
        blocks = rest;
        store.lifetimes.placed(at, length, history);
        let bytes = &head[..length.min(left) as usize];
        left -= bytes.len() as u64;
        hold.add(at.zone, length, |runs| {
            enter(runs, at, &stored, bytes, block_size)
        });
    }
    Ok(())
}

/// Adds `bytes` of `stored`, which lie at `at`, to the last run if they continue it, or as new runs.
fn enter(
    runs: &mut Vec<Run>,
    mut at: ZoneAddress,
    stored: &Stored<'_>,
    mut bytes: &[u8],
    block_size: u32,
) {
    while !bytes.is_empty() {
        let room = runs
            .last()
            .map_or(0, |last| last.room_for(at, stored, block_size));
        let room = if room == 0 { MAX_STORED } else { room };
        let (head, tail) = bytes.split_at(bytes.len().min(room as usize));
        let run = stored.placed(at, head);
        match runs.last_mut() {
            Some(last) if last.room_for(at, stored, block_size) > 0 => {
                last.raw += run.raw;
                last.piece.length += run.piece.length;
                last.piece.checksums.extend(run.piece.checksums);
            }
            _ => runs.push(run),
        }
        at.offset += head.len() as u64;
        bytes = tail;
    }
}

impl Run {
    /// How many bytes of `stored` at `at` can be added to this run; 0 if they do not continue it.
    fn room_for(&self, at: ZoneAddress, stored: &Stored<'_>, block_size: u32) -> u32 {
        let piece = &self.piece;
        let next = ZoneAddress::new(piece.at.zone, piece.at.offset + u64::from(piece.length));
        let is_alike = self.codec == Codec::None
            && stored.codec == Codec::None
            && piece.checksum_kind == stored.checksum_kind
            && piece.checksum_block == stored.checksum_block;
        let unit = piece.checksum_block.bytes().max(block_size);
        if is_alike && next == at && piece.length.is_multiple_of(unit) {
            MAX_STORED - piece.length
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests;
