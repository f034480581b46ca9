//! A drive of the cluster: its disk, what lies on it, its cleaner, and who waits.

use super::cleaner::Cleaner;
use super::disk::Disk;
use super::space::Space;
use super::turns::{Need, Wish};
use drive_model::Time;
use std::collections::VecDeque;
use zone_alloc::{Pressure, Requests, Watermarks};

/// See the head of this file.
#[derive(Debug)]
pub struct Drive {
    /// How long things take.
    pub disk: Disk,
    /// What lies where.
    pub space: Space,
    /// Its cleaner.
    pub cleaner: Cleaner,
    /// The turn that it was given: whether it was forced upon the others.
    pub turn: Option<bool>,
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
        self.cleaner
            .need(&self.space, free, !self.waiting.is_empty())
    }

    /// What it asks for, as the drive of this number.
    pub fn wish(&self, drive: u32, free: Watermarks) -> Option<Wish> {
        let (need, _) = self.need(free)?;
        Some(Wish {
            drive,
            need,
            free: self.space.zones().map_or(0, |zones| zones.free()),
            cleans: self.cleaner.since.is_some(),
        })
    }

    /// Free zones have changed since this was asked, so that its cleaner has something to think about.
    pub fn has_changed(&mut self) -> bool {
        let free = self.space.zones().map_or(0, |zones| zones.free());
        std::mem::replace(&mut self.free_seen, free) != free
    }
}
