//! How a drive is formatted and mounted, and what is said of files.

use crate::format::superblock::Role;
use runtime::Runtime;

/// How a drive is formatted.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The file system's identity; two in a row should differ.
    pub uuid: [u8; 16],
    /// Alone on the drive, or beside an object store.
    pub role: Role,
    /// In how many zones each byte is, one or two. The superblocks are in two places always.
    pub copies: u32,
    /// Erase what is there.
    pub force: bool,
}

/// How a drive is mounted.
#[derive(Clone)]
pub struct MountOptions {
    /// Write nothing to the drive.
    pub read_only: bool,
    /// Refuse a file system of any other role, before anything is written.
    pub role: Option<Role>,
    /// Go on with what lies in front of damage to what was durable, instead of refusing to mount. In a
    /// mount for writing, what lies behind it is lost for good; read-only, [`BlueFs::damage`] says what
    /// it is.
    pub accept_damage: bool,
    /// Bytes of memory for what was read; 0: none, and nothing is read ahead. Worth it where
    /// nothing below keeps any: a drive in a file has the host's page cache.
    pub cache_bytes: u64,
    /// Keep what is written, too, of files that a compaction is going to read soon: those of unknown,
    /// short or medium lifetime.
    pub cache_writes: bool,
    /// Clean zones ahead of need; `None`: only when there is no other way to go on.
    pub cleaning: Option<Cleaning>,
    /// On a drive in a file: what [`Writer::flush`] is called for survives the process, beside the drive.
    pub keep_unsynced: bool,
    /// Where the times of files and the threads come from.
    pub runtime: Runtime,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            role: None,
            accept_damage: false,
            cache_bytes: 0,
            cache_writes: false,
            cleaning: None,
            keep_unsynced: false,
            runtime: Runtime::system(),
        }
    }
}

/// How zones are cleaned ahead of need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleaning {
    /// In a thread of its own; otherwise only in [`crate::BlueFs::clean_ahead`].
    pub in_background: bool,
    /// Bytes that may be moved for every hundred that users write, when zones get few. When they run
    /// out, more are.
    pub percent: u32,
    /// Bytes that may be moved for every thousand that users write, to have few dead bytes on a drive
    /// that is more than half used.
    pub tidy_per_mille: u32,
    /// Begin when fewer zones than this are free. `None`: when those are nearly all that is kept for
    /// others than compactions, but for a sixteenth of the zones with data.
    pub begin_below: Option<u32>,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self {
            in_background: true,
            percent: 25,
            tidy_per_mille: 14,
            begin_below: None,
        }
    }
}

/// How long a file is expected to live (RocksDB's write lifetime hints).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lifetime {
    /// Nobody said.
    #[default]
    Unknown,
    /// Logs.
    Short,
    /// Level 0 and the base level.
    Medium,
    /// The level below.
    Long,
    /// Deeper levels.
    Extreme,
}
