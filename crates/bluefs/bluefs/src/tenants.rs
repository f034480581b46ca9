//! Who needs zones, in which order the last empty ones go, and what follows from that for the size of a
//! file system.

use zone_alloc::{Ladder, Tenant};

/// What an empty zone is for; the last ones go to whoever stands first. The journal and moving give zones
/// back. A database that cannot compact goes on, one that cannot write out its memtable goes
/// on for a while, and one without a log stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// What is moved, and what a database cannot be opened without: a few bytes, and what is moved finds
    /// room behind them.
    Move = 1,
    Log,
    /// A file that somebody waits for.
    Waited,
    /// A file that nobody waits for.
    Background,
}

/// The first is the journal, which finds its next zone.
const LADDER: Ladder<5> = Ladder([
    Tenant::new(1, 0),
    Tenant::new(1, 1),
    Tenant::new(1, 2),
    Tenant::new(2, 3),
    Tenant::new(0, 4),
]);

impl Need {
    /// Empty zones that it leaves to others.
    pub const fn kept(self) -> u32 {
        LADDER.kept_from(self as usize)
    }
}

/// Zones that hold no file data: superblocks 4, journal and its successor 2, spare 1.
const BESIDE_FILES: u32 = SUPERBLOCKS + 2 + 1;
/// Zones that files are being written to: a log, a manifest and an SST.
const OPEN_FOR_FILES: u32 = 3;

/// Empty zones that are kept ready: whoever has somebody waiting finds one that is no one else's.
pub(crate) const READY_ZONES: u32 = Need::Waited.kept() + 1;
/// Zones that hold no file data for long: those beside files, and those that compactions leave to others.
pub(crate) const RESERVED_ZONES: u32 = BESIDE_FILES + Need::Background.kept();
/// Zones of the superblocks, which are in two copies always.
pub(crate) const SUPERBLOCKS: u32 = 4;

/// The smallest file system with so many copies of its metadata.
pub(crate) const fn min_zones(copies: u32) -> u32 {
    zones_for(BESIDE_FILES + OPEN_FOR_FILES, copies)
}

/// Sequential zones that it always has, on a drive with conventional ones at its front: the ring of superblocks
/// at its other end.
pub const SEQUENTIAL_ZONES: u32 = 2;
/// How many zones it takes to have `zones` in so many copies, those of the superblocks among them.
pub const fn zones_for(zones: u32, copies: u32) -> u32 {
    let in_copies = zones.saturating_sub(SUPERBLOCKS).saturating_mul(copies);
    in_copies.saturating_add(SUPERBLOCKS)
}

/// Zones that a file system has however little is in it, with one copy of its metadata.
pub const LEAST_ZONES: u32 = BESIDE_FILES + READY_ZONES + OPEN_FOR_FILES;
