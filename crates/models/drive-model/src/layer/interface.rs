//! The interface of translation layers, and the counters of their background work.

use crate::disk::Disk;
use crate::queue::{Queue, Served, Waiting};
use crate::request::{Failure, Lba};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The result of [`Layer::serve`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turnout {
    /// Requests that were served, and the time at which the drive is free.
    Served(Vec<Served>, Time),
    /// Nothing is served before this time unless another request arrives: a stream may be about to.
    NotBefore(Time),
}

impl Turnout {
    /// One request was served, and the drive is free at the same time.
    pub fn one(waiting: Waiting, at: Time, result: Result<(), Failure>) -> Self {
        let served = Served {
            waiting,
            at,
            result,
        };
        Self::Served(vec![served], at)
    }
}

/// Counters of a layer's background work.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Cleaning {
    /// Bands that were read, merged and rewritten.
    pub bands: u64,
    /// Nanoseconds spent on these bands.
    pub nanos: u64,
    /// Of these bands, the ones that a write of the host had to wait for.
    pub urgent_bands: u64,
    /// Bands that were written by a stream, past the persistent cache.
    pub streamed_bands: u64,
}

impl Cleaning {
    /// The difference to `earlier`, which is of the same drive.
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
    /// Number of logical blocks.
    fn blocks(&self) -> u64;

    /// Serves at least one of the requests that can begin at `now`; the caller makes sure that there is one.
    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout;

    /// Lets the layer do background work while the drive is idle from `from` to `until`. Returns the time at which
    /// the drive is free: `from` if nothing was done, and after `until` if the last step took longer.
    fn idle(&mut self, disk: &mut Disk, from: Time, until: Time) -> Time;

    /// Notes that the volatile cache was switched.
    fn set_volatile_cache(&mut self, _on: bool) {}

    /// Cuts the power at `now`, in the middle of the last operation if that is not finished by then.
    fn power_cut(&mut self, _disk: &Disk, _now: Time) {}

    /// How many blocks of the write that is being served are on the medium in their place at `now`, counted from its
    /// first. Layers that write to a cache first have none there.
    fn reached(&self, _disk: &Disk, _now: Time) -> u64 {
        0
    }

    /// The first of `blocks` blocks that cannot be read.
    fn unreadable(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }

    /// The blocks after these that writing them may damage, for the host to look after.
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// Counters of background work.
    fn cleaning(&self) -> Cleaning {
        Cleaning::default()
    }

    /// Whether any cleaning is outstanding.
    fn is_dirty(&self) -> bool {
        false
    }
}
