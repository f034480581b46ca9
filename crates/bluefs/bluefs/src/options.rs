//! Options for formatting and mounting, and hints for files.

use crate::format::superblock::Role;
use crate::loss::GivenUp;
use runtime::Runtime;

/// Options for formatting a drive.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// Identity of the file system; it should differ from that of an earlier file system on the drive.
    pub uuid: [u8; 16],
    /// Whether the file system is alone on the drive or shares it with an object store.
    pub role: Role,
    /// Copies of each byte, in as many zones: 1 or 2. Superblocks are always in two places.
    pub copies: u32,
    /// Whether to erase a drive that is not empty; without this, formatting it fails.
    pub force: bool,
}

/// Options of a mount.
#[derive(Clone)]
pub struct MountOptions {
    /// Whether the mount writes nothing to the drive; calls that change something then fail.
    pub read_only: bool,
    /// Refuse a file system of any other role, before anything is written.
    pub role: Option<Role>,
    /// Mount in spite of damage to durable data, and continue with the data before it; otherwise such a mount fails. A
    /// mount for writing loses the data after the damage for good; in a read-only mount, [`crate::BlueFs::damage`]
    /// lists the damage.
    pub accept_damage: bool,
    /// For a mount for writing that accepts damage: fail if it would give up anything else; `None`: give up whatever is
    /// damaged.
    pub agreed: Option<GivenUp>,
    /// Bytes of memory for a read cache; 0: no cache and no read-ahead. Useful if no layer below caches: a drive in a
    /// file has the host's page cache.
    pub cache_bytes: u64,
    /// Also put data into the cache when it is written, for files that a compaction is going to read soon: those of
    /// unknown, short or medium lifetime.
    pub cache_writes: bool,
    /// Clean zones ahead of need; `None`: only when a writer waits for space.
    pub cleaning: Option<Cleaning>,
    /// On a drive in a file: keep, beside the drive, the bytes for which [`crate::Writer::flush`] was called, so that
    /// they survive the process.
    pub keep_unsynced: bool,
    /// Source of the times of files, and of threads.
    pub runtime: Runtime,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            role: None,
            accept_damage: false,
            agreed: None,
            cache_bytes: 0,
            cache_writes: false,
            cleaning: None,
            keep_unsynced: false,
            runtime: Runtime::system(),
        }
    }
}

/// Limits for cleaning zones ahead of need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleaning {
    /// Clean in a thread of its own; otherwise only in calls of [`crate::BlueFs::clean_ahead`].
    pub in_background: bool,
    /// Bytes that may be moved for every hundred that users write, while free zones are few. Once a writer will soon
    /// wait for a zone, this limit does not apply.
    pub percent: u32,
    /// Bytes that may be moved for every thousand that users write, to keep dead bytes few on a drive that is more than
    /// half full.
    pub tidy_per_mille: u32,
    /// Begin when fewer zones than this are free. `None`: the zones that compactions leave to other uses, plus a
    /// sixteenth of the zones with data.
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
    /// No hint was given.
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
