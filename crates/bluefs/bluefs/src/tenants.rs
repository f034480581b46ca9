//! The users of zones, the order in which they get the last empty ones, and the sizes of a file system that follow from
//! it.

use zone_alloc::{Ladder, Tenant};

/// The use of an empty zone; the last empty zones are left to the uses listed first.
///
/// The journal and moves give zones back. A database without compactions continues, one that cannot write out its
/// memtable continues for a while, and one without a log stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Moved data, and the files without which a database cannot be opened: those are a few bytes, and moved data finds
    /// room after them.
    Move = 1,
    Log,
    /// A file that a client waits for.
    Waited,
    /// A file that no client waits for.
    Background,
}

/// The first entry is the journal, which can always take its next zone; the others are the values of [`Need`].
const LADDER: Ladder<5> = Ladder([
    Tenant::new(1, 0),
    Tenant::new(1, 1),
    Tenant::new(1, 2),
    Tenant::new(2, 3),
    Tenant::new(0, 4),
]);

impl Need {
    /// Empty zones that this use leaves to others.
    pub const fn kept(self) -> u32 {
        LADDER.kept_from(self as usize)
    }
}

/// Zones that hold no file data: superblocks 4, journal and its successor 2, spare 1.
const BESIDE_FILES: u32 = SUPERBLOCKS + 2 + 1;
/// Zones that files are being written to: a log, a manifest and an SST.
const OPEN_FOR_FILES: u32 = 3;

/// Empty zones that are kept ready, so that a file that a client waits for gets one beyond those kept for other uses.
pub(crate) const READY_ZONES: u32 = Need::Waited.kept() + 1;
/// Zones that hold no file data in the long run: [`BESIDE_FILES`], and those that compactions leave to other uses.
pub(crate) const RESERVED_ZONES: u32 = BESIDE_FILES + Need::Background.kept();
/// Zones of the superblocks, in two rings whatever the number of copies.
pub(crate) const SUPERBLOCKS: u32 = 4;

/// Fewest zones of a file system with this number of copies.
pub(crate) const fn min_zones(copies: u32) -> u32 {
    zones_for(BESIDE_FILES + OPEN_FOR_FILES, copies)
}

/// Sequential zones that a file system needs even if conventional zones suffice for everything else: those of the
/// superblock ring at the drive's end.
pub const SEQUENTIAL_ZONES: u32 = 2;
/// Number of zones that hold `zones` zones in this number of copies; those of superblocks, which are among them, are
/// not multiplied.
pub const fn zones_for(zones: u32, copies: u32) -> u32 {
    let in_copies = zones.saturating_sub(SUPERBLOCKS).saturating_mul(copies);
    in_copies.saturating_add(SUPERBLOCKS)
}

/// Zones that a file system with one copy occupies, however little it holds.
pub const LEAST_ZONES: u32 = BESIDE_FILES + READY_ZONES + OPEN_FOR_FILES;
