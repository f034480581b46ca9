//! Signatures first; each moves into its own room.
#![allow(missing_docs, unused_variables, clippy::todo)]
use crate::{Attributes, Result, Transaction};
use device::ZonedDevice;
use serde::Serialize;
use std::sync::Arc;
use zone_alloc::VictimPolicy;

pub struct MkfsOptions { pub uuid: [u8; 16], pub force: bool }
pub struct MountOptions {
    pub read_only: bool,
    /// Whether the cleaner starts by itself when free zones run low.
    pub auto_clean: bool,
    pub policy: VictimPolicy,
    /// Unix time in microseconds.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub block_cache_bytes: u64,
}
impl Default for MountOptions { fn default() -> Self { todo!() } }

/// A mounted store. Cheap to clone; every method may be called from many threads and may block.
#[derive(Clone)]
pub struct Store;

#[derive(Clone, Debug)]
pub struct CollectionInfo { pub name: String, pub created_micros: u64, pub attributes: Attributes }
#[derive(Clone, Debug)]
pub struct ObjectInfo { pub name: String, pub size: u64, pub modified_micros: u64, pub attributes: Attributes }

/// Space, in bytes unless said otherwise. capacity = live + dead + free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statfs {
    pub drive_bytes: u64,      // all that the drive can hold
    pub capacity_bytes: u64,   // what object data may fill at most
    pub live_bytes: u64,       // object data, padding to blocks included
    pub dead_bytes: u64,       // written, and no longer wanted: cleaning gives it back
    pub free_bytes: u64,       // can be written at once
    pub available_bytes: u64,  // capacity - live: what can still be stored
    pub metadata_bytes: u64,   // zones of BlueFS
    pub reserve_bytes: u64,    // kept for the cleaner and for metadata
    pub unusable_bytes: u64,   // tails of finished zones, read-only and offline zones
    pub zones: u32, pub free_zones: u32, pub store_zones: u32, pub metadata_zones: u32,
    pub objects_unknown: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CleanerStatus {
    pub running: bool,        // moving data right now
    pub enabled: bool,        // starts by itself
    pub zones_cleaned: u64, pub bytes_moved: u64, pub bytes_freed: u64,
    pub dirty_zones: u32,     // zones with dead bytes
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct FsckReport {
    pub collections: u64, pub objects: u64, pub extents: u64, pub bytes: u64, pub bytes_verified: u64,
    /// Error kind → count; empty means clean.
    pub errors: std::collections::BTreeMap<String, u64>,
    /// The first errors, in words.
    pub details: Vec<String>,
}

/// Data on the drive that no object names yet; hand it to a [`Transaction`]. Dropped without one,
/// its bytes are dead.
#[derive(Debug)]
pub struct Written;
impl Written { pub fn len(&self) -> u64 { todo!() } pub fn is_empty(&self) -> bool { self.len() == 0 } }

/// Streams bytes onto the drive in bounded memory (about 1 MiB a writer).
pub struct ObjectWriter;
impl ObjectWriter {
    pub fn write(&mut self, data: &[u8]) -> Result<()> { todo!() }
    pub fn finish(self) -> Result<Written> { todo!() }
}

/// An open object: what it holds stays readable until this is dropped, even if it is replaced or
/// removed meanwhile.
pub struct ObjectReader;
impl ObjectReader {
    pub fn info(&self) -> &ObjectInfo { todo!() }
    /// Fills `buffer` from `offset`; short only at the object's end. Every byte returned matched its checksum.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> { todo!() }
}

impl Store {
    pub fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<()> { todo!() }
    pub fn mount(device: Arc<dyn ZonedDevice>, options: MountOptions) -> Result<Self> { todo!() }
    pub fn unmount(&self) -> Result<()> { todo!() }
    pub fn collections(&self) -> Result<Vec<CollectionInfo>> { todo!() }
    pub fn collection(&self, name: &str) -> Result<Option<CollectionInfo>> { todo!() }
    /// A writer; `expected` is the size if it is known.
    pub fn writer(&self, expected: Option<u64>) -> Result<ObjectWriter> { todo!() }
    /// Carries out a transaction; when this returns Ok, it is durable.
    pub fn commit(&self, transaction: Transaction) -> Result<()> { todo!() }
    pub fn stat(&self, collection: &str, object: &str) -> Result<Option<ObjectInfo>> { todo!() }
    pub fn open(&self, collection: &str, object: &str) -> Result<ObjectReader> { todo!() }
    /// At most `limit` objects in byte order of their names, from `from` (inclusive) on, whose names begin with `prefix`.
    pub fn list(&self, collection: &str, prefix: &str, from: &str, limit: usize) -> Result<Vec<ObjectInfo>> { todo!() }
    pub fn statfs(&self) -> Statfs { todo!() }
    pub fn clean_start(&self) -> Result<()> { todo!() }   // in the background, until nothing dirty is left
    pub fn clean_stop(&self) { todo!() }                  // stops after the batch in hand, and no more by itself until clean_start
    pub fn clean_status(&self) -> CleanerStatus { todo!() }
    /// Cleans one zone now; false if none has dead bytes.
    pub fn clean_one(&self) -> Result<bool> { todo!() }
    pub fn fsck(&self, deep: bool, progress: &mut dyn FnMut(u64, u64)) -> Result<FsckReport> { todo!() }
}
