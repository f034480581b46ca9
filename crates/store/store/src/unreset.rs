//! Zones of the store whose resets failed, though the drive reports them as writable.
//!
//! They hold nothing live and have no owner in the pool. Resets are retried now and then, as BlueFS does with its
//! zones, and a mount retries all.

use appender::Retries;
use std::collections::VecDeque;
use std::time::Duration;
use zone::ZoneId;

#[derive(Default)]
pub(crate) struct Unreset {
    /// The zone to retry next is at the front.
    zones: VecDeque<ZoneId>,
    retries: Retries,
}

impl Unreset {
    /// Adds a zone whose reset failed; the caller has taken it out of use.
    pub fn add(&mut self, zone: ZoneId, now: Duration) {
        self.zones.push_back(zone);
        self.retries.begin(now);
    }

    pub fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Takes the zone to retry now, if the retry is due: `at_most` bounds how long it is put off.
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

    /// Puts a zone back whose retry, which started at `began`, failed too.
    pub fn add_again(&mut self, zone: ZoneId, began: Duration, now: Duration) {
        self.zones.push_back(zone);
        self.retries.failed_again(began, now);
    }
}
