//! Zones of the store whose resets have failed, though the drive says that they can be written.
//!
//! Nothing in them is wanted, and they are nobody's: they are tried again now and then, as BlueFS does with its own, and a
//! mount tries all.

use appender::Retries;
use std::collections::VecDeque;
use std::time::Duration;
use zone::ZoneId;

#[derive(Default)]
pub(crate) struct Unreset {
    /// The next to be tried in front.
    zones: VecDeque<ZoneId>,
    retries: Retries,
}

impl Unreset {
    /// The reset of a zone has failed that is out of use for everybody else.
    pub fn add(&mut self, zone: ZoneId, now: Duration) {
        self.zones.push_back(zone);
        self.retries.begin(now);
    }

    /// The zone to be tried now, if the last failure was so long ago or as long as it is worth it.
    pub fn next(&mut self, now: Duration, at_most: Duration) -> Option<ZoneId> {
        if !self.retries.is_due(now, at_most) {
            return None;
        }
        let zone = self.zones.pop_front();
        if zone.is_none() {
            self.retries.end();
        }
        zone
    }

    /// It has failed again.
    pub fn add_again(&mut self, zone: ZoneId, began: Duration, now: Duration) {
        self.zones.push_back(zone);
        self.retries.failed_again(began, now);
    }
}
