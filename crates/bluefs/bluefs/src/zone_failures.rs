//! Handles files in zones that fail.
//!
//! Live data in a read-only zone is moved elsewhere (`reclaim.rs`), and the zone is retired when its reset fails. Files
//! with bytes in an offline zone return an error; all others can still be used.

use crate::failing::DamagedFile;
use crate::format::operation::Kind;
use crate::handle::Handle;
use crate::shared::Shared;
use crate::state::State;
use crate::{Error, Result};
use device::ZonedDevice;
use zone::{ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId};

impl Shared {
    /// Takes note of a failed command that shows that a zone is read-only or offline.
    pub fn notice(&self, error: &ZoneError) {
        let (ZoneError::ReadOnly { zone, .. } | ZoneError::Offline { zone, .. }) = error else {
            return;
        };
        // A pair counts as its better zone: as long as that can be read, nothing is lost.
        if let Ok(told) = self.device.report_zone(self.device.goes_by(*zone)) {
            self.failing.add(&told, &*self.device);
        }
        self.wake.call();
    }

    /// Files that have lost bytes, by a new report of the drive.
    pub fn damaged_files(&self) -> Result<Vec<DamagedFile>> {
        let g = self.device.geometry();
        let report = self.device.report(ZoneId(0), g.zone_count)?;
        let state = self.state.lock();
        state.check()?;
        let mut ours = report.clone();
        ours.retain(|zone| state.zones.has_data(zone.id));
        let damaged = damaged_files(&state, &report);
        // A report of a failing zone may hang.
        drop(state);
        self.failing.learn(&ours, &*self.device, |_| true);
        Ok(damaged)
    }
}

/// Files with bytes in zones that are offline.
pub(crate) fn damaged_files(state: &State, report: &[ZoneDescriptor]) -> Vec<DamagedFile> {
    let mut damaged = Vec::new();
    let offline = report
        .iter()
        .filter(|zone| zone.condition == ZoneCondition::Offline);
    for zone in offline.map(|zone| zone.id) {
        let files = state.zones.files_in(zone);
        for node in files.filter_map(|(inode, _)| state.names.nodes.get(&inode)) {
            let body = node.body.read();
            let here = body.pieces.iter().filter(|p| p.at.zone == zone);
            damaged.push(DamagedFile {
                path: String::new(),
                inode: node.inode,
                is_log: node.kind == Kind::Log,
                zone,
                bytes: here.map(|p| p.length).sum(),
            });
        }
    }
    if damaged.is_empty() {
        return damaged;
    }
    let paths = state.names.paths();
    for file in &mut damaged {
        file.path = paths
            .get(&file.inode)
            .map(|path| (*path).clone())
            .unwrap_or_default();
    }
    damaged.sort_unstable_by_key(|file: &DamagedFile| (file.inode, file.zone));
    damaged
}

impl Handle {
    /// Makes the error of a failed read of this file.
    pub fn read_failed(&self, error: ZoneError) -> Error {
        self.shared.notice(&error);
        match error {
            ZoneError::Offline { zone, .. } => {
                self.lost_in(self.shared.device.goes_by(zone), error)
            }
            error => error.into(),
        }
    }

    /// Fails if the file has bytes in an offline zone: then bytes appended after them are of no use.
    pub fn check_lost(&self) -> Result<()> {
        let lost = self.shared.failing.lost(&self.node.body.read());
        match lost {
            None => Ok(()),
            Some(zone) => {
                let command = ZoneCommand::Write;
                Err(self.lost_in(zone, ZoneError::Offline { command, zone }))
            }
        }
    }

    fn lost_in(&self, zone: ZoneId, source: ZoneError) -> Error {
        Error::ZoneLost {
            path: self.node.opened_as.lock().clone(),
            zone,
            source,
        }
    }
}
