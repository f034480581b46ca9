//! Zones that the drive does not let be written any more (read-only), or not even read (offline).
//!
//! They are known from the drive's report at mount and from what commands answer.

use crate::mirror::{Mirror, is_broken};
use crate::node::Body;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId};

/// A file that has bytes in a zone that is offline.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct DamagedFile {
    /// One of its names.
    pub path: String,
    /// Its number.
    pub inode: u64,
    /// Whether it is a log.
    pub is_log: bool,
    /// The zone.
    pub zone: ZoneId,
    /// Bytes of it that are known to have been there; in a log, there may have been more.
    pub bytes: u64,
}

/// The zones that are known to be so; its lock is taken after all others.
#[derive(Default)]
pub(crate) struct Failing {
    zones: Mutex<BTreeMap<ZoneId, ZoneCondition>>,
}

impl Failing {
    /// What is told of a zone, or of a pair by its number; which zone that is about is for the log.
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

    /// What a report says of the zones in `ours`.
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

    /// Whether one of those that can only be read is among `ours`.
    pub fn any_read_only(&self, ours: impl Fn(ZoneId) -> bool) -> bool {
        let zones = self.zones.lock();
        let mut failing = zones.iter();
        failing.any(|(zone, c)| *c == ZoneCondition::ReadOnly && ours(*zone))
    }

    /// The first zone with bytes of a file that is offline.
    pub fn lost(&self, body: &Body) -> Option<ZoneId> {
        let zones = self.zones.lock();
        if !zones.values().any(|c| *c == ZoneCondition::Offline) {
            return None;
        }
        let mut of_file = body.pieces.iter().map(|p| p.at.zone);
        of_file.find(|zone| zones.get(zone) == Some(&ZoneCondition::Offline))
    }
}
