//! A file in memory: the places of its bytes on the drive, and its tail, the bytes that are not written yet.

use crate::format::crc32c;
use crate::format::operation::Kind;
use crate::scratch;
use crate::slot::Slot;
use crate::unsynced::Notes;
use crc_fast::{CrcAlgorithm, checksum_combine};
use device::ZonedDevice;
use runtime::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use runtime::sync::{Mutex, RwLock};
use std::sync::Arc;
use std::time::Duration;
use zone::{Geometry, ZoneAddress, ZoneDescriptor, ZoneId, ZoneResult};

/// A piece of a file that lies in one zone. For plain files these are the journal's extents; for
/// logs the payloads of their records.
pub(crate) use crate::format::operation::ExtentEntry as Piece;

impl Piece {
    /// Blocks that the piece takes as an extent of a plain file.
    pub fn blocks(&self, g: &Geometry) -> u32 {
        let blocks = self.length.div_ceil(g.block_size.into());
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// False for an extent that only a wrong journal can name.
    pub fn is_inside_zone(&self, g: &Geometry) -> bool {
        self.at.offset.saturating_add(self.length) <= g.capacity(self.at.zone)
    }
}

/// Adds a piece to `pieces`. If it directly continues the last one, that one grows and the result is false; true means
/// that it became a piece of its own.
pub(crate) fn push_piece(pieces: &mut Vec<Piece>, fresh: Piece) -> bool {
    if let Some(last) = pieces.last_mut() {
        let next = ZoneAddress::new(last.at.zone, last.at.offset + last.length);
        if next == fresh.at && last.checksum != 0 {
            let (a, b) = (u64::from(last.checksum), u64::from(fresh.checksum));
            let sum = checksum_combine(CrcAlgorithm::Crc32Iscsi, a, b, fresh.length);
            last.checksum = sum as u32;
            last.length += fresh.length;
            return false;
        }
    }
    pieces.push(fresh);
    true
}

/// Place of a run of a log's records in a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub file_offset: u64,
    pub at: ZoneAddress,
    /// Offset in the zone where the run ends; `u64::MAX` while it grows.
    pub end: u64,
    /// File size of a truncation after this segment was written, or `u64::MAX`.
    pub limit: u64,
    /// The run id in all records of the segment.
    pub run_id: u32,
}

#[derive(Default, Debug)]
pub(crate) struct Body {
    /// In file order, without holes; they cover the whole file except the tail.
    pub pieces: Vec<Piece>,
    /// Of a log, in file order; empty for a plain file.
    pub segments: Vec<Segment>,
    /// First bytes of a log, kept from the scan at mount: a database that opens the log reads them all next.
    pub found: Vec<u8>,
    /// Bytes of a log that were durable before the mount, as far as durability marks cover them.
    pub marked: u64,
    /// Bytes that are not written yet. A writer clones the `Arc` to write them without holding the file's lock.
    pub tail: Arc<Vec<u8>>,
    /// Time of the append of the tail's first byte, by the mount's monotonic clock. `None` if an earlier mount noted it.
    pub tail_since: Option<Duration>,
    pub modified_micros: u64,
    /// Number of truncations that removed bytes on the drive; between two of them those bytes only grow.
    pub truncates: u32,
}

impl Body {
    /// Bytes that are written to the drive; the tail follows them.
    pub fn written(&self) -> u64 {
        self.pieces.last().map_or(0, |p| p.file_offset + p.length)
    }

    /// Bytes in the file.
    pub fn size(&self) -> u64 {
        self.written() + self.tail.len() as u64
    }

    /// A copy of the body reduced to the pieces with bytes from `from` to `to`, so that a reader need not keep writers
    /// out while it reads. Pieces may be missing if the file is shorter on the drive.
    pub fn part(&self, from: u64, to: u64) -> Self {
        let first = self.piece_index(from);
        let end = self.pieces.partition_point(|p| p.file_offset < to);
        Self {
            pieces: self.pieces[first..end.max(first)].to_vec(),
            truncates: self.truncates,
            ..Self::default()
        }
    }

    /// Index of the first piece that ends after `offset`.
    pub fn piece_index(&self, offset: u64) -> usize {
        let pieces = &self.pieces;
        pieces.partition_point(|p| p.file_offset + p.length <= offset)
    }

    /// The piece that holds the byte at `offset`.
    pub fn piece_at(&self, offset: u64) -> Option<&Piece> {
        let piece = self.pieces.get(self.piece_index(offset))?;
        (piece.file_offset <= offset).then_some(piece)
    }

    /// Zone offset of the payload of the last record in `segment`, a lower bound of the segment's end. `None` if no
    /// record of it is known.
    pub fn reach(&self, segment: &Segment) -> Option<u64> {
        let zone = segment.at.zone;
        let later = self.segments.iter().map(|s| s.at);
        let later = later.filter(|at| at.zone == zone && at.offset > segment.at.offset);
        let until = later.map(|at| at.offset).min().unwrap_or(u64::MAX);
        let inside = |p: &&Piece| {
            p.at.zone == zone && p.at.offset > segment.at.offset && p.at.offset < until
        };
        self.pieces.iter().rev().find(inside).map(|p| p.at.offset)
    }

    /// Index of the first piece that begins at or after `file_offset`.
    pub fn position(&self, file_offset: u64) -> usize {
        self.pieces.partition_point(|p| p.file_offset < file_offset)
    }

    /// Truncates the bytes on the drive to `size`. Returns the pieces that were removed, and the last remaining piece
    /// as it was before.
    pub fn truncate(&mut self, size: u64) -> (Vec<Piece>, Option<Piece>) {
        self.truncates += 1;
        self.found.truncate(size as usize);
        let keep = self.position(size);
        let gone = self.pieces.split_off(keep);
        let before = self.pieces.last().copied();
        if let Some(last) = self.pieces.last_mut()
            && last.length > size - last.file_offset
        {
            last.length = size - last.file_offset;
            // 0 marks the checksum as unknown, because the piece was truncated.
            last.checksum = 0;
        }
        (gone, before)
    }

    /// Replaces all pieces that begin in the range of the file that `moved` covers. `moved` has no holes.
    pub fn replace(&mut self, moved: Vec<Piece>) {
        let (Some(first), Some(last)) = (moved.first(), moved.last()) else {
            return;
        };
        let (start, end) = (
            first.file_offset,
            last.file_offset.saturating_add(last.length),
        );
        let (from, to) = (self.position(start), self.position(end));
        self.pieces.splice(from..to.max(from), moved);
    }
}

/// State of appending to a file, shared by all its writers.
#[derive(Default, Debug)]
pub(crate) struct Stream {
    pub slot: Option<Arc<Slot>>,
    /// The next record of the log does not continue the last segment, so it begins a new one.
    pub new_segment: bool,
    /// Value of [`Node::moved`] when the last record was written.
    pub moved: u64,
    /// The journal frames name everything that a mount needs to find the file's written bytes.
    pub in_frame: bool,
    pub notes: Notes,
}

/// A file. It exists as long as it has a name or an open handle.
pub(crate) struct Node {
    pub inode: u64,
    pub kind: Kind,
    pub body: RwLock<Body>,
    /// The name by which it was opened last, for messages.
    pub opened_as: Mutex<String>,
    /// Number of names.
    pub links: AtomicU32,
    /// Held while a writer writes out or truncates, so that written bytes are registered in memory before another
    /// writer of the file looks for them.
    pub writing: Mutex<Stream>,
    /// Number of open handles.
    pub handles: AtomicU32,
    /// The last write to the log has failed, and the error was returned to a caller; the background write-out does not
    /// retry it.
    pub log_failed: AtomicBool,
    /// Number of open writers.
    pub writers: AtomicU32,
    /// Number of the last batch with a change of this file: the file is complete in the journal once that batch is.
    pub named_in: AtomicU64,
    /// Records of the log written by its writers; `moved` counts those written by moves. Each is incremented under the
    /// lock on the end of the zone ([`Slot::fill`]): a writer and a move may append to one run, and a segment ends
    /// where the other side's record begins.
    pub appended: AtomicU64,
    pub moved: AtomicU64,
}

impl Node {
    pub fn new(inode: u64, kind: Kind, modified_micros: u64) -> Self {
        Self {
            inode,
            kind,
            body: RwLock::new(Body {
                modified_micros,
                ..Body::default()
            }),
            opened_as: Mutex::default(),
            links: AtomicU32::new(1),
            writing: Mutex::default(),
            handles: AtomicU32::new(0),
            log_failed: AtomicBool::new(false),
            writers: AtomicU32::new(0),
            named_in: AtomicU64::new(0),
            appended: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }
    }

    /// The zones with data of the file, one entry for each extent or log segment, with the extent's blocks; 0 for a
    /// segment.
    pub fn extents(&self, g: &Geometry, body: &Body) -> Vec<(ZoneId, u32)> {
        let extent = |p: &Piece| (p.at.zone, p.blocks(g));
        match self.kind {
            Kind::Plain => body.pieces.iter().map(extent).collect(),
            Kind::Log => body.segments.iter().map(|s| (s.at.zone, 0)).collect(),
        }
    }
}

/// Reads any bytes of a zone: reads whole blocks and copies from them.
pub(crate) fn read_bytes(
    device: &dyn ZonedDevice,
    at: ZoneAddress,
    target: &mut [u8],
) -> ZoneResult<()> {
    let g = device.geometry();
    let block = u64::from(g.block_size);
    let skip = at.offset % block;
    let start = ZoneAddress::new(at.zone, at.offset - skip);
    let length = (skip + target.len() as u64).next_multiple_of(block) as usize;
    if skip == 0 && length == target.len() {
        return device.read(g.absolute(start), target);
    }
    scratch::with(length, |blocks| {
        device.read(g.absolute(start), blocks)?;
        target.copy_from_slice(&blocks[skip as usize..skip as usize + target.len()]);
        Ok(())
    })
}

/// Whether a plain file's piece matches its checksum.
pub(crate) fn matches(device: &dyn ZonedDevice, piece: &Piece) -> ZoneResult<bool> {
    if !piece.is_inside_zone(device.geometry()) {
        return Ok(false);
    }
    let mut bytes = vec![0; piece.length as usize];
    read_bytes(device, piece.at, &mut bytes)?;
    // 0 stands for a piece that was truncated and whose checksum is not known. It may be unreadable all the same.
    Ok(piece.checksum == 0 || crc32c(&bytes) == piece.checksum)
}

/// Whether all blocks of a piece are below the write pointer in the drive's report.
pub(crate) fn is_there(device: &dyn ZonedDevice, report: &[ZoneDescriptor], piece: &Piece) -> bool {
    let end = piece
        .at
        .offset
        .saturating_add(device.geometry().round_up(piece.length));
    report.get(piece.at.zone.index()).is_some_and(|zone| {
        let limit = if zone.write_pointer_valid() {
            zone.write_pointer
        } else {
            zone.capacity
        };
        end <= limit
    })
}
