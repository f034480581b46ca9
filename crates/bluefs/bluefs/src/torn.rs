//! Whether a power cut can have left what lies at the end of a log or of the journal.
//!
//! Of the last write it leaves the first blocks, and the write pointer behind them. So where something was
//! written behind the end, it begins with the header of a record that goes on above the write pointer.
//! Anything else is damage, even if nothing says that it was durable. A zone without a write pointer tells
//! nothing, and neither does a full one, which may have been finished.

use crate::format::{journal, log_record};
use crate::journal::Journal;
use crate::mirror::Mirror;
use zone::{ZoneAddress, ZoneCondition, ZoneDescriptor};

/// What the first block behind the end says.
enum Begins {
    /// A write of so many bytes.
    Write(usize),
    /// Something that is not for us to judge.
    Other,
    /// Nothing that was ever written there.
    Nothing,
}

/// Up to where the zone of a log was written, if its records end at `at` and that is no tear. What is neither
/// zeros nor a record may be a file's that came behind the log.
pub(crate) fn log_lacks(device: &dyn Mirror, at: ZoneAddress, run_id: u32) -> Option<u64> {
    let begins = |start: &[u8]| match log_record::decode_header(start) {
        Some(header) if header.at != at => Begins::Nothing,
        Some(header) if header.run_id == run_id => Begins::Write(header.record_length()),
        None if start.iter().all(|byte| *byte == 0) => Begins::Nothing,
        Some(_) | None => Begins::Other,
    };
    let is_whole =
        |record: &[u8]| log_record::decode_header(record).is_some_and(|h| h.fits(record));
    lacks(device, at, &begins, &is_whole)
}

/// The same of the journal's last zone, in which nothing but frames lies.
pub(crate) fn journal_lacks(device: &dyn Mirror, journal: &Journal) -> Option<u64> {
    let begins = |start: &[u8]| match journal.next_header(start) {
        Some(header) => Begins::Write(header.frame_length()),
        None => Begins::Nothing,
    };
    let is_whole = |frame: &[u8]| journal::decode_header(frame).is_some_and(|h| h.fits(frame));
    lacks(device, journal.end(), &begins, &is_whole)
}

fn lacks(
    device: &dyn Mirror,
    at: ZoneAddress,
    begins: &dyn Fn(&[u8]) -> Begins,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Option<u64> {
    // A copy of an earlier life of its zone tells nothing. It was found to be wrong, or differs in front of the
    // end as well.
    if !device.keeps_prefixes() || device.damaged().contains(&at.zone) {
        return None;
    }
    let g = device.geometry();
    let block = g.block_size as usize;
    let front = block.min(at.offset as usize);
    let from = ZoneAddress::new(at.zone, at.offset - front as u64);
    let reaches = |zone: &ZoneDescriptor| {
        let has_end = zone.write_pointer_valid() && zone.condition != ZoneCondition::Full;
        has_end && zone.write_pointer >= at.offset
    };
    let mut copies = device.read_each(from, front + block);
    copies.retain(|(zone, _)| reaches(zone));
    let fronts = || copies.iter().map(|(_, bytes)| &bytes[..front]);
    if fronts()
        .zip(fronts().skip(1))
        .any(|(one, other)| one != other)
    {
        return None;
    }
    let damaged = copies.iter().filter(|(zone, bytes)| {
        let rest = zone.write_pointer - at.offset;
        rest > 0
            && match begins(&bytes[front..]) {
                Begins::Nothing => true,
                Begins::Other => false,
                Begins::Write(length) => {
                    let length = g.round_up(length as u64);
                    // Somebody else may have written it since the end was found.
                    let is_there = |copies: Vec<(ZoneDescriptor, Vec<u8>)>| {
                        copies.iter().any(|(_, bytes)| is_whole(bytes))
                    };
                    length <= rest && !is_there(device.read_each(at, length as usize))
                }
            }
    });
    damaged.map(|(zone, _)| zone.write_pointer).max()
}
