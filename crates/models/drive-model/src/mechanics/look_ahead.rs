//! Read-ahead: after a read, the drive reads on until the arm is needed elsewhere or the buffer is full.

use super::Mechanics;
use crate::request::Pba;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// The read-ahead buffer of a drive, which has one segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LookAhead {
    capacity_blocks: u64,
    segment: Option<Segment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Segment {
    /// The oldest block in the buffer.
    from: Pba,
    /// The block that was under the head at `at`; all blocks from `from` up to it are in the buffer.
    origin: Pba,
    at: Time,
    /// Whether reading has stopped, so that no blocks from `origin` on arrive.
    stopped: bool,
}

impl Segment {
    /// Moves the end to `origin`. The oldest blocks leave a buffer of `capacity` blocks for it.
    fn come_to(&mut self, origin: Pba, capacity: u64) {
        self.origin = origin;
        self.from = self.from.max(Pba(origin.0.saturating_sub(capacity)));
    }
}

impl LookAhead {
    /// A buffer for this many blocks; 0 switches read-ahead off.
    pub const fn new(capacity_blocks: u64) -> Self {
        Self {
            capacity_blocks,
            segment: None,
        }
    }

    /// Gives the buffer another size, which empties it; the same size leaves it as it is.
    pub const fn set_capacity(&mut self, blocks: u64) {
        if self.capacity_blocks != blocks {
            *self = Self::new(blocks);
        }
    }

    /// Whether blocks are in the buffer, or will be without a movement of the arm for them.
    pub fn covers(&self, pba: Pba, blocks: u64) -> bool {
        self.segment.is_some_and(|segment| {
            let held = pba >= segment.from && pba <= segment.origin;
            held && (!segment.stopped || pba.plus(blocks) <= segment.origin)
        })
    }

    /// Time at which `blocks` blocks from `pba` on are in the buffer; `None` if they will not be.
    pub fn hit(
        &mut self,
        mechanics: &mut Mechanics,
        now: Time,
        pba: Pba,
        blocks: u64,
    ) -> Option<Time> {
        if !self.covers(pba, blocks) {
            return None;
        }
        let segment = self.segment.as_mut()?;
        let end = pba.plus(blocks);
        if end <= segment.origin {
            return Some(now.max(segment.at));
        }
        let turn = mechanics.geometry().rotation();
        let more = end.0 - segment.origin.0;
        let mut there = mechanics.reading_on(segment.at, segment.origin, more);
        let track = u64::from(mechanics.geometry().place(segment.origin).track.blocks);
        let full = turn.nanos() * self.capacity_blocks / track;
        if now.since(segment.at) > Span::from_nanos(full) {
            // The buffer was full and reading had stopped: blocks that do not fit wait for another turn.
            let late = now + turn;
            there = if more <= self.capacity_blocks {
                now
            } else {
                mechanics.reading_on(late, segment.origin, more)
            };
        }
        mechanics.follow(segment.origin, more);
        segment.at = there;
        segment.come_to(end, self.capacity_blocks);
        Some(there.max(now))
    }

    /// Begins to read ahead from `end`, where a read of blocks from `pba` ended at `at`.
    pub fn read(&mut self, pba: Pba, end: Pba, at: Time) {
        if self.capacity_blocks > 0 {
            let mut segment = Segment {
                from: pba,
                origin: pba,
                at,
                stopped: false,
            };
            segment.come_to(end, self.capacity_blocks);
            self.segment = Some(segment);
        }
    }

    /// Stops reading ahead: the arm is needed elsewhere at `now`.
    pub fn stop(&mut self, mechanics: &Mechanics, now: Time) {
        if let Some(segment) = &mut self.segment
            && !segment.stopped
        {
            let track = u64::from(mechanics.geometry().place(segment.origin).track.blocks);
            let turns = now.since(segment.at).seconds() / mechanics.geometry().rotation().seconds();
            let read = ((turns * track as f64) as u64).min(self.capacity_blocks);
            segment.come_to(segment.origin.plus(read), self.capacity_blocks);
            segment.stopped = true;
        }
    }

    /// Drops the segment if it holds, or may come to hold, any of the written blocks.
    pub fn written(&mut self, pba: Pba, blocks: u64) {
        if let Some(segment) = self.segment
            && pba.0 < segment.origin.0 + self.capacity_blocks
            && pba.0 + blocks > segment.from.0
        {
            self.segment = None;
        }
    }

    /// Drops the segment.
    pub const fn clear(&mut self) {
        self.segment = None;
    }
}
