//! Reads bytes of a file from the drive. A piece that is read whole is verified by its checksum.

use crate::combine::right_copy;
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

/// Records of a log with no more than this between their payloads are read together, up to [`RECORDS_AT_ONCE`] bytes.
const RECORD_GAP: u64 = 16 << 10;
const RECORDS_AT_ONCE: u64 = 512 << 10;

impl Handle {
    /// Fills `target` with the file's bytes from `offset` on; all of them must be on the drive and in `body`.
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

    /// Reads bytes of `piece` from `offset` in the file on.
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

    /// Reads several records with one command, from `offset` in the file on; false if that fails.
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

    /// Reads the whole file from the drive and verifies every extent and record. Returns the crc32c of all bytes.
    /// Extents that were truncated have no checksum and are not verified.
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
            shared.check_there(node.inode, piece)?;
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
    /// Fails if the extent was missing at the mount. Such an extent reads as zeros, which a checksum detects only if
    /// the extent is read whole.
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

    /// Reads a whole extent from the copy that matches its checksum, and makes that the one that is read first; false if
    /// there is none.
    fn take_other(&self, piece: &Piece, bytes: &mut [u8]) -> bool {
        let Some((copy, found)) = right_copy(&*self.device, piece) else {
            return false;
        };
        bytes.copy_from_slice(&found);
        self.device.turn_to(piece.at.zone, copy);
        true
    }
}

/// The first of `pieces`, up to `end` in the file, that are records close to each other: reading the headers and
/// padding between them costs less than a read for each.
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

/// Verifies a piece that was read whole. Records of logs have no checksum here; they were verified when the log was
/// scanned.
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
