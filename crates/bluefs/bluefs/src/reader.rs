//! Reads a file at any offset, also while it is being written.
//!
//! Bytes come from what this reader has read ahead, from the cache, or from the drive. Reads in
//! order are read ahead and leave the cache as it is, so that a compaction does not wash it out;
//! others fill it. A piece that is read whole is compared with its checksum.

use crate::cache::RUN;
use crate::format::crc32c;
use crate::format::journal::Kind;
use crate::handle::Handle;
use crate::node::{Body, Piece, read_bytes};
use crate::read_later::{Ask, Later, PendingRead, ReadsTogether};
use crate::readahead::{MAX_WINDOW, Sequence};
use crate::readahead_window::Window;
use crate::scratch;
use crate::{Error, Result};
use crc_fast::{CrcAlgorithm, Digest};
use runtime::sync::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ByteOffset, Geometry, ZoneAddress};

/// Whoever asks for as much at once does not fill the cache, nor look into it unless what is written is there.
const PAST_CACHE: u64 = 256 << 10;

/// Records of a log so close to each other are read at once, so many bytes with what is between them.
const RECORD_GAP: u64 = 16 << 10;
const RECORDS_AT_ONCE: u64 = 512 << 10;

/// An open file for reading. Clones share it; any number of threads may read.
#[derive(Clone)]
pub struct Reader {
    open: Arc<Open>,
    later: Arc<Later<Self>>,
    keeps: bool,
}

struct Open {
    handle: Handle,
    /// Whoever finds it locked does without.
    ahead: Mutex<Ahead>,
}

struct Ahead {
    sequence: Sequence,
    window: Window,
}

impl Reader {
    pub(crate) fn new(handle: Handle, later: Arc<Later<Self>>) -> Self {
        let ahead = Ahead {
            sequence: Sequence::default(),
            window: Window::new(handle.shared.ahead_left.clone()),
        };
        Self {
            open: Arc::new(Open {
                handle,
                ahead: Mutex::new(ahead),
            }),
            later,
            keeps: true,
        }
    }

    /// The same file; what is read through this is not put into the cache.
    #[must_use]
    pub fn uncached(mut self) -> Self {
        self.keeps = false;
        self
    }

    /// Bytes in the file now, those that a writer has not put on the drive yet included.
    pub fn size(&self) -> u64 {
        self.open.handle.node.body.read().size()
    }

    /// Names the file for as long as the file system is mounted.
    pub fn inode(&self) -> u64 {
        self.open.handle.node.inode
    }

    /// Fills `buffer` from `offset` and answers how many bytes that were; fewer than asked for only
    /// at the file's end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let shared = &self.open.handle.shared;
        let body = self.open.handle.node.body.read();
        let length = (buffer.len() as u64).min(body.size().saturating_sub(offset)) as usize;
        let on_drive = (length as u64).min(body.written().saturating_sub(offset)) as usize;
        let (written, tail) = buffer[..length].split_at_mut(on_drive);
        if !tail.is_empty() {
            let from = (offset + on_drive as u64 - body.written()) as usize;
            tail.copy_from_slice(&body.tail[from..from + tail.len()]);
        }
        let found = usize::try_from(offset).ok();
        let found = found
            .and_then(|from| body.found.get(from..))
            .unwrap_or_default();
        let known = found.len().min(on_drive);
        let (first, written) = written.split_at_mut(known);
        first.copy_from_slice(&found[..known]);
        if !written.is_empty() {
            let offset = offset + known as u64;
            // A read may take long, and a writer that waits for the file keeps other readers out. Nobody
            // can move these places away before `body` is let go of.
            let end = offset + written.len() as u64;
            if let Some(piece) = piece_at(&body, offset).copied()
                && end <= piece.file_offset + piece.length
                && !shared.cache.is_on()
            {
                let _reading = shared.gate.enter_in([piece.at.zone]);
                drop(body);
                return self.take_piece(&piece, offset, written).map(|()| length);
            }
            let part = self.part(&body, offset, written.len() as u64);
            let _reading = shared.gate.enter_in(part.pieces.iter().map(|p| p.at.zone));
            drop(body);
            self.read_written(&part, offset, written)?;
        }
        Ok(length)
    }

    /// What is needed of the file for a read, what is read around it and ahead included.
    fn part(&self, body: &Body, offset: u64, length: u64) -> Body {
        let end = offset.saturating_add(length);
        if !self.open.handle.shared.cache.is_on() {
            return body.part(offset, end);
        }
        let window = end.saturating_add(MAX_WINDOW);
        body.part(offset / RUN * RUN, window.next_multiple_of(RUN))
    }

    /// Does many reads as [`Self::read_at`] does one; those that go to the drive go at once.
    pub fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> Vec<Result<usize>> {
        let asks = reads.iter_mut().map(|(offset, buffer)| Ask {
            reader: self,
            offset: *offset,
            buffer,
        });
        Self::read_all(&mut asks.collect::<Vec<_>>())
    }

    /// Begins a read of up to `length` bytes, which goes to the drive together with others that wait.
    pub fn read_later(&self, offset: u64, length: usize) -> PendingRead {
        let shared = &self.open.handle.shared;
        shared.counters.reads_later.fetch_add(1, Ordering::Relaxed);
        self.later.begin(self, offset, length)
    }

    /// Reads the whole file from the drive and compares every extent and record with its checksum; the
    /// checksum (crc32c) of all its bytes is answered. Of an extent that was truncated the checksum is
    /// not known.
    pub fn verify(&self) -> Result<u32> {
        const AT_ONCE: usize = 1 << 20;
        let Handle { shared, node } = &self.open.handle;
        let (pieces, tail, _reading) = {
            let body = node.body.read();
            let zones = body.pieces.iter().map(|p| p.at.zone);
            let reading = shared.gate.enter_in(zones);
            (body.pieces.clone(), body.tail.clone(), reading)
        };
        let mut all = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut next = 0;
        let mut buffer = Vec::new();
        for piece in &pieces {
            if piece.file_offset != next {
                return Err(Error::Corrupt {
                    at: piece.at,
                    what: "a hole in a file before",
                    expected: next,
                    found: piece.file_offset,
                });
            }
            next += piece.length;
            if node.kind == Kind::Log {
                let record = shared.read_record(node.inode, piece)?;
                let record = record.ok_or(Error::Corrupt {
                    at: piece.at,
                    what: "a log record is damaged, bytes",
                    expected: piece.length,
                    found: 0,
                })?;
                all.update(&record);
                continue;
            }
            let mut own = Digest::new(CrcAlgorithm::Crc32Iscsi);
            for from in (0..piece.length).step_by(AT_ONCE) {
                buffer.resize((piece.length - from).min(AT_ONCE as u64) as usize, 0);
                let at = ZoneAddress::new(piece.at.zone, piece.at.offset + from);
                read_bytes(&*shared.device, at, &mut buffer)
                    .map_err(|error| self.open.handle.read_failed(error))?;
                own.update(&buffer);
                all.update(&buffer);
            }
            compare(piece, own.finalize() as u32)?;
        }
        all.update(&tail);
        Ok(all.finalize() as u32)
    }

    fn caches(&self) -> bool {
        let Handle { shared, node } = &self.open.handle;
        node.kind == Kind::Plain && shared.cache.is_on()
    }

    /// Reads bytes that are all on the drive.
    fn read_written(&self, body: &Body, offset: u64, target: &mut [u8]) -> Result<()> {
        let length = target.len() as u64;
        let mut window = 0;
        let mut ahead = self.open.ahead.try_lock();
        if let Some(ahead) = &mut ahead {
            ahead.sequence = ahead.sequence.after(offset, length);
            if ahead.window.serve(body.truncates, offset, target) {
                return Ok(());
            }
            if !ahead.sequence.goes_on() {
                ahead.window.clear();
            }
            // Where there is no cache, something below keeps what was read, and reads ahead itself.
            if self.open.handle.shared.cache.is_on() {
                window = ahead.sequence.window(length);
            }
        }
        let keeps = self.caches() && self.keeps && length < PAST_CACHE;
        let cache_writes = self.open.handle.shared.cache_writes;
        let found = if self.caches() && (length < PAST_CACHE || cache_writes) {
            self.take_cached(body, offset, target)
        } else {
            0
        };
        let (offset, target) = (offset + found as u64, &mut target[found..]);
        if target.is_empty() {
            return Ok(());
        }
        let window = window.min(body.written() - offset);
        if let Some(ahead) = &mut ahead
            && window > target.len() as u64
        {
            let read = |bytes: &mut [u8]| self.take_from_drive(body, offset, bytes).is_ok();
            if ahead.window.fill(body.truncates, offset, window, read) {
                ahead.sequence = ahead.sequence.ahead(window);
                ahead.window.serve(body.truncates, offset, target);
                return Ok(());
            }
        }
        drop(ahead);
        if keeps {
            self.through_cache(body, offset, target)
        } else {
            self.take_from_drive(body, offset, target)
        }
    }

    /// Copies what the cache has, from the start of `target` on, and answers how much that was.
    fn take_cached(&self, body: &Body, offset: u64, target: &mut [u8]) -> usize {
        let Handle { shared, node } = &self.open.handle;
        let end = offset + target.len() as u64;
        let mut next = offset;
        while next < end {
            let to = end.min((next / RUN + 1) * RUN);
            let Some(run) = shared.cache.get(node.inode, body.truncates, &(next..to)) else {
                shared.counters.cache_misses.fetch_add(1, Ordering::Relaxed);
                break;
            };
            shared.counters.cache_hits.fetch_add(1, Ordering::Relaxed);
            let from = (next % RUN) as usize;
            let found = &run[from..from + (to - next) as usize];
            target[(next - offset) as usize..][..found.len()].copy_from_slice(found);
            next = to;
        }
        (next - offset) as usize
    }

    /// Reads whole runs and keeps them.
    fn through_cache(&self, body: &Body, offset: u64, target: &mut [u8]) -> Result<()> {
        let Range { start, end } = runs_of(offset, target.len() as u64, body.written());
        let mut bytes = vec![0; (end - start) as usize];
        self.take_from_drive(body, start, &mut bytes)?;
        let from = (offset - start) as usize;
        target.copy_from_slice(&bytes[from..from + target.len()]);
        if end - start <= RUN {
            self.keep(body, start, bytes);
        } else {
            let runs = bytes.chunks(RUN as usize).map(<[u8]>::to_vec);
            let runs = (start..).step_by(RUN as usize).zip(runs);
            runs.for_each(|(at, run)| self.keep(body, at, run));
        }
        Ok(())
    }

    fn keep(&self, body: &Body, start: u64, run: Vec<u8>) {
        let Handle { shared, node } = &self.open.handle;
        shared
            .cache
            .put(node.inode, body.truncates, start, Arc::new(run));
    }

    fn take_from_drive(&self, body: &Body, offset: u64, target: &mut [u8]) -> Result<()> {
        let end = offset + target.len() as u64;
        let mut next = offset;
        let mut pieces = &body.pieces[first_piece(body, offset)..];
        while let Some((piece, rest)) = pieces.split_first() {
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
            let records = match self.open.handle.node.kind {
                Kind::Log => records_together(pieces, end),
                Kind::Plain => &[],
            };
            if let Some(last) = records.last()
                && self.take_records(records, next, &mut target[(next - offset) as usize..])
            {
                next = end.min(last.file_offset + last.length);
                pieces = &pieces[records.len()..];
                continue;
            }
            pieces = rest;
            let to = end.min(piece.file_offset + piece.length);
            let bytes = &mut target[(next - offset) as usize..(to - offset) as usize];
            self.take_piece(piece, next, bytes)?;
            next = to;
        }
        Ok(())
    }

    /// Reads bytes from `offset` in the file on that all lie in `piece`.
    fn take_piece(&self, piece: &Piece, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let at = ZoneAddress::new(
            piece.at.zone,
            piece.at.offset + (offset - piece.file_offset),
        );
        read_bytes(&*self.open.handle.shared.device, at, bytes)
            .map_err(|error| self.open.handle.read_failed(error))?;
        if bytes.len() as u64 == piece.length {
            verify(piece, bytes)?;
        }
        Ok(())
    }

    /// Reads records of a log at once, from `offset` in the file on; false if that fails.
    fn take_records(&self, records: &[Piece], offset: u64, target: &mut [u8]) -> bool {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return false;
        };
        let device = &self.open.handle.shared.device;
        let g = device.geometry();
        let from = first.at.offset - first.at.offset % u64::from(g.block_size);
        let length = g.round_up(last.at.offset + last.length - from);
        scratch::with(length as usize, |blocks| {
            let at = g.absolute(ZoneAddress::new(first.at.zone, from));
            if device.read(at, blocks).is_err() {
                return false;
            }
            for piece in records {
                let skip = offset.saturating_sub(piece.file_offset);
                let bytes = &blocks[(piece.at.offset + skip - from) as usize..];
                let target = &mut target[(piece.file_offset + skip - offset) as usize..];
                let length = target.len().min((piece.length - skip) as usize);
                target[..length].copy_from_slice(&bytes[..length]);
            }
            true
        })
    }
}

/// The first of `pieces`, up to `end` in the file, if they are records one behind the other: what lies
/// between them, headers and padding, costs less than a read for each.
fn records_together(pieces: &[Piece], end: u64) -> &[Piece] {
    let Some(first) = pieces.first() else {
        return &[];
    };
    let follows = |pair: &[Piece]| {
        let [a, b] = pair else { return false };
        let gap = b.at.offset.checked_sub(a.at.offset + a.length);
        let span = (b.at.offset + b.length).saturating_sub(first.at.offset);
        a.at.zone == b.at.zone
            && a.file_offset + a.length == b.file_offset
            && b.file_offset < end
            && gap.is_some_and(|gap| gap <= RECORD_GAP)
            && span <= RECORDS_AT_ONCE
    };
    let more = pieces.windows(2).take_while(|pair| follows(pair)).count();
    if more == 0 { &[] } else { &pieces[..=more] }
}

impl ReadsTogether for Reader {
    /// Does reads of files of one mount, those that go to the drive at once.
    fn read_all(asks: &mut [Ask<'_, Self>]) -> Vec<Result<usize>> {
        let done = read_together(asks);
        let one_by_one = asks.iter_mut().zip(done);
        one_by_one
            .map(|(ask, done)| match done {
                true => Ok(ask.buffer.len()),
                false => ask.reader.read_at(ask.offset, ask.buffer),
            })
            .collect()
    }
}

/// Which of the reads were done. Those are left that something could be said about: at the file's
/// end, over the border of a piece, failed.
fn read_together<'a>(asks: &mut [Ask<'a, Reader>]) -> Vec<bool> {
    let mut done = vec![false; asks.len()];
    let Some(first) = asks.first().filter(|_| asks.len() > 1) else {
        return done;
    };
    let reader: &'a Reader = first.reader;
    let shared = &reader.open.handle.shared;
    let reading = shared.gate.enter();
    let part = |ask: &Ask<'a, Reader>| {
        let body = ask.reader.open.handle.node.body.read();
        let length = ask.buffer.len() as u64;
        ask.reader.part(&body, ask.offset, length)
    };
    let parts: Vec<Body> = asks.iter().map(part).collect();
    let pieces = parts.iter().flat_map(|part| &part.pieces);
    reading.only_in(pieces.map(|p| p.at.zone));
    let g = shared.device.geometry();
    let mut spans: Vec<(usize, &Body, Span)> = Vec::with_capacity(asks.len());
    for ((index, ask), body) in asks.iter_mut().enumerate().zip(&parts) {
        let (reader, offset, length) = (ask.reader, ask.offset, ask.buffer.len() as u64);
        let Some(piece) = piece_at(body, offset) else {
            continue;
        };
        let inside = |r: &Range<u64>| {
            piece.file_offset <= r.start && r.end <= piece.file_offset + piece.length
        };
        let asked = offset..offset.saturating_add(length);
        if !inside(&asked) || length == 0 {
            continue;
        }
        if reader.caches() && reader.take_cached(body, offset, ask.buffer) == ask.buffer.len() {
            done[index] = true;
            continue;
        }
        let runs = Some(runs_of(offset, length, body.written()));
        let run = runs.filter(|r| reader.caches() && reader.keeps && r.end - r.start <= RUN);
        let run = run.filter(inside);
        spans.push((index, body, Span::new(g, piece, asked, run)));
    }
    let all: usize = spans.iter().map(|(_, _, span)| span.blocks).sum();
    scratch::with(all, |mut blocks| {
        let mut asked: Vec<(ByteOffset, &mut [u8])> = Vec::with_capacity(spans.len());
        for (_, _, span) in &spans {
            let (mine, rest) = blocks.split_at_mut(span.blocks);
            asked.push((span.at, mine));
            blocks = rest;
        }
        if shared.device.read_many(&mut asked).is_err() {
            return;
        }
        for ((index, body, span), (_, blocks)) in spans.iter().zip(asked) {
            let ask = &mut asks[*index];
            let bytes = &blocks[span.skip..span.skip + span.length];
            let from = (ask.offset - span.file_offset) as usize;
            ask.buffer
                .copy_from_slice(&bytes[from..from + ask.buffer.len()]);
            done[*index] = true;
            if span.is_run {
                ask.reader.keep(body, span.file_offset, bytes.to_vec());
            }
        }
    });
    done
}

/// One of many reads: whole blocks of one piece.
struct Span {
    /// Of the first byte that counts, and how many do.
    file_offset: u64,
    length: usize,
    /// In front of it in the first block.
    skip: usize,
    at: ByteOffset,
    /// Bytes of the blocks.
    blocks: usize,
    /// A run that the cache is to have.
    is_run: bool,
}

impl Span {
    /// Of what was asked for, or of the run around it, both inside of `piece`.
    fn new(g: &Geometry, piece: &Piece, asked: Range<u64>, run: Option<Range<u64>>) -> Self {
        let is_run = run.is_some();
        let Range { start, end } = run.unwrap_or(asked);
        let from = piece.at.offset + (start - piece.file_offset);
        let skip = from % u64::from(g.block_size);
        Self {
            file_offset: start,
            length: (end - start) as usize,
            skip: skip as usize,
            at: g.absolute(ZoneAddress::new(piece.at.zone, from - skip)),
            blocks: g.round_up(skip + end - start) as usize,
            is_run,
        }
    }
}

/// The whole runs that hold these bytes, as far as the file is on the drive.
fn runs_of(offset: u64, length: u64, written: u64) -> Range<u64> {
    let start = offset / RUN * RUN;
    start..(offset + length).next_multiple_of(RUN).min(written)
}

fn first_piece(body: &Body, offset: u64) -> usize {
    body.pieces
        .partition_point(|p| p.file_offset + p.length <= offset)
}

fn piece_at(body: &Body, offset: u64) -> Option<&Piece> {
    let piece = body.pieces.get(first_piece(body, offset))?;
    (piece.file_offset <= offset).then_some(piece)
}

/// Of a whole piece; those of logs were compared when the log was found, and have none here.
fn verify(piece: &Piece, bytes: &[u8]) -> Result<()> {
    match piece.checksum {
        0 => Ok(()),
        _ => compare(piece, crc32c(bytes)),
    }
}

fn compare(piece: &Piece, found: u32) -> Result<()> {
    if piece.checksum == 0 || found == piece.checksum {
        return Ok(());
    }
    Err(Error::Corrupt {
        at: piece.at,
        what: "the checksum of a file's data",
        expected: piece.checksum.into(),
        found: found.into(),
    })
}
