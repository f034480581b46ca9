//! No translation: a conventional disk.

use super::{Layer, Turnout};
use crate::disk::Disk;
use crate::mechanics::Access;
use crate::queue::Queue;
use crate::request::{Operation, Pba};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Logical blocks are physical ones. Requests are served by shortest positioning time first, so
/// that those which follow on each other are served in one go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Direct {
    blocks: u64,
    /// The first so many blocks lie elsewhere, and those behind them in front of that place.
    front_blocks: u64,
    front_at: u64,
}

/// The oldest request is passed over so often at most.
const PATIENCE: u64 = 64;

impl Direct {
    /// A drive of so many blocks.
    pub const fn new(blocks: u64) -> Self {
        Self::with_front(blocks, 0, Pba(0))
    }

    /// The same, but the first `front_blocks` begin at `front_at`. No request crosses either border.
    pub const fn with_front(blocks: u64, front_blocks: u64, front_at: Pba) -> Self {
        Self {
            blocks,
            front_blocks,
            front_at: front_at.0,
        }
    }

    const fn place(&self, lba: u64) -> Pba {
        Pba(if lba < self.front_blocks {
            lba + self.front_at
        } else if lba < self.front_blocks + self.front_at {
            lba - self.front_blocks
        } else {
            lba
        })
    }
}

fn access(operation: Operation) -> Access {
    if operation.is_write() {
        Access::Write
    } else {
        Access::Read
    }
}

/// The request with the shortest positioning time, but not at the cost of one that has waited too
/// long.
pub(super) fn nearest(
    disk: &Disk,
    now: Time,
    queue: &Queue,
    place: impl Fn(u64) -> Pba,
) -> Option<usize> {
    let (oldest, first) = queue.choice(now).next()?;
    let newest = queue.iter().map(|w| w.tag.0).max().unwrap_or(0);
    if newest - first.tag.0 > PATIENCE * crate::queue::QUEUE_DEPTH as u64 {
        return Some(oldest);
    }
    queue
        .choice(now)
        .min_by_key(|(_, w)| {
            let pba = place(w.request.lba.0);
            let access = access(w.request.operation);
            disk.mechanics().positioning(now, pba, access)
        })
        .map(|(index, _)| index)
}

impl Layer for Direct {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let index = nearest(disk, now, queue, |lba| self.place(lba)).unwrap_or(0);
        let waiting = queue.remove(index);
        let (pba, blocks) = (
            self.place(waiting.request.lba.0),
            u64::from(waiting.request.blocks),
        );
        let at = if waiting.request.operation.is_write() {
            disk.write(now, pba, blocks)
        } else {
            disk.read(now, pba, blocks)
        };
        Turnout::one(waiting, at, Ok(()))
    }

    fn idle(&mut self, _disk: &mut Disk, from: Time, _until: Time) -> Time {
        from
    }
}
