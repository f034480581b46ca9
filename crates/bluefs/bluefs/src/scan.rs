//! Finds the records of logs at mount, by following each segment from its start.

use crate::Result;
use crate::format::log_record::{self, HEADER, RecordHeader};
use crate::forward::Forward;
use crate::marks::{Marks, Stop};
use crate::mirror::Mirror;
use crate::namespace::Namespace;
use crate::node::{Node, Piece, Segment};
use crate::torn::log_lacks;
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor};

/// Most bytes of logs that a mount keeps in memory ([`crate::node::Body::found`]).
pub(crate) const KEEP: usize = 4 << 20;

/// Finds the records of a log, fills its pieces and sets the end of all its segments.
///
/// Returns where segments stop in a way that may be damage, which the durability marks decide. Payloads are kept in
/// memory as far as `room` allows.
pub(crate) fn scan_log(
    device: &dyn Mirror,
    names: &Namespace,
    node: &Node,
    report: &[ZoneDescriptor],
    marks: &mut Marks,
    room: &mut usize,
) -> Result<Vec<Stop>> {
    let mut stops = Vec::new();
    let mut body = node.body.write();
    let mut segments = std::mem::take(&mut body.segments);
    let begins: Vec<u64> = segments.iter().map(|s| s.file_offset).collect();
    for (index, segment) in segments.iter_mut().enumerate() {
        if body.written() > segment.file_offset {
            body.truncate(segment.file_offset);
        }
        let is_offline = |zone: &ZoneDescriptor| zone.condition == ZoneCondition::Offline;
        let run = if report.get(segment.at.zone.index()).is_some_and(is_offline) {
            lost_segment(segment, begins.get(index + 1).copied())
        } else {
            let keeps = body.found.len() as u64 == segment.file_offset;
            let room = if keeps { *room } else { 0 };
            scan_segment(device, node.inode, segment, report, marks, room)?
        };
        let reachable = body.written() == segment.file_offset;
        let next = run
            .pieces
            .last()
            .map_or(segment.file_offset, |p| p.file_offset + p.length);
        // Records that are missing after a truncation are no damage.
        if let Some(offset) = run.stop.filter(|_| next < segment.limit) {
            let (at, run_id) = (ZoneAddress::new(segment.at.zone, offset), segment.run_id);
            let known = match segment.end {
                // A file that begins there was written after the log.
                u64::MAX => log_lacks(device, segment.at.offset, at, run_id)
                    .filter(|_| !names.has_extent_from(at) && !ends_there(device, names, at))
                    .unwrap_or(0),
                end => end,
            };
            stops.push(Stop {
                inode: node.inode,
                length: next,
                at,
                run_id,
                known,
            });
        }
        if reachable {
            body.pieces.extend(run.pieces);
            *room -= run.bytes.len();
            if body.found.is_empty() {
                body.found = run.bytes;
            } else {
                body.found.extend(run.bytes);
            }
            segment.end = run.end;
        } else {
            // Records before this segment are missing.
            segment.end = segment.at.offset;
        }
        if segment.limit < body.written() {
            body.truncate(segment.limit);
        }
    }
    body.segments = segments;
    Ok(stops)
}

/// Whether a log ended at `at`, because only the record that ends a log can have been there: behind it is a file which is
/// written behind such a record. A start of the file that cannot be read shows nothing.
fn ends_there(device: &dyn Mirror, names: &Namespace, at: ZoneAddress) -> bool {
    let block = device.geometry().block_size;
    let behind = ZoneAddress::new(at.zone, at.offset + u64::from(block));
    if !names.has_extent_from(behind) {
        return false;
    }
    let copies = device.read_each(behind, block as usize);
    let misleads = |start: &[u8]| !start.is_empty() && log_record::misleads(start);
    copies.iter().any(|(_, start)| misleads(start))
}

/// Records found in a segment.
#[derive(Default)]
struct Run {
    pieces: Vec<Piece>,
    /// Payloads of the first pieces, kept in memory.
    bytes: Vec<u8>,
    /// Zone offset after the last record of the log.
    end: u64,
    /// Zone offset where the scan stopped, unless that is the known end or a whole record of the log follows.
    stop: Option<u64>,
}

/// Stands for a segment in an offline zone: a piece that cannot be read, for as many bytes as the segment is known to
/// have had, so that the part before it is not taken for the whole log.
fn lost_segment(segment: &Segment, next: Option<u64>) -> Run {
    let from = segment.file_offset;
    let to = next.unwrap_or(from + 1).min(segment.limit).max(from);
    let piece = Piece {
        file_offset: from,
        at: ZoneAddress::new(segment.at.zone, segment.at.offset + HEADER as u64),
        length: to - from,
        checksum: 0,
    };
    Run {
        pieces: Some(piece).filter(|p| p.length > 0).into_iter().collect(),
        end: segment.end,
        ..Run::default()
    }
}

fn scan_segment(
    device: &dyn Mirror,
    inode: u64,
    segment: &Segment,
    report: &[ZoneDescriptor],
    marks: &mut Marks,
    room: usize,
) -> Result<Run> {
    let at = segment.at;
    let g = device.geometry();
    let mut run = Run {
        end: at.offset,
        ..Run::default()
    };
    let Some(zone) = report.get(at.zone.index()) else {
        return Ok(run);
    };
    let written = if zone.write_pointer_valid() {
        zone.write_pointer
    } else {
        zone.capacity
    };
    let limit = segment.end.min(written);
    if at.offset >= limit {
        run.stop = (at.offset < segment.end).then_some(at.offset);
        return Ok(run);
    }
    let mut next = segment.file_offset;
    let mut offset = at.offset;
    let mut forward = Forward::new(device, at.zone, limit).large();
    loop {
        let place = ZoneAddress::new(at.zone, offset);
        let found = record_at(&mut forward, g, offset)?;
        let goes_on = |header: &RecordHeader| header.at == place && header.run_id == segment.run_id;
        let is_of_run = found.as_ref().is_some_and(|(header, _)| goes_on(header));
        if !is_of_run
            && other_record(device, place, limit).is_some_and(|header| goes_on(&header))
            && let Some([_, other]) = device.copies_of(at.zone)
        {
            device.turn_to(at.zone, other);
            forward = Forward::new(device, at.zone, limit).large();
            continue;
        }
        let Some((header, record)) = found else {
            break;
        };
        let record_length = record.len() as u64;
        marks.hear_record(&header);
        // Another run, written after this one, or a record that belongs elsewhere. Durability marks tell whether this
        // run went on.
        if !is_of_run {
            break;
        }
        // Records of other logs that share the zone lie between those of this one.
        if header.inode == inode {
            // A record of this log that does not continue the segment: before it was written, the log was truncated or
            // continued elsewhere, which the journal does not know or no longer.
            if header.file_offset != next {
                return Ok(run);
            }
            let payload = ZoneAddress::new(at.zone, offset + HEADER as u64);
            let length = u64::from(header.length);
            run.pieces.push(Piece {
                file_offset: next,
                at: payload,
                length,
                checksum: 0,
            });
            let is_next = run.bytes.len() as u64 == next - segment.file_offset;
            if is_next && run.bytes.len() + length as usize <= room {
                let payload = &record[HEADER..][..length as usize];
                run.bytes.extend_from_slice(payload);
            }
            next += length;
            run.end = offset + record_length;
        } else {
            marks.hear_other(&header);
        }
        offset += record_length;
    }
    run.stop = (offset < segment.end).then_some(offset);
    Ok(run)
}

/// The record that begins at `offset`, with its padding; `None` if it is not whole.
fn record_at<'a>(
    forward: &'a mut Forward<'_>,
    g: &Geometry,
    offset: u64,
) -> Result<Option<(RecordHeader, &'a [u8])>> {
    let start = forward.get(offset, u64::from(g.block_size))?;
    let Some(header) = start.and_then(log_record::decode_header) else {
        return Ok(None);
    };
    let length = g.round_up(header.record_length() as u64);
    let record = forward.get(offset, length)?;
    Ok(record
        .filter(|record| header.fits(record))
        .map(|record| (header, record)))
}

/// The header of the record at `at` in the copy that is not read first; `None` if the record is not whole.
fn other_record(device: &dyn Mirror, at: ZoneAddress, limit: u64) -> Option<RecordHeader> {
    let g = device.geometry();
    let mut record = vec![0; g.block_size as usize];
    let room = limit.checked_sub(at.offset)?;
    let read = |record: &mut Vec<u8>| {
        (record.len() as u64 <= room)
            .then(|| device.read_other(at, record))??
            .ok()
    };
    read(&mut record)?;
    let header = log_record::decode_header(&record)?;
    record.resize(g.round_up(header.record_length() as u64) as usize, 0);
    read(&mut record)?;
    header.fits(&record).then_some(header)
}
