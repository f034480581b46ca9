//! Where the data of files goes: what bands that are appended to and extents that are allocated have in common.

use crate::map::Place;
use crate::options::Policy;
use crate::state::{Freed, State};
use std::ops::Range;
use zone::{ByteOffset, ZoneError, ZoneResult};
use zone_alloc::Pressure;

/// Whose data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// What users write.
    User,
    /// What the cleaner moves: it has lived longer, and will live longer.
    Moved,
    /// What users write where space is set aside for it.
    Preallocated,
}

/// Why data was not written.
#[derive(Debug)]
pub enum Unplaced {
    /// There is no room.
    NoZone,
    /// The drive failed, in several places.
    Drive(ZoneError),
}

impl From<ZoneError> for Unplaced {
    fn from(error: ZoneError) -> Self {
        Self::Drive(error)
    }
}

/// What is to be cleaned: all that is live there moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The zone.
    pub zone: u32,
    /// Blocks of it.
    pub blocks: Range<u32>,
}

/// What is free of bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BandSpace {
    /// Empty bands.
    pub free_bands: u64,
    /// Bands that can be used.
    pub bands: u64,
    /// Bytes of a band.
    pub band_bytes: u64,
}

/// What is free of a Caveat-Scriptor drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ExtentSpace {
    /// Free extents.
    pub free_extents: u64,
    /// Bytes of the largest.
    pub largest_free_bytes: u64,
    /// Bytes that every write needs free behind it, the isolation distance.
    pub footer_bytes: u64,
    /// Bytes that are kept free for cleaning.
    pub reserve_bytes: u64,
}

/// What is free, by the kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Free {
    /// Strict-append.
    Bands(BandSpace),
    /// Caveat-Scriptor.
    Extents(ExtentSpace),
}

/// How space is used, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// What no file has any more, until it is cleaned.
    pub dead: u64,
    /// Free, and of no use as long as its neighbours are not free too.
    pub unusable: u64,
    /// What can be written now, as far as that is less than what files do not have.
    pub room: Option<u64>,
    /// What is free.
    pub free: Free,
}

/// Blocks of zones for data. What was freed is used again only behind a commit that says so.
pub trait Placement: Send + Sync {
    /// Begins with what files have.
    fn load(&mut self, state: &State) -> ZoneResult<()>;

    /// Tidies up behind a crash. What is on the drive says the same as `state`, durably.
    fn begin(&mut self, state: &State) -> ZoneResult<()>;

    /// Writes whole blocks; where they lie, in order. With `together`, in one place; at most
    /// [`Self::most_together`] of them then.
    fn append(
        &mut self,
        stream: Stream,
        data: &[u8],
        together: bool,
    ) -> Result<Vec<Place>, Unplaced>;

    /// Writes the first of some pieces, which have so many blocks each, one behind the other in as few writes as that takes,
    /// but where they would go one by one: how many pieces, one at least, and where they lie, in order. One place may have
    /// several pieces.
    fn append_some(
        &mut self,
        stream: Stream,
        data: &[u8],
        lengths: &[u64],
    ) -> Result<(usize, Vec<Place>), Unplaced>;

    /// Where a block of a zone is.
    fn at(&self, zone: u32, block: u32) -> ByteOffset;

    /// Blocks that can lie in one place at most.
    fn most_together(&self) -> u32;

    /// Blocks that files may have together.
    fn capacity(&self) -> u64;

    /// Whether so many blocks of users find room, now and as long as no others are written; beside them
    /// `preallocated` ones that space is set aside for.
    fn admits(&mut self, blocks: u64, preallocated: u64) -> bool;

    /// Sets space aside for so many blocks of [`Stream::Preallocated`] in all, and leaves room for `beside` others;
    /// `false` if there is none, and nothing has changed. Blocks that are written are none of them any more.
    fn set_aside(&mut self, blocks: u64, beside: u64) -> bool;

    /// Whether [`Self::set_aside`] will succeed once these blocks, from and how many, are free, and `others` more are written, each by
    /// itself.
    fn will_set_aside(&self, _blocks: u64, _freed: &[(u64, u64)], _others: u64) -> bool {
        true
    }

    /// Whether pieces of these sizes, each in one place, find room in this order.
    fn admits_whole(&mut self, sizes: &[u64]) -> bool;

    /// Blocks that are set aside, if that is done in places.
    fn blocks_aside(&self) -> Option<u64> {
        None
    }

    /// Takes back what was freed. What is durable says so.
    fn reclaim(&mut self, freed: &Freed) -> ZoneResult<()>;

    /// What to clean, if anything is worth it.
    fn victim(&mut self, state: &State, policy: Policy, pressure: Pressure) -> Option<Victim>;

    /// What is live in a victim is about to move.
    fn begin_cleaning(&mut self, _victim: &Victim) {}

    /// Takes a zone that is not open out of use until the next mount, for a part of it cannot be read; `false` if there is no
    /// other one.
    fn leave(&mut self, _zone: u32) -> bool {
        false
    }

    /// What was to be cleaned has nothing live any more, durably; something may have moved for it. Whether that gained
    /// anything.
    fn cleaned(&mut self, victim: &Victim, has_moved: bool) -> bool;

    /// How often cleaning may help at most.
    fn tries(&self) -> u64;

    /// How much cleaning is needed.
    fn pressure(&self) -> Option<Pressure>;

    /// What cannot be where `state` says that it is: the first such place.
    fn misplaced(&self, state: &State) -> Option<String>;

    /// Something was written behind the last [`Self::flushed`].
    fn is_unflushed(&self) -> bool;

    /// The drive was flushed.
    fn flushed(&mut self);

    /// Bytes written, padding and moved ones too.
    fn bytes_written(&self) -> u64;

    /// How space is used.
    fn usage(&self, state: &State) -> Usage;
}
