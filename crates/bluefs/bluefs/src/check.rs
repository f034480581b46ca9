//! Compares the metadata in memory with itself and with the drive.

use crate::combine::combined;
use crate::format::log_record::HEADER;
use crate::format::operation::Kind;
use crate::node::{Body, Node, Piece};
use crate::repair::are_right;
use crate::shared::Shared;
use crate::{Error, Result};
use device::ZonedDevice;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId};
use zone_alloc::Owner;

const SUPERBLOCK: &str = "a copy of the superblock is lost";
const FRAME: &str = "journal frame is damaged";
const ONE_OF_TWO: &str = "one of two copies";

/// Result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    /// Files.
    pub files: u64,
    /// Extents and log records.
    pub extents: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Bytes read and compared with their checksums.
    pub bytes_verified: u64,
    /// How many errors of each kind; empty means clean.
    pub errors: BTreeMap<String, u64>,
    /// Descriptions of the first hundred errors.
    pub details: Vec<String>,
}

impl CheckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether all that was wrong can be written anew from a copy that is right.
    pub fn has_copies(&self) -> bool {
        let is_one = |what: &String| what.starts_with(ONE_OF_TWO) || what == SUPERBLOCK;
        self.errors.keys().all(is_one)
    }

    fn error(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        *self.errors.entry(kind.to_owned()).or_default() += 1;
        if self.details.len() < 100 {
            self.details.push(format!("{kind}: {}", detail()));
        }
    }

    /// Counts several errors of one kind, with one description.
    fn errors_of(&mut self, kind: &str, count: u64, detail: String) {
        if count > 0 {
            self.error(kind, || detail);
            *self.errors.entry(kind.to_owned()).or_default() += count - 1;
        }
    }
}

/// A file as it was when the check began.
struct File {
    path: String,
    node: Arc<Node>,
    pieces: Vec<Piece>,
}

impl File {
    /// Whether the file still has a piece. Other threads continue during the check, and the zone of a piece that was
    /// removed or moved may have been reset.
    fn still_has(&self, piece: &Piece) -> bool {
        let body = self.node.body.read();
        let found = body.pieces.get(body.position(piece.file_offset));
        self.node.links.load(Ordering::Acquire) > 0
            && found.is_some_and(|p| p.at == piece.at && p.length >= piece.length)
    }
}

impl Shared {
    pub(crate) fn check_all(&self, deep: bool) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let files = self.check_metadata(&mut report);
        if deep {
            self.check_copies_of_metadata(&mut report)?;
        }
        let zones = self
            .device
            .report(ZoneId(0), self.device.geometry().zone_count)?;
        for file in &files {
            for piece in &file.pieces {
                self.check_piece(file, piece, &zones, deep, &mut report);
            }
        }
        Ok(report)
    }

    /// Checks the metadata in memory, and returns the files whose pieces are to be checked on the drive.
    fn check_metadata(&self, report: &mut CheckReport) -> Vec<File> {
        let state = self.state.lock();
        let g = self.device.geometry();
        for what in &state.damage {
            report.error("damage to what was durable", || what.to_string());
        }
        for zone in state.rings.without_superblock() {
            report.error(SUPERBLOCK, || {
                format!("zones {zone} and the next; a mount for writing makes it anew")
            });
        }
        let mut files = Vec::new();
        let mut places: Vec<(ZoneAddress, u64, u64)> = Vec::new();
        // For each zone: extents of each file, and blocks of all files.
        let mut uses: BTreeMap<ZoneId, (BTreeMap<u64, u32>, u32)> = BTreeMap::new();
        let mut use_zones = |node: &Node, body: &Body| {
            for (zone, blocks) in node.extents(g, body) {
                let (files, live_blocks) = uses.entry(zone).or_default();
                *files.entry(node.inode).or_default() += 1;
                *live_blocks = live_blocks.saturating_add(blocks);
            }
        };
        for node in state.nameless.values() {
            use_zones(node, &node.body.read());
        }
        let paths = state.names.paths();
        let path = |inode: u64| {
            let named = paths.get(&inode).map(|path| (*path).clone());
            named.unwrap_or_else(|| state.names.path(inode))
        };
        for (inode, node) in &state.names.nodes {
            let body = node.body.read();
            let path = path(*inode);
            report.files += 1;
            report.bytes += body.size();
            let mut next = 0;
            for piece in &body.pieces {
                report.extents += 1;
                if piece.file_offset != next {
                    report.error("hole in a file", || format!("{path} at byte {next}"));
                }
                next = piece.file_offset + piece.length;
                let (at, length) = place(g, node.kind, piece);
                if self.pool.owner(at.zone) != Some(Owner::BlueFs) {
                    report.error("extent in a zone of somebody else", || {
                        format!("{path}, {at}")
                    });
                }
                places.push((at, length, *inode));
            }
            use_zones(node, &body);
            files.push(File {
                path,
                node: node.clone(),
                pieces: body.pieces.clone(),
            });
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            if pair[0].0.zone == pair[1].0.zone && pair[0].0.offset + pair[0].1 > pair[1].0.offset {
                report.error("extents overlap", || {
                    format!(
                        "{} of {} and {}",
                        pair[1].0,
                        path(pair[0].2),
                        path(pair[1].2)
                    )
                });
            }
        }
        for zone in g.zones() {
            // A zone with a writer is skipped: data may be written and not counted yet.
            let Some(counted) = state.zones.settled_content(zone) else {
                continue;
            };
            let counted = (state.zones.files_in(zone).collect(), counted.live_blocks);
            let found = uses.remove(&zone).unwrap_or_default();
            if counted != found {
                report.error("zone's extents are not as counted", || {
                    format!(
                        "zone {zone}: extents by inode, and blocks: {found:?}, counted are {counted:?}"
                    )
                });
            }
        }
        for (path, inode) in &state.names.names {
            if !state.names.nodes.contains_key(inode) {
                report.error("name without a file", || path.clone());
            }
        }
        files
    }

    /// Adds an error for each journal frame and superblock with a damaged copy.
    fn check_copies_of_metadata(&self, report: &mut CheckReport) -> Result<()> {
        let found = self.look_at_metadata()?;
        // These are reported already, by `check_metadata`.
        let known: Vec<ZoneId> = self.state.lock().rings.without_superblock().collect();
        for zone in found
            .superblocks
            .iter()
            .filter(|zone| !known.contains(zone))
        {
            report.error(SUPERBLOCK, || {
                format!("zones {zone} and the next; a mount for writing or a scrub makes it anew")
            });
        }
        for at in &found.in_one {
            report.error("one of two copies of a journal frame is damaged", || {
                at.to_string()
            });
        }
        for (at, frames) in &found.in_all {
            let detail = format!("{at}, frames that begin there: {frames}");
            report.errors_of(FRAME, *frames, detail);
        }
        // The mount could not read these frames, so the journal in memory ends before them.
        let damage = self.state.lock().damage.clone();
        for error in damage {
            if let Error::JournalDamaged { at, missing, .. } = error {
                let count = missing.max(1);
                report.errors_of(FRAME, count, format!("{at}, missing: {missing}"));
            }
        }
        Ok(())
    }

    /// Whether only one copy has the last write to a log because a process was killed during that write. A mount for
    /// writing completes the other copy.
    fn is_cut_short(&self, node: &Node, piece: &Piece) -> bool {
        let (at, length) = place(self.device.geometry(), node.kind, piece);
        let is_last = || node.body.read().marked < piece.file_offset + piece.length;
        let is_inside = |end: u64| (at.offset..at.offset + length).contains(&end);
        self.read_only
            && node.kind == Kind::Log
            && is_last()
            && self.device.shorter_end(at.zone).is_some_and(is_inside)
    }

    /// Checks a piece of a file on the drive.
    fn check_piece(
        &self,
        file: &File,
        piece: &Piece,
        zones: &[ZoneDescriptor],
        deep: bool,
        report: &mut CheckReport,
    ) {
        let File { path, node, .. } = file;
        let g = self.device.geometry();
        let (at, length) = place(g, node.kind, piece);
        let zone = zones.get(at.zone.index());
        let wrong = match zone {
            Some(zone) if at.offset + length <= g.capacity(at.zone) => {
                let is_above = at.offset + length > zone.write_pointer;
                if zone.condition == ZoneCondition::Offline {
                    Some("in a zone that is offline")
                } else if zone.write_pointer_valid() && is_above {
                    Some("extent above the write pointer")
                } else {
                    None
                }
            }
            _ => Some("extent behind the end of its zone"),
        };
        if let Some(wrong) = wrong.filter(|_| file.still_has(piece)) {
            report.error(wrong, || format!("{path}, {at}"));
        }
        if !deep {
            return;
        }
        let device = &*self.device;
        let (first, other) = are_right(device, node, piece);
        let place = || format!("{path} at byte {}, {}", piece.file_offset, piece.at);
        match (first, device.twin(piece.at.zone).is_some(), other) {
            (Ok(true), _, true) => report.bytes_verified += piece.length,
            _ if !file.still_has(piece) => {}
            (Ok(true), ..) | (_, true, true) if self.is_cut_short(node, piece) => {}
            (Ok(true), ..) | (_, true, true) => report.error("one of two copies is damaged", place),
            _ if combined(device, piece).is_some() => {
                report.error("both copies are damaged, and whole together", place);
            }
            (Ok(false), ..) => report.error("checksum mismatch", place),
            (Err(error), ..) => report.error("unreadable", || {
                format!("{path} at byte {}: {error}", piece.file_offset)
            }),
        }
    }
}

/// Position of a piece in its zone and its bytes there in whole blocks, with the header of a log's record.
fn place(g: &Geometry, kind: Kind, piece: &Piece) -> (ZoneAddress, u64) {
    let header = if kind == Kind::Log { HEADER as u64 } else { 0 };
    let at = ZoneAddress::new(piece.at.zone, piece.at.offset.saturating_sub(header));
    (at, g.round_up(piece.length + header))
}
