//! Whole frames of the journal behind damage in it.

use crate::format::journal::{DecodedFrame, decode_frame};
use crate::format::operation::JournalOperation;
use crate::journal::{Journal, first_header};
use crate::marks::{Found, search, search_end};
use crate::namespace::Namespace;
use device::ZonedDevice;
use std::collections::{BTreeMap, BTreeSet};
use zone::{ZoneDescriptor, ZoneId, ZoneKind};

/// A whole frame behind the journal's end.
pub(crate) struct Frame {
    pub zone: ZoneId,
    previous: u32,
    pub durable: u64,
    sum: u32,
    pub operations: Vec<JournalOperation>,
}

/// The whole frames of the journal's epoch that lie behind its end, by their numbers: in the zone where
/// it ends, in those that they name, and in others where the journal may have gone on. An epoch may have
/// been begun twice; only frames count that were written after its superblock, and those that lead to one.
pub(crate) fn frames_behind(
    device: &dyn ZonedDevice,
    journal: &Journal,
    names: &Namespace,
    report: &[ZoneDescriptor],
) -> BTreeMap<u64, Frame> {
    let g = device.geometry();
    let end = journal.end();
    let mut found: BTreeMap<u64, Vec<Frame>> = BTreeMap::new();
    let mut places = vec![(end.zone, end.offset)];
    let begins = |zone: &ZoneId| {
        first_header(device, *zone).is_some_and(|header| header.place.epoch == journal.epoch)
    };
    let conventional = g
        .zones()
        .filter(|zone| g.kind(*zone) == ZoneKind::Conventional);
    let others: BTreeSet<ZoneId> = conventional.chain(names.owned.iter().copied()).collect();
    let others = others
        .into_iter()
        .filter(|zone| !journal.zones.contains(zone))
        .filter(begins);
    places.extend(others.map(|zone| (zone, 0)));
    let mut searched = BTreeSet::new();
    while let Some((zone, from)) = places.pop() {
        if report.get(zone.index()).is_none() || !searched.insert(zone) {
            continue;
        }
        let to = search_end(report, zone, from);
        search(device, zone, from, to, &mut |thing| {
            let Found::Frame(header, frame) = thing else {
                return;
            };
            let DecodedFrame::Whole(operations, sum) = decode_frame(&frame) else {
                return;
            };
            let place = header.place;
            if place.epoch == journal.epoch && place.sequence >= journal.next_frame {
                for operation in &operations {
                    if let JournalOperation::NextZone { zone } = operation {
                        places.push((*zone, 0));
                    }
                }
                let (previous, durable) = (place.previous, header.durable);
                found.entry(place.sequence).or_default().push(Frame {
                    zone,
                    previous,
                    durable,
                    sum,
                    operations,
                });
            }
        });
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
