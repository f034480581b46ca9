//! How a store is made and mounted.

use crate::compression::Compression;
use crate::scrubber::ScrubPlan;
use kv::Engine;
use object::{ChecksumBlock, ChecksumKind};
use runtime::Runtime;
use std::sync::Arc;
use zone_alloc::{CleaningPolicy, CostBenefit, Hours, Pace, Watermarks};

/// How a store is made.
#[derive(Clone)]
pub struct MkfsOptions {
    /// What makes the database of the metadata.
    pub engine: Arc<dyn Engine>,
    /// The store's identity.
    pub uuid: [u8; 16],
    /// In how many zones each byte of metadata is, one or two; `None`: two, unless the drive is too small for that or has
    /// too few active zones.
    pub metadata_copies: Option<u32>,
    /// Erase whatever is on the drive.
    pub force: bool,
    /// Where the times of the metadata's files come from.
    pub runtime: Runtime,
}

impl MkfsOptions {
    /// The defaults.
    pub fn new(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            uuid: [0; 16],
            metadata_copies: None,
            force: false,
            runtime: Runtime::system(),
        }
    }
}

/// How the bytes of objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOptions {
    /// What guards them.
    pub checksum: ChecksumKind,
    /// Bytes under one checksum: as many are read for one of them.
    pub checksum_block: ChecksumBlock,
    /// Whether they are stored smaller.
    pub compression: Compression,
}

impl Default for DataOptions {
    /// CRC-32C of 64 KiB each, not compressed.
    fn default() -> Self {
        Self {
            checksum: ChecksumKind::Crc32c,
            checksum_block: ChecksumBlock::DEFAULT,
            compression: Compression::default(),
        }
    }
}

/// What a writer knows of the bytes that it is going to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteHints {
    /// Whether they can be compressed.
    pub compressible: Option<bool>,
    /// Bytes under one checksum, if not what the mount says: fewer where small parts are read.
    pub checksum_block: Option<ChecksumBlock>,
    /// What guards them, if not what the mount says.
    pub checksum: Option<ChecksumKind>,
}

/// How a store is mounted.
#[derive(Clone)]
pub struct MountOptions {
    /// What opens the database of the metadata; a database of another is refused.
    pub engine: Arc<dyn Engine>,
    /// Write nothing to the drive.
    pub read_only: bool,
    /// Read-only, go on with what lies in front of damage to what was durable; [`crate::Store::damage`] says
    /// what is missing. Otherwise the mount is refused.
    pub accept_damage: bool,
    /// Run background threads for the cleaner and for that of BlueFS; without them, cleaning happens
    /// only when it is asked for or needed to go on (which is what a replayable test wants).
    pub background: bool,
    /// Whether the background cleaner starts by itself when free zones run low.
    pub auto_clean: bool,
    /// How many zones it keeps free.
    pub free_zones: Watermarks,
    /// How fast it goes while nobody waits for a zone.
    pub pace: Pace,
    /// When it starts by itself before zones are urgently needed.
    pub hours: Hours,
    /// When everything stored is looked at before somebody needs it; needs `background`.
    pub scrub: ScrubPlan,
    /// How the cleaner chooses.
    pub policy: Arc<dyn CleaningPolicy>,
    /// Where times, hash keys and threads come from.
    pub runtime: Runtime,
    /// Bytes of cached blocks of the database.
    pub block_cache_bytes: u64,
    /// Bytes of memory for what was read of objects; 0: none. Worth it where nothing below keeps any: a drive in a
    /// file has the host's page cache.
    pub data_cache_bytes: u64,
    /// How the bytes of objects are written.
    pub data: DataOptions,
}

impl MountOptions {
    /// The defaults.
    pub fn new(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            read_only: false,
            accept_damage: false,
            background: true,
            auto_clean: true,
            free_zones: Watermarks::default(),
            pace: Pace::Full,
            hours: Hours::ALWAYS,
            scrub: ScrubPlan::NEVER,
            policy: Arc::new(CostBenefit),
            runtime: Runtime::system(),
            block_cache_bytes: 64 << 20,
            data_cache_bytes: 0,
            data: DataOptions::default(),
        }
    }
}
