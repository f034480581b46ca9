//! Durability marks: what the drive itself records as durable, and the search for marks after damage.
//!
//! A whole frame or record tells what a flush had covered before it was written. That stays true wherever it is found,
//! because epochs of the journal and run ids are never reused; so it does not matter to which life of a zone it
//! belongs. Missing data that no mark covers was never acknowledged, or was the very last that was.

use crate::format::journal;
use crate::format::log_record::{self, RecordHeader};
use crate::format::superblock::{Decoded, Superblock};
use crate::journal::Journal;
use crate::namespace::Namespace;
use crate::node::{Body, Piece};
use crate::ring::unread;
use crate::{Error, Result};
use device::ZonedDevice;
use runtime::HashMap;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneAddress, ZoneDescriptor, ZoneId, ZoneResult};

/// How many bytes after damage are searched in a zone with a write pointer. The next record, at most 1 MiB away,
/// usually has a sufficient mark already.
const SEARCH: u64 = 64 << 20;
/// The same in a zone without a write pointer, and the part before the write pointer that is searched in other zones.
const SEARCH_BLINDLY: u64 = 4 << 20;

/// If so many zeros follow the journal in a zone without a write pointer, nothing was written there: more bytes than a
/// frame has, in whole blocks.
const ZEROS: u64 = 512 << 10;

/// Where the scan of a run of records stopped, if that is neither the run's known end nor before a whole record of its
/// log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub inode: u64,
    /// Bytes of the log before the stop.
    pub length: u64,
    pub at: ZoneAddress,
    pub run_id: u32,
    /// Zone offset up to which the run was written, as an earlier mount or the write pointer tells.
    pub known: u64,
}

/// All marks that were found, as far as they concern the journal's epoch and its logs.
pub(crate) struct Marks {
    epoch: u64,
    /// Frames of the epoch that were durable.
    pub frames: u64,
    /// Written ends of runs that frames record: frame number and zone offset.
    reached: HashMap<(ZoneId, u32), Vec<(u64, u64)>>,
    /// Zone offsets up to which runs were durable, as records tell.
    runs: HashMap<(ZoneId, u32), u64>,
    /// For a log (inode) and a run (id): file offset after the records that were found although no segment led to them.
    pub found: BTreeMap<(u64, u32), u64>,
}

/// A whole superblock, frame or record that a search has found.
pub(crate) enum Found {
    Superblock(Superblock),
    /// With header and payload as they are on the drive.
    Frame(journal::FrameHeader, Vec<u8>),
    Record(RecordHeader),
}

impl Marks {
    /// Marks of the journal of `epoch`; `frames` are durable by the superblock.
    pub fn new(epoch: u64, frames: u64) -> Self {
        Self {
            epoch,
            frames,
            reached: HashMap::default(),
            runs: HashMap::default(),
            found: BTreeMap::new(),
        }
    }

    /// Adds a mark: this many frames of an epoch were durable.
    pub fn hear(&mut self, epoch: u64, frames: u64) {
        if epoch == self.epoch {
            self.frames = self.frames.max(frames);
        }
    }

    /// Adds the written end of a run that a frame records.
    pub fn hear_written_end(&mut self, frame: u64, at: ZoneAddress, run_id: u32) {
        let said = self.reached.entry((at.zone, run_id)).or_default();
        said.push((frame, at.offset));
    }

    /// Adds a record that no segment led to.
    pub fn hear_other(&mut self, header: &RecordHeader) {
        if header.inode == log_record::NO_FILE {
            return;
        }
        let run = self.found.entry((header.inode, header.run_id)).or_default();
        *run = (*run).max(header.file_offset.saturating_add(u64::from(header.length)));
    }

    /// Adds the mark of a record.
    pub fn hear_record(&mut self, header: &RecordHeader) {
        let mark = &header.mark;
        self.hear(mark.epoch, mark.frames);
        for (zone, run_id, offset) in [
            (header.at.zone, header.run_id, mark.run),
            (mark.other.zone, mark.other_run_id, mark.other.offset),
        ] {
            let known = self.runs.entry((zone, run_id)).or_default();
            *known = (*known).max(offset);
        }
    }

    /// Zone offset up to which a run of records was durable, as far as any mark tells.
    fn durable(&self, zone: ZoneId, run_id: u32) -> u64 {
        let run = (zone, run_id);
        let said = self.reached.get(&run).into_iter().flatten();
        let frames = said.filter(|(frame, _)| *frame < self.frames);
        let records = self.runs.get(&run).copied().unwrap_or(0);
        frames.map(|(_, offset)| *offset).fold(records, u64::max)
    }

    /// File offset up to which a log was durable, as far as any mark tells.
    pub fn durable_bytes(&self, log: &Body) -> u64 {
        // A log's runs are written one after the other, and a flush covers all that was written before it.
        let is_covered = |piece: &&Piece| {
            let end = piece.at.offset.saturating_add(piece.length);
            let mut runs = log
                .segments
                .iter()
                .filter(|run| run.at.zone == piece.at.zone);
            runs.any(|run| end <= self.durable(run.at.zone, run.run_id))
        };
        let last = log.pieces.iter().rev().find(is_covered);
        last.map_or(0, |piece| piece.file_offset + piece.length)
    }

    /// Searches for marks after the ends of runs.
    pub fn search_behind(
        &mut self,
        device: &dyn ZonedDevice,
        report: &[ZoneDescriptor],
        stops: &[Stop],
    ) -> Result<()> {
        for stop in stops {
            let (zone, offset) = (stop.at.zone, stop.at.offset);
            // Marks of other logs and of the journal count too, and all of them are read: the damage may go further
            // than the first mark tells.
            let to = search_end(report, zone, offset);
            search(device, zone, offset, to, &mut |found| {
                self.hear_found(&found)
            })?;
        }
        Ok(())
    }

    /// Searches for marks after the end of the journal, if anything was written there, and after the live bytes
    /// (`live`) of BlueFS's zones: a log that a damaged frame named may be in one of them.
    pub fn search_for_frames(
        &mut self,
        device: &dyn ZonedDevice,
        report: &[ZoneDescriptor],
        journal: &Journal,
        live: impl Iterator<Item = (ZoneId, u64)>,
    ) -> Result<()> {
        let g = device.geometry();
        let end = journal.end();
        let behind = search_end(report, end.zone, end.offset);
        let block = u64::from(g.block_size);
        // The missing frames may have been the last in their zone, with nothing after them.
        let is_short = self.frames > journal.next_frame;
        if !is_short && end.offset + block > behind {
            return Ok(());
        }
        if !is_short && pointer(report, end.zone).is_none() {
            // Most journals are followed by zeros; a frame that was overwritten with zeros is followed by others.
            let mut next = vec![0; ZEROS.min(behind - end.offset) as usize];
            match device.read(g.absolute(end), &mut next) {
                Ok(()) if codec::is_zero(&next) => return Ok(()),
                Ok(()) => {}
                Err(error) => unread(device, end.zone, error)?,
            }
        }
        let tails = live.map(|(zone, used)| match pointer(report, zone) {
            // The mark in the last record covers the most.
            Some(end) => (zone, used.max(end.saturating_sub(SEARCH_BLINDLY)), end),
            None => (zone, used, search_end(report, zone, used)),
        });
        let places = [(end.zone, end.offset, behind)];
        for (zone, from, to) in places.into_iter().chain(tails) {
            search(device, zone, from, to, &mut |found| self.hear_found(&found))?;
        }
        Ok(())
    }

    fn hear_found(&mut self, found: &Found) {
        match found {
            Found::Superblock(said) => self.hear(said.journal_epoch, said.journal_frames),
            Found::Frame(header, _) => self.hear(header.place.epoch, header.durable),
            Found::Record(header) => {
                self.hear_record(header);
                self.hear_other(header);
            }
        }
    }

    /// The error of a run that ends before its durable end; `None` if its end may be the true one.
    pub fn damage(&self, stop: &Stop, names: &Namespace) -> Option<Error> {
        let expected = stop.known.max(self.durable(stop.at.zone, stop.run_id));
        (expected > stop.at.offset).then(|| Error::LogDamaged {
            path: names.path(stop.inode),
            length: stop.length,
            at: stop.at,
            expected,
        })
    }
}

fn pointer(report: &[ZoneDescriptor], zone: ZoneId) -> Option<u64> {
    let zone = report.get(zone.index())?;
    zone.write_pointer_valid().then_some(zone.write_pointer)
}

pub(crate) fn search_end(report: &[ZoneDescriptor], zone: ZoneId, from: u64) -> u64 {
    match (pointer(report, zone), report.get(zone.index())) {
        (Some(end), _) => end.min(from.saturating_add(SEARCH)),
        (None, Some(zone)) => zone.capacity.min(from.saturating_add(SEARCH_BLINDLY)),
        (None, None) => 0,
    }
}

/// Finds every whole superblock, frame and record that begins at a block between two zone offsets. Fails only if the
/// drive answers no reads at all.
pub(crate) fn search(
    device: &dyn ZonedDevice,
    zone: ZoneId,
    from: u64,
    to: u64,
    each: &mut dyn FnMut(Found),
) -> ZoneResult<()> {
    let g = device.geometry();
    let mut result = Ok(());
    let read = &mut |at, bytes: &mut [u8]| {
        let read = device.read(g.absolute(at), bytes);
        if let (Err(error), Ok(())) = (&read, &result) {
            result = unread(device, zone, error.clone());
        }
        read
    };
    search_by(g, read, (zone, from, to), each);
    result
}

/// Like [`search`], on the bytes that `read` returns.
pub(crate) fn search_by(
    g: &Geometry,
    read: &mut dyn FnMut(ZoneAddress, &mut [u8]) -> ZoneResult<()>,
    (zone, from, to): (ZoneId, u64, u64),
    each: &mut dyn FnMut(Found),
) {
    const WINDOW: u64 = 1 << 20;
    /// Blocks in a row that cannot be read, after which those up to one a window further are passed over if that cannot
    /// be read either: each may take a disk seconds.
    const MANY: u32 = 16;
    let block = u64::from(g.block_size);
    let to = to - to % block;
    if from >= to {
        return;
    }
    let mut window = Vec::new();
    let mut offset = g.round_up(from);
    let (mut length, mut failed) = (WINDOW, 0);
    // Up to here, every block is tried.
    let mut tried_to = offset;
    while offset < to {
        window.resize(length.min(to - offset) as usize, 0);
        let blocks = window.len() as u64 / block;
        if read(ZoneAddress::new(zone, offset), &mut window).is_err() {
            if blocks > 1 {
                // The blocks beside one that cannot be read may hold marks.
                length = blocks / 2 * block;
            } else {
                // A mark that cannot be read covers nothing.
                failed += 1;
                offset += block;
                if failed >= MANY && offset >= tried_to && offset < to {
                    let far = (offset + WINDOW).min(to - block);
                    match read(ZoneAddress::new(zone, far), &mut window) {
                        Ok(()) => tried_to = far,
                        Err(_) => offset = far + block,
                    }
                }
            }
            continue;
        }
        (length, failed) = (WINDOW.min(2 * length), 0);
        for (index, start) in window.chunks(block as usize).enumerate() {
            let at = offset + index as u64 * block;
            if let Decoded::Valid(superblock) = Superblock::decode(start) {
                each(Found::Superblock(superblock));
                continue;
            }
            let frame = journal::decode_header(start);
            let record = log_record::decode_header(start);
            let length = match (&frame, &record) {
                (Some(frame), _) => frame.frame_length(),
                (None, Some(record)) => record.record_length(),
                (None, None) => continue,
            };
            let padded = g.round_up(length as u64);
            if at + padded > to {
                continue;
            }
            let mut whole = vec![0; padded as usize];
            if read(ZoneAddress::new(zone, at), &mut whole).is_err() {
                continue;
            }
            let found = match (frame, record) {
                (Some(frame), _) if frame.fits(&whole) => {
                    whole.truncate(frame.frame_length());
                    Found::Frame(frame, whole)
                }
                (None, Some(record)) if record.fits(&whole) => Found::Record(record),
                _ => continue,
            };
            each(found);
        }
        offset += window.len() as u64;
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::format::journal::{Place, encode_frame};
    use zone::{ByteOffset, ZoneCommand, ZoneError};

    const BLOCK: u32 = 4096;

    /// The frames, by the zone offsets at which they begin, that a search finds where blocks for which `is_bad` cannot be
    /// read, and the number of reads that failed.
    fn searched(frames: &[u64], to: u64, is_bad: impl Fn(u64) -> bool) -> (Vec<u64>, usize) {
        let of = |sequence| Place {
            epoch: 1,
            sequence,
            previous: 0,
        };
        let (mut found, mut failed) = (Vec::new(), 0);
        let mut read = |at: ZoneAddress, bytes: &mut [u8]| {
            for (index, block) in bytes.chunks_mut(BLOCK as usize).enumerate() {
                let offset = at.offset + index as u64 * u64::from(BLOCK);
                if is_bad(offset) {
                    failed += 1;
                    return Err(ZoneError::Io {
                        command: ZoneCommand::Read,
                        at: ByteOffset(offset),
                        source: std::sync::Arc::new(std::io::ErrorKind::Other.into()),
                    });
                }
                match frames.contains(&offset) {
                    true => block.copy_from_slice(&encode_frame(of(offset), 0, &[], BLOCK).0),
                    false => block.fill(0),
                }
            }
            Ok(())
        };
        let each = &mut |thing: Found| {
            if let Found::Frame(header, _) = thing {
                found.push(header.place.sequence);
            }
        };
        let drive = device::profile::by_name("test-small").unwrap();
        let geometry = drive.geometry(1 << 30, None).unwrap();
        search_by(&geometry, &mut read, (ZoneId(3), 0, to), each);
        (found, failed)
    }

    #[test]
    fn marks_beside_blocks_that_cannot_be_read_are_found() {
        let block = u64::from(BLOCK);
        for bad in [0, 1, 100, 255, 256, 700] {
            let beside: Vec<_> = [bad.max(1) - 1, bad + 2].map(|n| n * block).into();
            let bad = bad * block..(bad + 2) * block;
            let frames: Vec<_> = beside.into_iter().filter(|at| !bad.contains(at)).collect();
            let (found, failed) = searched(&frames, 4 << 20, |at| bad.contains(&at));
            assert_eq!(found, frames, "{bad:?}");
            assert!(failed <= 30, "{bad:?}: {failed}");
        }
    }

    #[test]
    fn marks_right_behind_many_blocks_that_cannot_be_read_are_found() {
        let block = u64::from(BLOCK);
        for bad in [15, 16, 17, 100, 300] {
            for to in [bad + 2, bad + 50, bad + 250, bad + 1000] {
                let frames = [(bad + 1) * block];
                let (found, _) = searched(&frames, to * block, |at| at < bad * block);
                assert_eq!(found, frames, "{bad} {to}");
            }
        }
    }

    #[test]
    fn a_large_part_that_cannot_be_read_is_not_tried_block_by_block() {
        let bad = (3 << 20)..(50 << 20) + 4096;
        let frames = [1 << 20, bad.end];
        let (found, failed) = searched(&frames, 64 << 20, |at| bad.contains(&at));
        assert_eq!(found, frames);
        assert!(failed <= 400, "{failed}");
        let (_, failed) = searched(&[], 64 << 20, |_| true);
        assert!(failed <= 200, "{failed}");
    }
}
