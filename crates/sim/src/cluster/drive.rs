//! A drive of the cluster: its disk, what lies on it, its cleaner, and who waits.

use super::cleaner::Cleaner;
use super::cleaner::Need;
use super::disk::Disk;
use super::space::Space;
use super::turns::Told;
use drive_model::Time;
use std::collections::VecDeque;
use std::time::Duration;
use zone_alloc::{Filling, Pressure, Requests, Watermarks};

/// So long a drive may have to wait for its turn.
const AHEAD: Duration = Duration::from_secs(60);

/// See the head of this file.
#[derive(Debug)]
pub struct Drive {
    /// How long things take.
    pub disk: Disk,
    /// What lies where.
    pub space: Space,
    /// Its cleaner.
    pub cleaner: Cleaner,
    /// It may clean until then; behind that it is held back, until this other moment.
    pub turn_until: Time,
    /// See above.
    pub hold_until: Time,
    /// Bytes of users.
    pub written_bytes: u64,
    /// How fast they fill zones, and how many they fill while a turn is waited for; none where there are no turns.
    pub filling: Filling,
    /// See above.
    pub filled_before_turn: u32,
    /// The last round of turns that it heard of.
    pub followed: u64,
    /// Writes that wait for a zone.
    pub waiting: VecDeque<u32>,
    /// What users do on it.
    pub users: Requests,
    /// It is lost: nobody asks it for anything new.
    pub is_lost: bool,
    /// When it is looked at next, if that has been entered.
    pub wakes_at: Option<Time>,
    /// The same of its cleaner.
    pub cleans_at: Option<Time>,
    /// Free zones when its cleaner looked last.
    pub free_seen: u32,
    /// Which places, which times.
    pub random: fastrand::Rng,
}

impl Drive {
    /// How much it needs to clean.
    pub fn need(&self, free: Watermarks) -> Option<(Need, Pressure)> {
        let is_waited_for = !self.waiting.is_empty();
        self.cleaner
            .need(&self.space, (free, self.filled_before_turn), is_waited_for)
    }

    /// Whether the cluster lets others clean.
    pub fn is_held(&self, now: Time) -> bool {
        self.turn_until <= now && now < self.hold_until
    }

    /// Looks how much will be filled until its turn comes, as the store's cleaner does.
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

    /// What it tells whoever gives turns.
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

    /// Free zones have changed since this was asked, so that its cleaner has something to think about.
    pub fn has_changed(&mut self) -> bool {
        let free = self.space.zones().map_or(0, |zones| zones.free());
        std::mem::replace(&mut self.free_seen, free) != free
    }
}
