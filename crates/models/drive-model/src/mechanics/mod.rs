//! A disk: where blocks lie, how the arm moves, and when a place comes around.
//!
//! The angle of the platters follows from the time alone, so that positioning is exact and
//! missed turns come out by themselves.

mod geometry;
mod look_ahead;
mod seek;
mod shape;

pub use geometry::{Geometry, Place, RecordingZoneShare, Track, Turn};
pub use look_ahead::LookAhead;
pub use seek::{SeekCurve, SeekTimes};
pub use shape::{Shape, ShapeError, Stroke};

use crate::request::Pba;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// What is done at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// Where the arm is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ArmPosition {
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
}

/// What moves in a drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mechanics {
    geometry: Geometry,
    seek: SeekCurve,
    arm: ArmPosition,
    /// What the angle is at the start.
    phase: Turn,
    counts: Counts,
}

/// Blocks that went over the heads, and how often the arm moved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Blocks read from the medium.
    pub read_blocks: u64,
    /// Blocks written to it.
    pub written_blocks: u64,
    /// Moves of the arm to another cylinder.
    pub seeks: u64,
}

impl Counts {
    /// What was counted since `earlier`, which is of the same drive.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            read_blocks: self.read_blocks - earlier.read_blocks,
            written_blocks: self.written_blocks - earlier.written_blocks,
            seeks: self.seeks - earlier.seeks,
        }
    }
}

impl Mechanics {
    /// A drive at rest: its arm is parked at the innermost cylinder.
    pub fn new(geometry: Geometry, seek: SeekCurve, phase: Turn) -> Self {
        let arm = ArmPosition {
            cylinder: geometry.cylinders() - 1,
            head: 0,
        };
        Self {
            geometry,
            seek,
            arm,
            phase,
            counts: Counts::default(),
        }
    }

    /// Where blocks lie.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the arm is.
    pub const fn arm(&self) -> ArmPosition {
        self.arm
    }

    /// What has been counted.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Moves the arm over a cylinder and its first surface, for nothing but being there.
    pub fn seek_to(&mut self, now: Time, cylinder: u32) -> Time {
        let to = (cylinder.min(self.geometry.cylinders() - 1), 0);
        let moved = self.seek.to((self.arm.cylinder, self.arm.head), to, false);
        self.go(to);
        now + moved
    }

    fn go(&mut self, (cylinder, head): (u32, u32)) {
        self.counts.seeks += u64::from(cylinder != self.arm.cylinder);
        self.arm = ArmPosition { cylinder, head };
    }

    /// From `at` until the given angle comes around.
    fn until_angle(&self, at: Time, angle: Turn) -> Span {
        let turn_ns = self.geometry.rotation().nanos();
        let now = ((u128::from(at.nanos() % turn_ns) << 32) / u128::from(turn_ns)) as u32;
        let ahead = angle.0.wrapping_sub(now.wrapping_add(self.phase.0));
        // Rounding must not turn «just arrived» into a missed turn.
        if ahead > u32::MAX - 2_048 {
            return Span::ZERO;
        }
        Span::from_nanos(((u128::from(ahead) * u128::from(turn_ns)) >> 32) as u64)
    }

    /// The part of a turn that `blocks` of a track take.
    fn sweep(&self, track: &Track, blocks: u32) -> Span {
        let turn_ns = u128::from(self.geometry.rotation().nanos());
        let ns = turn_ns * u128::from(blocks) / u128::from(track.blocks);
        Span::from_nanos(ns as u64)
    }

    fn angle(place: &Place) -> Turn {
        let share = (u64::from(place.index) << 32) / u64::from(place.track.blocks);
        Turn(place.track.start.0.wrapping_add(share as u32))
    }

    /// How long until a block would be under the head: what scheduling by shortest positioning
    /// time compares.
    pub fn positioning(&self, now: Time, pba: Pba, access: Access) -> Span {
        let place = self.geometry.place(pba);
        let from = (self.arm.cylinder, self.arm.head);
        let to = (place.track.cylinder, place.track.head);
        let moved = self.seek.to(from, to, access == Access::Write);
        moved + self.until_angle(now + moved, Self::angle(&place))
    }

    /// The same of an angle of `pba`'s track, for reading there.
    pub fn positioning_at_angle(&self, now: Time, (pba, angle): (Pba, Turn)) -> Span {
        let track = self.geometry.place(pba).track;
        let from = (self.arm.cylinder, self.arm.head);
        let moved = self.seek.to(from, (track.cylinder, track.head), false);
        moved + self.until_angle(now + moved, angle)
    }

    /// Reads or writes `blocks` from `pba` on, beginning at `now`; when the last one is done. What
    /// lies behind the last block of the drive takes no time.
    pub fn access(&mut self, now: Time, pba: Pba, blocks: u64, access: Access) -> Time {
        let mut at = now;
        let mut next = pba;
        let end = (pba.0 + blocks).min(self.geometry.blocks());
        while next.0 < end {
            let place = self.geometry.place(next);
            let to = (place.track.cylinder, place.track.head);
            at += self.seek.to(
                (self.arm.cylinder, self.arm.head),
                to,
                access == Access::Write,
            );
            self.go(to);
            at += self.until_angle(at, Self::angle(&place));
            let here = u64::from(place.track.blocks - place.index).min(end - next.0);
            at += self.sweep(&place.track, here as u32);
            next = next.plus(here);
        }
        match access {
            Access::Read => self.counts.read_blocks += blocks,
            Access::Write => self.counts.written_blocks += blocks,
        }
        at
    }

    /// How many of the blocks of an access that began at `began`, with the arm at `arm`, were done at
    /// `now`.
    pub fn reached(
        &self,
        (began, arm): (Time, ArmPosition),
        (pba, blocks): (Pba, u64),
        access: Access,
        now: Time,
    ) -> u64 {
        let mut again = self.clone();
        let (mut done, mut beyond) = (0, blocks + 1);
        while beyond - done > 1 {
            let middle = done.midpoint(beyond);
            again.arm = arm;
            if again.access(began, pba, middle, access) <= now {
                done = middle;
            } else {
                beyond = middle;
            }
        }
        done
    }

    /// Reads or writes at an angle of `pba`'s track for a part of a turn or several, counted as
    /// `blocks`: for what is laid out by angles instead of blocks.
    pub fn access_at_angle(
        &mut self,
        now: Time,
        at: (Pba, Turn),
        (sweep, blocks): (Span, u64),
        access: Access,
    ) -> Time {
        let (pba, angle) = at;
        let track = self.geometry.place(pba).track;
        let to = (track.cylinder, track.head);
        let from = (self.arm.cylinder, self.arm.head);
        let there = now + self.seek.to(from, to, access == Access::Write);
        let end = there + self.until_angle(there, angle) + sweep;
        let last = self
            .geometry
            .place(pba.plus(blocks.saturating_sub(1)))
            .track;
        self.counts.seeks += u64::from(track.cylinder != self.arm.cylinder);
        self.arm = ArmPosition {
            cylinder: last.cylinder,
            head: last.head,
        };
        match access {
            Access::Read => self.counts.read_blocks += blocks,
            Access::Write => self.counts.written_blocks += blocks,
        }
        end
    }

    /// When reading on from `pba`, which is under the head at `from`, has read `blocks`: the time
    /// that a sequential reader sees, without moving anything here.
    pub fn reading_on(&self, from: Time, pba: Pba, blocks: u64) -> Time {
        let mut at = from;
        let mut next = pba;
        let end = (pba.0 + blocks).min(self.geometry.blocks());
        let mut last: Option<Track> = None;
        while next.0 < end {
            let place = self.geometry.place(next);
            if let Some(track) = last {
                let (a, b) = (
                    (track.cylinder, track.head),
                    (place.track.cylinder, place.track.head),
                );
                at += self.seek.to(a, b, false);
            }
            // Nothing, unless a track begins here.
            at += self.until_angle(at, Self::angle(&place));
            let here = u64::from(place.track.blocks - place.index).min(end - next.0);
            at += self.sweep(&place.track, here as u32);
            next = next.plus(here);
            last = Some(place.track);
        }
        at
    }

    /// The arm follows a reader that goes on without a request of its own.
    fn follow(&mut self, pba: Pba, blocks: u64) {
        let track = self.geometry.place(pba).track;
        self.go((track.cylinder, track.head));
        self.counts.read_blocks += blocks;
    }

    /// The mean time of a random request of `blocks` blocks with one at a time, by the closed form:
    /// mean seek over the recording zones, half a turn, and the transfer. `overhead` is the drive's
    /// own for each command.
    pub fn random_access_mean(&self, blocks: u32, access: Access, overhead: Span) -> Span {
        // The chance of each of 512 slices of cylinders follows from the recording zones in it.
        const SLICES: usize = 512;
        let width = f64::from(self.geometry.cylinders()) / SLICES as f64;
        let mut chance = vec![0.0; SLICES];
        let mut transfer = 0.0;
        for zone in self.geometry.recording_zones() {
            let from = f64::from(zone.first_cylinder);
            let to = from + f64::from(zone.cylinders);
            for (index, slice) in chance.iter_mut().enumerate() {
                let (a, b) = (index as f64 * width, (index + 1) as f64 * width);
                let overlap = (b.min(to) - a.max(from)).max(0.0);
                *slice += zone.share * overlap / f64::from(zone.cylinders);
            }
            transfer += zone.share * f64::from(blocks) / zone.track_blocks;
        }
        let mut seek_ns = 0.0;
        for (i, a) in chance.iter().enumerate() {
            for (j, b) in chance.iter().enumerate() {
                // Two places in one slice are a third of it apart.
                let slices = if i == j {
                    1.0 / 3.0
                } else {
                    i.abs_diff(j) as f64
                };
                let to = ((slices * width) as u32, 0);
                let moved = self.seek.to((0, 0), to, access == Access::Write);
                seek_ns += a * b * moved.nanos() as f64;
            }
        }
        let turns = 0.5 + transfer;
        Span::from_nanos(seek_ns as u64)
            + Span::from_seconds(self.geometry.rotation().seconds() * turns)
            + overhead
    }
}

#[cfg(test)]
mod tests;
