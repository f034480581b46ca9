//! Caveat-Scriptor: all sectors of a shingled disk can be written, and the host is told which ones a
//! write may damage.
//!
//! After *Comparing Performance of Different Cleaning Algorithms for SMR disks* (master's thesis, CMU). From chapter 3
//! and section 4.1: a write of sectors i to j makes them readable, and may damage those from max(i + 1 + DNOR, j + 1)
//! to j + DID, both included, up to the end of the disk. The model assumes the worst: reading a sector that may be
//! damaged is an error. All sectors of a new disk are such. Requests are served in order of arrival, because the
//! final damage depends on it.

use crate::disk::Disk;
use crate::layer::{Layer, Turnout};
use crate::queue::{Queue, Served, Waiting};
use crate::request::{BLOCK_BYTES, Failure, Lba, Pba, RequestKind};
use crate::runs::Runs;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The reach of a write, as in a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaveatShape {
    /// Drive isolation distance (DID), in sectors: a write damages nothing farther after its last sector.
    pub drive_isolation_distance: u64,
    /// Drive no overlap range (DNOR), in sectors, at most DID: the write of a sector damages nothing this near after
    /// it.
    pub drive_no_overlap_range: u64,
}

/// The four parameters that define a disk with this interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaveatParameters {
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// Bytes of a sector, always those of a block.
    pub sector_bytes: u64,
    /// The reach of a write.
    pub shape: CaveatShape,
}

impl CaveatShape {
    /// The sectors that writing `blocks` of them at `lba` may damage, on a disk without end.
    pub fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        if blocks == 0 {
            return end..end;
        }
        let near = lba.0 + 1 + self.drive_no_overlap_range;
        end.max(near)..end.max(near).max(end + self.drive_isolation_distance)
    }
}

/// The Caveat-Scriptor interface as a layer: no translation, and a record of damage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CaveatScriptor {
    blocks: u64,
    shape: CaveatShape,
    readable: Runs,
    /// The sectors of the last write, and its end.
    last_write: Option<(Range<u64>, Time)>,
}

impl CaveatScriptor {
    /// A disk of this many sectors, none of which can be read.
    pub fn new(shape: CaveatShape, blocks: u64) -> Self {
        Self {
            blocks,
            shape,
            readable: Runs::default(),
            last_write: None,
        }
    }

    /// The parameters that the host has to know.
    pub const fn parameters(&self) -> CaveatParameters {
        CaveatParameters {
            disk_bytes: self.blocks * BLOCK_BYTES,
            sector_bytes: BLOCK_BYTES,
            shape: self.shape,
        }
    }

    fn written(&mut self, lba: Lba, blocks: u64, at: Time) {
        let range = lba.0..lba.0 + blocks;
        self.readable.add(range.clone());
        self.readable.remove(self.shape.endangered(lba, blocks));
        self.last_write = Some((range, at));
    }
}

impl Layer for CaveatScriptor {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let moves = |w: &Waiting| w.request.operation != RequestKind::Flush;
        let first = queue.iter().position(moves).unwrap_or(0);
        if let Some(waiting) = queue.iter().nth(first)
            && waiting.ready > now
        {
            return Turnout::NotBefore(waiting.ready);
        }
        let waiting = queue.remove(first);
        let (lba, blocks) = (waiting.request.lba, u64::from(waiting.request.blocks));
        let mut served = Served {
            waiting,
            at: now,
            result: Ok(()),
        };
        if waiting.request.operation.is_write() {
            served.at = disk.write(now, Pba(lba.0), blocks);
            self.written(lba, blocks, served.at);
        } else if let Some(lba) = self.unreadable(lba, blocks) {
            // The bitmap is checked before anything moves.
            served.result = Err(Failure::Unreadable { lba });
        } else {
            served.at = disk.read(now, Pba(lba.0), blocks);
        }
        Turnout::Served(vec![served], served.at)
    }

    fn idle(&mut self, _disk: &mut Disk, from: Time, _until: Time) -> Time {
        from
    }

    /// A write that was cut off leaves none of its sectors readable, and the sectors that it endangered count as
    /// damaged.
    fn power_cut(&mut self, _disk: &Disk, now: Time) {
        if let Some((range, at)) = self.last_write.take()
            && at > now
        {
            self.readable.remove(range);
        }
    }

    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let Range { start, end } = self.shape.endangered(lba, blocks);
        start.min(self.blocks)..end.min(self.blocks)
    }

    fn unreadable(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        self.readable.first_missing(lba.0..lba.0 + blocks).map(Lba)
    }
}
