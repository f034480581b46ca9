//! Zones that are read-only or offline.
//!
//! They are known from the drive's report at mount and from the errors of commands.

use crate::mirror::{Mirror, is_broken};
use crate::node::Body;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId};

/// A file with bytes in an offline zone.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct DamagedFile {
    /// One of the file's names.
    pub path: String,
    /// The file's inode.
    pub inode: u64,
    /// Whether it is a log.
    pub is_log: bool,
    /// The offline zone.
    pub zone: ZoneId,
    /// Bytes of the file that are known to have been in the zone; a log may have had more there.
    pub bytes: u64,
}

/// The known read-only and offline zones. Its lock is taken after all others.
#[derive(Default)]
pub(crate) struct Failing {
    zones: Mutex<BTreeMap<ZoneId, ZoneCondition>>,
}

impl Failing {
    /// Adds a zone, or a pair by its number, if its condition is read-only or offline, and logs which zone of the pair
    /// has failed.
    pub fn add(&self, zone: &ZoneDescriptor, device: &dyn Mirror) {
        if !is_broken(zone)
            || self.zones.lock().insert(zone.id, zone.condition) == Some(zone.condition)
        {
            return;
        }
        for ZoneDescriptor {
            id: zone,
            condition,
            ..
        } in device.broken_of(zone.id)
        {
            match condition {
                ZoneCondition::Offline => tracing::error!(%zone, "a zone is offline"),
                _ => tracing::warn!(%zone, "a zone can only be read"),
            }
        }
    }

    /// Adds the failing zones of a report that `ours` selects.
    pub fn learn(
        &self,
        report: &[ZoneDescriptor],
        device: &dyn Mirror,
        ours: impl Fn(ZoneId) -> bool,
    ) {
        let ours = report.iter().filter(|zone| ours(zone.id));
        ours.for_each(|zone| self.add(zone, device));
    }

    pub fn contains(&self, zone: ZoneId) -> bool {
        self.zones.lock().contains_key(&zone)
    }

    pub fn is_read_only(&self, zone: ZoneId) -> bool {
        self.zones.lock().get(&zone) == Some(&ZoneCondition::ReadOnly)
    }

    /// Whether a read-only zone is one that `ours` selects.
    pub fn any_read_only(&self, ours: impl Fn(ZoneId) -> bool) -> bool {
        let zones = self.zones.lock();
        let mut failing = zones.iter();
        failing.any(|(zone, c)| *c == ZoneCondition::ReadOnly && ours(*zone))
    }

    /// The first offline zone with bytes of a file.
    pub fn lost(&self, body: &Body) -> Option<ZoneId> {
        let zones = self.zones.lock();
        if !zones.values().any(|c| *c == ZoneCondition::Offline) {
            return None;
        }
        let mut of_file = body.pieces.iter().map(|p| p.at.zone);
        of_file.find(|zone| zones.get(zone) == Some(&ZoneCondition::Offline))
    }
}
