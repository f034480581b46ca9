//! Finds metadata that cannot be true after damage to the journal: files whose places hold other data, and logs that
//! are shorter than they were.

use crate::Result;
use crate::format::operation::Kind;
use crate::format::superblock::Role;
use crate::loss::{Loss, loss, losses};
use crate::namespace::Namespace;
use crate::node::{Node, is_there, matches};
use crate::shared::Shared;
use device::ZonedDevice;
use runtime::HashSet;
use std::collections::{BTreeMap, BTreeSet};
use zone::{Geometry, ZoneCondition, ZoneId};

impl Shared {
    /// The losses of a mount for writing that accepts the damage, sorted.
    pub fn losses(&self) -> Result<Vec<Loss>> {
        let state = self.state.lock();
        let mut known = state.salvaged.clone().unwrap_or_default();
        if state.salvaged.is_some() {
            let alone = state.superblock.role == Role::Alone;
            let stale = stale(&*self.device, &state.names, alone)?;
            known.extend(stale.into_iter().map(|(_, loss)| loss));
        }
        Ok(losses(&state.damage, known))
    }
}

/// Names of plain files whose bytes do not match the journal, with their inodes and losses. Offline zones are not
/// considered, because no other data can have been written there.
///
/// Beside a store, only a proven match counts as the file's data, because the zone may be the store's by now.
fn stale(device: &dyn ZonedDevice, names: &Namespace, alone: bool) -> Result<Vec<(u64, Loss)>> {
    let report = device.report(ZoneId(0), device.geometry().zone_count)?;
    let is_stale = |node: &Node| {
        let pieces = node.body.read().pieces.clone();
        pieces.iter().any(|piece| {
            let zone = report.get(piece.at.zone.index());
            zone.is_none_or(|zone| zone.condition != ZoneCondition::Offline)
                && !(is_there(device, &report, piece)
                    && matches(device, piece).unwrap_or(alone)
                    && (alone || piece.checksum != 0))
        })
    };
    let plain = |inode: &u64| {
        names
            .nodes
            .get(inode)
            .is_some_and(|n| n.kind == Kind::Plain && is_stale(n))
    };
    Ok(names
        .names
        .iter()
        .filter(|(_, inode)| plain(inode))
        .map(|(path, inode)| {
            (
                *inode,
                loss(path, "is lost: its bytes are not what the journal says"),
            )
        })
        .collect())
}

impl Namespace {
    /// Removes stale files, and gives up zones without data of files; for a mount for writing. Returns the losses.
    pub fn forget_what_is_stale(
        &mut self,
        device: &dyn ZonedDevice,
        alone: bool,
    ) -> Result<Vec<Loss>> {
        let stale = stale(device, self, alone)?;
        for (inode, Loss { path, .. }) in &stale {
            self.names.remove(path);
            self.nodes.remove(inode);
        }
        let held = self.zones_of_files(device.geometry());
        self.owned.retain(|zone| held.contains(zone));
        Ok(stale.into_iter().map(|(_, loss)| loss).collect())
    }

    pub fn zones_of_files(&self, g: &Geometry) -> BTreeSet<ZoneId> {
        let nodes = self.nodes.values();
        let extents = nodes.flat_map(|node| node.extents(g, &node.body.read()));
        extents.map(|(zone, _)| zone).collect()
    }

    /// Losses of logs of which more records were found than the metadata leads to, and of files that are empty.
    pub fn shorter_than_they_were(
        &self,
        found: &BTreeMap<(u64, u32), u64>,
        gone: &HashSet<u64>,
    ) -> BTreeSet<Loss> {
        let runs = found.iter().filter(|((inode, _), _)| !gone.contains(inode));
        let mut losses = BTreeSet::new();
        for ((inode, run_id), end) in runs {
            let Some(node) = self.nodes.get(inode) else {
                losses.insert(loss(
                    &format!("a log whose name is not known (inode {inode})"),
                    "is lost, if it had not been removed",
                ));
                continue;
            };
            let body = node.body.read();
            let size = body.written();
            let of_run = body.segments.iter().find(|s| s.run_id == *run_id);
            // Records after a truncation do not count.
            if size < *end && of_run.is_none_or(|segment| segment.limit == u64::MAX) {
                losses.insert(loss(
                    &self.path(*inode),
                    format!("is truncated to {size} bytes"),
                ));
            }
        }
        for (path, inode) in &self.names {
            let node = self.nodes.get(inode);
            if node.is_some_and(|node| node.body.read().written() == 0) {
                losses.insert(loss(path, "is empty, and may not have been"));
            }
        }
        losses
    }

    /// Removes segments of logs in which no record was found, and returns the logs that become shorter by that.
    pub fn forget_lost_runs(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for node in self.nodes.values().filter(|n| n.kind == Kind::Log) {
            let mut body = node.body.write();
            let size = body.written();
            if body
                .segments
                .iter()
                .any(|segment| segment.file_offset > size)
            {
                losses.push(loss(
                    &self.path(node.inode),
                    format!("is truncated to {size} bytes"),
                ));
            }
            body.segments
                .retain(|segment| segment.end > segment.at.offset);
        }
        losses
    }
}
