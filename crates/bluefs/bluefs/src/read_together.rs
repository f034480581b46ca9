//! Many reads of any files of a mount, issued to the drive together.

use crate::Result;
use crate::cache::RUN;
use crate::format::crc32c;
use crate::node::{Body, Piece};
use crate::read_later::{Ask, ReadsTogether};
use crate::read_through::runs_of;
use crate::reader::Reader;
use crate::scratch;
use device::ZonedDevice;
use std::ops::Range;
use zone::{ByteOffset, Geometry, ZoneAddress};

impl ReadsTogether for Reader {
    /// Does reads of files of one mount; those that go to the drive are issued together.
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

/// Does the simple reads, and returns which ones. The others are left to [`Reader::read_at`]: those at a file's end,
/// across the border of a piece, of a piece that is missing or wrong, or that failed.
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
        ask.reader.open.part(&body, ask.offset, length)
    };
    let parts: Vec<Body> = asks.iter().map(part).collect();
    let pieces = parts.iter().flat_map(|part| &part.pieces);
    reading.only_in(pieces.map(|p| p.at.zone));
    let g = shared.device.geometry();
    let mut spans: Vec<(usize, &Body, Span)> = Vec::with_capacity(asks.len());
    for ((index, ask), body) in asks.iter_mut().enumerate().zip(&parts) {
        let (reader, offset, length) = (ask.reader, ask.offset, ask.buffer.len() as u64);
        let Some(piece) = body.piece_at(offset) else {
            continue;
        };
        let inside = |r: &Range<u64>| {
            piece.file_offset <= r.start && r.end <= piece.file_offset + piece.length
        };
        let asked = offset..offset.saturating_add(length);
        let inode = reader.inode();
        if !inside(&asked) || length == 0 || shared.check_there(inode, piece).is_err() {
            continue;
        }
        if reader.open.caches()
            && reader.open.take_cached(body, offset, ask.buffer) == ask.buffer.len()
        {
            done[index] = true;
            continue;
        }
        let runs = Some(runs_of(offset, length, body.written()));
        let run = runs.filter(|r| reader.open.caches() && reader.keeps && r.end - r.start <= RUN);
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
            if span.checksum != 0 && crc32c(bytes) != span.checksum {
                continue;
            }
            let from = (ask.offset - span.file_offset) as usize;
            ask.buffer
                .copy_from_slice(&bytes[from..from + ask.buffer.len()]);
            done[*index] = true;
            if span.is_run {
                ask.reader.open.keep(body, span.file_offset, bytes.to_vec());
            }
        }
    });
    done
}

/// The blocks to be read for one request, inside one piece.
struct Span {
    /// File offset of the first byte that is wanted, and the number of bytes.
    file_offset: u64,
    length: usize,
    /// Bytes in the first block before these.
    skip: usize,
    at: ByteOffset,
    /// Number of bytes of all blocks.
    blocks: usize,
    /// The bytes are a whole run, which is put into the cache.
    is_run: bool,
    /// The checksum of the bytes if they are a whole piece; 0 if it is not known.
    checksum: u32,
}

impl Span {
    /// The blocks of the requested bytes, or of the run around them; both lie in `piece`.
    fn new(g: &Geometry, piece: &Piece, asked: Range<u64>, run: Option<Range<u64>>) -> Self {
        let is_run = run.is_some();
        let Range { start, end } = run.unwrap_or(asked);
        let from = piece.at.offset + (start - piece.file_offset);
        let skip = from % u64::from(g.block_size);
        let is_whole = end - start == piece.length;
        Self {
            file_offset: start,
            length: (end - start) as usize,
            skip: skip as usize,
            at: g.absolute(ZoneAddress::new(piece.at.zone, from - skip)),
            blocks: g.round_up(skip + end - start) as usize,
            is_run,
            checksum: if is_whole { piece.checksum } else { 0 },
        }
    }
}
