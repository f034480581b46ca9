//! What has failed in zones since the mount: which are left as they are, and which may be out of use soon.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zone::ZoneId;

/// Why cleaning a zone would give nothing back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetAside {
    /// Something in it cannot be read or does not match its checksum.
    Unreadable,
    /// It can be read, and neither written nor reset.
    ReadOnly,
}

/// Of a zone that is set aside.
struct Known {
    why: SetAside,
    error: String,
    /// The drive itself says that it takes nothing any more.
    for_good: bool,
}

#[derive(Default)]
pub(crate) struct ZoneFailures {
    set_aside: BTreeMap<ZoneId, Known>,
    /// How often a write or a reset has failed; absent: never.
    counts: BTreeMap<ZoneId, u32>,
}

impl ZoneFailures {
    /// Leaves the zone as it is; true if it was not set aside for that before.
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

    /// The drive says that a zone that is set aside takes nothing any more: no reset gives it back.
    pub fn is_for_good(&mut self, zone: ZoneId) {
        if let Some(known) = self.set_aside.get_mut(&zone) {
            known.for_good = true;
        }
    }

    /// Why the zone is left as it is, if it is.
    pub fn why(&self, zone: ZoneId) -> Option<SetAside> {
        self.set_aside.get(&zone).map(|known| known.why)
    }

    /// Whether no reset gives the zone back.
    pub fn takes_nothing(&self, zone: ZoneId) -> bool {
        self.set_aside
            .get(&zone)
            .is_some_and(|known| known.for_good)
    }

    /// The zones that are left as they are, why, and what was said when that was found.
    pub fn all_set_aside(&self) -> impl Iterator<Item = (ZoneId, SetAside, &str)> {
        let zones = self.set_aside.iter();
        zones.map(|(zone, known)| (*zone, known.why, known.error.as_str()))
    }

    /// A write or a reset has failed; answers how often that was so.
    pub fn count(&mut self, zone: ZoneId) -> u32 {
        let count = self.counts.entry(zone).or_default();
        *count += 1;
        *count
    }

    /// How often a write or a reset has failed.
    pub fn counted(&self, zone: ZoneId) -> u32 {
        self.counts.get(&zone).copied().unwrap_or(0)
    }

    /// How many writes and resets have failed.
    pub fn all_counted(&self) -> u64 {
        self.counts.values().map(|count| u64::from(*count)).sum()
    }

    /// The zone is not ours any more; how often it has failed still counts.
    pub fn forget(&mut self, zone: ZoneId) {
        self.set_aside.remove(&zone);
    }
}
