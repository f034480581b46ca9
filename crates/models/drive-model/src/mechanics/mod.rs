//! The mechanics of a disk: the positions of blocks, the movement of the arm, and the rotation.
//!
//! The angle of the platters follows from the time alone, so that positioning times are exact and missed turns follow
//! by themselves.

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

/// The kind of an access to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// Position of the arm.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ArmPosition {
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
}

/// The moving parts of a drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mechanics {
    geometry: Geometry,
    seek: SeekCurve,
    arm: ArmPosition,
    /// Angle of the platters at the start.
    phase: Turn,
    counts: Counts,
}

/// Counters of the heads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Blocks read from the medium.
    pub read_blocks: u64,
    /// Blocks written to the medium.
    pub written_blocks: u64,
    /// Movements of the arm to another cylinder.
    pub seeks: u64,
}

impl Counts {
    /// The difference to `earlier`, which is of the same drive.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            read_blocks: self.read_blocks - earlier.read_blocks,
            written_blocks: self.written_blocks - earlier.written_blocks,
            seeks: self.seeks - earlier.seeks,
        }
    }
}

impl Mechanics {
    /// A drive at rest, with the arm parked at the innermost cylinder.
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

    /// Positions of blocks.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Position of the arm.
    pub const fn arm(&self) -> ArmPosition {
        self.arm
    }

    /// Counters since the start.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Moves the arm to a cylinder and its first surface, without an access.
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

    /// Time from `at` until the given angle comes around.
    fn until_angle(&self, at: Time, angle: Turn) -> Span {
        let turn_ns = self.geometry.rotation().nanos();
        let now = ((u128::from(at.nanos() % turn_ns) << 32) / u128::from(turn_ns)) as u32;
        let ahead = angle.0.wrapping_sub(now.wrapping_add(self.phase.0));
        // Rounding must not turn an exact arrival into a missed turn.
        if ahead > u32::MAX - 2_048 {
            return Span::ZERO;
        }
        Span::from_nanos(((u128::from(ahead) * u128::from(turn_ns)) >> 32) as u64)
    }

    /// Duration of the part of a turn that `blocks` of a track take.
    fn sweep(&self, track: &Track, blocks: u32) -> Span {
        let turn_ns = u128::from(self.geometry.rotation().nanos());
        let ns = turn_ns * u128::from(blocks) / u128::from(track.blocks);
        Span::from_nanos(ns as u64)
    }

    fn angle(place: &Place) -> Turn {
        let share = (u64::from(place.index) << 32) / u64::from(place.track.blocks);
        Turn(place.track.start.0.wrapping_add(share as u32))
    }

    /// Time until a block can be under the head: the key of scheduling by shortest positioning time.
    pub fn positioning(&self, now: Time, pba: Pba, access: Access) -> Span {
        let place = self.geometry.place(pba);
        let from = (self.arm.cylinder, self.arm.head);
        let to = (place.track.cylinder, place.track.head);
        let moved = self.seek.to(from, to, access == Access::Write);
        moved + self.until_angle(now + moved, Self::angle(&place))
    }

    /// Time until an angle of `pba`'s track can be under the head, for a read.
    pub fn positioning_at_angle(&self, now: Time, (pba, angle): (Pba, Turn)) -> Span {
        let track = self.geometry.place(pba).track;
        let from = (self.arm.cylinder, self.arm.head);
        let moved = self.seek.to(from, (track.cylinder, track.head), false);
        moved + self.until_angle(now + moved, angle)
    }

    /// Reads or writes `blocks` from `pba` on, beginning at `now`; returns the end. Blocks after the last one of the
    /// drive take no time.
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

    /// How many blocks of an access that began at `began`, with the arm at `arm`, were done at `now`.
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

    /// Reads or writes at an angle of `pba`'s track for a part of a turn or several, counted as `blocks`: for data
    /// that is laid out by angle instead of by block.
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

    /// Time at which a sequential read from `pba`, which is under the head at `from`, has read `blocks`. Does not
    /// move the arm.
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
            // Zero, except at the start of a track.
            at += self.until_angle(at, Self::angle(&place));
            let here = u64::from(place.track.blocks - place.index).min(end - next.0);
            at += self.sweep(&place.track, here as u32);
            next = next.plus(here);
            last = Some(place.track);
        }
        at
    }

    /// Moves the arm along with a read-ahead.
    fn follow(&mut self, pba: Pba, blocks: u64) {
        let track = self.geometry.place(pba).track;
        self.go((track.cylinder, track.head));
        self.counts.read_blocks += blocks;
    }

    /// Mean time of a random request of `blocks` blocks, one at a time, in closed form: mean seek over the recording
    /// zones, half a turn, and the transfer. `overhead` is added for each command.
    pub fn random_access_mean(&self, blocks: u32, access: Access, overhead: Span) -> Span {
        // The probability of each of 512 slices of cylinders follows from the recording zones in it.
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
                // Two random positions in one slice are a third of it apart on average.
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
