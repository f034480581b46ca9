//! Finds whole frames of the journal after damage in it.

use crate::format::journal::{DecodedFrame, FrameHeader, decode_frame, decode_header};
use crate::format::operation::JournalOperation;
use crate::journal::{Journal, first_header, has_possible_extents};
use crate::marks::{Found, search_by, search_end};
use crate::mirror::Mirror;
use crate::namespace::Namespace;
use std::collections::{BTreeMap, BTreeSet};
use zone::{ZoneAddress, ZoneDescriptor, ZoneId, ZoneKind, ZoneResult};

/// A whole frame after the journal's readable end.
pub(crate) struct Frame {
    pub zone: ZoneId,
    previous: u32,
    pub durable: u64,
    sum: u32,
    pub operations: Vec<JournalOperation>,
}

/// The whole frames of the journal's epoch after its readable end, by their numbers.
///
/// Searched are the zone where the journal ends, the zones that the frames name, and others where the journal may have
/// continued. An epoch may have been begun twice: only frames that were written after its superblock count, and those
/// that lead to one. Both zones of a pair are searched, because each may have frames that the other has lost.
pub(crate) fn frames_behind(
    device: &dyn Mirror,
    journal: &Journal,
    names: &Namespace,
    report: &[ZoneDescriptor],
) -> BTreeMap<u64, Frame> {
    let g = device.geometry();
    let end = journal.end();
    let mut found: BTreeMap<u64, Vec<Frame>> = BTreeMap::new();
    let mut places = vec![(end.zone, end.offset)];
    let begins = |zone: &ZoneId| {
        first_headers(device, *zone).any(|header| header.place.epoch == journal.epoch)
    };
    let conventional = g
        .zones()
        .filter(|zone| g.kind(*zone) == ZoneKind::Conventional);
    let others: BTreeSet<ZoneId> = conventional.chain(names.owned.iter().copied()).collect();
    let others = others
        .into_iter()
        // A twin is searched together with its pair.
        .filter(|zone| device.goes_by(*zone) == *zone && !journal.zones.contains(zone))
        .filter(begins);
    places.extend(others.map(|zone| (zone, 0)));
    let mut searched = BTreeSet::new();
    while let Some((zone, from)) = places.pop() {
        if report.get(zone.index()).is_none() || !searched.insert(zone) {
            continue;
        }
        let to = search_end(report, zone, from);
        let each = &mut |thing: Found| {
            let Found::Frame(header, frame) = thing else {
                return;
            };
            let DecodedFrame::Whole(operations, sum) = decode_frame(&frame) else {
                return;
            };
            // The journal ends there as well: the frame counts as missing.
            if !operations.iter().all(|op| has_possible_extents(g, op)) {
                return;
            }
            let place = header.place;
            if place.epoch == journal.epoch && place.sequence >= journal.next_frame {
                for operation in &operations {
                    if let JournalOperation::NextZone { zone } = operation {
                        places.push((*zone, 0));
                    }
                }
                let (previous, durable) = (place.previous, header.durable);
                let known = found.entry(place.sequence).or_default();
                if known
                    .iter()
                    .any(|known| known.zone == zone && known.sum == sum)
                {
                    return;
                }
                known.push(Frame {
                    zone,
                    previous,
                    durable,
                    sum,
                    operations,
                });
            }
        };
        let mut read = |at, bytes: &mut [u8]| device.read(g.absolute(at), bytes);
        search_by(g, &mut read, (zone, from, to), each);
        if device.twin(zone).is_some() {
            let mut read = |at, bytes: &mut [u8]| read_other(device, at, bytes);
            search_by(g, &mut read, (zone, from, to), each);
        }
    }
    let mut counts: BTreeMap<u64, Frame> = BTreeMap::new();
    for (number, frames) in found.into_iter().rev() {
        let next = counts.get(&(number + 1)).map(|next| next.previous);
        let leads_on = |frame: &&Frame| next == Some(frame.sum);
        let best = frames
            .iter()
            .position(|f| leads_on(&f))
            .or_else(|| frames.iter().position(|f| f.durable > 0));
        if let Some(best) = best {
            counts.extend(frames.into_iter().nth(best).map(|frame| (number, frame)));
        }
    }
    counts
}

/// Reads the copy that is not read first; succeeds without reading if there is only one.
fn read_other(device: &dyn Mirror, at: ZoneAddress, bytes: &mut [u8]) -> ZoneResult<()> {
    device.read_other(at, bytes).unwrap_or(Ok(()))
}

/// The headers of the frames at the start of a zone, whole or not, one for each copy.
fn first_headers(device: &dyn Mirror, zone: ZoneId) -> impl Iterator<Item = FrameHeader> {
    let mut block = vec![0; device.geometry().block_size as usize];
    let other = read_other(device, ZoneAddress::new(zone, 0), &mut block);
    let other = other.ok().and_then(|()| decode_header(&block));
    first_header(device, zone).into_iter().chain(other)
}
