//! The write buffer: what is in it is as good as on flash, for it survives a power cut.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Blocks of the host's that are not programmed yet, of all writes and zones together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteBuffer {
    capacity_blocks: u64,
    used_blocks: u64,
    /// When room is given back, and how much.
    leaving: VecDeque<(Time, u32)>,
    /// When the last blocks were taken: none go before them.
    last: Time,
}

impl WriteBuffer {
    /// An empty one.
    pub(super) const fn new(capacity_blocks: u64) -> Self {
        Self {
            capacity_blocks,
            used_blocks: 0,
            leaving: VecDeque::new(),
            last: Time::START,
        }
    }

    /// Takes blocks that come at `now`: when there was room for them.
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

    /// Blocks are on flash from `at` on. Room is given back in the order in which it was asked for.
    pub(super) fn leave(&mut self, at: Time, blocks: u32) {
        if blocks > 0 {
            let last = self.leaving.back().map_or(at, |(last, _)| *last);
            self.leaving.push_back((at.max(last), blocks));
        }
    }
}
