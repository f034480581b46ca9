//! What every translation layer does, and what it counts.

use crate::disk::Disk;
use crate::queue::{Queue, Served, Waiting};
use crate::request::{Failure, Lba};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a layer did with the requests that waited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turnout {
    /// Some are served; the drive is free at the given time.
    Served(Vec<Served>, Time),
    /// None before that time, unless something more comes: a stream may be about to.
    NotBefore(Time),
}

impl Turnout {
    /// One request was served, and the drive is free when it was done.
    pub fn one(waiting: Waiting, at: Time, result: Result<(), Failure>) -> Self {
        let served = Served {
            waiting,
            at,
            result,
        };
        Self::Served(vec![served], at)
    }
}

/// What a layer has done for itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Cleaning {
    /// Bands that were read, merged and written.
    pub bands: u64,
    /// Nanoseconds that took.
    pub nanos: u64,
    /// Of those bands, the ones that a write of the host had to wait for.
    pub urgent_bands: u64,
    /// Bands that were written in a stream, without the persistent cache.
    pub streamed_bands: u64,
}

impl Cleaning {
    /// What was counted since `earlier`, which is of the same drive.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            bands: self.bands - earlier.bands,
            nanos: self.nanos - earlier.nanos,
            urgent_bands: self.urgent_bands - earlier.urgent_bands,
            streamed_bands: self.streamed_bands - earlier.streamed_bands,
        }
    }
}

/// A translation layer over a disk.
pub trait Layer {
    /// Logical blocks.
    fn blocks(&self) -> u64;

    /// Serves at least one of the requests that can be begun at `now`, of which there is one.
    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout;

    /// The drive is idle from `from` to `until`: works for itself if it likes. When it is free:
    /// not before `from`, and after `until` if something that was begun takes longer.
    fn idle(&mut self, disk: &mut Disk, from: Time, until: Time) -> Time;

    /// The host's volatile cache is on or off.
    fn set_volatile_cache(&mut self, _on: bool) {}

    /// The power is gone at `now`, when the drive was in the middle of the last thing it did if
    /// that is not done by then.
    fn power_cut(&mut self, _disk: &Disk, _now: Time) {}

    /// How many blocks of the write that is being served are on the medium at `now`, counted from its
    /// first; a layer that writes elsewhere first has none in its place.
    fn reached(&self, _disk: &Disk, _now: Time) -> u64 {
        0
    }

    /// The first of `blocks` blocks that cannot be read.
    fn unreadable(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }

    /// The blocks behind these that writing them may damage, and that the host has to look after.
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// What it has done for itself.
    fn cleaning(&self) -> Cleaning {
        Cleaning::default()
    }

    /// Whether there is something left to clean.
    fn is_dirty(&self) -> bool {
        false
    }
}
