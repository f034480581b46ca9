//! The allocator interface that bands and extents implement: where the data of files is written.

use crate::map::Place;
use crate::options::Policy;
use crate::state::{Freed, State};
use std::ops::Range;
use zone::{ByteOffset, ZoneError, ZoneResult};
use zone_alloc::Pressure;

/// The source of data that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Writes of users.
    User,
    /// Moves of the cleaner: this data has lived longer than new data, and is likely to live longer.
    Moved,
    /// Writes of users to preallocated blocks.
    Preallocated,
}

/// Why data could not be written.
#[derive(Debug)]
pub enum Unplaced {
    /// There is no free zone or extent.
    NoZone,
    /// The drive failed in several places.
    Drive(ZoneError),
}

impl From<ZoneError> for Unplaced {
    fn from(error: ZoneError) -> Self {
        Self::Drive(error)
    }
}

/// Blocks to be cleaned: all live data in them moves elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The zone.
    pub zone: u32,
    /// Range of blocks in the zone.
    pub blocks: Range<u32>,
}

/// Free space of a zoned drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BandSpace {
    /// Empty bands.
    pub free_bands: u64,
    /// Bands that are not retired.
    pub bands: u64,
    /// Bytes of a band.
    pub band_bytes: u64,
}

/// Free space of a Caveat-Scriptor drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ExtentSpace {
    /// Free extents.
    pub free_extents: u64,
    /// Bytes of the largest.
    pub largest_free_bytes: u64,
    /// Bytes that every write needs free after it: the isolation distance.
    pub footer_bytes: u64,
    /// Bytes of the reserve for cleaning.
    pub reserve_bytes: u64,
}

/// Free space, by the kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Free {
    /// Strict-append.
    Bands(BandSpace),
    /// Caveat-Scriptor.
    Extents(ExtentSpace),
}

/// Use of space, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Blocks that no file has any more, until they are cleaned.
    pub dead: u64,
    /// Free blocks that cannot be written as long as their neighbours are live.
    pub unusable: u64,
    /// Blocks that can be written now; `None` if cleaning can free all that files do not have.
    pub room: Option<u64>,
    /// Free space.
    pub free: Free,
}

/// Allocator of blocks for data. Blocks that a file loses are reused only after a commit says so.
pub trait Placement: Send + Sync {
    /// Takes over the extents that files have at the mount.
    fn load(&mut self, state: &State) -> ZoneResult<()>;

    /// Frees zones that hold data of no file: a crash left it behind, or the zone was open when its last file went.
    /// The drive has the same state as `state`, durably. Returns the number of zones that are free now.
    fn free_dead(&mut self, _state: &State) -> ZoneResult<u64> {
        Ok(0)
    }

    /// Writes whole blocks and returns their places, in order. With `together`, writes at most
    /// [`Self::most_together`] blocks, to one place.
    fn append(
        &mut self,
        stream: Stream,
        data: &[u8],
        together: bool,
    ) -> Result<Vec<Place>, Unplaced>;

    /// Writes the first of several pieces, whose lengths in blocks are `lengths`. Each goes where it would go by
    /// itself, but consecutive ones share a write. Returns how many pieces were written, at least one, and their
    /// places in order; a place may hold several pieces.
    fn append_some(
        &mut self,
        stream: Stream,
        data: &[u8],
        lengths: &[u64],
    ) -> Result<(usize, Vec<Place>), Unplaced>;

    /// Byte offset of a block of a zone.
    fn at(&self, zone: u32, block: u32) -> ByteOffset;

    /// Most blocks in one place.
    fn most_together(&self) -> u32;

    /// Most blocks that all files may have together.
    fn capacity(&self) -> u64;

    /// Whether `blocks` blocks of users find room, now and as long as no others are written, in addition to
    /// `preallocated` blocks with preallocated space.
    fn admits(&mut self, blocks: u64, preallocated: u64) -> bool;

    /// Sets the space for [`Stream::Preallocated`] to `blocks` blocks in all, and leaves room for `beside` others. If
    /// there is no room, returns `false` and changes nothing. Blocks that are written no longer count.
    fn set_aside(&mut self, blocks: u64, beside: u64) -> bool;

    /// Whether [`Self::set_aside`] will succeed once the runs `freed` (start and length) are free and `others` more
    /// blocks are written, each by itself.
    fn will_set_aside(&self, _blocks: u64, _freed: &[(u64, u64)], _others: u64) -> bool {
        true
    }

    /// Whether pieces of these sizes in blocks, each in one place, find room in this order.
    fn admits_whole(&mut self, sizes: &[u64]) -> bool;

    /// Number of blocks in runs for preallocated blocks; `None` if preallocation reserves no places.
    fn blocks_aside(&self) -> Option<u64> {
        None
    }

    /// Frees the blocks of `freed`. The state without them is durable.
    fn reclaim(&mut self, freed: &Freed) -> ZoneResult<()>;

    /// The next victim of cleaning; `None` if no victim is worth it.
    fn victim(&mut self, state: &State, policy: Policy, pressure: Pressure) -> Option<Victim>;

    /// Prepares for the move of a victim's live data.
    fn begin_cleaning(&mut self, _victim: &Victim) {}

    /// Leaves blocks of a zone that is not open, which cannot be read, where they are: until the next mount no victim
    /// has any of them.
    fn leave(&mut self, zone: u32, blocks: Range<u32>);

    /// Ends the cleaning of a victim that has no live data any more, durably, or was left. `has_moved` tells whether any
    /// data moved; returns whether another cleaning may gain something.
    fn cleaned(&mut self, victim: &Victim, has_moved: bool) -> bool;

    /// Limit on successive cleanings that may make room for one write.
    fn tries(&self) -> u64;

    /// How urgent cleaning is; `None` if there is no need.
    fn pressure(&self) -> Option<Pressure>;

    /// Describes the first extent that cannot lie where `state` says; `None` if there is none.
    fn misplaced(&self, state: &State) -> Option<String>;

    /// Whether anything was written since the last [`Self::flushed`].
    fn is_unflushed(&self) -> bool;

    /// Notes that the drive was flushed.
    fn flushed(&mut self);

    /// Bytes written to the drive, including padding and moved data.
    fn bytes_written(&self) -> u64;

    /// Use of space.
    fn usage(&self, state: &State) -> Usage;
}
