//! A request to clean zones at once: what it has come to, and when it ends. Whoever else cleans meanwhile counts for
//! themselves.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;
use zone::{Bytes, ZoneId, count};

/// What cleaning has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningWork {
    /// Zones reset.
    pub zones_cleaned: u64,
    /// Bytes moved to other zones.
    pub bytes_moved: u64,
    /// Bytes that can be written again.
    pub bytes_freed: u64,
}

impl AddAssign for CleaningWork {
    fn add_assign(&mut self, more: Self) {
        self.zones_cleaned += more.zones_cleaned;
        self.bytes_moved += more.bytes_moved;
        self.bytes_freed += more.bytes_freed;
    }
}

impl fmt::Display for CleaningWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zones = count(self.zones_cleaned, "zone");
        let (moved, freed) = (Bytes(self.bytes_moved), Bytes(self.bytes_freed));
        write!(
            f,
            "{zones} cleaned, {moved} of live data moved, {freed} given back"
        )
    }
}

/// A request to clean zones at once. The next [`Store::clean_stop`](crate::Store::clean_stop) ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CleaningJob {
    /// How often the cleaner had been stopped when the request came.
    pub(crate) stops: u64,
}

/// What a step of a [`CleaningJob`] has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningStep {
    /// The zone that was cleaned; `None` if none that could be has dead bytes, or after a stop.
    pub zone: Option<ZoneId>,
    /// What was done for that, in zones that were given up too.
    pub did: CleaningWork,
    /// Somebody has stopped the cleaner, and the job with it.
    pub stopped: bool,
}

/// What a [`CleaningJob`] has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningReport {
    /// The zones, in order.
    pub zones: Vec<ZoneId>,
    /// What was done for that.
    #[serde(flatten)]
    pub did: CleaningWork,
    /// Somebody has stopped the cleaner, and the job with it.
    pub stopped: bool,
    /// Zones with dead bytes that there are now.
    pub dirty_zones: u32,
    /// Zones that could not be emptied, for they are read-only or hold what cannot be read.
    pub set_aside_zones: u32,
    /// Zones without live bytes that the mount for this job reset; none of a server's.
    pub mount_zones_reset: u32,
    /// Bytes that this mount gave back with them.
    pub mount_bytes_freed: u64,
}

impl CleaningReport {
    /// Adds a step; answers whether there is another one.
    pub fn add(&mut self, step: CleaningStep) -> bool {
        self.zones.extend(step.zone);
        self.did += step.did;
        self.stopped |= step.stopped;
        step.zone.is_some() && !step.stopped
    }

    /// What was done: a line or two.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.did.to_string()];
        if self.mount_zones_reset > 0 {
            lines.push(format!(
                "{} without live data reset before that, when the store was mounted; {} given back",
                count(self.mount_zones_reset.into(), "zone"),
                Bytes(self.mount_bytes_freed)
            ));
        }
        if self.set_aside_zones > 0 {
            lines.push(format!(
                "not emptied: {} that cannot be written or read any more; `zonestore store health` names them",
                count(self.set_aside_zones.into(), "zone")
            ));
        }
        lines
    }
}
