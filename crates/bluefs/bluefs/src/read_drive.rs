//! Bytes of a file from the drive. A piece that is read whole is compared with its checksum.

use crate::format::crc32c;
use crate::format::operation::Kind;
use crate::handle::Handle;
use crate::node::{Body, Piece, read_bytes};
use crate::scratch;
use crate::shared::Shared;
use crate::{Error, Result};
use crc_fast::{CrcAlgorithm, Digest};
use device::ZonedDevice;
use zone::ZoneAddress;

/// Records of a log so close to each other are read at once, so many bytes with what is between them.
const RECORD_GAP: u64 = 16 << 10;
const RECORDS_AT_ONCE: u64 = 512 << 10;

impl Handle {
    /// Reads bytes of the file that are all on the drive, and in `body`.
    pub fn take_from_drive(&self, body: &Body, offset: u64, target: &mut [u8]) -> Result<()> {
        let end = offset + target.len() as u64;
        let mut next = offset;
        let mut pieces = &body.pieces[body.piece_index(offset)..];
        while let Some((piece, rest)) = pieces.split_first() {
            if piece.file_offset >= end {
                break;
            }
            if piece.file_offset > next {
                return Err(hole(piece, next));
            }
            let records = match self.node.kind {
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
    pub fn take_piece(&self, piece: &Piece, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.shared.check_there(self.node.inode, piece)?;
        let at = ZoneAddress::new(
            piece.at.zone,
            piece.at.offset + (offset - piece.file_offset),
        );
        read_bytes(&*self.shared.device, at, bytes).map_err(|error| self.read_failed(error))?;
        if bytes.len() as u64 == piece.length
            && let Err(error) = verify(piece, bytes)
            && !self.shared.take_other(piece, bytes)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Reads records of a log at once, from `offset` in the file on; false if that fails.
    fn take_records(&self, records: &[Piece], offset: u64, target: &mut [u8]) -> bool {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return false;
        };
        let device = &self.shared.device;
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

    /// Reads the whole file from the drive and compares every extent and record with its checksum; the
    /// checksum (crc32c) of all its bytes is answered. Of an extent that was truncated the checksum is
    /// not known.
    pub fn verify_all(&self) -> Result<u32> {
        const AT_ONCE: usize = 1 << 20;
        let Self { shared, node } = self;
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
                return Err(hole(piece, next));
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
                    .map_err(|error| self.read_failed(error))?;
                own.update(&buffer);
                all.update(&buffer);
            }
            compare(piece, own.finalize() as u32)?;
        }
        all.update(&tail);
        Ok(all.finalize() as u32)
    }
}

impl Shared {
    /// What a drive has lost reads as zeros, which a checksum finds only where an extent is read whole.
    pub fn check_there(&self, inode: u64, piece: &Piece) -> Result<()> {
        if !self.missing.contains(&(inode, piece.at)) {
            return Ok(());
        }
        Err(Error::Corrupt {
            at: piece.at,
            what: "a file's data above the write pointer of its zone, bytes",
            expected: piece.length,
            found: 0,
        })
    }

    /// Reads a whole extent from the copy that is not read, if it is what its checksum says there; from now
    /// on that copy is read.
    fn take_other(&self, piece: &Piece, bytes: &mut [u8]) -> bool {
        let mut blocks = vec![0; self.device.geometry().round_up(piece.length) as usize];
        let read = self.device.read_other(piece.at, &mut blocks);
        let found = &blocks[..bytes.len()];
        let is_right = matches!(read, Some(Ok(()))) && crc32c(found) == piece.checksum;
        if is_right {
            bytes.copy_from_slice(found);
            self.device.turn_to_other(piece.at.zone);
        }
        is_right
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

fn hole(piece: &Piece, before: u64) -> Error {
    Error::Corrupt {
        at: piece.at,
        what: "a hole in a file before",
        expected: before,
        found: piece.file_offset,
    }
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
