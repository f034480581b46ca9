//! Inspects a file system that another process may be changing: what each zone holds.
//!
//! Nothing is locked, claimed or written. The journal is replayed as it is; logs are not scanned, because the write
//! pointers of their zones tell how far they were written. If the other process writes meanwhile, the journal may seem
//! to end too early: the caller then has to observe again, with a new report.

use crate::epochs;
use crate::format::operation::{JournalOperation, Kind};
use crate::format::superblock::{Role, Superblock};
use crate::journal::Journal;
use crate::look::find;
use crate::mirror::{Mirror, Mirrored};
use crate::namespace::Namespace;
use crate::ring::ring_zones;
use crate::{Error, Result};
use device::ZonedDevice;
use runtime::HashMap;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId};

/// Kind of data in a zone, as the journal tells. Lifetimes of SSTs are not on the drive; only their writer knows them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneContent {
    /// A superblock ring.
    Superblock,
    /// The journal.
    Journal,
    /// Write-ahead logs, perhaps beside a manifest.
    Wal,
    /// Manifests.
    Manifest,
    /// An SST.
    Sst,
    /// Several files, SSTs among them.
    SharedSsts,
    /// Plain files that are no SSTs.
    OtherFiles,
    /// Nothing that the journal names: empty and ready, being written, or without live data.
    Unnamed,
}

/// A zone of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedZone {
    /// Kind of data in the zone.
    pub content: ZoneContent,
    /// Bytes in files that have a name, padding to whole blocks included; those of a second copy too.
    pub live_bytes: u64,
    /// Bytes between the last place that the journal ever named in the zone and the write pointer. A file that is being
    /// written has no extents in the journal before it is synced. If no process writes, these bytes are dead.
    pub unnamed_bytes: u64,
}

/// A file system as [`crate::BlueFs::observe`] saw it, perhaps while another process wrote to it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The newest superblock.
    pub superblock: Superblock,
    /// The zones of the file system.
    pub zones: BTreeMap<ZoneId, ObservedZone>,
    /// The twin zones, each with the zone whose bytes it copies.
    pub twins: BTreeMap<ZoneId, ZoneId>,
    /// Files with a name.
    pub files: u64,
    /// Frames of the journal that were read.
    pub journal_frames: u64,
    /// Whether the journal ends at the write pointer of the drive's report, and no earlier than it is known to have
    /// been durable. If not, the other process wrote during the observation, or the journal is damaged.
    pub whole: bool,
}

impl Observation {
    /// Whether an object store owns the zones that the file system does not.
    pub fn is_shared(&self) -> bool {
        self.superblock.role == Role::Shared
    }
}

/// Ranges of bytes in zones, and the files that they belong to.
#[derive(Default)]
struct Uses {
    /// By zone: begin, end, inode.
    runs: HashMap<ZoneId, Vec<(u64, u64, u64)>>,
}

impl Uses {
    fn add(&mut self, zone: ZoneId, from: u64, to: u64, inode: u64) {
        self.runs.entry(zone).or_default().push((from, to, inode));
    }
}

pub(crate) fn observe(device: &dyn ZonedDevice, report: &[ZoneDescriptor]) -> Result<Observation> {
    let g = device.geometry();
    let (_, superblock) = find(device)?;
    let device = Mirrored::new(device);
    let (superblock, _) = epochs::newest(&device, superblock);
    let mut names = Namespace::new();
    let mut reached: HashMap<ZoneId, u64> = HashMap::default();
    let mut each = |_: u64, operations: Vec<JournalOperation>| {
        for operation in &operations {
            hear(g, operation, &mut reached);
            names.apply(operation);
        }
        true
    };
    let (epoch, first) = (superblock.journal_epoch, superblock.journal_zone);
    let journal = Journal::replay(&device, epoch, first, &mut each)?;
    let durable = superblock.journal_frames.max(journal.durable);
    let end = journal.end();
    let at_its_end = report
        .get(end.zone.index())
        .is_none_or(|zone| !zone.write_pointer_valid() || zone.write_pointer <= end.offset);

    let mut zones = BTreeMap::new();
    let of = |content, live_bytes, unnamed_bytes| ObservedZone {
        content,
        live_bytes,
        unnamed_bytes,
    };
    let mut uses = files(g, &names);
    let owned = names.owned.iter().chain(uses.runs.keys());
    let owned: Vec<ZoneId> = owned.copied().collect();
    let kinds = Kinds::new(&names);
    for zone in owned {
        let Some(told) = report.get(zone.index()) else {
            return Err(Error::Corrupt {
                at: zone::ZoneAddress::new(zone, 0),
                what: "a zone that is not there",
                expected: g.zone_count.into(),
                found: zone.0.into(),
            });
        };
        let written = written(told);
        let runs = uses.runs.entry(zone).or_default();
        let (live, live_end) = union(runs, written);
        let reached = reached.get(&zone).copied().unwrap_or(0);
        // A larger value is from an earlier life of the zone.
        let reached = if reached <= written { reached } else { 0 };
        let unnamed = match told.condition {
            ZoneCondition::NotWritePointer => 0,
            // After the live data of a full zone lies deleted data.
            ZoneCondition::Full if live > 0 => 0,
            _ => written - reached.max(live_end),
        };
        zones.insert(zone, of(kinds.content(runs), live, unnamed));
    }
    for zone in ring_zones(g).concat() {
        zones.insert(zone, of(ZoneContent::Superblock, 0, 0));
    }
    for zone in &journal.zones {
        zones.insert(*zone, of(ZoneContent::Journal, 0, 0));
    }
    zones
        .entry(superblock.spare_zone)
        .or_insert(of(ZoneContent::Unnamed, 0, 0));
    let of_twin = |zone: &ZoneId| Some((*zone, device.twin(*zone)?));
    let twins: BTreeMap<_, _> = zones.keys().filter_map(of_twin).collect();
    for (zone, twin) in &twins {
        zones.extend(zones.get(zone).copied().map(|told| (*twin, told)));
    }
    Ok(Observation {
        superblock,
        zones,
        twins,
        files: names.nodes.len() as u64,
        journal_frames: journal.next_frame,
        whole: at_its_end && journal.next_frame >= durable,
    })
}

/// Records in `reached` up to which offset the journal names data in a zone, deleted or not.
fn hear(g: &Geometry, operation: &JournalOperation, reached: &mut HashMap<ZoneId, u64>) {
    let mut reach = |zone: ZoneId, end: u64| {
        let known = reached.entry(zone).or_default();
        *known = (*known).max(end);
    };
    match operation {
        JournalOperation::Extend { extents, .. } | JournalOperation::Move { extents, .. } => {
            for e in extents {
                reach(e.at.zone, e.at.offset.saturating_add(g.round_up(e.length)));
            }
        }
        JournalOperation::LogSegment {
            zone, offset, end, ..
        } => reach(*zone, if *end == u64::MAX { *offset } else { *end }),
        JournalOperation::WrittenEnd { at, .. } => reach(at.zone, at.offset),
        JournalOperation::Take { zone } => _ = reached.remove(zone),
        _ => {}
    }
}

fn files(g: &Geometry, names: &Namespace) -> Uses {
    let mut uses = Uses::default();
    for (inode, node) in &names.nodes {
        let body = node.body.read();
        for p in &body.pieces {
            let end = p.at.offset.saturating_add(g.round_up(p.length));
            uses.add(p.at.zone, p.at.offset, end, *inode);
        }
        for s in &body.segments {
            uses.add(s.at.zone, s.at.offset, s.end, *inode);
        }
    }
    uses
}

/// Written bytes of a zone; its capacity if it has no write pointer.
fn written(told: &ZoneDescriptor) -> u64 {
    if told.write_pointer_valid() {
        told.write_pointer
    } else {
        told.capacity
    }
}

/// Number of bytes below `limit` that are in at least one of the runs, which may overlap, and the end of the last run.
/// Sorts the runs.
fn union(runs: &mut [(u64, u64, u64)], limit: u64) -> (u64, u64) {
    runs.sort_unstable();
    let mut bytes = 0;
    let mut covered = 0;
    for (from, to, _) in runs {
        let (from, to) = ((*from).max(covered), (*to).min(limit));
        if to > from {
            bytes += to - from;
            covered = to;
        }
    }
    (bytes, covered)
}

/// Kinds of files, by inode, as their names tell.
struct Kinds(HashMap<u64, ZoneContent>);

impl Kinds {
    fn new(names: &Namespace) -> Self {
        let content = |(path, inode): (&String, &u64)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_log = names.nodes.get(inode)?.kind == Kind::Log;
            let content = match is_log {
                true if name.starts_with("MANIFEST-") => ZoneContent::Manifest,
                true => ZoneContent::Wal,
                false if name.ends_with(".sst") || name.ends_with(".ldb") => ZoneContent::Sst,
                false => ZoneContent::OtherFiles,
            };
            Some((*inode, content))
        };
        Self(names.names.iter().filter_map(content).collect())
    }

    fn content(&self, runs: &[(u64, u64, u64)]) -> ZoneContent {
        let kinds = || runs.iter().filter_map(|(_, _, inode)| self.0.get(inode));
        let has = |kind: ZoneContent| kinds().any(|k| *k == kind);
        let several = || runs.windows(2).any(|pair| pair[0].2 != pair[1].2);
        match () {
            () if has(ZoneContent::Wal) => ZoneContent::Wal,
            () if has(ZoneContent::Manifest) => ZoneContent::Manifest,
            () if has(ZoneContent::Sst) && several() => ZoneContent::SharedSsts,
            () if has(ZoneContent::Sst) => ZoneContent::Sst,
            () if has(ZoneContent::OtherFiles) => ZoneContent::OtherFiles,
            () => ZoneContent::Unnamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_several_runs_count_once_and_not_above_the_write_pointer() {
        let mut runs = [(8, u64::MAX, 1), (0, 4, 2), (2, 6, 3)];
        assert_eq!(union(&mut runs, 10), (6 + 2, 10));
        assert_eq!(union(&mut runs, 5), (5, 5));
        assert_eq!(union(&mut [], 10), (0, 0));
    }
}
