//! No translation layer: a conventional disk.

use super::{Layer, Turnout};
use crate::disk::Disk;
use crate::mechanics::{Access, ArmPosition};
use crate::queue::{Queue, Waiting};
use crate::request::Pba;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Logical blocks are physical ones. Requests are served by shortest positioning time first, so that consecutive ones
/// are served in one pass; blocks that were read ahead cost no positioning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Direct {
    blocks: u64,
    /// The first `front_blocks` logical blocks lie at `front_at`; those after them begin at physical block 0.
    front_blocks: u64,
    front_at: u64,
    /// The last write, in case a power cut interrupts it.
    last_write: Option<LastWrite>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct LastWrite {
    began: Time,
    /// Position of the arm when the write began.
    arm: ArmPosition,
    pba: Pba,
    blocks: u64,
}

impl Direct {
    /// A drive of `blocks` blocks.
    pub const fn new(blocks: u64) -> Self {
        Self::with_front(blocks, 0, Pba(0))
    }

    /// As [`Self::new`], but the first `front_blocks` begin at `front_at`. No request may cross either border.
    pub const fn with_front(blocks: u64, front_blocks: u64, front_at: Pba) -> Self {
        Self {
            blocks,
            front_blocks,
            front_at: front_at.0,
            last_write: None,
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

/// The request of a kind with the shortest positioning time, unless another one is due.
pub(super) fn nearest(
    disk: &Disk,
    now: Time,
    queue: &Queue,
    place: impl Fn(u64) -> Pba,
    kind: impl Fn(&Waiting) -> bool,
) -> Option<usize> {
    let choice = || queue.choice(now).filter(|(_, waiting)| kind(waiting));
    let due = choice().find(|(_, waiting)| waiting.is_due());
    let reach = |w: &Waiting| disk.reach(now, place(w.request.lba.0), &w.request);
    let chosen = due.or_else(|| choice().min_by_key(|(_, waiting)| reach(waiting)));
    chosen.map(|(index, _)| index)
}

impl Layer for Direct {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let index = nearest(disk, now, queue, |lba| self.place(lba), |_| true).unwrap_or(0);
        let waiting = queue.serve(index, now);
        let (pba, blocks) = (
            self.place(waiting.request.lba.0),
            u64::from(waiting.request.blocks),
        );
        let at = if waiting.request.operation.is_write() {
            self.last_write = Some(LastWrite {
                began: now,
                arm: disk.arm(),
                pba,
                blocks,
            });
            disk.write(now, pba, blocks)
        } else {
            disk.read(now, pba, blocks)
        };
        Turnout::one(waiting, at, Ok(()))
    }

    fn reached(&self, disk: &Disk, now: Time) -> u64 {
        self.last_write.map_or(0, |last| {
            let place = (last.pba, last.blocks);
            let mechanics = disk.mechanics();
            mechanics.reached((last.began, last.arm), place, Access::Write, now)
        })
    }

    fn idle(&mut self, _disk: &mut Disk, from: Time, _until: Time) -> Time {
        from
    }
}
