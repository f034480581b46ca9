//! A user's request to clean zones now: its work, and when it ends. Work of other threads meanwhile is not counted in
//! it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;
use zone::{Bytes, ZoneId, count};

/// Work of the cleaner, in zones and bytes.
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

/// A user's request to clean zones now. The next [`Store::clean_stop`](crate::Store::clean_stop) ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CleaningJob {
    /// How often the cleaner had been stopped when the request began.
    pub(crate) stops: u64,
}

/// Result of one step of a [`CleaningJob`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningStep {
    /// The zone that was cleaned; `None` if none that can be cleaned has dead bytes, or after a stop.
    pub zone: Option<ZoneId>,
    /// Work of this step, in zones that were given up too.
    pub did: CleaningWork,
    /// Whether the cleaner was stopped, and the job with it.
    pub stopped: bool,
}

/// Result of a whole [`CleaningJob`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningReport {
    /// The zones that were cleaned, in order.
    pub zones: Vec<ZoneId>,
    /// Work of all steps.
    #[serde(flatten)]
    pub did: CleaningWork,
    /// Whether the cleaner was stopped, and the job with it.
    pub stopped: bool,
    /// Zones with dead bytes that are left.
    pub dirty_zones: u32,
    /// Zones that could not be emptied, because they are read-only or have unreadable data.
    pub set_aside_zones: u32,
    /// Zones without live bytes that were reset when the store was mounted for this job; zero for a server's store.
    pub mount_zones_reset: u32,
    /// Bytes that these resets gave back.
    pub mount_bytes_freed: u64,
}

impl CleaningReport {
    /// Adds a step; returns whether another one is to follow.
    pub fn add(&mut self, step: CleaningStep) -> bool {
        self.zones.extend(step.zone);
        self.did += step.did;
        self.stopped |= step.stopped;
        step.zone.is_some() && !step.stopped
    }

    /// The report in words: one to three lines.
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
                "not emptied: {} that can only be read, or not even that; `zonestore store health` names them",
                count(self.set_aside_zones.into(), "zone")
            ));
        }
        lines
    }
}
