//! What a repair would lose: what lies behind damage, as far as it can be told.
//!
//! A log is cut in front of its damage. Of the journal, everything behind the first frame that is missing
//! goes; frames that are whole there still tell which files that concerns. They are not carried out: the
//! missing one may have freed a zone that a later one fills, or named a file that a later one renames.

use crate::format::journal::{DecodedFrame, Kind, Operation, decode_frame, decode_header};
use crate::journal::Journal;
use crate::marks::{Found, search, search_end};
use crate::namespace::Namespace;
use crate::shared::{Shared, State};
use crate::{Error, Result};
use device::ZonedDevice;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use zone::{ZoneDescriptor, ZoneId};

/// What becomes of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Loss {
    /// Its name, as far as that is known.
    pub path: String,
    /// What becomes of it, in words that follow the name.
    pub what: String,
}

impl Shared {
    /// What a mount for writing that accepts the damage would lose.
    pub fn losses(&self) -> Result<Vec<Loss>> {
        let state = self.state.lock();
        let mut losses: BTreeSet<Loss> = BTreeSet::new();
        for error in &state.damage {
            if let Error::LogDamaged { path, length, .. } = error {
                let (path, what) = (path.clone(), format!("is cut to {length} bytes"));
                losses.insert(Loss { path, what });
            }
        }
        let report = self
            .device
            .report(ZoneId(0), self.device.geometry().zone_count)?;
        losses.extend(lost_names(&*self.device, &state, &report)?);
        Ok(losses.into_iter().collect())
    }
}

/// Files that frames behind the journal's end tell of.
fn lost_names(
    device: &dyn ZonedDevice,
    state: &State,
    report: &[ZoneDescriptor],
) -> Result<Vec<Loss>> {
    let mut losses = Vec::new();
    let kept = &state.names;
    let journal = &state.journal;
    let frames = frames_behind(device, journal, kept, report);
    if frames.is_empty() {
        return Ok(losses);
    }
    let mut later = Namespace::new();
    let mut each = |_, operations: Vec<Operation>| {
        operations.iter().for_each(|op| drop(later.apply(op)));
        true
    };
    let first = state.superblock.journal_zone;
    Journal::replay(device, journal.epoch, first, &mut each)?;
    let mut nameless = BTreeSet::new();
    for operation in frames.values().flatten() {
        if let Some(inode) = inode_of(operation).filter(|inode| !later.nodes.contains_key(inode))
            && !matches!(operation, Operation::Create { .. })
        {
            nameless.insert(inode);
        }
        later.apply(operation);
    }
    let mut lost = |path: &str, what: String| {
        let path = path.to_owned();
        losses.push(Loss { path, what });
    };
    for (path, inode) in &later.names {
        match kept.names.get(path) {
            None => lost(path, "is lost: it was made behind the damage".to_owned()),
            Some(old) if old != inode => {
                lost(path, "goes back to the file that it was before".to_owned());
            }
            Some(_) => {
                let size =
                    |names: &Namespace| names.nodes.get(inode).map(|n| n.body.read().written());
                let is_plain = kept.nodes.get(inode).is_some_and(|n| n.kind == Kind::Plain);
                let (now, then) = (size(kept).unwrap_or(0), size(&later).unwrap_or(0));
                if is_plain && now != then {
                    lost(path, format!("has {now} bytes again instead of {then}"));
                }
            }
        }
    }
    for path in kept.names.keys().filter(|p| !later.names.contains_key(*p)) {
        lost(
            path,
            "is back: it was removed or renamed behind the damage".to_owned(),
        );
    }
    for inode in nameless {
        let path = format!("a file whose name is in what is damaged (inode {inode})");
        lost(&path, "is lost".to_owned());
    }
    Ok(losses)
}

fn inode_of(operation: &Operation) -> Option<u64> {
    match operation {
        Operation::Create { inode, .. }
        | Operation::Link { inode, .. }
        | Operation::Extend { inode, .. }
        | Operation::Move { inode, .. }
        | Operation::Cut { inode, .. }
        | Operation::LogSegment { inode, .. }
        | Operation::LogTruncate { inode, .. } => Some(*inode),
        _ => None,
    }
}

/// The whole frames of the journal's epoch that lie behind its end, by their numbers: in the zone where
/// it ends, in those that they name, and in others that are ours.
fn frames_behind(
    device: &dyn ZonedDevice,
    journal: &Journal,
    names: &Namespace,
    report: &[ZoneDescriptor],
) -> BTreeMap<u64, Vec<Operation>> {
    let end = journal.end();
    let mut frames: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    let mut places = vec![(end.zone, end.offset)];
    let begins = |zone: &&ZoneId| {
        let mut block = vec![0; device.geometry().block_size as usize];
        let read = device.read(device.geometry().start(**zone), &mut block);
        let header = decode_header(&block).filter(|_| read.is_ok());
        header.is_some_and(|header| header.place.epoch == journal.epoch)
    };
    places.extend(names.owned.iter().filter(begins).map(|zone| (*zone, 0)));
    let mut searched = BTreeSet::new();
    while let Some((zone, from)) = places.pop() {
        if report.get(zone.index()).is_none() || !searched.insert((zone, from)) {
            continue;
        }
        let to = search_end(report, zone, from);
        search(device, zone, from, to, &mut |found| {
            let Found::Frame(header, frame) = found else {
                return true;
            };
            let DecodedFrame::Whole(operations, _) = decode_frame(&frame) else {
                return true;
            };
            if header.place.epoch == journal.epoch && header.place.sequence >= journal.next_frame {
                for operation in &operations {
                    if let Operation::NextZone { zone } = operation {
                        places.push((*zone, 0));
                    }
                }
                frames.insert(header.place.sequence, operations);
            }
            true
        });
    }
    frames
}
