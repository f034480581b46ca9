//! The write buffer of a flash drive. Its contents survive a power cut, so they count as being on flash.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Occupancy of the buffer by blocks of the host that are not programmed yet, of all writes and zones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteBuffer {
    capacity_blocks: u64,
    used_blocks: u64,
    /// Times at which room becomes free, in order, and how many blocks.
    leaving: VecDeque<(Time, u32)>,
    /// Time of the last admission: later blocks are not admitted earlier.
    last: Time,
}

impl WriteBuffer {
    /// An empty buffer.
    pub(super) const fn new(capacity_blocks: u64) -> Self {
        Self {
            capacity_blocks,
            used_blocks: 0,
            leaving: VecDeque::new(),
            last: Time::START,
        }
    }

    /// Admits blocks that arrive at `now`; returns the time at which there is room for them.
    pub(super) fn take(&mut self, now: Time, blocks: u64) -> Time {
        let mut at = now.max(self.last);
        while let Some((left, room)) = self.leaving.front().copied() {
            if left > at && self.used_blocks + blocks <= self.capacity_blocks {
                break;
            }
            self.leaving.pop_front();
            self.used_blocks -= u64::from(room);
            at = at.max(left);
        }
        self.used_blocks += blocks;
        self.last = at;
        at
    }

    /// Frees the room of blocks that are on flash from `at` on, which may be before those of earlier calls.
    pub(super) fn leave(&mut self, at: Time, blocks: u32) {
        if blocks > 0 {
            let place = self.leaving.partition_point(|(left, _)| *left <= at);
            self.leaving.insert(place, (at, blocks));
        }
    }
}
