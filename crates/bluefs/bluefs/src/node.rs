//! A file in memory: where its bytes lie, and those that are not on the drive yet.

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
use zone::{Geometry, ZoneAddress, ZoneDescriptor, ZoneId, ZoneResult};

/// A piece of a file that lies in one zone. For plain files these are the journal's extents; for
/// logs the payloads of their records.
pub(crate) use crate::format::operation::ExtentEntry as Piece;

impl Piece {
    /// Blocks that it takes as an extent.
    pub fn blocks(&self, g: &Geometry) -> u32 {
        let blocks = self.length.div_ceil(g.block_size.into());
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }
}

/// Adds a piece, grown into the last one where it continues it; true if it is one of its own.
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

/// Where a run of a log's records lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub file_offset: u64,
    pub at: ZoneAddress,
    /// An offset in the zone, or `u64::MAX` while it grows.
    pub end: u64,
    /// The file was truncated to this size after the segment, or `u64::MAX`.
    pub limit: u64,
    /// In all of its records.
    pub run_id: u32,
}

#[derive(Default, Debug)]
pub(crate) struct Body {
    /// In order, without holes; they cover all but the tail.
    pub pieces: Vec<Piece>,
    /// Of a log, in order.
    pub segments: Vec<Segment>,
    /// Of a log, its first bytes as the mount found them: whoever opens it then reads them all.
    pub found: Vec<u8>,
    /// Of a log, how many of its bytes marks said to be durable when it was mounted.
    pub marked: u64,
    /// Bytes that are not written yet. Whoever writes them has a clone, and not the file's lock.
    pub tail: Arc<Vec<u8>>,
    /// When the first of them was appended, by the mount's clock.
    pub tail_since_micros: u64,
    pub modified_micros: u64,
    /// How often it lost bytes that were on the drive; between two of these they only grow.
    pub truncates: u32,
}

impl Body {
    /// Bytes on the drive.
    pub fn written(&self) -> u64 {
        self.pieces.last().map_or(0, |p| p.file_offset + p.length)
    }

    /// Bytes in the file.
    pub fn size(&self) -> u64 {
        self.written() + self.tail.len() as u64
    }

    /// What a reader needs of the file for the bytes from `from` to `to`, if there are so many on the
    /// drive: it reads without keeping writers out.
    pub fn part(&self, from: u64, to: u64) -> Self {
        let first = self.piece_index(from);
        let end = self.pieces.partition_point(|p| p.file_offset < to);
        Self {
            pieces: self.pieces[first..end.max(first)].to_vec(),
            truncates: self.truncates,
            ..Self::default()
        }
    }

    /// Of the first piece that ends behind `offset`.
    pub fn piece_index(&self, offset: u64) -> usize {
        let pieces = &self.pieces;
        pieces.partition_point(|p| p.file_offset + p.length <= offset)
    }

    /// The piece that holds the byte at `offset`.
    pub fn piece_at(&self, offset: u64) -> Option<&Piece> {
        let piece = self.pieces.get(self.piece_index(offset))?;
        (piece.file_offset <= offset).then_some(piece)
    }

    /// Where the last record that was written to `segment` begins: it reaches further than that.
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

    /// Of the first piece that begins at `file_offset` or behind it.
    pub fn position(&self, file_offset: u64) -> usize {
        self.pieces.partition_point(|p| p.file_offset < file_offset)
    }

    /// Truncates what is on the drive to `size` bytes. Answers the pieces that go, and the last one that
    /// stays as it was.
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
            // The checksum of a truncated piece is not known; 0 says so.
            last.checksum = 0;
        }
        (gone, before)
    }

    /// Puts `moved`, pieces without holes between them, in the place of all pieces that begin in
    /// the same stretch of the file.
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

/// Where a file goes on, whoever writes to it.
#[derive(Default, Debug)]
pub(crate) struct Stream {
    pub slot: Option<Arc<Slot>>,
    /// The next record of a log begins where the last one did not end.
    pub new_segment: bool,
    /// What [`Node::moved`] was when its last record was written.
    pub moved: u64,
    /// Everything that the journal has to know of the file is in a frame.
    pub in_frame: bool,
    pub notes: Notes,
}

/// A file. It lives while it has a name or a handle.
pub(crate) struct Node {
    pub inode: u64,
    pub kind: Kind,
    pub body: RwLock<Body>,
    /// The name by which it was opened last, for messages.
    pub opened_as: Mutex<String>,
    /// Names.
    pub links: AtomicU32,
    /// Locked while a writer writes out or truncates: what is on the drive is entered before another one of
    /// the file can look for it.
    pub writing: Mutex<Stream>,
    /// Open handles.
    pub handles: AtomicU32,
    /// A write to the log has failed, and it was told: it is not tried again unasked.
    pub log_failed: AtomicBool,
    /// Open writers.
    pub writers: AtomicU32,
    /// The last batch that the journal needs to know all of the file.
    pub named_in: AtomicU64,
    /// Records of the log that its writers have written, and that were moved. Each is counted by whoever has the right to write
    /// at the end of the zone: both may write to one run, where a segment ends at a record of the other's.
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

    /// What zones hold of the file, one entry for each extent or log segment, with its blocks: 0 for a
    /// segment.
    pub fn extents(&self, g: &Geometry, body: &Body) -> Vec<(ZoneId, u32)> {
        let extent = |p: &Piece| (p.at.zone, p.blocks(g));
        match self.kind {
            Kind::Plain => body.pieces.iter().map(extent).collect(),
            Kind::Log => body.segments.iter().map(|s| (s.at.zone, 0)).collect(),
        }
    }
}

/// Reads any bytes of a zone: rounds to blocks and copies.
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

/// Whether a plain file's piece is what its checksum says.
pub(crate) fn matches(device: &dyn ZonedDevice, piece: &Piece) -> ZoneResult<bool> {
    // 0 stands for a piece that was truncated and whose checksum is not known.
    if piece.checksum == 0 {
        return Ok(true);
    }
    let mut bytes = vec![0; piece.length as usize];
    read_bytes(device, piece.at, &mut bytes)?;
    Ok(crc32c(&bytes) == piece.checksum)
}

/// Whether what a piece covers has been written, by the drive's report.
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
