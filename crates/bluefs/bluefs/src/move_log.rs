//! Moves a closed run of a log's records out of a zone, while the log may be appended to elsewhere.
//!
//! The payloads are written as records of another run, closer together than the log's syncs left them, and flushed:
//! only then may a frame record where they end. That frame truncates the log to nothing and names all its segments
//! again, those that were moved and those that were not. All of it has to be in one frame, so that a power cut leaves
//! the log with its old segments or its new ones.

use crate::evacuate::{MoveError, Target, has_still};
use crate::format::log_record::{self, HEADER, MAX_PAYLOAD};
use crate::format::operation::JournalOperation;
use crate::journal::{self, Change};
use crate::mirror::Mirror;
use crate::node::{Body, Node, Piece, Segment, read_bytes};
use crate::shared::{Shared, log_operations};
use crate::slot::{Class, Slot};
use crate::{Error, Result};
use device::ZonedDevice;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId, ZoneResult};

/// The place of a record that was written.
pub(crate) struct MovedRecord {
    pub at: ZoneAddress,
    /// Bytes of payload.
    pub length: usize,
    /// Zone offset after the padded record.
    pub end: u64,
}

/// The copies of a log's records, in other runs.
#[derive(Default)]
pub(crate) struct Moved {
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    /// Value of [`Node::appended`] when the last copy was written.
    appended: u64,
}

impl Moved {
    fn push(&mut self, slot: &Slot, file_offset: u64, record: &MovedRecord, appended: u64) {
        self.pieces.push(record.piece(file_offset));
        let goes_on = std::mem::replace(&mut self.appended, appended) == appended;
        match self.segments.last_mut() {
            Some(last) if goes_on && last.run_id == slot.run_id => last.end = record.end,
            _ => self.segments.push(Segment {
                file_offset,
                at: record.at,
                end: record.end,
                limit: u64::MAX,
                run_id: slot.run_id,
            }),
        }
    }
}

impl MovedRecord {
    pub fn piece(&self, file_offset: u64) -> Piece {
        let Self { at, length, .. } = self;
        Piece {
            file_offset,
            at: ZoneAddress::new(at.zone, at.offset + HEADER as u64),
            length: *length as u64,
            checksum: 0,
        }
    }
}

/// The range of the file that a segment holds. Any later one cuts it off: behind a power cut, one that cannot be reached may
/// lie between it and what was appended from then on.
pub(crate) fn range_of(body: &Body, index: usize) -> Range<u64> {
    let segment = &body.segments[index];
    let later = body.segments[index + 1..].iter();
    let next = later.map(|s| s.file_offset).min();
    let end = next.unwrap_or_else(|| body.written()).min(segment.limit);
    segment.file_offset..end.max(segment.file_offset)
}

impl Shared {
    /// Writes a record with the part of `payload` that fits the rest of the zone, at most [`MAX_PAYLOAD`]; `None` if
    /// not even one block is free.
    pub fn write_record(
        &self,
        slot: &Arc<Slot>,
        used: &mut u64,
        (inode, file_offset): (u64, u64),
        payload: &[u8],
    ) -> Result<Option<MovedRecord>> {
        let g = self.device.geometry();
        if slot.capacity - *used < u64::from(g.block_size) {
            return Ok(None);
        }
        let at = ZoneAddress::new(slot.zone, *used);
        let room = (slot.capacity - *used) as usize - HEADER;
        let length = payload.len().min(MAX_PAYLOAD).min(room);
        let mark = self.witness.lock().mark(slot, self.flusher.window());
        let payload = &payload[..length];
        let record = log_record::encode(
            at,
            inode,
            slot.run_id,
            file_offset,
            mark,
            payload,
            g.block_size,
        );
        self.device.write(g.absolute(at), &record)?;
        *used += record.len() as u64;
        let end = *used;
        slot.wrote(end, self.flusher.window());
        Ok(Some(MovedRecord { at, length, end }))
    }

    /// The payload of a record of `inode`, cut to the length of `piece`; `None` if the record is damaged.
    pub fn read_record(&self, inode: u64, piece: &Piece) -> Result<Option<Vec<u8>>> {
        let at = ZoneAddress::new(piece.at.zone, piece.at.offset - HEADER as u64);
        let record = match record_at(&*self.device, inode, at) {
            Ok(Some(record)) => Some(record),
            // The record may be whole in one of the copies.
            found => {
                let mut copies = self.device.copies_of(at.zone).into_iter().flatten();
                let in_copy = |copy| record_in_copy(&*self.device, inode, at, copy).ok()?;
                match copies.find_map(in_copy) {
                    Some(record) => Some(record),
                    None => found?,
                }
            }
        };
        let Some(mut record) = record.filter(|r| piece.length <= (r.len() - HEADER) as u64) else {
            return Ok(None);
        };
        record.drain(..HEADER);
        record.truncate(piece.length as usize);
        Ok(Some(record))
    }

    /// Moves the first segment of a log that lies in `zone`, behind as many as are to be passed over. False if there is
    /// none, if the zone is open, or if the log was truncated, removed or moved meanwhile.
    pub fn move_segment(
        &self,
        node: &Node,
        zone: ZoneId,
        passed: usize,
        kept: u32,
        written: &mut u64,
    ) -> Result<bool, MoveError> {
        let (segment, pieces, run_ids, truncates) = {
            // A segment may grow while its zone is open, and keeps its zone from being opened again.
            let state = self.state.lock();
            if !state.zones.is_holding(zone) {
                return Ok(false);
            }
            let body = node.body.read();
            let segments = body.segments.iter().enumerate();
            let mut here = segments.filter(|(_, segment)| segment.at.zone == zone);
            let Some((index, _)) = here.nth(passed) else {
                return Ok(false);
            };
            let range = range_of(&body, index);
            let pieces = &body.pieces[body.position(range.start)..body.position(range.end)];
            let run_ids = body.segments.iter().map(|s| s.run_id).collect();
            (
                body.segments[index],
                pieces.to_vec(),
                run_ids,
                body.truncates,
            )
        };
        let mut target = Target::new(self, Class::MovedLog, kept);
        // If copies went into a run that the log itself continues, that run would seem to end at the first copy.
        target.avoid = run_ids;
        let moved = self.copy_records(node, truncates, &pieces, &mut target);
        self.count_moved(&target, written);
        let moved = moved?;
        if !moved.segments.is_empty() {
            self.flush()?;
        }
        let mut state = self.state.lock();
        state.check()?;
        let mut body = node.body.write();
        let index = body.segments.iter().position(|s| *s == segment);
        let index =
            index.filter(|_| body.truncates == truncates && node.links.load(Ordering::Acquire) > 0);
        let group = index.and_then(|index| {
            let mut segments = body.segments.clone();
            segments.splice(index..=index, moved.segments.iter().copied());
            one_frame(node, &body, &segments, &*self.device)
        });
        let is_moved = group.is_some();
        if let (Some(index), Some(group)) = (index, group) {
            let range = range_of(&body, index);
            let (from, to) = (body.position(range.start), body.position(range.end));
            body.pieces.splice(from..to, moved.pieces);
            for fresh in &moved.segments {
                state.zones.add(fresh.at.zone, node.inode, 1, 0)?;
            }
            body.segments.splice(index..=index, moved.segments);
            state.pending.push(Change::Together(group));
        }
        drop(body);
        if is_moved {
            state.free(zone, node.inode, 1, 0);
        } else if index.is_some() {
            // The log has too many segments for one frame.
            state.zones.set_stuck(zone);
        }
        target.release(&mut state);
        Ok(is_moved)
    }

    pub(crate) fn copy_records(
        &self,
        node: &Node,
        truncates: u32,
        pieces: &[Piece],
        target: &mut Target<'_>,
    ) -> Result<Moved, MoveError> {
        let mut moved = Moved::default();
        let mut offset = pieces.first().map_or(0, |p| p.file_offset);
        let mut bytes: Vec<u8> = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let zone = piece.at.zone;
            let record = self.read_record(node.inode, piece);
            let record = record.and_then(|record| record.ok_or_else(|| damaged(piece)));
            bytes.extend(record.map_err(|error| self.cannot_move(node, truncates, zone, error))?);
            let is_last = index + 1 == pieces.len();
            while bytes.len() >= MAX_PAYLOAD || (is_last && !bytes.is_empty()) {
                let (slot, record, appended) = target.write(|slot, used| {
                    node.moved.fetch_add(1, Ordering::AcqRel);
                    let appended = node.appended.load(Ordering::Acquire);
                    // Behind a record that a rewritten log has here, this one would seem to continue it.
                    if !has_still(node, truncates) {
                        return Ok(Some(Err(MoveError::Changed)));
                    }
                    let record = self.write_record(slot, used, (node.inode, offset), &bytes)?;
                    Ok(record.map(|record| Ok((slot.clone(), record, appended))))
                })??;
                moved.push(&slot, offset, &record, appended);
                offset += record.length as u64;
                bytes.drain(..record.length);
            }
        }
        Ok(moved)
    }
}

/// The bytes of a record of `inode` at `at`; `None` if it is not whole, or another one.
fn read_record(
    inode: u64,
    at: ZoneAddress,
    read: impl Fn(ZoneAddress, &mut [u8]) -> ZoneResult<()>,
) -> Result<Option<Vec<u8>>> {
    let mut start = vec![0; HEADER];
    read(at, &mut start)?;
    let header = log_record::decode_header(&start);
    let Some(header) = header.filter(|h| h.inode == inode && h.at == at) else {
        return Ok(None);
    };
    let mut record = vec![0; header.record_length()];
    read(at, &mut record)?;
    Ok(header.fits(&record).then_some(record))
}

/// The bytes of the record of `inode` at `at`; `None` if it is not whole.
pub(crate) fn record_at(
    device: &dyn ZonedDevice,
    inode: u64,
    at: ZoneAddress,
) -> Result<Option<Vec<u8>>> {
    read_record(inode, at, |at, bytes| read_bytes(device, at, bytes))
}

/// Like [`record_at`], from one copy: a zone of the pair, or the record's zone if that is in no pair.
pub(crate) fn record_in_copy(
    device: &dyn Mirror,
    inode: u64,
    at: ZoneAddress,
    copy: ZoneId,
) -> Result<Option<Vec<u8>>> {
    read_record(inode, at, |at, target| {
        let mut blocks = vec![0; device.geometry().round_up(target.len() as u64) as usize];
        device.read_copy(copy, at.offset, &mut blocks)?;
        target.copy_from_slice(&blocks[..target.len()]);
        Ok(())
    })
}

/// The operations that name all segments of a log again; `None` if they do not fit one frame.
fn one_frame(
    node: &Node,
    body: &Body,
    segments: &[Segment],
    device: &dyn ZonedDevice,
) -> Option<Vec<JournalOperation>> {
    let inode = node.inode;
    let mut group = vec![JournalOperation::LogTruncate { inode, size: 0 }];
    group.extend(log_operations(inode, body, segments));
    let mut payload = Vec::new();
    group.iter().for_each(|op| op.encode(&mut payload));
    (payload.len() <= journal::payload_limit(device)).then_some(group)
}

fn damaged(piece: &Piece) -> Error {
    Error::Corrupt {
        at: piece.at,
        what: "a log record that is to be moved is damaged, bytes",
        expected: piece.length,
        found: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Class;

    #[test]
    fn a_segment_that_cannot_be_reached_does_not_hide_a_later_one() {
        let segment = |file_offset| Segment {
            file_offset,
            at: ZoneAddress::new(ZoneId(7), file_offset),
            end: u64::MAX,
            limit: u64::MAX,
            run_id: 1,
        };
        let record = MovedRecord {
            at: ZoneAddress::new(ZoneId(7), 0),
            length: 200,
            end: 512,
        };
        let body = Body {
            segments: [0, 300, 100].map(segment).into(),
            pieces: vec![record.piece(0)],
            ..Body::default()
        };
        let ranges = [0, 1, 2].map(|index| range_of(&body, index));
        assert_eq!(ranges, [0..100, 300..300, 100..200]);
    }

    /// A mount follows a segment record by record, and would take a record written by the log's writer for its end.
    #[test]
    fn what_the_writer_put_between_two_moved_records_ends_a_segment() {
        let slot = Slot::new(ZoneId(7), Class::Wal, 1 << 20, 0, 1, 1);
        let mut moved = Moved::default();
        // A record of the log's writer lies between the second and the third.
        for (appended, at) in [(3, 0), (3, 512), (4, 1536), (4, 2048)] {
            let record = MovedRecord {
                at: ZoneAddress::new(ZoneId(7), at),
                length: 100,
                end: at + 512,
            };
            moved.push(&slot, at, &record, appended);
        }
        let ends: Vec<_> = moved
            .segments
            .iter()
            .map(|s| (s.at.offset, s.end))
            .collect();
        assert_eq!(moved.pieces.len(), 4);
        assert_eq!(ends, [(0, 1024), (1536, 2560)]);
    }
}
