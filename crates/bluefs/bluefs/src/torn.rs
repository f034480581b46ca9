//! Tells a torn tail from damage: whether a power cut can have left the blocks at the end of a log or of the journal.
//!
//! Of the last write a power cut leaves the first blocks, with the write pointer after them. So if anything was written
//! after the end, it begins with the header of a record that extends above the write pointer. Anything else is damage,
//! even if no mark covers it. A zone without a write pointer gives no evidence, nor does a full one, which may have
//! been finished.
//!
//! The write pointer of a drive in a file may be derived from the last byte that is not zero
//! (`docs/format/file-drive.md`), so damage after the end moves it. On such a drive the pointer of one copy alone is no
//! evidence, nor is a single byte.

use crate::format::{journal, log_record};
use crate::journal::Journal;
use crate::mirror::Mirror;
use device::Keeps;
use zone::{ZoneAddress, ZoneCondition, ZoneId};

/// Bytes by which a zone of a drive in a file may be prepared ahead of its data (`docs/format/file-drive.md`).
const PREPARED: u64 = 1 << 20;

/// How the first block after the end can be read.
enum Begins {
    /// The start of a write of so many bytes.
    Write(usize),
    /// Possibly another file's data, so no evidence.
    Other,
    /// Nothing that was ever written there, or it cannot be read.
    Nothing,
}

/// The write pointer of a log's zone, if records of the run lie in it from `first` on, end at `at`, and the end is
/// damage rather than a torn tail.
///
/// Blocks that are neither zeros nor a record may belong to a file that was written after the log.
pub(crate) fn log_lacks(
    device: &dyn Mirror,
    first: u64,
    at: ZoneAddress,
    run_id: u32,
) -> Option<u64> {
    let is_ours =
        |start: &[u8]| log_record::decode_header(start).is_some_and(|h| h.run_id == run_id);
    let begins = |start: &[u8]| match log_record::decode_header(start) {
        Some(header) if header.at != at => Begins::Nothing,
        Some(header) if header.run_id == run_id => Begins::Write(header.record_length()),
        None if codec::is_zero(start) => Begins::Nothing,
        Some(_) | None => Begins::Other,
    };
    let is_whole =
        |record: &[u8]| log_record::decode_header(record).is_some_and(|h| h.fits(record));
    lacks(device, first, &is_ours, at, &begins, &is_whole)
}

/// Like [`log_lacks`], for the journal's last zone, in which nothing but frames lies.
pub(crate) fn journal_lacks(device: &dyn Mirror, journal: &Journal) -> Option<u64> {
    let is_ours = |start: &[u8]| {
        journal::decode_header(start).is_some_and(|header| header.place.epoch == journal.epoch)
    };
    let begins = |start: &[u8]| match journal.next_header(start) {
        Some(header) => Begins::Write(header.frame_length()),
        None => Begins::Nothing,
    };
    let is_whole = |frame: &[u8]| journal::decode_header(frame).is_some_and(|h| h.fits(frame));
    lacks(device, 0, &is_ours, journal.end(), &begins, &is_whole)
}

/// `is_ours` tells whether the block at `first` is of this life of the zone; a copy with a block of an earlier life is
/// no evidence.
fn lacks(
    device: &dyn Mirror,
    first: u64,
    is_ours: &dyn Fn(&[u8]) -> bool,
    at: ZoneAddress,
    begins: &dyn Fn(&[u8]) -> Begins,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Option<u64> {
    if device.keeps() < Keeps::Prefixes || first >= at.offset {
        return None;
    }
    let g = device.geometry();
    let read_each = |at, length: u64| device.read_each(at, g.round_up(length) as usize);
    let block = |at| read_each(at, g.block_size.into());
    let from_bytes = device.keeps() == Keeps::Writes;
    if from_bytes && device.shorter_end(at.zone) == Some(at.offset) {
        return None;
    }
    let mut behind = block(at);
    behind.retain(|(zone, _)| zone.condition != ZoneCondition::Full);
    if behind.is_empty() {
        return None;
    }
    let of_this_life = block(ZoneAddress::new(at.zone, first)).into_iter();
    let of_this_life = of_this_life.filter(|(_, start)| is_ours(start));
    let of_this_life: Vec<ZoneId> = of_this_life.map(|(zone, _)| zone.id).collect();
    // Bytes that cannot be read, or that extend further than a file is prepared, are more than one byte.
    let is_a_byte = |length| {
        let copies = match length <= PREPARED {
            true => read_each(at, length),
            false => Vec::new(),
        };
        let is_byte = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != 0).count() == 1;
        !copies.is_empty() && copies.iter().all(|(_, bytes)| is_byte(bytes))
    };
    let damaged = behind.into_iter().filter(|(zone, start)| {
        of_this_life.contains(&zone.id)
            && match begins(start) {
                Begins::Nothing => !from_bytes || !is_a_byte(zone.write_pointer - at.offset),
                Begins::Other => false,
                Begins::Write(length) => {
                    let rest = zone.write_pointer - at.offset;
                    // Another process may have written it since the end was found.
                    let mut copies = read_each(at, length as u64).into_iter();
                    g.round_up(length as u64) <= rest && !copies.any(|(_, bytes)| is_whole(&bytes))
                }
            }
    });
    damaged.map(|(zone, _)| zone.write_pointer).max()
}
