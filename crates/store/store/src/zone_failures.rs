//! Failures of zones since the mount: which zones are set aside, and how often commands to a zone have failed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zone::ZoneId;

/// Why a zone is set aside: cleaning it would give nothing back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetAside {
    /// Some of its data cannot be read or does not match its checksum.
    Unreadable,
    /// It can be read, but neither written nor reset.
    ReadOnly,
}

/// Details of a zone that is set aside.
struct Known {
    why: SetAside,
    error: String,
    /// The drive itself reports the zone as read-only or offline, so that no reset gives it back.
    for_good: bool,
}

#[derive(Default)]
pub(crate) struct ZoneFailures {
    set_aside: BTreeMap<ZoneId, Known>,
    /// Failed writes and resets; absent for none.
    counts: BTreeMap<ZoneId, u32>,
}

impl ZoneFailures {
    /// Sets the zone aside; true if it was not for that reason before. [`SetAside::Unreadable`] is never lowered.
    pub fn set_aside(&mut self, zone: ZoneId, why: SetAside, error: String) -> bool {
        match self.set_aside.get_mut(&zone) {
            Some(known) if known.why == why || known.why == SetAside::Unreadable => false,
            Some(known) => {
                (known.why, known.error) = (why, error);
                true
            }
            None => {
                let for_good = false;
                let known = Known {
                    why,
                    error,
                    for_good,
                };
                self.set_aside.insert(zone, known);
                true
            }
        }
    }

    /// Records that no reset gives back a zone that is set aside, by the drive's own report.
    pub fn is_for_good(&mut self, zone: ZoneId) {
        if let Some(known) = self.set_aside.get_mut(&zone) {
            known.for_good = true;
        }
    }

    /// Why the zone is set aside, if it is.
    pub fn why(&self, zone: ZoneId) -> Option<SetAside> {
        self.set_aside.get(&zone).map(|known| known.why)
    }

    /// Whether the zone is set aside and no reset gives it back.
    pub fn takes_nothing(&self, zone: ZoneId) -> bool {
        self.set_aside
            .get(&zone)
            .is_some_and(|known| known.for_good)
    }

    /// The zones that are set aside, why, and the error with which that was found.
    pub fn all_set_aside(&self) -> impl Iterator<Item = (ZoneId, SetAside, &str)> {
        let zones = self.set_aside.iter();
        zones.map(|(zone, known)| (*zone, known.why, known.error.as_str()))
    }

    /// Counts a failed write or reset of `zone`; returns how many have failed.
    pub fn count(&mut self, zone: ZoneId) -> u32 {
        let count = self.counts.entry(zone).or_default();
        *count += 1;
        *count
    }

    /// Failed writes and resets of `zone`.
    pub fn counted(&self, zone: ZoneId) -> u32 {
        self.counts.get(&zone).copied().unwrap_or(0)
    }

    /// Failed writes and resets of all zones.
    pub fn all_counted(&self) -> u64 {
        self.counts.values().map(|count| u64::from(*count)).sum()
    }

    /// Removes a zone that is no longer the store's from those set aside; its failures still count.
    pub fn forget(&mut self, zone: ZoneId) {
        self.set_aside.remove(&zone);
    }
}
