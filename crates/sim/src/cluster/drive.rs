//! A drive of the cluster: its disk, its objects, its cleaner, and the requests that wait on it.

use super::cleaner::Cleaner;
use super::cleaner::Need;
use super::disk::Disk;
use super::space::Space;
use super::turns::Told;
use drive_model::Time;
use std::collections::VecDeque;
use std::time::Duration;
use zone_alloc::{Filling, Pressure, Requests, Watermarks};

/// The longest time that a drive is expected to wait for its turn.
const AHEAD: Duration = Duration::from_secs(60);

/// The state of one drive.
#[derive(Debug)]
pub struct Drive {
    /// The disk, which times its jobs.
    pub disk: Disk,
    /// The places of its objects.
    pub space: Space,
    /// Its cleaner.
    pub cleaner: Cleaner,
    /// The end of its turn. After that it may not clean until `hold_until`, unless it must.
    pub turn_until: Time,
    /// When it decides for itself, if it hears of no other turn.
    pub hold_until: Time,
    /// Bytes written for users and rebuilds.
    pub written_bytes: u64,
    /// How fast writes fill its zones.
    pub filling: Filling,
    /// Zones that will be filled while it waits for a turn; 0 where there are no turns.
    pub filled_before_turn: u32,
    /// Round of the last table of turns that it follows.
    pub followed: u64,
    /// Writes that wait for a zone, by request, the oldest first.
    pub waiting: VecDeque<u32>,
    /// The requests under way and ended, for the pace of its cleaner.
    pub users: Requests,
    /// Whether it is lost: no new request is sent to it.
    pub is_lost: bool,
    /// Time of its next `Wakes` event, if one has been entered.
    pub wakes_at: Option<Time>,
    /// Time of its next `Clean` event, if one has been entered.
    pub cleans_at: Option<Time>,
    /// Free zones at the last call of [`Self::has_changed`].
    pub free_seen: u32,
    /// Random numbers to draw objects with.
    pub random: fastrand::Rng,
}

impl Drive {
    /// How urgently it needs to clean, and how much a zone has to gain.
    pub fn need(&self, free: Watermarks) -> Option<(Need, Pressure)> {
        let is_waited_for = !self.waiting.is_empty();
        self.cleaner
            .need(&self.space, (free, self.filled_before_turn), is_waited_for)
    }

    /// Whether it may not clean at `now` because other drives have their turns.
    pub fn is_held(&self, now: Time) -> bool {
        self.turn_until <= now && now < self.hold_until
    }

    /// Estimates how many zones will be filled before its turn comes, as the store's cleaner does.
    pub fn looks_ahead(&mut self, now: Time) {
        let Some(zones) = self.space.zones() else {
            return;
        };
        let at = Duration::from_nanos(now.nanos());
        let zone_bytes = self.space.zone_bytes();
        let zones = (zone_bytes, zones.zones());
        let looked = (at, self.written_bytes);
        self.filled_before_turn = self.filling.zones_in(AHEAD, looked, zones);
    }

    /// Its report to the coordinator.
    pub fn told(&self, free: Watermarks, now: Time) -> Told {
        let need = self.need(free).map(|(need, _)| need);
        let zones = self.space.zones();
        let least = zones.map_or(0, |zones| free.of(zones.zones()).0);
        let cleans = self.cleaner.since.is_some();
        Told {
            followed: self.followed,
            waits: need == Some(Need::Wants) && self.is_held(now) && !cleans,
            cleans,
            urgent: need == Some(Need::Must),
            spare: zones.map_or(0, |zones| zones.free().saturating_sub(least)),
            turn: if self.turn_until > now {
                self.turn_until.since(now).seconds()
            } else {
                0.0
            },
        }
    }

    /// Whether the number of free zones has changed since the last call, so that its cleaner has to decide again.
    pub fn has_changed(&mut self) -> bool {
        let free = self.space.zones().map_or(0, |zones| zones.free());
        std::mem::replace(&mut self.free_seen, free) != free
    }
}
