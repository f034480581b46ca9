//! Options for making, mounting and writing to a store.

use crate::compression::Compression;
use crate::scrubber::ScrubPlan;
use kv::Engine;
use object::{ChecksumBlock, ChecksumKind};
use runtime::Runtime;
use std::sync::Arc;
use zone_alloc::{CleaningPolicy, CostBenefit, Hours, Pace, Watermarks};

/// Options for making a store.
#[derive(Clone)]
pub struct MkfsOptions {
    /// Engine of the metadata's database.
    pub engine: Arc<dyn Engine>,
    /// The store's identity.
    pub uuid: [u8; 16],
    /// Number of zones that each byte of metadata is written to, one or two; `None`: two, unless the drive is too small
    /// or has too few active zones for that.
    pub metadata_copies: Option<u32>,
    /// Whether to erase existing data on the drive.
    pub force: bool,
    /// Source of the times of the metadata's files.
    pub runtime: Runtime,
}

impl MkfsOptions {
    /// Defaults: a UUID of zeros, and the default number of copies.
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

/// How the data of objects is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOptions {
    /// Kind of checksum.
    pub checksum: ChecksumKind,
    /// Bytes under one checksum; reading one of them reads all.
    pub checksum_block: ChecksumBlock,
    /// When data is compressed, and with which codec.
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

/// Hints about the data of one writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteHints {
    /// Whether the data is compressible, if known.
    pub compressible: Option<bool>,
    /// Bytes under one checksum, if other than the mount's: fewer where small parts are read.
    pub checksum_block: Option<ChecksumBlock>,
    /// Kind of checksum, if other than the mount's.
    pub checksum: Option<ChecksumKind>,
}

/// Options for mounting a store.
#[derive(Clone)]
pub struct MountOptions {
    /// Engine of the metadata's database; a database of another engine is refused.
    pub engine: Arc<dyn Engine>,
    /// Whether the mount writes nothing to the drive; calls that change something then fail.
    pub read_only: bool,
    /// If read-only, go on with what precedes damage to durable metadata; [`crate::Store::damage`] returns what is
    /// missing. Otherwise the mount is refused.
    pub accept_damage: bool,
    /// Whether threads clean in the background, for the store and for BlueFS. Without them, cleaning happens only on
    /// request or when a writer needs it, as a replayable test wants.
    pub background: bool,
    /// Whether the background cleaner starts by itself when free zones run low.
    pub auto_clean: bool,
    /// Numbers of free zones at which the cleaner starts, and at which cleaning is urgent.
    pub free_zones: Watermarks,
    /// Speed of the cleaner while no thread waits for a zone.
    pub pace: Pace,
    /// Hours in which the cleaner may start before zones are urgently needed.
    pub hours: Hours,
    /// How often everything stored is scrubbed; needs `background`.
    pub scrub: ScrubPlan,
    /// Policy that chooses the zone to clean.
    pub policy: Arc<dyn CleaningPolicy>,
    /// Source of times, hash keys and threads.
    pub runtime: Runtime,
    /// Bytes of memory for blocks of the database.
    pub block_cache_bytes: u64,
    /// Bytes of memory for data of objects that was read; 0: none. Useful where nothing below caches: a drive in a file
    /// has the host's page cache.
    pub data_cache_bytes: u64,
    /// How the data of objects is stored.
    pub data: DataOptions,
}

impl MountOptions {
    /// Defaults: background threads, cleaning at full speed and at any hour, no scrub, cost-benefit policy.
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
