//! The medium under a translation layer: the mechanics of a disk with a read-ahead buffer.

use crate::mechanics::{Access, ArmPosition, Counts, LookAhead, Mechanics, Turn};
use crate::request::{Pba, Request};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// A disk with its read-ahead buffer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Disk {
    mechanics: Mechanics,
    look_ahead: LookAhead,
}

impl Disk {
    /// A disk that reads up to `look_ahead_blocks` blocks ahead, if any.
    pub const fn new(mechanics: Mechanics, look_ahead_blocks: u64) -> Self {
        Self {
            mechanics,
            look_ahead: LookAhead::new(look_ahead_blocks),
        }
    }

    /// The mechanics.
    pub const fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Number of physical blocks.
    pub fn blocks(&self) -> u64 {
        self.mechanics.geometry().blocks()
    }

    /// Number of blocks on the track of `pba`.
    pub fn track_blocks(&self, pba: Pba) -> u64 {
        u64::from(self.mechanics.geometry().place(pba).track.blocks)
    }

    /// Sets the size of the read-ahead buffer in blocks; 0 switches read-ahead off.
    pub const fn set_look_ahead(&mut self, blocks: u64) {
        self.look_ahead.set_capacity(blocks);
    }

    /// Drops what was read ahead, and ends reading ahead.
    pub const fn clear_look_ahead(&mut self) {
        self.look_ahead.clear();
    }

    /// Time until a request can transfer its first block: zero for a read from the read-ahead buffer or its
    /// continuation, otherwise the positioning time.
    pub fn reach(&self, now: Time, pba: Pba, request: &Request) -> Span {
        let access = if request.operation.is_write() {
            Access::Write
        } else {
            Access::Read
        };
        if access == Access::Read && self.look_ahead.covers(pba, request.blocks.into()) {
            return Span::ZERO;
        }
        self.mechanics.positioning(now, pba, access)
    }

    /// Reads for the host; reading ahead continues after the last block.
    pub fn read(&mut self, now: Time, pba: Pba, blocks: u64) -> Time {
        if let Some(at) = self.look_ahead.hit(&mut self.mechanics, now, pba, blocks) {
            return at;
        }
        let end = self.fetch(now, pba, blocks);
        self.look_ahead.read(pba, pba.plus(blocks), end);
        end
    }

    /// Reads for the drive's own work, without reading ahead.
    pub fn fetch(&mut self, now: Time, pba: Pba, blocks: u64) -> Time {
        self.look_ahead.stop(&self.mechanics, now);
        self.mechanics.access(now, pba, blocks, Access::Read)
    }

    /// Writes.
    pub fn write(&mut self, now: Time, pba: Pba, blocks: u64) -> Time {
        self.look_ahead.stop(&self.mechanics, now);
        self.look_ahead.written(pba, blocks);
        self.mechanics.access(now, pba, blocks, Access::Write)
    }

    /// Reads or writes at an angle of a track; see [`Mechanics::access_at_angle`].
    pub fn access_at_angle(
        &mut self,
        now: Time,
        at: (Pba, Turn),
        length: (Span, u64),
        access: Access,
    ) -> Time {
        self.look_ahead.stop(&self.mechanics, now);
        self.mechanics.access_at_angle(now, at, length, access)
    }

    /// Positioning time for a read at an angle of a track.
    pub fn reach_at_angle(&self, now: Time, at: (Pba, Turn)) -> Span {
        self.mechanics.positioning_at_angle(now, at)
    }

    /// Moves the arm to a cylinder.
    pub fn seek_to(&mut self, now: Time, cylinder: u32) -> Time {
        self.look_ahead.stop(&self.mechanics, now);
        self.mechanics.seek_to(now, cylinder)
    }

    /// Position of the arm.
    pub const fn arm(&self) -> ArmPosition {
        self.mechanics.arm()
    }

    /// Counters of the heads.
    pub const fn counts(&self) -> Counts {
        self.mechanics.counts()
    }
}
